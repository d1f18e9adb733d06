"""What Cancel does to an order that waits, while some of it is being bought: decided without a database (OP-45)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.domain.books import WINDOWS
from tests.handmade import NOW, lot, order, product, unit
from voucherd.ids import State
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules import decide
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import WrongStatus
from voucherd.orders.rules.ruling import (
    Facts,
    PlannedCodes,
    Ruling,
    close,
    deliver,
    is_late,
    item_at,
    plan_codes,
)
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.rules.waits import Wait
from voucherd.wallet.ledger import EntryKind, LedgerEntry, Wallet

BUYING: dict[str, Any] = {"attempt_id": UUID(int=1)}
PAID: dict[str, Any] = {"status": Status.PENDING, "payment_status": Payment.PAID, "charged_minor": 1_026}
HELD: dict[str, Any] = {"status": Status.PENDING, "held_minor": 1_026, "resolving": True}
ITEMS = (
    (product(1, async_delivery=True), unit(300, 63), 2),
    (product(2, async_delivery=True), unit(99, 1), 3),
)


def wait(line_from: int, line_to: int, **changes: Any) -> Wait:
    """Lines of order 2 that wait."""
    product_id = 1 if line_to <= 2 else 2
    return Wait(0, product_id, 1_000, 1, 2, line_from, line_to, NOW, NOW + WINDOWS.delivery, **changes)


def facts(one: Order, *waits: Wait, wallet_of_order: dict[int, int] | None = None) -> Facts:
    """An order whose money was taken or is held, and its waits."""
    wallet = Wallet(7, 10_000, one.held_minor, 4)
    found = {one.id: 7} if wallet_of_order is None else wallet_of_order
    return Facts(
        NOW, WINDOWS, {one.id: one}, wallet_of_order=found, wallets={7: wallet}, waits={2: list(waits)}
    )


def cancelled(loaded: Facts) -> tuple[Order, Ruling]:
    """The order after Cancel, and the ruling."""
    ruling = decide.cancel(loaded, [Cancel(2, 1, State.LIVE)])
    (answer,) = ruling.answers
    assert isinstance(answer, Order)
    return answer, ruling


PLACES: dict[str, dict[str, Any]] = {
    "bought": BUYING,
    "for a supplier": {"supplier_id": 3},
    "pausing": {"ask_at": NOW},
    "for the shelf": {},
}


@pytest.mark.parametrize("place", PLACES)
def test_cancel_refunds_every_open_line_wherever_it_waits(place: str) -> None:
    """Contract 3, OP-45: cancelled and refunded now, also while a purchase is under way; the delivered lines stay."""
    delivered = Outcome(0, 1, 2, 0)
    paid = order(2, *ITEMS, **PAID, lines_finished=1, outcomes=(delivered,))
    loaded = facts(paid, wait(1, 2, **BUYING), wait(2, 5, **PLACES[place]))

    after, ruling = cancelled(loaded)

    assert (after.status, after.payment_status) == (Status.CANCELLED, Payment.PARTIALLY_REFUNDED)
    assert (after.cancelling, after.refunded_minor, after.lines_cancelled) == (False, 663, 4)
    assert after.outcomes == (delivered, Outcome(1, 2, None, None), Outcome(2, 5, None, None))
    assert ruling.entries == [LedgerEntry(7, 5, EntryKind.REFUND, 663, 66, 0, 10_663, 0, 2)]
    assert (ruling.waits_over, loaded.waits[2]) == ([(2, 1), (2, 2)], [])
    assert [(event.type, event.seq) for event in ruling.events] == [("order.cancelled", 2)]

    again = decide.cancel(loaded, [Cancel(2, 1, State.LIVE)])
    assert [type(one) for one in again.answers] == [WrongStatus]
    assert (again.orders, again.entries, again.events) == ({}, [], [])


@pytest.mark.parametrize("place", PLACES)
def test_a_resolve_that_is_cancelled_is_not_charged_wherever_its_lines_wait(place: str) -> None:
    """OP-45, OP-46: the hold is released as a whole, by a client's Cancel as at the limit."""
    held = order(2, *ITEMS, **HELD)

    after, ruling = cancelled(facts(held, wait(0, 2, **BUYING), wait(2, 5, **PLACES[place])))

    assert (after.status, after.payment_status, after.held_minor) == (Status.CANCELLED, Payment.UNPAID, 0)
    assert (after.refunded_minor, after.lines_cancelled) == (0, 5)
    assert ruling.entries == [LedgerEntry(7, 5, EntryKind.RELEASE, 0, 0, -1_026, 10_000, 0, 2)]
    assert ruling.waits_over == [(2, 0), (2, 2)]


