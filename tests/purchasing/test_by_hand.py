"""Purchases that a person settles: what nobody could tell, codes that came too late, codes that can't be sold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, assert_refused, assert_wrong_usage
from tests.purchasing.conftest import Market
from tests.purchasing.fake import sold_but_unclear, unclear, waits
from tests.shop import Company
from voucherd.actors import SYSTEM
from voucherd.money import Money
from voucherd.purchasing import attempts, outcomes
from voucherd.purchasing.by_hand import fail
from voucherd.purchasing.outcomes import AttemptClosed, Hand, SupplierCall
from voucherd.suppliers.protocol import Bought, Code

WHO = ["--by", "Ada", "--note", "asked them by phone"]


@pytest.fixture
def terminal(market: Market, database_url: str, tmp_path: Path) -> Terminal:
    """The operator's terminal, with the shop's own master key."""
    return Terminal(tmp_path, database_url)


async def deeds(market: Market) -> list[dict[str, Any]]:
    """The events about purchases, oldest first."""
    rows = await market.shop.pool.fetch(
        "SELECT type, company_id, state, data::text FROM event WHERE type LIKE 'attempt.%' ORDER BY id"
    )
    assert all(row["company_id"] is None for row in rows)
    return [json.loads(row["data"]) | {"type": row["type"], "state": row["state"]} for row in rows]


async def unknown_purchase(market: Market, count: int) -> tuple[Company, str, str]:
    """A company's order whose purchase got no answer from a supplier that can't be asked: its trx, and the purchase."""
    shop = market.shop
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("blind", "gift", price="8.00 EUR", looks_up=False)
    fake.deeds.append(unclear)
    order = await shop.create(company, ("gift", count))
    await shop.confirm(company, order["trx"])
    await market.round()
    attempt_id = await shop.pool.fetchval("SELECT id FROM attempt WHERE status = 2")
    assert attempt_id is not None
    return company, order["trx"], str(attempt_id)


async def test_an_unknown_purchase_that_failed_is_settled_and_bought_elsewhere(
    market: Market, terminal: Terminal, tmp_path: Path
) -> None:
    """OP-44: lines of an unknown purchase wait for a person; settled as failed they go on to the next supplier."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    other = await market.supplier("other", "gift", price="9.00 EUR")
    company, trx, attempt_id = await unknown_purchase(market, 3)
    await market.round()
    assert other.calls == [], "Lines that may have been bought already are bought nowhere else."

    [listed] = terminal.json("attempt", "list", "--problem", "unknown")
    assert (listed["attempt"], listed["reason"], listed["linesWaiting"]) == (attempt_id, "reset", 3)
    settle = ["attempt", "settle", attempt_id, *WHO]
    assert_refused(terminal.run(*settle, "--failed"), "may be on its way to blind until", "bought twice")
    assert await deeds(market) == []
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    settled = terminal.json(*settle, "--failed")
    assert (settled["status"], settled["linesReleased"]) == ("failed", 3)
    await market.round()

    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert [verb for verb, _ in other.calls] == ["buy"]
    [deed] = await deeds(market)
    assert (deed["type"], deed["state"], deed["attempt"]) == ("attempt.settled", 0, attempt_id)
    assert (deed["by"], deed["note"], deed["from"], deed["to"]) == (*WHO[1::2], "unknown", "failed")
    shown = terminal.json("attempt", "show", attempt_id[:8])
    assert (shown["settledBy"], shown["lines"][0]["trx"], shown["lines"][0]["waiting"]) == ("Ada", trx, 0)
    assert shown["history"][0]["note"] == "asked them by phone"
    assert "settled: unknown to failed" in terminal.view("attempt", "show", attempt_id)
    assert_refused(terminal.run(*settle, "--failed"), "has failed already")
    assert_refused(terminal.run("attempt", "retry", attempt_id, "--by", "Ada"), "can't be asked")

    # They were sold after all: what was paid for is kept, on the shelf, with its cost.
    late = tmp_path / "late.csv"
    late.write_text("code,serial,expires\nL-1,S1,2099-12-31\nL-2,,\nL-3,,\n")
    taken = terminal.json(*settle, "--codes", str(late), "--price", "8.10 EUR", "--external-id", "X-9")
    assert (taken["status"], taken["codesTaken"], taken["spare"]) == ("bought", 3, 3)
    [found] = terminal.json("attempt", "list", "--problem", "late")
    assert (found["spareCost"], found["costCurrency"], found["externalId"]) == (24.3, "EUR", "X-9")
    assert_refused(terminal.run(*settle, "--codes", str(late)), "is bought already (3 of 3 codes)")
    assert await shop.left("gift") == 3
    assert "L-1" not in json.dumps(await deeds(market))
    await shop.assert_books_balance()


