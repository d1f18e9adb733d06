"""How long a purchase that is not found is looked for, and clocks that jump: in doubt nothing is bought."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.purchasing.conftest import Clock, Market
from tests.purchasing.fake import FakeSupplier, sold_but_unclear, unclear, waits
from tests.purchasing.test_doubts import ASKING, BOUGHT, FAILED, jump, paid
from voucherd.purchasing import claims
from voucherd.purchasing.attempts import Attempt
from voucherd.suppliers.protocol import Answer, Bought, Finding, NotFound, Unclear, WantedCodes


@pytest.fixture
def pass_by(clock: Clock) -> Callable[[float], None]:
    """Let so many seconds pass for the dispatchers."""

    def moved(seconds: float) -> None:
        clock.now_s += seconds

    return moved


@pytest.mark.parametrize("died", [False, True], ids=["the caller looks", "another worker looks"])
async def test_a_purchase_that_a_supplier_hides_is_not_made_again_before_the_settling_time_is_over(
    market: Market, pass_by: Callable[[float], None], died: bool
) -> None:
    """Decision 12: "not found" is believed after the settling time by both clocks, and not a look-up sooner."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("hides", "gift", settle_s=60)
    other = await market.supplier("other", "gift", price="9.20 EUR")
    sold: dict[str, Bought] = {}

    async def sells_in_secret(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
        sold[reference] = supplier.sell(reference, wanted)
        del supplier.sold[reference]
        return Unclear("reset")

    fake.deeds.append(sells_in_secret)
    company, trx = await paid(market, 2)
    await market.round()
    if died:
        await market.dispatcher.stop()
        market.dispatcher = market.another_dispatcher()
    # The database says that it is over, then the process, but never both.
    await market.look_ups()
    await jump(market, "2 minutes")
    await market.look_ups()
    early = await market.attempts()
    fake.sold |= sold
    await market.look_ups()
    pass_by(200.0)
    await market.look_ups()

    assert early == [(ASKING, 2, 0, 0)]
    assert await market.attempts() == [(BOUGHT, 2, 2, 0)]
    assert [verb for verb, _ in fake.calls].count("buy") == 1
    assert other.calls == []
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_not_found_is_believed_at_once_when_the_settling_time_is_over(
    market: Market, pass_by: Callable[[float], None]
) -> None:
    """OP-44: the next look-up is at that moment and not at the end of a pause that has grown long."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("one", "gift", settle_s=60)
    fake.deeds.append(unclear)
    company, trx = await paid(market, 1)
    await market.round()
    await shop.pool.execute("UPDATE attempt SET look_ups = 12")
    await market.look_ups()
    asks_in_s = await shop.pool.fetchval("SELECT extract(epoch FROM ask_at - settles_at) FROM attempt")

    pass_by(75.0)
    await jump(market, "75 seconds")
    await market.look_ups()
    await market.round()

    assert 0 <= asks_in_s < 5
    assert [one[0] for one in await market.attempts()] == [FAILED, BOUGHT]
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_look_that_was_made_too_early_is_not_believed_later(
    market: Market, pass_by: Callable[[float], None]
) -> None:
    """Decision 12: what counts is when the supplier was asked, not when the answer could be recorded."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("one", "gift", settle_s=60)
    fake.deeds.append(unclear)
    await paid(market, 1)
    await market.round()
    await jump(market, "5 minutes")

    async def takes_long(_reference: str, _wanted: WantedCodes) -> Finding:
        pass_by(300.0)
        return NotFound()

    fake.look_up = takes_long  # type: ignore[method-assign, assignment]
    await market.look_ups()

    assert await market.attempts() == [(ASKING, 1, 0, 0)]


async def test_a_clock_that_jumps_ahead_during_a_call_buys_nothing_twice(market: Market) -> None:
    """Decision 12: leases end, settling times end, others look, and still nobody buys while the call is under way."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("slow", "gift", settle_s=0)
    other = await market.supplier("other", "gift", price="9.20 EUR")
    fake.deeds.append(waits)
    company, trx = await paid(market, 2)
    await market.dispatcher.dispatch()
    first = market.dispatcher
    market.dispatcher = market.another_dispatcher()

    for _ in range(3):
        await jump(market, "1 day")
        await market.look_ups()
        await market.round()
    early = await market.attempts()
    fake.free.set()
    await first.settled()

    assert early == [(ASKING, 2, 0, 0)]
    assert await market.attempts() == [(BOUGHT, 2, 2, 0)]
    assert other.calls == []
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await first.stop()
    await shop.assert_books_balance()


async def test_a_clock_that_jumps_back_delays_look_ups_and_buys_nothing_twice(market: Market) -> None:
    """Decision 12: what is due later is done later; the answer that comes meanwhile is taken."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("slow", "gift")
    fake.deeds += [waits, sold_but_unclear]
    company, trx = await paid(market, 2)
    await market.dispatcher.dispatch()
    await jump(market, "-1 day")
    await market.dispatcher.follow_up()
    fake.free.set()
    await market.dispatcher.settled()
    second, other_trx = await paid(market, 2)
    await market.round()
    await jump(market, "-1 day")
    await market.dispatcher.follow_up()
    looked = [verb for verb, _ in fake.calls]
    await jump(market, "1 day")
    await market.look_ups()

    assert looked == ["buy", "buy"]
    for whose, one in ((company, trx), (second, other_trx)):
        assert (await shop.find(whose, one))["orderStatus"] == "finished"
    assert await market.attempts() == [(BOUGHT, 2, 2, 0)] * 2
    await shop.assert_books_balance()


async def test_a_worker_that_was_held_up_does_not_call_and_its_lines_go_on(
    market: Market, monkeypatch: pytest.MonkeyPatch, pass_by: Callable[[float], None]
) -> None:
    """Decision 12: a lease that may end during the call is not used; as nothing was called, nobody need wait."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("one", "gift", settle_s=1_000)
    company, trx = await paid(market, 2)
    claim = claims.claim

    async def slow_claim(*given: object, **more: object) -> list[Attempt]:
        made = await claim(*given, **more)  # type: ignore[arg-type]
        pass_by(60.0 if made else 0.0)
        return made

    with monkeypatch.context() as held_up:
        held_up.setattr(claims, "claim", slow_claim)
        await market.dispatcher.dispatch()
        await market.dispatcher.settled()
    calls = list(fake.calls)
    await market.round()

    assert calls == []
    assert [one[0] for one in await market.attempts()] == [FAILED, BOUGHT]
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert await shop.pool.fetchval("SELECT failures FROM supplier_health") == 0
    await shop.assert_books_balance()
