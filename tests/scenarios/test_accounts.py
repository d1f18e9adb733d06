"""Balances and statements over HTTP: every movement, in an unbroken chain, whoever writes at the same time."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from tests.shop import Company, Shop, corrected
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope
from voucherd.money import Money
from voucherd.wallet import statement

ENTRY = "/api/1.03/account/EUR/entry"


def decimals(body: bytes) -> Any:
    """JSON with its numbers exactly as they were written."""
    return json.loads(body, parse_float=Decimal)


async def walk(
    shop: Shop, company: Company, *, limit: int = 50, path: str = ENTRY, **filters: Any
) -> list[dict[str, Any]]:
    """A whole statement, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(1_000):
        query = filters | {"limit": limit, "cursor": cursor}
        response = await shop.call("GET", path, company, params=query)
        assert response.status_code == 200, response.text
        page = decimals(response.content)
        assert page["metadata"]["pageSize"] == limit
        assert len(page["data"]) <= limit
        found += page["data"]
        cursor = page["metadata"]["nextCursor"]
        if cursor is None:
            return found
    raise AssertionError("the walk does not end")


def assert_chain(newest_first: list[dict[str, Any]]) -> None:
    """Numbers count by one, and each balance is the one before plus what moved, down to the first movement."""
    start = {"seq": 0, "balanceAfter": Decimal(0), "heldAfter": Decimal(0)}
    for later, earlier in pairwise([*newest_first, start]):
        assert later["seq"] == earlier["seq"] + 1
        assert later["balanceAfter"] == earlier["balanceAfter"] + later["amount"]
        assert later["heldAfter"] == earlier["heldAfter"] + later["holdAmount"]


async def account(shop: Shop, company: Company) -> dict[str, Any]:
    """The company's only account."""
    (found,) = decimals((await shop.call("GET", "/api/1.03/account", company)).content)
    return dict(found)


async def lively(shop: Shop) -> tuple[Company, dict[str, str]]:
    """A company with one movement of each kind, and the orders that they are of."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=5)
    await shop.product("later", async_delivery=True)
    trx: dict[str, str] = {}
    for name, slug, operation in (
        ("bought", "gift-10", "confirm"),
        ("refunded", "later", "confirm"),
        ("released", "later", "resolve"),
    ):
        trx[name] = (await shop.create(company, (slug, 2)))["trx"]
        call = asyncio.create_task(shop.finalise(operation, company, trx[name]))
        if operation == "resolve":
            await shop.time_is_up(trx[name])
        assert (await call).status_code == 200
    assert (await shop.cancel(company, trx["refunded"])).status_code == 200
    async with transaction(shop.pool) as tx:
        await corrected(tx, company.name, Money.read("0.50 EUR"), '=cmd|"/c calc"!A1')
    return company, trx


async def test_an_account_shows_the_balance_what_is_held_and_what_is_left(shop: Shop) -> None:
    """OP-60: one for each currency of the key's state, upper case (OP-06), digits as the currency has them (OP-07)."""
    company = await shop.company(balance="100.00 EUR")
    await shop.top_up(company, "5000 JPY")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 2))
    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await shop.waits(order["trx"])
    response = await shop.call("GET", "/api/1.03/account?currency=eur", company)
    (held,) = decimals(response.content)
    await shop.time_is_up(order["trx"])
    await resolving

    assert held == {
        "currency": "EUR",
        "state": "live",
        "totalAmount": Decimal("100.00"),
        "heldAmount": Decimal("19.00"),
        "availableAmount": Decimal("81.00"),
    }
    both = await shop.call("GET", "/api/1.03/account", company)
    assert both.text == (
        '[{"currency":"EUR","state":"live","totalAmount":100.00,"heldAmount":0.00,"availableAmount":100.00},'
        '{"currency":"JPY","state":"live","totalAmount":5000,"heldAmount":0,"availableAmount":5000}]'
    )
    sandbox = await shop.call("GET", "/api/1.03/account", company, state=State.SANDBOX)
    assert [(one["currency"], one["state"]) for one in sandbox.json()] == [("EUR", "sandbox")]
    assert (await shop.call("GET", "/api/1.03/account?currency=USD", company)).json() == []
    await shop.assert_refused(
        shop.call("GET", "/api/1.03/account?currency=euro", company),
        400,
        "currency: must be an ISO 4217 currency code",
    )
    await shop.assert_books_balance()


