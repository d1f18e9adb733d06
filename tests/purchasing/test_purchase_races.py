"""Two at once: claims, calls, answers and prices that meet at the same orders, offers and suppliers."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from tests.patience import HANG_S, until, until_blocked
from tests.purchasing.conftest import Market
from tests.purchasing.fake import too_few, waits
from voucherd.db import Tx, transaction
from voucherd.money import Money
from voucherd.purchasing import attempts, outcomes, routing
from voucherd.purchasing.attempts import Attempt
from voucherd.purchasing.outcomes import SupplierCall
from voucherd.suppliers.protocol import Bought, Code, UnderWay

"""Whatever should not wait for somebody else is done by then."""


class Pause:
    """A place at which somebody stops until he is let go."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.free = asyncio.Event()

    async def here(self) -> None:
        """Stop."""
        self.reached.set()
        await self.free.wait()


async def test_a_cancel_that_comes_during_a_claim_sees_the_purchase(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-45, invariant 4: a claim turns waits into other rows; whoever decides about the order must see those."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])
    pause = Pause()
    read = attempts.read

    async def slowly(tx: Tx, ids: list[UUID]) -> list[Attempt]:
        found = await read(tx, ids)
        await pause.here()
        return found

    monkeypatch.setattr(attempts, "read", slowly)
    claiming = asyncio.create_task(market.dispatcher.dispatch())
    await pause.reached.wait()
    cancelling = asyncio.create_task(shop.cancel(company, order["trx"]))
    await until_blocked(shop.pool)
    pause.free.set()
    await claiming
    cancelled = await cancelling
    fake.free.set()
    await market.dispatcher.settled()

    assert (cancelled.status_code, cancelled.json()["orderStatus"]) == (200, "cancelled")
    done = await shop.find(company, order["trx"])
    assert (done["orderStatus"], done["paymentStatus"]) == ("cancelled", "refunded")
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


@pytest.mark.parametrize("first", ["answer", "cancel"])
async def test_of_an_answer_and_a_cancel_in_the_same_moment_one_comes_first(
    market: Market, first: str
) -> None:
    """OP-45: delivered and then not to be cancelled, or refunded and then on the shelf; never both, never neither."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(waits)
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    await shop.confirm(company, trx)
    await market.dispatcher.dispatch()

    async def answer() -> None:
        fake.free.set()
        await market.dispatcher.settled()

    async with transaction(shop.pool) as tx:
        await tx.execute("SELECT FROM orders WHERE id = $1 FOR NO KEY UPDATE", shop.ids.order_id(trx))
        if first == "answer":
            answering = asyncio.create_task(answer())
            await until_blocked(shop.pool)
            cancelling = asyncio.create_task(shop.cancel(company, trx))
            await until_blocked(shop.pool, 2)
        else:
            cancelling = asyncio.create_task(shop.cancel(company, trx))
            await until_blocked(shop.pool)
            answering = asyncio.create_task(answer())
            await until_blocked(shop.pool, 2)
    cancelled = await cancelling
    await answering

    ended = (
        (await shop.find(company, trx))["orderStatus"],
        await shop.balance(company),
        await shop.left("gift"),
    )
    assert (cancelled.status_code, ended) in (
        (400, ("finished", Money.read("81.00 EUR"), 0)),
        (200, ("cancelled", Money.read("100.00 EUR"), 2)),
    )
    await shop.assert_books_balance()


async def test_a_claim_passes_over_orders_and_offers_that_somebody_else_holds(market: Market) -> None:
    """Decision 12: claims wait for nobody, so nobody who holds an order or an offer can wait for them in a circle."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    first, second = await shop.company(), await shop.company()
    await market.supplier("one", "gift")
    orders = [await shop.create(company, ("gift", 2)) for company in (first, second)]
    for company, order in zip((first, second), orders, strict=True):
        await shop.confirm(company, order["trx"])

    async with transaction(shop.pool) as tx:
        await tx.execute(
            "SELECT FROM orders WHERE id = $1 FOR NO KEY UPDATE", shop.ids.order_id(orders[0]["trx"])
        )
        await tx.execute("SELECT FROM offer FOR UPDATE")
        async with asyncio.timeout(HANG_S):  # It would wait for this transaction for ever.
            await market.dispatcher.dispatch()
            await market.dispatcher.settled()
    statuses = [
        (await shop.find(company, order["trx"]))["orderStatus"]
        for company, order in zip((first, second), orders, strict=True)
    ]
    await market.round()

    assert statuses == ["pending", "finished"]
    assert (await shop.find(first, orders[0]["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_two_items_of_one_product_are_bought_together_and_stay_two(market: Market) -> None:
    """Contract 2: every line belongs to its item, also where one purchase serves lines of two items that touch."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds += [waits, too_few]
    order = await shop.create(company, ("gift", 2), ("gift", 3))
    await shop.confirm(company, order["trx"])

    await market.dispatcher.dispatch()
    await shop.assert_books_balance()
    fake.free.set()
    await market.dispatcher.settled()

    done = await shop.find(company, order["trx"])
    assert [item["linesCompleted"] for item in done["items"]] == [2, 3]
    assert [len(sold.codes) for sold in fake.sold.values()] == [5]
    await shop.assert_books_balance()


async def test_an_answer_to_a_purchase_that_is_over_changes_nothing_that_was_decided(market: Market) -> None:
    """Decision 12: codes are taken whenever they come; an answer without a new code leaves a purchase as it ended."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", stock=1)
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.dispatch()
    caches, sealer = market.dispatcher._caches, shop.sealer
    [attempt] = await attempts.read(shop.pool, await _attempt_ids(market))  # type: ignore[arg-type]

    await outcomes.fail(shop.pool, caches, attempt, "no", SupplierCall())
    await outcomes.fail(shop.pool, caches, attempt, "no again", SupplierCall())
    for codes in ((), (Code("x\ny"),)):
        await outcomes.receive(shop.pool, caches, sealer, attempt, Bought(codes), SupplierCall())
    failed = await market.attempts()
    late = Bought((Code("LATE-1"),), "e" * 300, Money.read("9.00 EUR"))
    await outcomes.receive(shop.pool, caches, sealer, attempt, late, SupplierCall())
    await outcomes.receive(shop.pool, caches, sealer, attempt, late, SupplierCall())
    await outcomes.fail(shop.pool, caches, attempt, "too late to say no", SupplierCall())
    await outcomes.ask_again(shop.pool, attempt, "nor this", SupplierCall(), None)

    assert failed == [(4, 2, 0, 0)]
    assert await market.attempts() == [(3, 2, 1, 1)]
    assert await shop.left("gift") == 1
    assert await shop.pool.fetchval("SELECT quarantined FROM attempt") == 1
    await shop.assert_books_balance()


async def test_nothing_more_is_bought_for_a_resolve_that_was_cancelled(market: Market) -> None:
    """OP-45, OP-46: with a line that nobody buys for, a held order can't be delivered: it ends at once, uncharged."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift", concurrency_max=1, bulk_max=2)
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 3))
    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()

    cancelled = await shop.cancel(company, order["trx"])
    fake.free.set()
    await market.dispatcher.settled()
    await market.round()

    assert cancelled.json()["orderStatus"] == "cancelled"
    assert (await resolving)["orderStatus"] == "cancelled"
    assert [verb for verb, _ in fake.calls] == ["buy"]
    assert await market.attempts() == [(3, 2, 2, 2)]
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_a_resolve_of_several_purchases_is_delivered_with_the_last_of_them(market: Market) -> None:
    """OP-46, OP-47: all of it at once; what came first lies on the shelf, and stays there after a Cancel (OP-45)."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    for cancels in (False, True):
        company = await shop.company(balance="100.00 EUR")
        name = "kept" if cancels else "one"
        fake = await market.supplier(name, "gift", price="8.00 EUR" if cancels else "9.00 EUR", bulk_max=2)
        fake.deeds += [_honest, waits]
        order = await shop.create(company, ("gift", 3))
        resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
        await market.until_held(company)
        await market.dispatcher.dispatch()
        await _until(market, 3)
        if cancels:
            assert (await shop.cancel(company, order["trx"])).json()["orderStatus"] == "cancelled"
        fake.free.set()
        await market.dispatcher.settled()

        resolved = await resolving
        ended = (resolved["orderStatus"], resolved["items"][0]["linesCompleted"])
        assert ended == (("cancelled", 0) if cancels else ("finished", 3))
        assert await shop.balance(company) == Money.read("100.00 EUR" if cancels else "71.50 EUR")
        assert await shop.left("gift") == (3 if cancels else 0)
        await shop.assert_books_balance()


async def test_a_supplier_that_can_not_be_used_gives_its_lines_away_and_does_not_get_them_back_at_once(
    market: Market,
) -> None:
    """OP-44: a supplier whose settings are broken still has offers; lines go on, or pause, and nobody spins."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    await market.supplier("one", "gift")
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])
    row = await market.row("one")

    left = await routing.leave(shop.pool, market.dispatcher._caches.offers, row.id)

    waiting = await shop.pool.fetch("SELECT supplier_id, ask_at > now(), rounds FROM waiting")
    assert left == routing.Routed(1)
    assert [tuple(wait) for wait in waiting] == [(None, True, 1)]
    await shop.assert_books_balance()


async def test_a_purchase_that_is_under_way_for_ever_goes_to_the_operator(market: Market) -> None:
    """Every wait has a maximum; after so many look-ups a person is asked, and the lines stay with it."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(_under_way)
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    await market.round()

    await shop.pool.execute("UPDATE attempt SET look_ups = $1", attempts.LOOK_UPS_MAX - 1)
    await market.look_ups()

    assert await market.attempts() == [(2, 1, 0, 0)]
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "pending"
    await shop.assert_books_balance()


async def _honest(supplier: object, reference: str, wanted: object) -> Bought:
    return supplier.sell(reference, wanted)  # type: ignore[attr-defined, no-any-return]


async def _under_way(supplier: object, reference: str, wanted: object) -> UnderWay:
    return UnderWay("F-1")


async def _attempt_ids(market: Market) -> list[UUID]:
    return [row[0] for row in await market.shop.pool.fetch("SELECT id FROM attempt")]


async def _until(market: Market, status: int) -> None:
    """Wait until some purchase has this status and codes that no line took."""

    async def come() -> bool:
        return any(one[0] == status and one[3] for one in await market.attempts())

    await until(come)
