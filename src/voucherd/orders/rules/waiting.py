"""What becomes of lines that wait: codes come, purchases fail, time runs out. Pure, like `decide`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec.structs import replace

from voucherd.events import kinds
from voucherd.orders.model import Order
from voucherd.orders.rules.ruling import (
    Facts,
    PlannedCodes,
    Ruling,
    cancel_lines,
    deliver,
    is_late,
    item_at,
    plan_codes,
    take_held_money,
)
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.rules.waits import Wait, failed_at
from voucherd.vault.model import Lot, Shelf


def deliver_waiting(facts: Facts, waits: Sequence[Wait]) -> Ruling:
    """Hand codes from the shelf to waiting lines, in the order given, as far as the shelves go."""
    ruling = Ruling()
    for seen in waits:
        order = _still_pending(facts, seen.order_id)
        if order is None:
            continue  # It ended between the look and the lock, or its time is up.
        # What was seen without a lock may have been split, bought for or served since.
        wait = next((one for one in facts.waits[order.id] if one.line_from == seen.line_from), None)
        if wait is None or wait.attempt_id is not None:
            continue
        served = _serve(facts, ruling, order, [wait], facts.shelves.get(wait.shelf, ()))
        if served is not None:
            ruling.answers.append(served)
    return ruling


def receive(facts: Facts, attempt_id: UUID, lots: Sequence[Lot]) -> Ruling:
    """Hand codes that were just bought to the lines that they were bought for, as far as those still want them."""
    ruling = Ruling()
    for order_id in sorted(facts.orders):
        order = _still_pending(facts, order_id)
        if order is None:
            continue
        waits = [wait for wait in facts.waits[order_id] if wait.attempt_id == attempt_id]
        # A Resolve may fill up from the shelf: it gets all of its lines at once or none.
        shelf = facts.shelves.get(waits[0].shelf, ()) if waits and order.resolving else ()
        served = _serve(facts, ruling, order, waits, [*lots, *shelf]) if waits else None
        if served is not None:
            ruling.answers.append(served)
    return ruling


def _serve(
    facts: Facts, ruling: Ruling, order: Order, waits: Sequence[Wait], lots: Sequence[Lot]
) -> Order | None:
    """The order after these waits got what the lots have; None if that is nothing."""
    if order.resolving:
        mine = {wait.attempt_id for wait in waits}
        waits = facts.waits[order.id]
        if any(wait.attempt_id is not None and wait.attempt_id not in mine for wait in waits):
            return (
                None  # Another purchase for the same order is under way: with it, all of them are delivered.
            )
    plan = PlannedCodes()
    served: list[tuple[Wait, int]] = []
    for wait in waits:
        at = plan_codes(ruling, plan, lots, wait.line_from, wait.line_to)
        if order.resolving and at < wait.line_to:
            return None
        if at > wait.line_from:
            served.append((wait, at))
    if not served:
        return None
    for wait, at in served:
        _shorten(facts, ruling, wait, at)
    if order.payment_status is Payment.UNPAID:
        order = take_held_money(facts, ruling, order)
    return deliver(facts, ruling, order, plan, kinds.ORDER_LINE_FINISHED)


def _shorten(facts: Facts, ruling: Ruling, wait: Wait, at: int) -> None:
    """End a wait for the lines before `at`; the others wait on in the same place."""
    others = [one for one in facts.waits[wait.order_id] if one.line_from != wait.line_from]
    ruling.waits_over.append((wait.order_id, wait.line_from))
    if at < wait.line_to:
        rest = replace(wait, line_from=at)
        ruling.waits.append(rest)
        others.append(rest)
    facts.waits[wait.order_id] = sorted(others, key=lambda one: one.line_from)


def park(facts: Facts, attempt_id: UUID) -> Ruling:
    """Let lines wait for the shelf, where their codes lie by now: they are delivered with the rest of their order."""
    ruling = Ruling()
    for order_id in sorted(facts.orders):
        order = facts.orders[order_id]
        waits = [wait for wait in facts.waits[order_id] if wait.attempt_id == attempt_id]
        if waits and order.cancelling:
            ruling.answers += _give_up(facts, ruling, order, waits)
        else:
            ruling.waits_moved += [replace(wait, attempt_id=None) for wait in waits]
    return ruling


def release(facts: Facts, attempt_id: UUID, supplier_id: int) -> Ruling:
    """Let go of the lines that a purchase brought nothing for: another supplier is looked for at once (OP-44)."""
    ruling = Ruling()
    for order_id in sorted(facts.orders):
        order = facts.orders[order_id]
        if order.status is not Status.PENDING:
            continue
        waits = [wait for wait in facts.waits[order_id] if wait.attempt_id == attempt_id]
        if not waits:
            continue
        if order.cancelling:
            ruling.answers += _give_up(facts, ruling, order, waits)
            continue
        ruling.waits_moved += [
            replace(failed_at(wait, supplier_id), attempt_id=None, ask_at=facts.now) for wait in waits
        ]
    return ruling


def end_unserved(facts: Facts, exhausted: Collection[tuple[Shelf, int]]) -> Ruling:
    """Cancel what must not wait for what nobody sells any more: Resolves, and lines that can't come later (OP-140).

    `exhausted` are shelves that so many codes can't be had of. What is on the shelf by now is delivered, and what is
    being bought or is to be asked for is not touched, unless it is a Resolve's: that gets all of its lines or none.
    """
    ruling = Ruling()
    for order_id in sorted(facts.orders):
        order = _still_pending(facts, order_id)
        if order is None:
            continue
        waits = facts.waits[order_id]
        unserved = [
            wait
            for wait in waits
            if (wait.attempt_id, wait.supplier_id) == (None, None)
            and wait.needs in exhausted
            and sum(lot.left for lot in facts.shelves.get(wait.shelf, ())) < wait.needs[1]
        ]
        if not order.resolving:
            unserved = [one for one in unserved if not item_at(order, one.line_from).version.async_delivery]
        if unserved:
            ended = waits if order.resolving else unserved
            ruling.answers.append(cancel_lines(facts, ruling, order, ended))
    return ruling


def _give_up(facts: Facts, ruling: Ruling, order: Order, waits: Sequence[Wait]) -> list[Order]:
    """Cancel lines of an order that a program before 0.2 only marked while they were being bought (OP-45)."""
    if order.payment_status is not Payment.UNPAID:
        return [cancel_lines(facts, ruling, order, waits)]
    # What was only held ends as a whole, with the last of its purchases.
    mine = waits[0].attempt_id
    if any(wait.attempt_id not in {None, mine} for wait in facts.waits[order.id]):
        ruling.waits_moved += [replace(wait, attempt_id=None) for wait in waits]
        return []
    return [cancel_lines(facts, ruling, order, facts.waits[order.id])]


def end_waiting(facts: Facts, order_ids: Sequence[int]) -> Ruling:
    """Cancel what is still open of orders whose time is up: Resolve's limit or the delivery window (OP-44)."""
    ruling = Ruling()
    for order_id in order_ids:
        order = facts.orders.get(order_id)
        if order and order.status is Status.PENDING and is_late(facts, order):
            ruling.answers.append(cancel_lines(facts, ruling, order, facts.waits[order_id]))
    return ruling


def _still_pending(facts: Facts, order_id: int) -> Order | None:
    """The order, unless it ended or its time is up: then it will be ended, and is not sold to any more."""
    order = facts.orders.get(order_id)
    if order is None or order.status is not Status.PENDING or is_late(facts, order):
        return None
    return order