async def test_a_statement_tells_every_movement_and_filters_what_is_asked_for(quick_shop: Shop) -> None:
    """OP-60: the kinds, their orders and references, by page in both directions, by kind, order and time."""
    shop = quick_shop
    company, trx = await lively(shop)

    whole = await walk(shop, company, limit=2)

    assert_chain(whole)
    oldest_first = whole[::-1]
    assert [entry["kind"] for entry in oldest_first] == [
        *("top-up", "order", "order", "hold", "release", "refund", "correction")
    ]
    assert [entry["trx"] for entry in oldest_first[1:6]] == [
        *(trx["bought"], trx["refunded"], trx["released"], trx["released"], trx["refunded"])
    ]
    assert [entry["amount"] for entry in oldest_first] == [
        Decimal(text) for text in ("100.00", "-19.00", "-19.00", "0.00", "0.00", "19.00", "0.50")
    ]
    assert whole[0]["reference"] == '=cmd|"/c calc"!A1', "JSON is for programs: nothing is put before it"
    assert whole[0]["balanceAfter"] == (await account(shop, company))["totalAmount"]
    assert await walk(shop, company, limit=3, sortOrder="asc") == oldest_first
    for kinds in (["order"], ["refund"], ["top-up", "correction"], ["HOLD", "release"], ["order", "refund"]):
        words = [kind.lower() for kind in kinds]
        for limit in (1, 50):
            assert await walk(shop, company, limit=limit, kind=kinds) == [
                entry for entry in whole if entry["kind"] in words
            ]
    assert await walk(shop, company, limit=1, trx=trx["refunded"]) == [whole[1], whole[4]]
    assert await walk(shop, company, trx=trx["refunded"], kind="order") == [whole[4]]
    assert await walk(shop, company, trx="TRX0") == []
    times = [
        row["at"] for row in await shop.pool.fetch("SELECT at FROM entry WHERE order_id & 1 = 0 ORDER BY seq")
    ]
    assert times == sorted(times)
    between = await walk(shop, company, dateFrom=times[0].isoformat(), dateTo=times[1].isoformat())
    assert between == whole[4:6]
    assert await walk(shop, company, dateFrom=times[2].isoformat(), kind="hold", sortOrder="asc") == [
        whole[3]
    ]
    assert await walk(shop, company, dateFrom="2999-01-01") == []
    assert await walk(shop, company, dateTo="1999-01-01") == []
    assert await walk(shop, company, dateFrom="1999-01-01", dateTo="2999-01-01") == whole
    await shop.assert_books_balance()


