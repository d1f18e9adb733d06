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


def cancelled(loaded: Facts, *, at_limit: bool = False) -> tuple[Order, Ruling]:
    """The order after Cancel, and the ruling."""
    ruling = decide.cancel(loaded, [Cancel(2, 1, State.LIVE, at_limit)])
    (answer,) = ruling.answers
    assert isinstance(answer, Order)
    return answer, ruling


def test_cancel_refunds_what_is_idle_and_lets_a_purchase_end() -> None:
    """OP-45: what nobody is buying is refunded at once, what is being bought ends with its purchase."""
    loaded = facts(order(2, *ITEMS, **PAID), wait(0, 2, **BUYING), wait(2, 5))

    after, ruling = cancelled(loaded)

    assert (after.status, after.payment_status) == (Status.PENDING, Payment.PARTIALLY_REFUNDED)
    assert (after.cancelling, after.refunded_minor, after.lines_cancelled) == (True, 300, 3)
    assert after.outcomes == (Outcome(2, 5, None, None),)
    assert ruling.entries == [LedgerEntry(7, 5, EntryKind.REFUND, 300, 3, 0, 10_300, 0, 2)]
    assert (ruling.waits_over, ruling.outcomes) == ([(2, 2)], [(2, Outcome(2, 5, None, None))])
    assert [(event.type, event.seq) for event in ruling.events] == [("order.pending", 2)]
    assert loaded.waits[2] == [wait(0, 2, **BUYING)]

    again, nothing = cancelled(loaded)
    assert again is after
    assert (nothing.orders, nothing.entries, nothing.events) == ({}, [], [])


@pytest.mark.parametrize(("terms", "payment"), [(PAID, Payment.REFUNDED), (HELD, Payment.UNPAID)])
def test_an_order_that_nobody_buys_for_is_cancelled_at_once(terms: dict[str, Any], payment: Payment) -> None:
    """OP-45: it waits for the shelf alone, so nothing has to end first."""
    after, ruling = cancelled(facts(order(2, *ITEMS, **terms), wait(0, 2), wait(2, 5)))

    assert (after.status, after.payment_status, after.cancelling) == (Status.CANCELLED, payment, False)
    assert (len(ruling.entries), ruling.waits_over) == (1, [(2, 0), (2, 2)])


@pytest.mark.parametrize("terms", [PAID, HELD])
def test_an_order_that_is_wholly_being_bought_is_only_marked(terms: dict[str, Any]) -> None:
    """OP-45: paid or held, it ends with its purchases."""
    loaded = facts(order(2, *ITEMS, **terms), wait(0, 2, **BUYING), wait(2, 5, **BUYING))

    after, ruling = cancelled(loaded)

    assert (after.status, after.cancelling, after.version) == (Status.PENDING, True, 2)
    assert (ruling.entries, ruling.waits_over, ruling.outcomes) == ([], [], [])
    assert [event.type for event in ruling.events] == ["order.pending"]


def test_a_limit_waits_for_no_purchase_and_gives_all_money_back() -> None:
    """OP-46: at Resolve's limit, and in whole for an order that was paid."""
    waits = wait(0, 2, **BUYING), wait(2, 5)

    held, ruling = cancelled(facts(order(2, *ITEMS, **HELD), *waits), at_limit=True)
    assert (held.status, held.payment_status, held.held_minor) == (Status.CANCELLED, Payment.UNPAID, 0)
    assert (held.refunded_minor, held.lines_cancelled) == (0, 5)
    assert ruling.entries == [LedgerEntry(7, 5, EntryKind.RELEASE, 0, 0, -1_026, 10_000, 0, 2)]

    paid, ruling = cancelled(facts(order(2, *ITEMS, **PAID), *waits), at_limit=True)
    assert (paid.status, paid.payment_status, paid.refunded_minor) == (
        Status.CANCELLED,
        Payment.REFUNDED,
        1_026,
    )
    assert ruling.entries == [LedgerEntry(7, 5, EntryKind.REFUND, 1_026, 129, 0, 11_026, 0, 2)]
    assert ruling.waits_over == [(2, 0), (2, 2)]
    assert [event.type for event in ruling.events] == ["order.cancelled"]


@pytest.mark.parametrize(
    ("idle", "ends"), [({"supplier_id": 3}, True), ({"ask_at": NOW}, True), ({}, False), (BUYING, False)]
)
def test_a_held_order_ends_if_some_of_it_would_have_to_be_bought_still(
    idle: dict[str, Any], ends: bool
) -> None:
    """OP-45, OP-47: it is paid for as a whole or not at all, and nobody starts to buy for what is cancelled."""
    loaded = facts(order(2, *ITEMS, **HELD), wait(0, 2, **BUYING), wait(2, 5, **idle))

    after, ruling = cancelled(loaded)

    assert after.status is (Status.CANCELLED if ends else Status.PENDING)
    assert (len(ruling.entries), len(ruling.waits_over)) == ((1, 2) if ends else (0, 0))
    assert after.cancelling is not ends


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