async def test_codes_that_the_supplier_names_are_delivered_and_known_ones_kept_apart(
    market: Market, terminal: Terminal, tmp_path: Path
) -> None:
    """Decision 12: codes are stored like any others; a known one is sold to nobody, and read by nobody unseen."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    await shop.product("else", price="9.50 EUR")
    await shop.stock_codes("else", [("KNOWN-CODE-0001", "K1")])
    await market.supplier("other", "gift", price="9.00 EUR")
    company, trx, attempt_id = await unknown_purchase(market, 3)
    file = tmp_path / "codes.csv"
    settle = ["attempt", "settle", attempt_id, *WHO, "--codes", str(file)]

    file.write_text("code\nKNOWN-CODE-0001\n")
    assert_refused(terminal.run(*settle), "none of these codes can be taken")
    file.write_text("code,serial\nA-1,S1,what\n")
    assert_refused(terminal.run(*settle), "1 lines are bad; nothing was taken")
    file.write_text("".join(f"A-{at}\n" for at in range(104)))
    assert_refused(terminal.run(*settle), "104 codes, and 3 were asked for: at most 103")
    assert [await market.attempts(), await deeds(market)] == [[(2, 3, 0, 0)], []]
    file.write_text("code\nA-1\nKNOWN-CODE-0001\nA-2\n")
    settled = terminal.json(*settle)
    assert (settled["status"], settled["codesTaken"], settled["quarantined"]) == ("bought", 2, 1)
    assert settled["linesReleased"] == 1
    await market.round()

    done = await shop.find(company, trx)
    assert done["orderStatus"] == "finished"
    assert [line["voucherCode"] for line in done["items"][0]["orderLines"]][:2] == ["A-1", "A-2"]
    [problem] = terminal.json("attempt", "list", "--problem", "quarantined", "--supplier", "blind")
    assert problem["problems"] == ["short", "quarantined"]
    look = ["attempt", "quarantine", attempt_id, "--by", "Bob"]
    assert terminal.json(*look)["codes"][0]["code"] == "••••0001"
    assert len(await deeds(market)) == 1
    revealed = terminal.json(*look, "--reveal")
    assert [(one["code"], one["reason"]) for one in revealed["codes"]] == [("KNOWN-CODE-0001", "known")]
    seen = (await deeds(market))[1]
    assert (seen["type"], seen["by"], seen["codes"]) == ("attempt.revealed", "Bob", 1)
    assert "KNOWN" not in json.dumps(await deeds(market))
    await shop.assert_books_balance()


async def test_an_unknown_purchase_is_asked_about_again_and_never_bought_again(
    market: Market, terminal: Terminal
) -> None:
    """Decision 12: a retry is a look-up."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(sold_but_unclear)
    order = await shop.create(company, ("gift", 2))
    await shop.confirm(company, order["trx"])
    await market.round()
    attempt_id = str(await shop.pool.fetchval("SELECT id FROM attempt"))
    retry = ["attempt", "retry", attempt_id, "--by", "Ada"]
    # The fake stands in for a supplier of another kind; the command asks its row whether it can be asked.
    await shop.pool.execute(
        "UPDATE supplier SET kind = 'voucherd', config = $1::text::jsonb",
        '{"url": "https://one.example", "currency": "EUR"}',
    )
    assert_refused(terminal.run(*retry), "is being asked about already")
    await shop.pool.execute("UPDATE attempt SET status = 2, ask_at = NULL")
    assert terminal.json(*retry)["retried"]
    await market.dispatcher.follow_up()
    await market.dispatcher.settled()

    assert [verb for verb, _ in fake.calls] == ["buy", "look_up"]
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    assert [deed["type"] for deed in await deeds(market)] == ["attempt.retried"]
    assert_refused(terminal.run(*retry), "is bought already (2 of 2 codes)")
    assert_refused(terminal.run("attempt", "show", "0" * 8), "there is no purchase")
    assert_wrong_usage(terminal.run("attempt", "show", "xyz"), "is not the id of a purchase")
    assert_wrong_usage(terminal.run("attempt", "settle", attempt_id, *WHO), "give --failed or --codes")
    await shop.assert_books_balance()


async def test_settled_as_failed_a_cancelled_order_stays_refunded_and_a_call_in_flight_is_left_alone(
    market: Market,
) -> None:
    """OP-45: Cancel waits for no person; what nobody bought for the order is not bought elsewhere either."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    other = await market.supplier("other", "gift", price="9.00 EUR")
    company, trx, _ = await unknown_purchase(market, 2)
    cancelled = await shop.cancel(company, trx)
    caches = market.dispatcher._caches
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    async with shop.pool.acquire() as conn:
        unknown = await attempts.find(conn, await conn.fetchval("SELECT id FROM attempt"))
    assert unknown is not None

    moved = await fail(shop.pool, caches, unknown, Hand(SYSTEM, "Ada"))
    ended = await shop.find(company, trx)

    assert (cancelled.json()["orderStatus"], moved) == ("cancelled", [])
    assert (ended["orderStatus"], ended["paymentStatus"]) == ("cancelled", "refunded")
    assert other.calls == []

    # A purchase that failed and of which only known codes turn up has still failed.
    await shop.stock_codes("gift", [("K-1", "")])
    known = Bought((Code("K-1"),), None, None)
    await outcomes.receive(shop.pool, caches, shop.sealer, unknown, known, SupplierCall())
    assert await market.attempts() == [(4, 2, 0, 0)]
    assert await shop.pool.fetchval("SELECT quarantined FROM attempt") == 1

    # While a call is being made nobody else has a say, and a hand leaves the breaker alone.
    for supplier in market.suppliers.values():
        supplier.deeds.append(waits)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.settled()  # A quote that comes in late would be a success of its supplier.
    await market.dispatcher.dispatch()
    async with shop.pool.acquire() as conn:
        calling = await attempts.find(conn, await conn.fetchval("SELECT id FROM attempt WHERE status = 0"))
    assert calling is not None
    await shop.pool.execute("UPDATE supplier_health SET failures = 3")
    with pytest.raises(AttemptClosed):
        await outcomes.fail(
            shop.pool, caches, calling, "no", SupplierCall(hand=Hand(SYSTEM, "Ada")), fence=False
        )
    assert await shop.pool.fetchval("SELECT min(failures) FROM supplier_health") == 3
    for supplier in market.suppliers.values():
        supplier.free.set()
    await market.dispatcher.settled()
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    assert await shop.balance(company) == Money.read("71.50 EUR")
    await shop.assert_books_balance()
