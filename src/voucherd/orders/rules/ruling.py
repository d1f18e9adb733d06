"""The facts that decisions are made on, the ruling that they add up to, and the steps that they share. Pure.

A decision works on the facts as it goes: the second command of a batch sees what the first one did.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.approvals.model import Approval
from voucherd.events import kinds
from voucherd.events.kinds import OrderEvent
from voucherd.limits.spending import SpendKey
from voucherd.orders.model import Item, Order, Outcome
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Move, Payment, move
from voucherd.orders.rules.waits import Wait
from voucherd.suppliers.offers import Offer
from voucherd.vault.model import Lot, Shelf
from voucherd.wallet.ledger import EntryKind, LedgerEntry, Wallet, post


class CompanyStanding(Struct, frozen=True):
    """What a company may do."""

    active: bool
    verified: bool


class Windows(Struct, frozen=True):
    """How long things may take."""

    delivery: timedelta
    resolve: timedelta


class Facts(Struct):
    """What was true when the locks were taken; the decisions work on it as they go."""

    now: datetime
    windows: Windows
    orders: dict[int, Order]
    standing: dict[int, CompanyStanding] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    """Products that are no longer for sale."""
    wallet_of_order: dict[int, int] = field(default_factory=dict)
    """Order id to wallet id; an order without one belongs to a company that never had money in its currency."""
    wallets: dict[int, Wallet] = field(default_factory=dict)
    shelves: dict[Shelf, list[Lot]] = field(default_factory=dict)
    queued: set[Shelf] = field(default_factory=set)
    """Shelves that others wait for already."""
    offers: dict[Shelf, list[Offer]] = field(default_factory=dict)
    """What suppliers can serve now, cheapest first; a shelf whose suppliers all fail just now has an empty list."""
    waits: dict[int, list[Wait]] = field(default_factory=dict)
    """The waits of each order, by their first line."""
    spent: dict[SpendKey, int] = field(default_factory=dict)
    """What those who have a limit for the day have spent today, in euro cents."""
    approvals: dict[int, Approval] = field(default_factory=dict)
    second_persons: set[tuple[int, int]] = field(default_factory=set)
    """Who decides and who asked, where the first counts as a second person (OP-102)."""
    """The requests that a second person grants with a call."""


class Ruling(Struct):
    """Everything that is to be stored, and one answer for each command."""

    answers: list[Order | Refusal] = field(default_factory=list)
    orders: dict[int, Order] = field(default_factory=dict)
    entries: list[LedgerEntry] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    waits_over: list[tuple[int, int]] = field(default_factory=list)
    """(order id, first line) of waits that ended."""
    waits_moved: list[Wait] = field(default_factory=list)
    """Waits of the same lines in another place."""
    events: list[OrderEvent] = field(default_factory=list)
    spent: dict[SpendKey, int] = field(default_factory=dict)


class PlannedCodes(Struct):
    """Which codes some lines would get."""

    outcomes: list[Outcome] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)


def plan_codes(ruling: Ruling, plan: PlannedCodes, lots: Sequence[Lot], line_from: int, line_to: int) -> int:
    """Plan codes of these lots for a range of lines; the first line that got none."""
    at = line_from
    for lot in lots:
        cursor = plan.cursors.get(lot.id)
        if cursor is None:
            cursor = ruling.cursors.get(lot.id, lot.cursor)
        count = min(lot.size - cursor, line_to - at)
        if count > 0:
            plan.outcomes.append(Outcome(at, at + count, lot.id, cursor))
            plan.cursors[lot.id] = cursor + count
            at += count
        if at == line_to:
            break
    return at


def deliver(
    facts: Facts, ruling: Ruling, order: Order, plan: PlannedCodes, unfinished_event: str, **changes: Any
) -> Order:
    """The order after these changes, and after the planned codes are handed over."""
    count = sum([outcome.line_to - outcome.line_from for outcome in plan.outcomes])
    ruling.cursors.update(plan.cursors)
    ruling.outcomes.extend([(order.id, outcome) for outcome in plan.outcomes])
    changes["lines_finished"] = order.lines_finished + count
    changes["outcomes"] = (*order.outcomes, *plan.outcomes)
    return close(facts, ruling, order, unfinished_event, **changes)


def close(facts: Facts, ruling: Ruling, order: Order, unfinished_event: str, **changes: Any) -> Order:
    """The order after these changes, ended if none of its lines is open any more."""
    finished = changes.get("lines_finished", order.lines_finished)
    cancelled = changes.get("lines_cancelled", order.lines_cancelled)
    if finished + cancelled < order.lines:
        return next_version(facts, ruling, order, unfinished_event, **changes)
    way, event = (
        (Move.CANCELLED, kinds.ORDER_CANCELLED) if cancelled else (Move.DELIVERED, kinds.ORDER_FINISHED)
    )
    changes["status"] = move(changes.get("status", order.status), way)
    return next_version(facts, ruling, order, event, **changes)


def take_held_money(facts: Facts, ruling: Ruling, order: Order) -> Order:
    """Take the money that Resolve held."""
    post_entry(
        facts,
        ruling,
        order,
        EntryKind.ORDER,
        amount_minor=-order.total_minor,
        vat_minor=-order.vat_minor,
        hold_minor=-order.held_minor,
    )
    return replace(order, payment_status=Payment.PAID, charged_minor=order.total_minor, held_minor=0)


def cancel_lines(facts: Facts, ruling: Ruling, order: Order, waits: Sequence[Wait]) -> Order:
    """The order after these waits are cancelled and their money is given back, as it was fixed at Create (OP-45)."""
    dropped = [Outcome(wait.line_from, wait.line_to, None, None) for wait in waits]
    ruling.waits_over.extend([(order.id, wait.line_from) for wait in waits])
    over = {wait.line_from for wait in waits}
    facts.waits[order.id] = [wait for wait in facts.waits[order.id] if wait.line_from not in over]
    ruling.outcomes.extend([(order.id, outcome) for outcome in dropped])
    after: dict[str, Any] = {
        "lines_cancelled": order.lines_cancelled + sum(outcome.count for outcome in dropped),
        "outcomes": (*order.outcomes, *dropped),
    }
    # The payment decides and not an amount: a free order is paid for, or waits to be, like any other.
    if order.payment_status is Payment.UNPAID:
        post_entry(facts, ruling, order, EntryKind.RELEASE, hold_minor=-order.held_minor)
        return close(facts, ruling, order, kinds.ORDER_PENDING, held_minor=0, **after)
    refund_minor = sum(item_at(order, one.line_from).unit_charge_minor * one.count for one in dropped)
    vat_minor = sum(item_at(order, one.line_from).unit.pay_vat_minor * one.count for one in dropped)
    post_entry(facts, ruling, order, EntryKind.REFUND, amount_minor=refund_minor, vat_minor=vat_minor)
    whole = after["lines_cancelled"] == order.lines
    after["payment_status"] = Payment.REFUNDED if whole else Payment.PARTIALLY_REFUNDED
    return close(
        facts, ruling, order, kinds.ORDER_PENDING, refunded_minor=order.refunded_minor + refund_minor, **after
    )


def item_at(order: Order, line: int) -> Item:
    """The item that the line belongs to."""
    return next(item for item in order.items if line < item.end_line)


def post_entry(
    facts: Facts,
    ruling: Ruling,
    order: Order,
    kind: EntryKind,
    *,
    amount_minor: int = 0,
    vat_minor: int = 0,
    hold_minor: int = 0,
) -> None:
    """Book a movement of the order's wallet."""
    wallet_id = facts.wallet_of_order.get(order.id)
    if wallet_id is None:
        return  # A free order of a company without a wallet moves nothing.
    facts.wallets[wallet_id], entry = post(
        facts.wallets[wallet_id],
        kind,
        amount_minor=amount_minor,
        vat_minor=vat_minor,
        hold_minor=hold_minor,
        order_id=order.id,
    )
    ruling.entries.append(entry)


def next_version(facts: Facts, ruling: Ruling, order: Order, event: str, **changes: Any) -> Order:
    """The next version of the order, remembered for the store and for the commands that follow."""
    # The only copy that a change takes: an order has many fields, and a batch many orders.
    after = replace(order, version=order.version + 1, updated_at=facts.now, **changes)
    facts.orders[order.id] = ruling.orders[order.id] = after
    ruling.events.append(OrderEvent(order.id, order.company_id, event, after.version))
    return after


def is_late(facts: Facts, order: Order) -> bool:
    """Whether Resolve's limit or the delivery window is over."""
    return order.deadline_at is not None and facts.now >= order.deadline_at
