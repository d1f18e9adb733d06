"""Suppliers and purchases in the operator's console: breakers, asking again, settling by hand, late codes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pages.people import Someone, someone
from tests.purchasing.conftest import Market, stopped_clock
from tests.purchasing.fake import sold_but_unclear, unclear, waits
from tests.shop import Company, open_shop
from voucherd.db import Pool


@pytest.fixture
async def market(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Market]:
    """A shop without a worker in which Confirm does not wait."""
    stopped_clock(monkeypatch)
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        opened = Market(shop)
        yield opened
        for fake in opened.suppliers.values():
            fake.free.set()
        await opened.dispatcher.stop()


async def unknown(market: Market, company: Company, name: str, count: int) -> tuple[str, str]:
    """An order whose purchase got no answer: its trx and the purchase's id."""
    order = await market.shop.create(company, ("gift", count))
    market.suppliers[name].deeds.append(unclear)
    await market.shop.confirm(company, order["trx"])
    await market.round()
    found = await market.shop.pool.fetchval(
        "SELECT id FROM attempt WHERE status = 2 ORDER BY placed_at DESC LIMIT 1"
    )
    return order["trx"], str(found)


async def settle(clerk: Someone, purchase: str, how: str, **fields: str) -> str:
    """Send one of the two forms; the page that follows, or the form with what is wrong."""
    path = f"/console/purchases/{purchase}/{how}"
    answer = await clerk.post(path, fields)
    return answer.text if answer.status_code == 422 else (await clerk.get(answer.headers["location"])).text


async def test_purchases_that_nobody_can_tell_of_are_settled_by_hand(market: Market) -> None:
    """OP-44, OP-46: what waits and what it is worth is said first; then codes are delivered, or lines go elsewhere."""
    shop = market.shop
    clerk = await someone(shop, "support")
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    await market.supplier("blind", "gift", price="8.00 EUR", looks_up=False)
    trx, first = await unknown(market, company, "blind", 2)
    page = (await clerk.get("/console/purchases?problem=unknown")).text
    assert first in page
    assert "2 codes wait" in page
    page = (await clerk.get(f"/console/purchases/{first}")).text
    assert trx in page
    assert "Check again" not in page
    assert "decide it by hand" in (await clerk.post(f"/console/purchases/{first}/ask", follow=True)).text
    page = (await clerk.get(f"/console/purchases/{first}/settle")).text
    assert "2 codes wait for it" in page
    assert "19.00" in page
    assert "Say why" in await settle(clerk, first, "failed")
    assert "can still arrive" in await settle(clerk, first, "failed", failed_note="they said so")
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    note = {"bought_note": "by phone"}
    many = "\n".join(f"C-{at}" for at in range(400))
    for codes, said in (("", "no codes"), ("a,b,c,d", "1 lines are bad"), (many, "at most")):
        page = await settle(clerk, first, "bought", codes=codes, **note)
        assert said in page
        assert "C-399" not in page
    assert "no exchange rate" in await settle(clerk, first, "bought", codes="X-1", price="1 USD", **note)
    page = await settle(
        clerk, first, "bought", codes="SECRET-CODE-0001\nSECRET-CODE-0002", price="7 EUR", **note
    )
    assert "The purchase is bought; 2 codes were taken." in page
    assert "SECRET" not in page
    found = await shop.find(company, trx)
    assert found["orderStatus"] == "finished"
    assert "bought already" in await settle(clerk, first, "failed", failed_note="no")

    trx, second = await unknown(market, company, "blind", 1)
    other = await market.supplier("other", "gift", price="9.00 EUR")
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    page = await settle(clerk, second, "failed", failed_note="they know nothing of it")
    assert "1 lines go on to the next supplier" in page
    await market.round()
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert len(other.calls) == 1
    trail = await shop.pool.fetch(
        "SELECT actor, action, detail::text FROM trail WHERE action <> 'wallet.top-up' ORDER BY id"
    )
    assert [(row[0], row[1]) for row in trail] == [(clerk.email, "attempt.settle")] * 2
    assert not any("SECRET" in row[2] for row in trail)
    by = await shop.pool.fetch("SELECT data ->> 'by' FROM event WHERE type = 'attempt.settled'")
    assert [row[0] for row in by] == [clerk.email] * 2
    await shop.assert_books_balance()


