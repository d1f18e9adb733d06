"""The first of two voucherds is killed again and again while the second buys from it."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from pathlib import Path

import pytest

from tests.faults.processes import SERVICE, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, suppliers_are_well
from tests.shop import Company, open_shop
from tests.suppliers.chain import FUNDS_MINOR, Chain
from voucherd.db import Pool, open_pool
from voucherd.migrate import migrate
from voucherd.money import Money

KILLS = 8
CLIENTS = 6


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def buy(chain: Chain, company: Company, slug: str, stop: asyncio.Event, chance: random.Random) -> None:
    """A client of the second shop that confirms, resolves and changes its mind."""
    second = chain.second
    while not stop.is_set():
        created = await second.try_create(company, (slug, chance.randint(1, 3)))
        assert created.status_code == 201, created.text
        trx = created.json()["trx"]
        answer = await second.finalise(chance.choice(["confirm", "resolve"]), company, trx)
        assert answer.status_code in {200, 422, 503}, answer.text
        if chance.random() < 0.3:
            await second.cancel(company, trx)


async def until_quiet(chain: Chain) -> None:
    """Wait until both shops owe nobody anything."""
    open_here = (
        "SELECT EXISTS (SELECT FROM orders WHERE status = 1) OR EXISTS (SELECT FROM attempt WHERE status < 2)"
    )
    ends_at = time.monotonic() + 3 * HANG_S
    while await chain.second.pool.fetchval(open_here) or await chain.first.pool.fetchval(open_here):
        assert time.monotonic() < ends_at, await chain.second.pool.fetch("SELECT status, reason FROM attempt")
        await asyncio.sleep(0.2)
        await suppliers_are_well(chain.second.pool)


@pytest.mark.soak
async def test_a_voucherd_that_is_killed_while_another_buys_from_it_sells_nothing_twice(
    pool: Pool, database_url: str, another_schema_url: str, tmp_path: Path
) -> None:
    """OP-28, decision 12: an order whose Confirm was cut off is found again, and the books agree to the cent."""
    await migrate(another_schema_url)
    first_pool, port = await open_pool(another_schema_url, size_max=4), free_port()
    (tmp_path / "first").mkdir()
    surroundings = environment(another_schema_url, tmp_path / "first", port=port, confirm_wait_s=0.5)
    server, chance, stop = (
        Server(SERVICE, surroundings, tmp_path / "first.log"),
        random.Random(8),
        asyncio.Event(),
    )
    async with (
        shop_of(first_pool, tmp_path / "first") as first,
        open_shop(pool, database_url, tmp_path / "second", confirm_wait_s=1.0, resolve_limit_s=4.0) as second,
    ):
        us = await first.company(balance=str(Money(FUNDS_MINOR, "EUR")))
        chain = Chain(first, second, f"http://127.0.0.1:{port}", us)
        slug = await chain.sold_in_both(price="0.09 EUR", ours="0.10 EUR", async_delivery=True)
        await first.stock(slug, 9_000)
        async with running(server):
            await chain.supplier(slug, bulk_max=5)
            company = await second.company(balance="100000.00 EUR")
            async with asyncio.TaskGroup() as clients:
                for at in range(CLIENTS):
                    clients.create_task(buy(chain, company, slug, stop, random.Random(at)))
                for _ in range(KILLS):
                    await asyncio.sleep(chance.uniform(1.0, 3.0))
                    await server.kill()
                    await asyncio.sleep(chance.uniform(0.0, 2.0))
                    await server.start()
                await asyncio.sleep(2.0)
                stop.set()
            await until_quiet(chain)
            await chain.assert_both_books_agree()
        bought = await pool.fetchval("SELECT count(*) FROM attempt WHERE status = 3")
    await first_pool.close()
    assert bought > KILLS
