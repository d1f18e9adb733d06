"""kill -9 under load, and two processes on one database: what a client was told stays true."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.processes import (
    SERVICE,
    WALLET_IS_ENDLESS,
    Client,
    Ledger,
    Server,
    codes_of,
    environment,
    running,
    servers,
)
from tests.patience import HANG_S, until, until_true
from tests.shop import Shop
from voucherd.db import Pool
from voucherd.money import Money
from voucherd.settings import Settings
from voucherd.vault.master_key import load_or_create_master

CLIENTS = 12
RESOLVE_LIMIT_S = 2.0
PROMISES_MIN = 20
"""Of each life of a server."""


@asynccontextmanager
async def shop_of(pool: Pool, folder: Path) -> AsyncIterator[Shop]:
    """The operator's side of a shop whose servers are other processes."""
    settings = Settings.load({"data": folder}, {})
    master = load_or_create_master(settings.master_key_file, create=True)
    async with httpx.AsyncClient(timeout=HANG_S) as client:
        yield Shop(pool, client, settings, master, None)  # type: ignore[arg-type] # No app is in this process.


@pytest.fixture
async def shop(pool: Pool, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with a product on the shelf and one that comes later."""
    async with shop_of(pool, tmp_path) as opened:
        await opened.product("now", price="9.50 EUR")
        await opened.product("later", price="9.90 EUR", async_delivery=True)
        yield opened


async def storm(shop: Shop, server: Server, *, kills: int, seed: int) -> Ledger:
    """Clients at work while their server is killed again and again."""
    ledger, stop, chance = Ledger(), asyncio.Event(), random.Random(seed)
    companies = [await shop.company(balance=WALLET_IS_ENDLESS) for _ in range(3)]
    clients = [Client([server], companies[at % 3], ledger, seed + at) for at in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.buy_until(stop))
        for kill in range(kills):
            # In the middle of their work, however long that takes them.
            promised = PROMISES_MIN * kill + chance.randint(1, PROMISES_MIN)
            await until_true(lambda promised=promised: len(ledger.promised) > promised)  # type: ignore[misc]
            await server.kill()
            await until_true(lambda kill=kill: ledger.answers["lost"] > kill)  # type: ignore[misc]
            await shop.stock("later", 40)
            await server.start()
        await until_true(lambda: len(ledger.promised) > PROMISES_MIN * kills)
        stop.set()
    return ledger


async def settle_down(shop: Shop) -> None:
    """Fill the shelf for everyone who waits, and see that the worker serves or ends them all."""
    waiting = int(await shop.pool.fetchval("SELECT coalesce(sum(line_to - line_from), 0) FROM waiting"))
    await shop.stock("later", waiting + 1)

    async def quiet() -> bool:
        return not await shop.pool.fetchval("SELECT count(*) FROM orders WHERE status = 1")

    await until(quiet, "orders still wait")
    assert await shop.pool.fetchval("SELECT count(*) FROM waiting") == 0
    assert await shop.pool.fetchval("SELECT sum(held_minor) FROM wallet") == 0


async def assert_promises_kept(shop: Shop, server: Server, ledger: Ledger) -> None:
    """Every order that a client saw finished is finished with those codes, charged once, and no code is on two."""
    given = [code for codes in ledger.promised.values() for code in codes]
    assert len(set(given)) == len(given), "a code was given to two orders"
    rows = await shop.pool.fetch(
        "SELECT o.id, o.status, o.charged_minor, o.refunded_minor, o.price_minor + o.vat_minor AS total,"
        " (SELECT count(*) FROM entry e WHERE e.order_id = o.id AND e.kind = 2) AS charges FROM orders o"
    )
    found = {row["id"]: row for row in rows}
    for trx, codes in ledger.promised.items():
        row = found[shop.ids.order_id(trx) or 0]
        assert (row["status"], row["charged_minor"], row["refunded_minor"]) == (2, row["total"], 0)
        assert row["charges"] == 1
        response = await shop.client.get(
            f"{server.url}/api/1.03/order/{trx}", headers=ledger.owners[trx].bearer()
        )
        assert (response.status_code, codes_of(response.json())) == (200, codes)
    assert max(row["charges"] for row in rows) == 1
    await shop.assert_books_balance()


@pytest.mark.parametrize(
    ("kills", "stock"),
    [pytest.param(2, 9_000), pytest.param(60, 9_900, marks=pytest.mark.soak)],
    ids=["2 kills", "60 kills"],
)
async def test_a_server_that_is_killed_under_load_breaks_no_promise(
    shop: Shop, database_url: str, tmp_path: Path, kills: int, stock: int
) -> None:
    """Invariants 1 to 3 and OP-46: whatever was answered before the kill is true after it, and nothing is lost."""
    for _ in range(max(1, kills // 5)):
        await shop.stock("now", stock)
    async with servers(
        1, database_url, tmp_path, resolve_limit_s=RESOLVE_LIMIT_S, confirm_wait_s=0.3
    ) as running:
        (server,) = running
        ledger = await storm(shop, server, kills=kills, seed=kills)
        await settle_down(shop)
        await assert_promises_kept(shop, server, ledger)
    assert ledger.answers["lost"] >= kills, ledger.answers
    assert len(ledger.promised) > PROMISES_MIN * kills, ledger.answers


async def test_two_processes_confirm_the_same_orders_and_each_has_one_winner(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """OP-47, invariant 3: the same trx is sold once, whichever process is asked, and however often at once."""
    await shop.stock("now", 200)
    company = await shop.company(balance="1000.00 EUR")
    async with servers(2, database_url, tmp_path) as (here, there):

        async def call(server: Server, operation: str, trx: str) -> httpx.Response:
            path = f"{server.url}/api/1.03/order/{operation}/{trx}"
            return await shop.client.patch(path, headers=company.bearer())

        body = {"items": [{"productSlug": "now", "amount": 2}], "paymentCurrency": "EUR"}
        created = [
            await shop.client.post(f"{server.url}/api/1.03/order", json=body, headers=company.bearer())
            for server in (here, there) * 20
        ]
        trxs = [response.json()["trx"] for response in created]
        answers = await asyncio.gather(
            *(call(server, "confirm", trx) for trx in trxs for server in (here, there, there, here))
        )
        calls = [answers[at : at + 4] for at in range(0, len(answers), 4)]
        for four in calls:
            won = [one for one in four if one.status_code == 200]
            lost = [(one.status_code, one.text) for one in four if one.status_code != 200]
            assert [one.json()["orderStatus"] for one in won] == ["finished"]
            assert lost == [(400, "this order can not be confirmed")] * 3
        codes = [code for four in calls for one in four if one.is_success for code in codes_of(one.json())]

    assert len(set(codes)) == len(codes) == 80
    assert await shop.balance(company) == Money.read("240.00 EUR")
    await shop.assert_books_balance()


async def test_of_a_confirm_and_a_cancel_in_two_processes_one_comes_first(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """Contract 3: an order that was deleted first is not found, one that was delivered first can't be cancelled."""
    await shop.stock("now", 100)
    company = await shop.company(balance="1000.00 EUR")
    async with servers(2, database_url, tmp_path) as (here, there):
        finished = 0
        for at in range(30):
            body = {"items": [{"productSlug": "now", "amount": 1}], "paymentCurrency": "EUR"}
            headers = company.bearer()
            created = await shop.client.post(f"{here.url}/api/1.03/order", json=body, headers=headers)
            trx = created.json()["trx"]
            first, second = (here, there) if at % 2 else (there, here)
            confirmed, cancelled = await asyncio.gather(
                shop.client.patch(f"{first.url}/api/1.03/order/confirm/{trx}", headers=headers),
                shop.client.patch(f"{second.url}/api/1.03/order/cancel/{trx}", headers=headers),
            )
            both = (confirmed.status_code, cancelled.status_code)
            assert both in {(200, 400), (404, 204)}
            finished += both == (200, 400)

    assert await shop.balance(company) == Money(100_000 - 950 * finished, "EUR")
    await shop.assert_books_balance()


async def test_a_resolve_whose_process_was_killed_is_ended_by_another_process(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """OP-46: the hold and the deadline are in the database; any sweeper releases the one at the other."""
    company = await shop.company(balance="100.00 EUR")
    async with servers(2, database_url, tmp_path, resolve_limit_s=2 * HANG_S) as (doomed, other):
        headers = company.bearer()
        body = {"items": [{"productSlug": "later", "amount": 2}], "paymentCurrency": "EUR"}
        created = await shop.client.post(f"{doomed.url}/api/1.03/order", json=body, headers=headers)
        trx = created.json()["trx"]
        resolving = asyncio.create_task(
            shop.client.patch(f"{doomed.url}/api/1.03/order/resolve/{trx}", headers=headers)
        )
        held_minor = await until(lambda: shop.held(company))
        await doomed.kill()
        with pytest.raises(httpx.TransportError):
            await resolving

        async def ended() -> dict[str, Any] | None:
            found = await shop.client.get(f"{other.url}/api/1.03/order/{trx}", headers=headers)
            # While it is resolved it is shown as created (OP-139).
            return None if found.json()["orderStatus"] == "created" else dict(found.json())

        order_id = shop.ids.order_id(trx)
        assert await ended() is None, "its time is not up yet"
        for table, key in (("orders", "id"), ("waiting", "order_id")):
            await shop.pool.execute(f"UPDATE {table} SET deadline_at = now() WHERE {key} = $1", order_id)  # noqa: S608 - Constants.
        order = await until(ended)

    assert order is not None
    assert (held_minor, order["orderStatus"], order["paymentStatus"]) == (1980, "cancelled", "unpaid")
    assert await shop.held(company) == 0
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_a_repeated_confirm_gets_through_after_its_server_froze_or_was_killed(
    shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """OP-112, OP-113: another server answers once the first is known to be gone; if it wakes, it says the same."""
    company = await shop.company(balance="100.00 EUR")
    surroundings = environment(database_url, tmp_path, confirm_wait_s=HANG_S)
    commands = ((*SERVICE, "--no-worker"), SERVICE)
    victim, other = [Server(one, surroundings, tmp_path / f"{at}.log") for at, one in enumerate(commands)]
    async with running(victim, other):
        for way in (signal.SIGSTOP, signal.SIGKILL):
            body = {"items": [{"productSlug": "later", "amount": 1}], "paymentCurrency": "EUR"}
            headers = company.bearer() | {"idempotency-key": way.name}
            created = await shop.client.post(
                f"{other.url}/api/1.03/order", json=body, headers=company.bearer()
            )
            path = f"/api/1.03/order/confirm/{created.json()['trx']}"
            order_id = shop.ids.order_id(created.json()["trx"])
            first = asyncio.create_task(shop.client.patch(victim.url + path, headers=headers))
            await until(
                partial(shop.pool.fetchval, "SELECT key FROM idempotency WHERE order_id = $1", order_id)
            )
            busy = await shop.client.patch(other.url + path, headers=headers)
            assert busy.status_code == 409
            if way is signal.SIGSTOP:
                victim.freeze()
            else:
                await victim.kill()
            await shop.stock("later", 1)
            second = await _through(shop, other.url + path, headers)
            assert (second.status_code, second.json()["orderStatus"]) == (200, "finished")
            if way is signal.SIGSTOP:
                victim.thaw()
                woken = await first
                # Each links to its own address.
                said = woken.content.replace(victim.url.encode(), other.url.encode())
                assert (woken.status_code, said) == (second.status_code, second.content)
            await asyncio.gather(first, return_exceptions=True)

    assert await shop.balance(company) == Money.read("80.20 EUR")
    await shop.assert_books_balance()


async def _through(shop: Shop, url: str, headers: dict[str, str]) -> httpx.Response:
    """The answer to a call that is repeated as long as it is told to wait."""

    async def answered() -> httpx.Response | None:
        answer = await shop.client.patch(url, headers=headers)
        return None if answer.status_code == 409 else answer

    found = await until(answered)
    assert found is not None
    return found