async def test_the_statement_as_csv_is_the_same_statement(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-60: all of it in one file, written a few at a time; a reference can't be run by a spreadsheet."""
    shop = quick_shop
    company, _ = await lively(shop)
    monkeypatch.setattr(statement, "FILE_PAGE", 2)
    whole = await walk(shop, company)

    for arguments in ({"headers": {"accept": "text/csv"}}, {"params": {"format": "CSV"}}):
        answer = await shop.call("GET", ENTRY, company, **arguments)  # type: ignore[arg-type]
        assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
        assert answer.headers["content-disposition"] == 'attachment; filename="account-EUR-live.csv"'
        assert answer.headers["cache-control"] == "no-store"
        rows = list(csv.DictReader(io.StringIO(answer.text, newline=""), strict=True))
        assert rows[0].pop("reference") == "'" + str(whole[0]["reference"])
        for row, entry in zip(rows, whole, strict=True):
            assert row == {
                name: "" if value is None else str(value) for name, value in entry.items() if name in row
            }
    narrow = await shop.call("GET", ENTRY + "?format=csv&kind=top-up&sortOrder=asc", company)
    assert [line.split(",")[2] for line in narrow.text.splitlines()] == ["kind", "top-up"]
    forced = await shop.call("GET", ENTRY + "?format=json", company, headers={"accept": "text/csv"})
    assert forced.headers["content-type"] == "application/json"
    head = await shop.client.head(ENTRY + "?format=csv", headers=company.bearer())
    assert (head.status_code, head.content) == (200, b"")


async def test_what_is_asked_wrongly_is_refused_and_what_is_not_yours_does_not_exist(
    quiet_shop: Shop,
) -> None:
    """OP-24, OP-25, OP-60: another company's account and the other state's are like none at all."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    await shop.top_up(company, "10.00 EUR")
    stranger = await shop.company(balance=None)
    blind = await shop.company(scopes=SCOPES_DEFAULT - {Scope.WALLET_READ})
    assert len(await walk(shop, company)) == 1
    assert len(await walk(shop, company, path="/api/1.03/account/eur/entry")) == 1
    assert (await shop.call("GET", "/api/1.03/account", stranger)).json() == []
    assert (await shop.call("GET", "/api/1.03/account", company, state=State.SANDBOX)).json() == []
    for who, state, currency in (
        (stranger, State.LIVE, "EUR"),
        (company, State.SANDBOX, "EUR"),
        (company, State.LIVE, "USD"),
        (company, State.LIVE, "XYZ"),
        (company, State.LIVE, "eurſ"),
    ):
        path = f"/api/1.03/account/{currency}/entry"
        await shop.assert_refused(shop.call("GET", path, who, state=state), 404, "account not found")
    for path in ("/api/1.03/account", ENTRY):
        await shop.assert_refused(shop.call("GET", path, blind), 403, "forbidden")
    for query, text in {
        "kind=purchase": "kind: must be top-up, order, refund, hold, release or correction",
        "limit=0": "limit: must be between 1 and 200",
        "limit=201": "limit: must be between 1 and 200",
        "cursor=!": "cursor: is not one of ours",
        "cursor=LTE": "cursor: is not one of ours",
        "dateFrom=yesterday": "dateFrom: must be an ISO 8601 date or date-time",
        "sortOrder=up": "sortOrder: must be asc or desc",
        "format=xml": "format: must be json or csv",
        "page=2": "page: is not offered here, use cursor",
        "trx=a&trx=b": "trx: must be given once",
        "format=csv&limit=5": "limit: can not be combined with CSV, which has no pages",
    }.items():
        await shop.assert_refused(shop.call("GET", f"{ENTRY}?{query}", company), 400, text)
    assert await walk(shop, company, limit=1, dateTo="9999-12-31T23:59:59Z", dateFrom="0001-01-01") != []
    assert (await shop.call("GET", ENTRY + "?cursor=OTk5OTk5OTk5OTk5OTk5OTk5", company)).status_code == 200


async def test_a_page_looks_at_so_many_movements_at_most(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-60: what is rare and has no index makes pages short or empty, never slow; the walk misses nothing."""
    shop = quiet_shop
    monkeypatch.setattr(statement, "SCAN_MAX", 4)
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=2)
    for _ in range(2):
        for _ in range(9):
            await shop.top_up(company, "1.00 EUR")
        await shop.confirm(company, (await shop.create(company, ("gift-10", 1)))["trx"])
    whole = await walk(shop, company)
    orders = [entry for entry in whole if entry["kind"] == "order"]
    assert len(orders) == 2
    for limit in (1, 50):
        assert await walk(shop, company, limit=limit, kind="order") == orders
        assert await walk(shop, company, limit=limit, kind="order", sortOrder="asc") == orders[::-1]
        assert len(await walk(shop, company, limit=limit, kind="top-up")) == 19
    first = decimals((await shop.call("GET", ENTRY + "?kind=hold", company)).content)
    assert first["data"] == []
    assert first["metadata"]["nextCursor"] is not None


