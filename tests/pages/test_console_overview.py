"""The console's overview: what the shop sells, what runs out, who needs money, what needs a decision; and health."""

from __future__ import annotations

import re
from datetime import date, timedelta

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.heartbeat import Heartbeat
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages.console.health import HealthCheck, Mark, duration, health_line
from voucherd.pages.console.overview import chart_of, compared, running_out
from voucherd.reports import daily
from voucherd.reports.daily import DaySales, ProductSales


async def test_the_overview_is_about_the_shop(shop: Shop) -> None:
    """OP-160: sales, margin, best sellers and what runs out, from sums; live and sandbox apart, reports:view needed."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    assert "No sales yet" in (await admin.get("/console")).text
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift", price="9.50 EUR", stock=3)
    order = await shop.create(company, ("gift", 2))
    await shop.confirm(company, order["trx"])
    while await daily.add_up(shop.pool):
        pass
    page = (await admin.get("/console")).text
    assert "19.00" in page
    assert "Sales by day" in page
    assert "1 left" in page
    assert "/console/stock/import?slug=gift" in page
    assert 'href="/console/products/gift"' in page
    assert "Sales by day" not in (await support.get("/console")).text
    admin.look_at(State.SANDBOX)
    assert "19.00" not in (await admin.get("/console")).text


async def test_the_overview_says_what_needs_a_decision(shop: Shop) -> None:
    """OP-91: each with one click to it, for those who may decide; without companies:view no balance is told."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("late", async_delivery=True)
    order = await shop.create(company, ("late", 3))
    await shop.confirm(company, order["trx"])
    await shop.pool.execute("UPDATE waiting SET not_before = now() - interval '20 minutes'")
    await Heartbeat(shop.pool, works=True).beat()
    await shop.pool.execute("INSERT INTO wallet_alert SELECT id, 1000000 FROM wallet WHERE state = 0")
    admin, stock = await someone(shop, "admin"), await someone(shop, "stock")
    page = (await admin.get("/console")).text
    assert "3 paid codes wait to be delivered, the oldest for 20 min" in page
    assert 'href="/console/orders?status=pending"' in page
    assert "needs action" in page
    assert f"/console/companies/{company.id}" in page
    theirs = (await stock.get("/console")).text
    assert f"/console/companies/{company.id}" not in theirs
    assert "paid codes wait" not in theirs
    await shop.set_company(company, verified=False)
    assert "1 company is not verified" in (await admin.get("/console")).text
    health = (await admin.get("/console/health")).text
    for said in ("Codes to deliver, by company", company.name, "Low balances", "Webhook delay", "Running"):
        assert said in health, said
    admin.look_at(State.SANDBOX)
    assert "Codes to deliver, by company" not in (await admin.get("/console/health")).text


def test_the_health_line_counts_what_is_worst() -> None:
    """OP-91: good only where everything is; spans are told in a unit of which there are two."""
    good, look, act = (HealthCheck("x", "1", "", mark) for mark in Mark)
    lines = [health_line([("g", list(each))]) for each in ([good], [good, look, look], [look, act, good])]
    assert [line.text for line in lines] == [
        "All systems normal",
        "2 things need a look",
        "1 thing needs action",
    ]
    assert [line.mark for line in lines] == list(Mark)
    assert lines[2].troubles == [act, look]
    assert [duration(s) for s in (0, 119, 120, 7_199, 7_200, 200_000)] == [
        "0 s", "119 s", "2 min", "119 min", "2 h", "2 days",
    ]  # fmt: skip


def test_sales_stand_beside_those_of_the_time_before() -> None:
    """OP-160: today beside yesterday, this month beside the same days of the last; a short month ends earlier."""
    today = date(2026, 3, 31)
    days = [
        DaySales(date(2026, 2, 1), 1, 1_000, 100),
        DaySales(date(2026, 2, 28), 1, 1_000, 100),
        DaySales(date(2026, 3, 30), 4, 4_000, 400),
        DaySales(today, 3, 3_000, -60),
    ]
    now, month = compared(days, today)
    assert (now.price, now.before, now.change, now.codes) == (
        Money(3_000, "EUR"),
        Money(4_000, "EUR"),
        -25,
        3,
    )
    assert (now.margin, now.margin_percent) == (Money(-60, "EUR"), -2)
    assert (month.price, month.before, month.change) == (Money(7_000, "EUR"), Money(2_000, "EUR"), 250)
    assert month.before_label == "1–28 Feb"
    first = compared([], date(2026, 1, 1))[1]
    assert (first.change, first.margin_percent, first.before_label) == (None, None, "1 Dec")
    chart = chart_of(days, today)
    assert len(chart) == 30
    assert chart[-1] == ("31 Mar", 3_000, "30.00")
    assert chart[0][0] == f"{(today - timedelta(days=29)).day} Mar"


def test_what_sells_and_is_nearly_gone_runs_out_soon() -> None:
    """OP-160: at the pace of the last two weeks; what is gone comes first, what lasts longer is left out."""
    pace = [ProductSales(at, f"p{at}", f"P{at}", 14, 0, 0) for at in range(4)]
    found = running_out(pace, {0: 8, 1: 3, 3: 7})
    assert [(one.slug, one.left, one.days) for one in found] == [("p2", 0, 0), ("p1", 3, 3), ("p3", 7, 7)]


async def test_nothing_on_the_overview_is_an_odd_word(shop: Shop) -> None:
    """OP-91: words that people of the trade use."""
    page = (await (await someone(shop, "admin")).get("/console")).text
    page += (await (await someone(shop, "admin")).get("/console/health")).text
    for odd in ("How it is going", "nobody knows", "Confirm batch", "late by", "Look again", "Standing"):
        assert not re.search(odd, page), odd
