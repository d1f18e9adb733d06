"""A host that freezes, or whose link is cut, in the middle of a sale: others sell on, and nothing is half done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.faults.links import linked
from tests.faults.processes import SERVICE, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, until, until_blocked
from tests.shop import Company, Shop
from voucherd.connections import Limits
from voucherd.db import Pool, transaction
from voucherd.money import Money
from voucherd.settings import Settings

TRANSACTION_S_MAX = 4.0
"""Twice the default: a machine that is busy must be able to stop a server in time."""
SELLS_AGAIN_S_MAX = 5.0
LONG = pytest.mark.soak
CALM = pytest.param(Settings().transaction_s_max, SELLS_AGAIN_S_MAX, id="timed", marks=LONG)
BUSY = pytest.param(TRANSACTION_S_MAX, None, id="however long")


@pytest.fixture
async def shop(pool: Pool, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with codes on the shelf."""
    async with shop_of(pool, tmp_path) as opened:
        await opened.product("now", price="9.50 EUR")
        await opened.stock("now", 20)
        yield opened


@asynccontextmanager
async def two_hosts(
    here: str, there: str, folder: Path, transaction_s_max: float
) -> AsyncIterator[list[Server]]:
    """Two servers of one shop, each with its own way to the database."""
    hosts = [
        Server(
            (*SERVICE, "--no-worker"),
            environment(url, folder, transaction_s_max=transaction_s_max, batch_limit_s=HANG_S),
            folder / f"host-{at}.log",
        )
        for at, url in enumerate((here, there))
    ]
    async with running(*hosts):
        yield hosts


async def order(shop: Shop, server: Server, company: Company) -> str:
    """A new order."""
    body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
    created = await shop.client.post(f"{server.url}/api/1.03/order", json=body, headers=company.bearer())
    assert created.status_code == 201, created.text
    return str(created.json()["trx"])


async def confirm(shop: Shop, server: Server, company: Company, trx: str) -> httpx.Response:
    """Confirm it there."""
    url = f"{server.url}/api/1.03/order/confirm/{trx}"
    return await shop.client.patch(url, headers=company.bearer())


async def sells(shop: Shop, server: Server, company: Company) -> bool:
    """Whether a sale succeeds there now."""
    answer = await confirm(shop, server, company, await order(shop, server, company))
    assert answer.status_code in {200, 503}, answer.text
    assert answer.is_success or answer.headers["retry-after"] == "1"
    return answer.is_success


@asynccontextmanager
async def in_a_sale(
    shop: Shop, server: Server, company: Company
) -> AsyncIterator[tuple[str, asyncio.Task[httpx.Response]]]:
    """An order and its Confirm, which has the wallet's lock and waits for the shelf's; it gets that when this ends."""
    trx = await order(shop, server, company)
    async with transaction(shop.pool) as tx:
        await tx.execute("SELECT FROM lot FOR UPDATE")
        confirming = asyncio.create_task(confirm(shop, server, company, trx))
        await until_blocked(shop.pool)
        yield trx, confirming


async def assert_undone(shop: Shop, server: Server, company: Company, trx: str, sold: int) -> None:
    """The order that was cut short can be confirmed, and no other sale was hurt."""
    found = await shop.client.get(f"{server.url}/api/1.03/order/{trx}", headers=company.bearer())
    assert (found.json()["orderStatus"], found.json()["paymentStatus"]) == ("created", "unpaid")
    assert await shop.balance(company) == Money(100_000 - 950 * sold, "EUR")
    again = await until(lambda: _confirmed(shop, server, company, trx))
    assert again
    assert await shop.balance(company) == Money(100_000 - 950 * (sold + 1), "EUR")
    await shop.assert_books_balance()


async def _confirmed(shop: Shop, server: Server, company: Company, trx: str) -> bool:
    return (await confirm(shop, server, company, trx)).is_success


@pytest.mark.parametrize(("transaction_s_max", "sells_again_s_max"), [BUSY, CALM])
async def test_a_host_that_freezes_or_is_cut_off_in_a_sale_loses_its_locks_and_another_host_sells(
    shop: Shop, database_url: str, tmp_path: Path, transaction_s_max: float, sells_again_s_max: float | None
) -> None:
    """OP-106: the wallet's lock ends with the session, though nobody tells the database; its own sale is undone."""
    company = await shop.company(balance="1000.00 EUR")
    async with (
        linked(database_url) as link,
        two_hosts(link.url(), database_url, tmp_path, transaction_s_max) as (stopped, other),
    ):
        sold = 0
        for stop, go_on in ((stopped.freeze, stopped.thaw), (link.fall_silent, lambda: None)):
            await until(lambda: sells(shop, stopped, company))
            async with in_a_sale(shop, stopped, company) as (trx, confirming):
                stop()
            began = time.monotonic()

            await until(lambda: sells(shop, other, company), "nothing is sold while a host is stopped")

            took_s = time.monotonic() - began
            assert sells_again_s_max is None or took_s < sells_again_s_max
            go_on()
            answer = await confirming
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
            sold += 2
            await assert_undone(shop, other, company, trx, sold)
            sold += 1
        link.come_back()
        await until(lambda: sells(shop, stopped, company), "it does not sell again with its link back")
    await shop.assert_books_balance()


async def test_sales_go_on_at_the_next_host_of_the_address_though_the_first_is_silent(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """OP-107: after a failover the old host may swallow what is sent there, and keeps nobody waiting for long."""
    company = await shop.company(balance="1000.00 EUR")
    async with linked(database_url) as old, linked(database_url) as new:
        url = old.url(new.host)
        surroundings = environment(url, tmp_path, transaction_s_max=TRANSACTION_S_MAX)
        server = Server((*SERVICE, "--no-worker"), surroundings, tmp_path / "server.log")
        async with running(server):
            assert await sells(shop, server, company)
            assert (old.asked > 0, new.asked) == (True, 0)
            old.fall_silent()

            async def sold() -> bool:
                # A call that meets a lost connection fails, and may be sent again.
                try:
                    return await sells(shop, server, company)
                except AssertionError:
                    return False

            await until(sold, "nothing is sold at the next host")
            assert new.asked > 0
    await shop.assert_books_balance()


def test_a_sale_may_take_two_seconds_and_its_host_is_gone_before_the_others_give_up() -> None:
    """OP-106: the limits of a session of the service, of which the shortest is that of doing nothing."""
    limits = Limits.of_service(Settings().transaction_s_max)
    assert limits == (30.0, 2.0, 1.0)
    assert limits.idle_s < limits.lock_s <= Settings().transaction_s_max
    assert limits.settings == {
        "statement_timeout": "30000",
        "lock_timeout": "2000",
        "idle_in_transaction_session_timeout": "1000",
    }