async def test_the_chain_is_unbroken_while_sixty_four_write(shop: Shop) -> None:
    """OP-60: top-ups, orders, refunds and holds at once; each statement that is read meanwhile adds up."""
    company = await shop.company(balance="1000.00 EUR")
    await shop.product("gift-10", stock=100)
    await shop.product("later", async_delivery=True)
    trx = [(await shop.create(company, ("later" if at % 2 else "gift-10", 1)))["trx"] for at in range(48)]

    async def write(at: int) -> None:
        if at >= len(trx):
            for _ in range(3):
                await shop.top_up(company, "0.01 EUR")
        elif at % 8 == 7:
            resolving = asyncio.create_task(shop.finalise("resolve", company, trx[at]))
            await shop.time_is_up(trx[at])  # Held, then released after the limit.
            await resolving
        elif at % 2:
            confirming = asyncio.create_task(shop.finalise("confirm", company, trx[at]))
            await shop.until_status(company, trx[at], "pending")
            assert (await shop.cancel(company, trx[at])).status_code == 200
            await confirming
        else:
            await shop.confirm(company, trx[at])

    writers = asyncio.gather(*(write(at) for at in range(64)))
    walks = 0
    while not writers.done() or walks < 3:
        assert_chain(await walk(shop, company, limit=7))
        assert_chain((await walk(shop, company, limit=13, sortOrder="asc"))[::-1])
        walks += 1
    await writers

    whole = await walk(shop, company, limit=200)
    assert_chain(whole)
    shown = await account(shop, company)
    assert (whole[0]["balanceAfter"], whole[0]["heldAfter"]) == (shown["totalAmount"], shown["heldAmount"])
    assert sum(entry["amount"] for entry in whole) == shown["totalAmount"]
    assert {entry["kind"] for entry in whole} >= {"top-up", "order", "refund", "hold", "release"}
    assert (
        await shop.pool.fetchval(
            "SELECT count(*) FROM (SELECT at, lag(at) OVER (PARTITION BY wallet_id ORDER BY seq) AS before"
            " FROM entry) e WHERE at < before"
        )
        == 0
    ), "a wallet's times rise with its numbers"
    await shop.assert_books_balance()


async def clock_was_ahead(shop: Shop, company: Company, seqs: str) -> None:
    """Let these movements have happened two hours later, as where the clock of the database was ahead."""
    async with transaction(shop.pool) as tx:
        await tx.execute("ALTER TABLE entry DISABLE TRIGGER USER")
        await tx.execute(
            f"UPDATE entry e SET at = e.at + interval '2 hours' FROM wallet w "  # noqa: S608 - Of the test.
            f"WHERE w.id = e.wallet_id AND w.company_id = $1 AND e.seq IN ({seqs})",
            company.id,
        )
        await tx.execute("ALTER TABLE entry ENABLE TRIGGER USER")


async def test_times_of_movements_rise_though_the_clock_is_set_back(quiet_shop: Shop) -> None:
    """Statements of a period, OP-118: numbers and times agree, or a period's ends could not be found by halving."""
    shop = quiet_shop
    company, other = await shop.company(balance="50.00 EUR"), await shop.company(balance="50.00 EUR")
    await shop.product("gift-10", stock=10)
    await clock_was_ahead(shop, company, "1")
    trx = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(3)]
    await asyncio.gather(*(shop.confirm(company, one) for one in trx))
    await shop.confirm(other, (await shop.create(other, ("gift-10", 1)))["trx"])

    rows = await shop.pool.fetch(
        "SELECT e.at FROM entry e JOIN wallet w ON w.id = e.wallet_id"
        " WHERE w.company_id = $1 AND w.state = 0 ORDER BY e.seq",
        company.id,
    )
    assert len(rows) == 4
    assert all(later["at"] >= earlier["at"] for earlier, later in pairwise(rows))
    ahead = rows[0]["at"].isoformat()
    assert len(await walk(shop, company, dateFrom=ahead)) == 4
    early = (rows[0]["at"] - timedelta(hours=1)).isoformat()
    assert await walk(shop, company, dateTo=early) == []
    assert len(await walk(shop, other, dateTo=early)) == 2, "another wallet keeps its own time"
    await shop.assert_books_balance()


async def test_a_period_keeps_its_bounds_where_times_ran_back(quiet_shop: Shop) -> None:
    """Statements of a period, OP-118: entries of a program that wrote what such a clock said are not shown outside."""
    shop = quiet_shop
    company = await shop.company(balance="500.00 EUR")
    await shop.product("gift-10", stock=10)
    for _ in range(6):
        await shop.confirm(company, (await shop.create(company, ("gift-10", 1)))["trx"])
    await clock_was_ahead(shop, company, "1, 2, 3")
    last = await shop.pool.fetchval("SELECT max(at) FROM entry WHERE seq > 3")
    until = (last + timedelta(minutes=1)).isoformat()

    asked: list[dict[str, Any]] = [{}, {"sortOrder": "asc"}, {"kind": "order"}]
    for filters in asked:
        found = await walk(shop, company, dateTo=until, **filters)
        assert sorted(line["seq"] for line in found) == [4, 5, 6, 7], filters
    assert await walk(shop, company, dateTo=until, kind="top-up") == []
    await shop.assert_books_balance()
