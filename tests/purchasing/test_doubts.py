"""Suppliers that can't be believed, or can't be asked: what they sold is kept, and no line waits in vain."""

from __future__ import annotations

import pytest

from tests.patience import until_true
from tests.purchasing.conftest import Market
from tests.purchasing.fake import FakeSupplier, sold_but_unclear, waits
from tests.shop import Company
from voucherd.money import Money
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.suppliers.protocol import Answer, Bought, Code, Finding, SupplierRefused, WantedCodes, Why

CALLING, ASKING, UNKNOWN, BOUGHT, FAILED = range(5)


async def paid(market: Market, amount: int) -> tuple[Company, str]:
    """A company with a paid order of a product that only suppliers have."""
    company = await market.shop.company(balance="100.00 EUR")
    order = await market.shop.create(company, ("gift", amount))
    await market.shop.confirm(company, order["trx"])
    return company, str(order["trx"])


async def jump(market: Market, interval: str) -> None:
    """The database's clock jumps ahead: all that it was to do at a later time is due."""
    await market.shop.pool.execute(
        f"UPDATE attempt SET lease_until = lease_until - interval '{interval}',"  # noqa: S608 - A test's own words.
        f" settles_at = settles_at - interval '{interval}', ask_at = ask_at - interval '{interval}'"
    )


async def test_a_code_that_we_have_already_is_kept_apart_and_its_line_is_bought_for_at_once(
    market: Market,
) -> None:
    """Invariant 3: nobody gets a code twice; no line waits for a settling time that can bring nothing more."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    known = (await shop.stock("gift", 1))[0][0]
    other = await shop.company(balance="100.00 EUR")
    await shop.confirm(other, (await shop.create(other, ("gift", 1)))["trx"])
    cheap = await market.supplier("cheap", "gift", price="8.00 EUR", settle_s=1_000)
    await market.supplier("dear", "gift", price="9.00 EUR")

    async def known_and_new(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
        sold = supplier.sell(reference, wanted, wanted.count - 1)
        supplier.sold[reference] = Bought((*sold.codes, Code(known, "again")), "F9", sold.price)
        return supplier.sold[reference]

    cheap.deeds.append(known_and_new)
    company, trx = await paid(market, 3)
    await market.round()
    await market.round()

    done = await shop.find(company, trx)
    assert done["orderStatus"] == "finished"
    assert known not in {line["voucherCode"] for line in done["items"][0]["orderLines"]}
    assert await market.attempts() == [(BOUGHT, 3, 2, 0), (BOUGHT, 1, 1, 0)]
    rows = await shop.pool.fetch(
        "SELECT q.reason, a.quarantined FROM quarantined_code q JOIN attempt a ON a.id = q.attempt_id"
    )
    assert [tuple(row) for row in rows] == [("known", 1)]
    await shop.assert_books_balance()


async def test_a_purchase_of_which_no_code_can_be_sold_is_bought_all_the_same(market: Market) -> None:
    """What a supplier was paid for is never called failed, and nothing is left for a person but the codes."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    known = (await shop.stock("gift", 1))[0][0]
    other = await shop.company(balance="100.00 EUR")
    await shop.confirm(other, (await shop.create(other, ("gift", 1)))["trx"])
    fake = await market.supplier("one", "gift", settle_s=1_000)

    async def only_known(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
        supplier.sold[reference] = Bought((Code(known),), "F9")
        return supplier.sold[reference]

    fake.deeds.append(only_known)
    company, trx = await paid(market, 1)
    await market.round()
    await market.round()

    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert await market.attempts() == [(BOUGHT, 1, 0, 0), (BOUGHT, 1, 1, 0)]
    assert await shop.balance(company) == Money.read("90.50 EUR")
    await shop.assert_books_balance()


async def test_a_supplier_that_says_yes_and_later_no_leaves_what_was_delivered_delivered(
    market: Market,
) -> None:
    """OP-41: a line is finished once and for good. A no that comes before we heard the yes is believed."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("fickle", "gift")
    company, trx = await paid(market, 2)
    await market.round()
    first = await shop.find(company, trx)

    async def says_no(_reference: str, _wanted: WantedCodes) -> Finding:
        return SupplierRefused(Why.CANCELLED, "taken back")

    fake.look_up = says_no  # type: ignore[method-assign, assignment]
    fake.deeds.append(sold_but_unclear)
    second, lost_trx = await paid(market, 2)
    await market.round()
    await market.look_ups()
    await market.round()

    assert await shop.find(company, trx) == first
    assert first["orderStatus"] == "finished"
    assert (await shop.find(second, lost_trx))["orderStatus"] == "finished"
    assert await market.attempts() == [(BOUGHT, 2, 2, 0), (FAILED, 2, 0, 0), (BOUGHT, 2, 2, 0)]
    await shop.assert_books_balance()


async def test_codes_that_come_after_a_no_are_taken_in(market: Market) -> None:
    """Decision 12: a code that was bought is never lost, though its purchase was thought to have failed."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(waits)
    company, trx = await paid(market, 2)
    await market.dispatcher.dispatch()
    first = market.dispatcher
    market.dispatcher = market.another_dispatcher()
    await jump(market, "1 minute")

    async def says_no(_reference: str, _wanted: WantedCodes) -> Finding:
        return SupplierRefused(Why.CANCELLED, "taken back")

    fake.look_up = says_no  # type: ignore[method-assign, assignment]
    await market.look_ups()
    await market.round()
    fake.free.set()
    await first.settled()

    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert sorted(await market.attempts()) == [(BOUGHT, 2, 2, 0), (BOUGHT, 2, 2, 2)]
    assert await shop.left("gift") == 2
    await first.stop()
    await shop.assert_books_balance()


@pytest.mark.parametrize("died", [False, True], ids=["the answer is lost", "the worker dies"])
@pytest.mark.parametrize("on_unknown", ["wait", "rebuy"])
async def test_a_supplier_without_look_ups_leaves_a_doubt_that_only_a_declared_risk_buys_away(
    market: Market, on_unknown: str, died: bool
) -> None:
    """Decision 12: without `rebuy` a line waits for a person; with it another supplier is asked, once."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("mute", "gift", looks_up=False, on_unknown=on_unknown)
    other = await market.supplier("other", "gift", price="9.20 EUR")
    fake.deeds.append(waits if died else sold_but_unclear)
    company, trx = await paid(market, 2)
    doomed: Dispatcher | None = None
    if died:
        doomed = market.dispatcher
        await doomed.dispatch()
        await until_true(lambda: fake.calls)
        for task in list(doomed._tasks):
            task.cancel()
        await doomed.settled()
        market.dispatcher = market.another_dispatcher()
        await jump(market, "1 minute")
        await market.look_ups()
    await market.round()
    await market.round()

    order = await shop.find(company, trx)
    if on_unknown == "wait":
        assert await market.attempts() == [(UNKNOWN, 2, 0, 0)]
        assert (order["orderStatus"], other.calls) == ("pending", [])
    else:
        assert await market.attempts() == [(UNKNOWN, 2, 0, 0), (BOUGHT, 2, 2, 0)]
        assert (order["orderStatus"], len(other.calls)) == ("finished", 1)
    assert [verb for verb, _ in fake.calls] == ["buy"]
    if doomed is not None:
        await doomed.stop()
    await shop.assert_books_balance()
