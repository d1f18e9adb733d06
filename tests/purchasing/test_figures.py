"""Fulfilment at /metrics: who waits how long, how suppliers do, what needs a hand; never a secret."""

from __future__ import annotations

import asyncio
import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.pages.people import someone
from tests.purchasing.conftest import Market
from tests.purchasing.fake import sold_out, too_many, unclear, waits
from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.page import Metrics
from voucherd.purchasing import metrics as purchase_metrics
from voucherd.purchasing.calls import CallCounts
from voucherd.suppliers.protocol import NotFound, Unclear


async def figures(market: Market) -> dict[tuple[str, ...], float]:
    """Every sample of a fresh page: its name and its labels but the process, in the order of their names."""
    parts = ProcessParts(
        orders=market.shop.order_service, pool=market.shop.pool, calls=market.dispatcher.calls
    )
    metrics = Metrics(parts)
    page = (await metrics.page()).decode()
    return {
        (
            sample.name,
            *(sample.labels[name] for name in sorted(sample.labels) if name != "process"),
        ): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


async def test_the_page_tells_who_waits_where_and_how_suppliers_do(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines by company and place, purchases by status, the breaker, purchases that need a hand."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    await shop.product("rare", price="9.50 EUR", async_delivery=True)
    large, small, tiny = [await shop.company(balance="900.00 EUR") for _ in range(3)]
    fake = await market.supplier("one", "gift", concurrency_max=1, looks_up=False)
    for company, count in ((large, 5), (small, 3), (tiny, 1)):
        order = await shop.create(company, ("rare", count))
        await shop.confirm(company, order["trx"])
    fake.deeds += [unclear, sold_out, too_many]
    for count in (2, 1, 1):
        order = await shop.create(large, ("gift", count))
        await shop.confirm(large, order["trx"])
        # One look at a time: a line that the supplier refused stays in its pause, and is not bought with the next one.
        await market.dispatcher.dispatch()
        await market.dispatcher.settled()
        await shop.pool.execute("DELETE FROM refused_offer")
    fake.deeds.append(waits)
    order = await shop.create(small, ("gift", 5))
    await shop.confirm(small, order["trx"])
    await market.quotes()
    await market.shop.pool.execute("UPDATE waiting SET ask_at = now() WHERE ask_at IS NOT NULL")
    market.dispatcher._read_at = -10.0
    await market.dispatcher.dispatch()
    await market.dispatcher.dispatch()
    await shop.pool.execute("UPDATE waiting SET not_before = now() - interval '90 s'")
    await shop.pool.execute("UPDATE supplier_health SET failures = 5, open_until = now() + interval '1 h'")
    monkeypatch.setattr(purchase_metrics, "COMPANIES_NAMED_MAX", 1)

    told = await figures(market)
    fake.free.set()
    await market.dispatcher.settled()

    # Labels are company, place, state: `other` are the small ones.
    assert told["voucherd_waiting_lines", large.name, "shelf", "live"] >= 5
    assert told["voucherd_waiting_lines", large.name, "buying", "live"] == 3
    assert told["voucherd_waiting_lines", "other", "shelf", "live"] >= 4
    assert ("voucherd_waiting_lines", small.name, "shelf", "live") not in told
    assert told["voucherd_waiting_oldest_seconds", "other", "live"] >= 90
    assert told["voucherd_supplier_breaker", "one"] == 2
    statuses = ("bought", "calling", "failed", "unknown")
    assert [told["voucherd_supplier_purchases", status, "one"] for status in statuses] == [1, 1, 1, 1]
    assert told["voucherd_supplier_error_ratio", "one"] == pytest.approx(2 / 3)
    assert 0 <= told["voucherd_supplier_recent_seconds", "0.95", "one"] < 10
    assert told["voucherd_attempts_open", "unknown", "one"] == 1
    assert told["voucherd_attempts_oldest_seconds", "unknown", "one"] > 0
    assert told["voucherd_attempt_problems", "surplus", "one"] == 1
    assert told["voucherd_supplier_calls_total", "bought", "one", "buy"] == 1
    assert told["voucherd_supplier_call_seconds_count", "one", "buy"] == 3
    assert told["voucherd_figures_age_seconds",] < 15
    page = json.dumps([list(key) for key in told])
    assert not any(code.code in page for sale in fake.sold.values() for code in sale.codes)
    await shop.assert_books_balance()


async def test_a_count_that_stopped_says_so(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more waits than is counted, the page of the service's health says "at least"."""
    shop, admin = market.shop, await someone(market.shop, "admin")
    await shop.product("rare", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="900.00 EUR")
    for _ in range(2):
        order = await shop.create(company, ("rare", 1))
        await shop.confirm(company, order["trx"])
    assert "≥ 2" not in (await admin.get("/console/health")).text
    monkeypatch.setattr(purchase_metrics, "WAITS_COUNTED_MIN", 1)
    monkeypatch.setattr(purchase_metrics, "WAITS_COUNTED_MAX", 1)
    assert "≥ 1" in (await admin.get("/console/health")).text
    await shop.assert_books_balance()


async def test_the_database_is_asked_seldom_and_may_be_away(market: Market) -> None:
    """A page is a few seconds old at most, and is there when the database is not."""
    metrics = Metrics(ProcessParts(orders=market.shop.order_service, pool=market.shop.pool))
    first = (await metrics.page()).decode()
    await market.shop.product("gift", price="9.50 EUR")
    await market.supplier("one", "gift")
    again = await asyncio.gather(*(metrics.page() for _ in range(5)))
    assert 'voucherd_supplier_breaker{supplier="one"}' not in first + "".join(map(bytes.decode, again))

    taker = metrics._shop
    taker._tried_at = -100.0
    await market.shop.pool.execute("ALTER TABLE supplier_health RENAME TO elsewhere")
    kept = (await metrics.page()).decode()
    assert "\nvoucherd_figures_age_seconds " in kept
    assert "\nvoucherd_database_ready 0.0\n" in kept
    assert taker._taken is not None
    taker._taken = (taker._taken[0] - 100, taker._taken[1])
    assert "\nvoucherd_figures_age_seconds " not in (await metrics.page()).decode()
    await market.shop.pool.execute("ALTER TABLE elsewhere RENAME TO supplier_health")
    taker._tried_at = -100.0
    assert 'voucherd_supplier_breaker{supplier="one"} 0.0' in (await metrics.page()).decode()


def test_calls_are_counted_by_what_was_answered() -> None:
    """The metrics of this process."""
    calls = CallCounts()
    calls.observe("one", "look_up", NotFound(), 0.05)
    calls.observe("one", "look_up", Unclear("reset"), 61.0)
    assert calls.answers == {("one", "look_up", "not_found"): 1, ("one", "look_up", "unclear"): 1}
    took = calls.durations["one", "look_up"]
    assert (took.buckets[0], took.buckets[-1], took.seconds) == (1, 1, 61.05)
