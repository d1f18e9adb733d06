"""Reports: they say what the ledger and the wire say, however they are grouped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.reports import shelves, sold
from voucherd.reports.model import By, Report
from voucherd.reports.sold import Span

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FAR_OFF = datetime(2120, 1, 1, tzinfo=UTC)
EVER = Span(LONG_AGO, FAR_OFF, State.LIVE)
ALL = [By.DAY, By.MONTH, By.PRODUCT, By.BRAND, By.COMPANY, By.SUPPLIER, By.COUNTRY, By.CURRENCY]


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop without a worker in which Confirm does not wait."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as opened:
        await opened.fx("USD", 91_234_567)
        await opened.fx("JPY", 612_345)
        await opened.product("plain", price="9.50 EUR", stock=10)
        await opened.product("taxed", price="12.37 USD", vat_category="single_purpose")
        await opened.stock("taxed", 2, cost="10.99 EUR", supplier="second")
        await opened.stock("taxed", 8, cost="11 JPY", supplier="wholesale")
        await opened.product("late", face="20 EUR", fee="1.02+0.10", async_delivery=True)
        await opened.stock("late", 3, cost="19.333 KWD")
        yield opened


def total(report: Report, name: str, **labels: str) -> dict[str, int]:
    """A figure by currency, of the rows that have these labels."""
    at = [measure.name for measure in report.measures].index(name)
    sums: dict[str, int] = {}
    for line in report.lines:
        told = dict(zip(report.dimensions, line.labels, strict=True))
        if all(told[key] == value for key, value in labels.items()):
            assert line.currency is not None
            sums[line.currency] = sums.get(line.currency, 0) + line.figures[at]
    return sums


async def trade(shop: Shop) -> tuple[Company, Company, str]:
    """Orders of every ending, in three currencies; both companies, and the order of the first that still waits."""
    dutch = await shop.company(balance="1000.00 EUR")
    german = await shop.company(balance="1000.00 USD", country="DE", vat_number="DE123456789")
    await shop.top_up(german, "90000 JPY")
    for company, currency, items in (
        (dutch, "EUR", (("plain", 2), ("taxed", 4))),
        (dutch, "EUR", (("taxed", 1),)),
        (german, "USD", (("plain", 1), ("taxed", 1))),
        (german, "JPY", (("taxed", 2), ("plain", 3))),
    ):
        order = await shop.create(company, *items, currency=currency)
        await shop.confirm(company, order["trx"])
    resolved = await shop.create(dutch, ("plain", 1))
    await shop.resolve(dutch, resolved["trx"])
    waiting = await shop.create(dutch, ("late", 5))
    assert (await shop.confirm(dutch, waiting["trx"]))["orderStatus"] == "pending"
    gone = await shop.create(dutch, ("plain", 1))
    assert (await shop.cancel(dutch, gone["trx"])).status_code == 204
    play = await shop.create(dutch, ("plain", 3), state=State.SANDBOX)
    await shop.confirm(dutch, play["trx"], state=State.SANDBOX, outcome="finished")
    return dutch, german, waiting["trx"]


async def test_sales_margin_and_vat_are_what_the_ledger_and_the_wire_say(shop: Shop) -> None:
    """Invariant 2: what orders that ended were charged, less refunds, is the price of their delivered lines."""
    dutch, german, waiting = await trade(shop)
    async with shop.pool.acquire() as conn:
        early = await sold.sales(conn, EVER, [By.PRODUCT])
        # An order that still waits has sold what it delivered, and nothing of what it has not.
        assert total(early, "codes", product="late") == {"EUR": 3}
        assert (await shop.cancel(dutch, waiting)).status_code == 200
        sales, margin, vat = [await report(conn, EVER, []) for report in (sold.sales, sold.margin, sold.vat)]
        entries = await conn.fetch(
            """SELECT w.currency, -sum(e.amount_minor)::bigint AS amount, -sum(e.vat_minor)::bigint AS vat
               FROM entry e JOIN wallet w ON w.id = e.wallet_id
               WHERE e.kind IN (2, 3) AND w.state = 0 GROUP BY 1"""
        )
        assert total(sales, "inclVat") == {row["currency"]: row["amount"] for row in entries}
        assert total(sales, "vat") == total(vat, "vat") == {row["currency"]: row["vat"] for row in entries}
        assert set(total(sales, "codes")) == {"EUR", "USD", "JPY"}
        assert total(early, "inclVat") == total(sales, "inclVat")

        commission = sum([await commission_minor(shop, company) for company in (dutch, german)])
        assert sum(total(margin, "marginEur").values()) == commission
        assert margin.grand_total().figures[2:] == tuple(
            sum(total(margin, name).values()) for name in ("priceEur", "costEur", "marginEur")
        )

        for report, whole in ((sold.sales, sales), (sold.margin, margin), (sold.vat, vat)):
            split = await report(conn, EVER, ALL)
            assert split.totals() == whole.totals()
            assert len(split.lines) > len(whole.lines)
        by_supplier = await sold.sales(conn, EVER, [By.SUPPLIER])
        assert total(by_supplier, "codes", supplier="second") == {"EUR": 2}

        play = await sold.sales(conn, Span(LONG_AGO, FAR_OFF, State.SANDBOX), [By.PRODUCT])
        assert total(play, "codes", product="plain") == {"EUR": 3}
        before = await sold.sales(conn, Span(LONG_AGO, LONG_AGO + timedelta(days=1), State.LIVE), [])
        assert before.lines == []
    await shop.assert_books_balance()


async def commission_minor(shop: Shop, company: Company) -> int:
    """The commissions on a company's delivered lines, in euro cents, as the wire tells them."""
    answer = await shop.call("GET", "/api/1.03/order?limit=200", company)
    orders: Any = json.loads(answer.content, parse_float=Decimal)["data"]
    lines = [line for order in orders for item in order["items"] for line in item["orderLines"]]
    return sum(int(line["commissionEur"] * 100) for line in lines if line["status"] == "finished")