def test_an_order_without_a_wallet_is_cancelled_without_an_entry() -> None:
    """OP-50: a free order of a company that never had money moves none."""
    free = order(
        2, (product(async_delivery=True), unit(0), 2), status=Status.PENDING, payment_status=Payment.PAID
    )

    after, ruling = cancelled(facts(free, wait(0, 2), wallet_of_order={}))

    assert (after.status, after.payment_status) == (Status.CANCELLED, Payment.REFUNDED)
    assert ruling.entries == []


def test_codes_are_planned_lot_by_lot_from_where_each_stands() -> None:
    """OP-43: an empty lot is passed over, and what the batch took before is not taken again."""
    ruling, plan = Ruling(cursors={4: 8}), PlannedCodes(cursors={6: 2})
    lots = [lot(2, 1, 5, cursor=5), lot(4, 1, 9, cursor=6), lot(6, 1, 5), lot(8, 1, 9)]

    assert plan_codes(ruling, plan, lots, 10, 14) == 14
    assert plan.outcomes == [Outcome(10, 11, 4, 8), Outcome(11, 14, 6, 2)]
    assert plan.cursors == {4: 9, 6: 5}
    assert plan_codes(ruling, plan, lots[:3], 14, 15) == 14, "nothing is left of these"
    assert ruling.cursors == {4: 8}, "a plan changes nothing"


def test_delivered_lines_are_added_to_those_before_and_the_last_one_finishes() -> None:
    """Contract 3: pending until the last line has its code."""
    loaded = facts(order(2, *ITEMS, **PAID, lines_finished=1, outcomes=(Outcome(0, 1, 2, 0),)))
    ruling = Ruling()

    first = deliver(
        loaded, ruling, loaded.orders[2], PlannedCodes([Outcome(1, 4, 4, 0)], {4: 3}), "order.pending"
    )
    assert (first.lines_finished, first.status, ruling.cursors) == (4, Status.PENDING, {4: 3})
    last = deliver(loaded, ruling, first, PlannedCodes([Outcome(4, 5, 4, 3)], {4: 4}), "order.pending")

    assert (last.lines_finished, last.status, last.version) == (5, Status.FINISHED, 3)
    assert [one.line_from for one in last.outcomes] == [0, 1, 4]
    assert ruling.outcomes == [(2, Outcome(1, 4, 4, 0)), (2, Outcome(4, 5, 4, 3))]
    assert [(one.type, one.company_id) for one in ruling.events] == [
        ("order.pending", 1),
        ("order.finished", 1),
    ]
    assert loaded.orders[2] is ruling.orders[2] is last


def test_an_order_with_a_cancelled_line_ends_as_cancelled() -> None:
    """Contract 3, OP-45: delivered lines stay delivered, and the order is cancelled all the same."""
    one = order(2, *ITEMS, **PAID, lines_finished=4, lines_cancelled=1)
    assert close(facts(one), Ruling(), one, "order.pending").status is Status.CANCELLED


def test_a_line_belongs_to_the_item_whose_range_it_is_in() -> None:
    """OP-14: ranges of lines, one item after another."""
    one = order(2, *ITEMS)
    assert [item_at(one, line).item_no for line in range(5)] == [0, 0, 1, 1, 1]


def test_an_order_is_late_from_its_deadline_on() -> None:
    """Contract 8: the limit itself is too late; what has no deadline is never late."""
    loaded = facts(order(2, *ITEMS))
    assert not is_late(loaded, order(2, *ITEMS))
    assert is_late(loaded, order(2, *ITEMS, deadline_at=NOW))
    assert not is_late(loaded, order(2, *ITEMS, deadline_at=NOW + WINDOWS.resolve))