async def test_late_and_quarantined_codes_are_listed_but_never_shown(market: Market) -> None:
    """OP-46: codes that came after Resolve's limit lie on the shelf, with their cost; others stay apart."""
    shop = market.shop
    clerk = await someone(shop, "stock")
    await shop.product("gift", price="9.50 EUR")
    await shop.product("more", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift", price="8.00 EUR", looks_up=False)
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 2))
    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()
    await shop.time_is_up(order["trx"])
    assert (await resolving)["orderStatus"] == "cancelled"
    fake.free.set()
    await market.dispatcher.settled()
    late = (await clerk.get("/console/late-codes")).text
    assert "16.00" in late
    assert "slow" in late
    purchase = str(await shop.pool.fetchval("SELECT id FROM attempt"))
    assert purchase in late
    page = (await clerk.get(f"/console/purchases/{purchase}")).text
    assert not any(code.code in page for sold in fake.sold.values() for code in sold.codes)
    assert (await clerk.get(f"/console/late-codes?before={purchase}")).text.count("<tr>") == 0
    for query in ("", "problem=late", "problem=any&supplier=slow", "status=bought", "supplier=slow"):
        assert purchase in (await clerk.get(f"/console/purchases?{query}")).text, query
    await shop.stock_codes("more", [("KNOWN-CODE-000000", "")])
    _, second = await unknown(market, company, "slow", 3)
    page = await settle(clerk, second, "bought", codes="KNOWN-CODE-000000\nFRESH-1\n", bought_note="a mail")
    assert "1 went to quarantine" in page
    assert "••••0000" in page
    assert "KNOWN" not in page
    assert "No purchase fits" in (await clerk.get("/console/purchases?problem=surplus")).text
    await shop.assert_books_balance()


async def test_suppliers_show_their_health_and_take_new_limits(market: Market) -> None:
    """OP-44, OP-94: breaker, calls and prices on one page; pausing, limits and breaker are written into the trail."""
    shop = market.shop
    clerk = await someone(shop, "stock")
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("main", "gift", price="8.00 EUR")
    fake.deeds.append(sold_but_unclear)
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    await market.round()
    await shop.pool.execute("UPDATE supplier_health SET failures = 5, open_until = now() + interval '1 hour'")
    page = (await clerk.get("/console/suppliers")).text
    for said in ("main", "Failing, left alone for a while", "1 current"):
        assert said in page, said
    page = (await clerk.get("/console/suppliers/main")).text
    assert "Failing" in page
    assert "Try again now" in page
    assert "sku-gift" in page
    page = (await clerk.post("/console/suppliers/main/breaker", follow=True)).text
    assert "Try again now" not in page
    limits = {"timeout_s": "5", "settle_s": "60", "quote_age_s": "300", "concurrency_max": "3"}
    limits |= {"price_slack": "0.5%", "on_unknown": "wait"}
    for wrong in (
        {"timeout_s": "0"},
        {"concurrency_max": "many"},
        {"price_slack": "101%"},
        {"on_unknown": "x"},
    ):
        assert (await clerk.post("/console/suppliers/main", limits | wrong)).status_code == 422
    page = (await clerk.post("/console/suppliers/main", limits, follow=True)).text
    assert 'value="0.5%"' in page
    page = (await clerk.post("/console/suppliers/main/active", {"active": "no"}, follow=True)).text
    assert "Paused" in page
    row = await market.row("main")
    assert (row.active, row.concurrency_max, row.price_slack_bp, row.health.failures) == (False, 3, 50, 0)
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action <> 'wallet.top-up' ORDER BY id")
    assert [one[0] for one in actions] == ["supplier.close_breaker", "supplier.set", "supplier.set"]
    # What the adapter of a supplier without an address says, and no page that fails.
    assert "Failed" in (await clerk.get("/console/suppliers/main/test?run=yes")).text
    assert "Test now" in (await clerk.get("/console/suppliers/main/test")).text
