"""What becomes of lines that wait: codes come, purchases fail, time runs out. Decided without a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from tests.domain.books import WINDOWS
from tests.handmade import NOW, lot, order, product, unit
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules.ruling import Facts
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.rules.waiting import (
    deliver_waiting,
    end_unserved,
    end_waiting,
    park,
    receive,
    release,
)
from voucherd.orders.rules.waits import Wait
from voucherd.vault.model import Lot
from voucherd.wallet.ledger import EntryKind, Wallet

MINE, OTHER = UUID(int=1), UUID(int=2)
SHELF = (1, 1_000, 0)
PAID: dict[str, Any] = {"payment_status": Payment.PAID, "charged_minor": 4_750}
HELD: dict[str, Any] = {"held_minor": 4_750, "resolving": True}


def pending(order_id: int = 2, *, async_delivery: bool = True, **terms: Any) -> Order:
    """An order of five lines that waits, paid for unless it is said otherwise."""
    fields: dict[str, Any] = {"status": Status.PENDING, "deadline_at": NOW + WINDOWS.delivery} | (
        terms or PAID
    )
    return order(order_id, (product(async_delivery=async_delivery), unit(), 5), **fields)


def wait(line_from: int, line_to: int, order_id: int = 2, **place: Any) -> Wait:
    """Lines of an order that wait."""
    return Wait(0, 1, 1_000, 1, order_id, line_from, line_to, NOW, NOW + WINDOWS.delivery, **place)


def facts(*orders: Order, waits: Sequence[Wait] = (), shelf: Sequence[Lot] = ()) -> Facts:
    """Orders of one company, which has 100 EUR, and the waits and the shelf that they were loaded with."""
    return Facts(
        NOW,
        WINDOWS,
        {one.id: one for one in orders},
        wallet_of_order={one.id: 7 for one in orders},
        wallets={7: Wallet(7, 10_000, sum(one.held_minor for one in orders), 4)},
        shelves={SHELF: list(shelf)},
        waits={one.id: [each for each in waits if each.order_id == one.id] for one in orders},
    )


def test_a_shelf_serves_as_far_as_it_goes_and_the_rest_waits_on_in_its_place() -> None:
    """OP-48: the lines that got a code wait no longer, and the others keep their order."""
    first, last = wait(0, 3), wait(3, 5, attempt_id=OTHER)
    loaded = facts(pending(), waits=[first, last], shelf=[lot(2, 1, 2)])

    ruling = deliver_waiting(loaded, [first])

    (after,) = ruling.answers
    assert isinstance(after, Order)
    assert (after.lines_finished, after.status, after.outcomes) == (2, Status.PENDING, (Outcome(0, 2, 2, 0),))
    assert (ruling.waits_over, ruling.waits) == ([(2, 0)], [replace(first, line_from=2)])
    assert loaded.waits[2] == [replace(first, line_from=2), last]
    assert (ruling.entries, [one.type for one in ruling.events]) == ([], ["order.line_finished"])


def test_a_wait_that_got_all_of_its_lines_is_over() -> None:
    """OP-48: nothing of it is left to wait."""
    first, last = wait(0, 3), wait(3, 5)
    loaded = facts(pending(), waits=[first, last], shelf=[lot(2, 1, 9)])

    ruling = deliver_waiting(loaded, [first, last])

    assert [one.lines_finished for one in ruling.answers if isinstance(one, Order)] == [3, 5]
    assert (ruling.waits_over, ruling.waits, loaded.waits[2]) == ([(2, 0), (2, 3)], [], [])
    assert loaded.orders[2].status is Status.FINISHED


@pytest.mark.parametrize(
    "orders",
    [
        [],
        [pending(**PAID | {"status": Status.CANCELLED})],
        [pending(**PAID | {"deadline_at": NOW})],
    ],
    ids=["unknown", "ended", "late"],
)
def test_what_ended_since_it_was_seen_gets_no_code_and_holds_nobody_up(orders: list[Order]) -> None:
    """OP-46: an order whose time is up is not sold to any more; the next in the queue is."""
    gone, next_ = wait(0, 5), wait(0, 5, 4)
    loaded = facts(*orders, pending(4), waits=[gone, next_], shelf=[lot(2, 1, 9)])

    ruling = deliver_waiting(loaded, [gone, next_])

    assert list(ruling.orders) == [4]
    assert (len(ruling.answers), ruling.waits_over) == (1, [(4, 0)])


@pytest.mark.parametrize("now", [wait(1, 5), wait(0, 5, attempt_id=OTHER)], ids=["split", "being bought"])
def test_what_was_split_or_is_being_bought_since_it_was_seen_waits_for_its_next_turn(now: Wait) -> None:
    """OP-48: the shelf serves only what is as it was seen; the next in the queue is served."""
    loaded = facts(pending(), pending(4), waits=[now, wait(0, 5, 4)], shelf=[lot(2, 1, 9)])

    ruling = deliver_waiting(loaded, [wait(0, 5), wait(0, 5, 4)])

    assert (list(ruling.orders), loaded.waits[2]) == ([4], [now])


def test_an_empty_shelf_changes_nothing() -> None:
    """OP-48: no code, no new version, no event."""
    loaded = facts(pending(), waits=[wait(0, 5)])
    loaded.shelves = {}

    ruling = deliver_waiting(loaded, [wait(0, 5)])

    assert (ruling.answers, ruling.orders, ruling.events, ruling.waits_over) == ([], {}, [], [])


def test_bought_codes_go_to_their_own_lines_of_orders_that_still_want_them() -> None:
    """OP-44: the older order first; late orders and lines of other purchases get none, and the shelf does not help."""
    waits = [
        wait(0, 2, attempt_id=MINE),
        wait(2, 5, attempt_id=OTHER),
        wait(0, 5, 4, attempt_id=MINE),
        wait(0, 5, 6, attempt_id=OTHER),
        wait(0, 5, 8, attempt_id=MINE),
    ]
    late = pending(4, **PAID | {"deadline_at": NOW})
    loaded = facts(pending(8), pending(6, **HELD), late, pending(), waits=waits, shelf=[lot(10, 1, 9)])

    ruling = receive(loaded, MINE, [lot(2, 1, 4)])

    assert ruling.outcomes == [(2, Outcome(0, 2, 2, 0)), (8, Outcome(0, 2, 2, 2))]
    assert [one.id for one in ruling.answers if isinstance(one, Order)] == [2, 8]
    assert loaded.waits[2] == [waits[1]]
    assert loaded.waits[8] == [wait(2, 5, 8, attempt_id=MINE)]


@pytest.mark.parametrize(("stock", "served"), [(2, True), (1, False)])
def test_a_resolve_fills_up_from_the_shelf_and_is_paid_only_if_all_of_it_is_there(
    stock: int, served: bool
) -> None:
    """OP-46, OP-47: all of its lines at once, bought or from the shelf; else nothing is taken."""
    loaded = facts(
        pending(**HELD), waits=[wait(0, 3, attempt_id=MINE), wait(3, 5)], shelf=[lot(10, 1, stock)]
    )

    ruling = receive(loaded, MINE, [lot(2, 1, 3)])

    after = loaded.orders[2]
    assert after.status is (Status.FINISHED if served else Status.PENDING)
    assert after.payment_status is (Payment.PAID if served else Payment.UNPAID)
    assert (after.charged_minor, after.held_minor) == ((4_750, 0) if served else (0, 4_750))
    assert len(ruling.answers) == served
    booked = [(one.kind, one.amount_minor, one.hold_minor) for one in ruling.entries]
    assert booked == ([(EntryKind.ORDER, -4_750, -4_750)] if served else [])
    assert ruling.cursors == ({2: 3, 10: 2} if served else {})
    assert ruling.waits_over == ([(2, 0), (2, 3)] if served else [])


def test_a_resolve_waits_for_another_purchase_of_its_own_lines() -> None:
    """OP-47: with the last of them all lines are delivered, although the shelf could serve them now."""
    waits = [wait(0, 3, attempt_id=MINE), wait(3, 5, attempt_id=OTHER)]
    loaded = facts(pending(**HELD), waits=waits, shelf=[lot(10, 1, 9)])

    ruling = receive(loaded, MINE, [lot(2, 1, 3)])

    assert (ruling.answers, ruling.entries, loaded.waits[2]) == ([], [], waits)


def test_lines_whose_codes_lie_on_the_shelf_wait_there() -> None:
    """OP-46: only those of this purchase move, and an order that is cancelled without one of them stays as it is."""
    waits = [wait(0, 3, attempt_id=MINE), wait(3, 5, attempt_id=OTHER), wait(0, 5, 4, attempt_id=OTHER)]
    loaded = facts(pending(**HELD), pending(4, **PAID, cancelling=True), waits=waits)

    ruling = park(loaded, MINE)

    assert ruling.waits_moved == [wait(0, 3)]
    assert (ruling.answers, ruling.orders) == ([], {})


@pytest.mark.parametrize("end", ["park", "release"])
def test_a_cancelled_order_that_is_paid_gets_the_money_of_these_lines_back(end: str) -> None:
    """OP-45: of an order that a program before 0.2 marked, lines end with their purchase, the others with theirs."""
    waits = [wait(0, 3, attempt_id=MINE), wait(3, 5, attempt_id=OTHER)]
    loaded = facts(pending(**PAID, cancelling=True), waits=waits)

    ruling = park(loaded, MINE) if end == "park" else release(loaded, MINE, 7)

    (after,) = ruling.answers
    assert isinstance(after, Order)
    assert (after.lines_cancelled, after.refunded_minor, after.status) == (3, 2_850, Status.PENDING)
    assert (ruling.waits_over, ruling.waits_moved, loaded.waits[2]) == ([(2, 0)], [], [waits[1]])


@pytest.mark.parametrize("end", ["park", "release"])
@pytest.mark.parametrize("other", [OTHER, None, MINE])
def test_a_cancelled_order_that_is_only_held_ends_as_a_whole_with_its_last_purchase(
    end: str, other: UUID | None
) -> None:
    """OP-45, OP-47: one that a program before 0.2 marked; until then its lines wait where nobody buys for them."""
    waits = [wait(0, 3, attempt_id=MINE), wait(3, 5, attempt_id=other)]
    loaded = facts(pending(**HELD, cancelling=True), waits=waits)

    ruling = park(loaded, MINE) if end == "park" else release(loaded, MINE, 7)

    if other is OTHER:
        assert (ruling.waits_moved, ruling.answers, ruling.entries) == ([wait(0, 3)], [], [])
    else:
        assert loaded.orders[2].status is Status.CANCELLED
        assert (len(ruling.answers), ruling.waits_over, ruling.waits_moved) == (1, [(2, 0), (2, 3)], [])
        assert [(one.kind, one.hold_minor) for one in ruling.entries] == [(EntryKind.RELEASE, -4_750)]


def test_for_lines_that_a_supplier_failed_another_one_is_looked_for_at_once() -> None:
    """OP-44: for those of this purchase, of orders that still wait; the others are left alone."""
    ended = pending(4, **PAID | {"status": Status.CANCELLED})
    waits = [
        wait(0, 2, attempt_id=MINE),
        wait(2, 5, attempt_id=OTHER),
        wait(0, 5, 4, attempt_id=MINE),
        wait(0, 5, 6, attempt_id=OTHER),
        replace(wait(0, 5, 8, attempt_id=MINE), product_id=2),
    ]
    cancelling = pending(6, **PAID, cancelling=True)
    loaded = facts(pending(8), cancelling, ended, pending(), waits=waits)

    ruling = release(loaded, MINE, 7)

    assert ruling.waits_moved == [
        wait(0, 2, ask_at=NOW, tried=(7,)),
        replace(wait(0, 5, 8, ask_at=NOW, tried=(7,)), product_id=2),
    ]
    assert (ruling.answers, ruling.orders) == ([], {})


PLACES: dict[str, dict[str, Any]] = {
    "pausing": {"ask_at": NOW},
    "for the shelf": {},
    "bought": {"attempt_id": OTHER},
    "for a supplier": {"supplier_id": 7},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("left", [0, 1])
def test_a_line_that_can_not_come_later_is_cancelled_when_nobody_sells_it(place: str, left: int) -> None:
    """OP-140: unless it lies on the shelf by now, is being bought, or somebody is to be asked for it."""
    ends = left == 0 and place in ("pausing", "for the shelf")
    now_only = pending(**PAID, async_delivery=False)
    loaded = facts(
        now_only, waits=[wait(0, 3, attempt_id=MINE), wait(3, 5, **PLACES[place])], shelf=[lot(10, 1, left)]
    )

    ruling = end_unserved(loaded, {(SHELF, 1)})

    after = loaded.orders[2]
    assert (after.lines_cancelled, after.refunded_minor) == ((2, 1_900) if ends else (0, 0))
    assert (after.status, len(ruling.answers)) == (Status.PENDING, ends)
    assert after.payment_status is (Payment.PARTIALLY_REFUNDED if ends else Payment.PAID)
    assert loaded.waits[2][0] == wait(0, 3, attempt_id=MINE), "what is being bought goes on"


def test_a_line_that_may_come_later_waits_on_and_another_product_is_not_touched() -> None:
    """OP-43, OP-140: it is bought when somebody sells it again."""
    others = pending(4, **PAID, async_delivery=False)
    waits = [wait(0, 5, ask_at=NOW), replace(wait(0, 5, 4, ask_at=NOW), product_id=2)]
    loaded = facts(pending(**PAID), others, waits=waits)

    ruling = end_unserved(loaded, {(SHELF, 1)})

    assert (ruling.answers, ruling.entries, ruling.waits_over) == ([], [], [])


@pytest.mark.parametrize(("left", "ends"), [(0, True), (1, True), (2, False)])
def test_a_resolve_ends_at_once_when_nobody_sells_all_that_it_lacks(left: int, ends: bool) -> None:
    """OP-140: all of it or nothing, whatever is under way for its other lines, and without a charge."""
    loaded = facts(
        pending(**HELD),
        waits=[wait(0, 3, attempt_id=OTHER), wait(3, 5, ask_at=NOW)],
        shelf=[lot(10, 1, left)],
    )
    loaded.waits[2] = [replace(one, urgent=True) for one in loaded.waits[2]]

    ruling = end_unserved(loaded, {(SHELF, 2)})

    assert loaded.orders[2].status is (Status.CANCELLED if ends else Status.PENDING)
    booked = [(one.kind, one.hold_minor) for one in ruling.entries]
    assert booked == ([(EntryKind.RELEASE, -4_750)] if ends else [])
    assert len(ruling.waits_over) == (2 if ends else 0)


def test_only_orders_whose_time_is_up_are_ended() -> None:
    """OP-44: not one that has time left, that ended meanwhile, or that is not there."""
    late = pending(2, **PAID | {"deadline_at": NOW})
    ended = pending(6, **PAID | {"deadline_at": NOW, "status": Status.FINISHED})
    loaded = facts(late, pending(4), ended, waits=[wait(0, 5, attempt_id=OTHER), wait(0, 5, 4)])

    ruling = end_waiting(loaded, [8, 6, 4, 2])

    assert list(ruling.orders) == [2]
    (after,) = ruling.answers
    assert isinstance(after, Order)
    assert (after.status, after.lines_cancelled, after.refunded_minor) == (Status.CANCELLED, 5, 4_750)
    assert ruling.waits_over == [(2, 0)]