async def test_vat_is_told_by_country_category_and_rate(shop: Shop) -> None:
    """OP-52: the rate of the company's country on the day of Create; none under reverse charge, none without a fee."""
    dutch, _, waiting = await trade(shop)
    await shop.cancel(dutch, waiting)
    async with shop.pool.acquire() as conn:
        report = await sold.vat(conn, EVER, [])
    assert report.dimensions == ("country", "vatCategory", "rate")
    assert {line.labels: line.figures[2:4] for line in report.lines if line.currency == "EUR"} == {
        # Three codes with a fee of 0.50; the fixed prices of the others hold no fee.
        ("NL", "multi_purpose", "21.00"): (150, 33),
        ("NL", "multi_purpose", None): (0, 0),
        # Five codes at 12.37 USD, 11.29 EUR each, with 2.60 USD of VAT, 2.37 EUR.
        ("NL", "single_purpose", "21.00"): (5 * 1129, 5 * 237),
    }
    abroad = {line.labels for line in report.lines if line.currency != "EUR"}
    assert abroad == {("DE", "multi_purpose", None), ("DE", "single_purpose", "0.00")}


async def test_stock_is_told_at_cost_with_what_will_not_last(shop: Shop) -> None:
    """The command line: `report stock` as of now: lots, codes left, value at cost, expiring within N days."""
    now = await shop.pool.fetchval("SELECT now()")
    await shop.stock("plain", 4, cost="8.00 EUR", expires=now + timedelta(days=10))
    await shop.stock("plain", 2, cost="7.00 EUR", expires=now - timedelta(days=1))
    async with shop.pool.acquire() as conn:
        report = await shelves.stock(conn, [By.PRODUCT], timedelta(days=30))
        rows = {(line.labels[0], line.currency): line.figures for line in report.lines}
        # Lots, codes, value, in EUR; expiring soon: codes, value; expired: codes, value.
        assert rows["plain", "EUR"] == (2, 14, 12_200, 12_200, 4, 3_200, 2, 1_400)
        assert rows["taxed", "JPY"] == (1, 8, 88, 8_800, 0, 0, 0, 0)
        assert rows["late", "KWD"] == (1, 3, 57_999, 5_799, 0, 0, 0, 0)
        whole = await shelves.stock(conn, [By.CURRENCY], timedelta(days=5))
        assert [line.currency for line in whole.lines] == ["EUR", "JPY", "KWD"]
        assert sum(whole.grand_total().figures[2:3]) == 0, "Currencies never mix."
        assert whole.grand_total().figures[4] == 0
