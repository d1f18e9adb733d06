"""The decisions about orders, apart from Create. Pure: no clock, no chance, no database.

Each function takes the facts as loaded and a list of commands, and gives back one ruling for all of them. The
commands are decided one after another on a working copy of the facts, so the second call for an order, a wallet or
a code in one batch sees what the first one did, and a large order that can't be paid takes nothing from the small
one behind it. Everything that can say no comes first (OP-23); below the line nothing refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.events import log
from voucherd.events.log import OrderEvent
from voucherd.ids import State
from voucherd.orders.model import Item, Order, Outcome
from voucherd.orders.refusals import (
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    WrongStatus,
)
from voucherd.orders.states import Move, Payment, Status, move
from voucherd.vault.shelf import Lot, Shelf
from voucherd.wallet.ledger import Entry, Kind, Wallet, post

SANDBOX_PENDING_S: Final = 10
"""How long a sandbox order that was asked to be pending stays so."""


class Chance(Enum):
    """What a sandbox call was told to do, by its header or by the coin (OP-49)."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    PENDING = "pending"
    SLOW = "slow"
    OUT_OF_STOCK = "out-of-stock"
    INSUFFICIENT_BALANCE = "insufficient-balance"


class Finalise(Struct, frozen=True):
    """Confirm or Resolve one order."""

    order_id: int | None
    company_id: int
    state: State
    resolve: bool
    chance: Chance = Chance.FINISHED
    slow_s: int = 0


class Cancel(Struct, frozen=True):
    """Cancel one order."""

    order_id: int | None
    company_id: int
    state: State


class Wait(Struct, frozen=True):
    """A range of lines that waits for codes."""

    state: int
    product_id: int
    face_minor: int
    company_id: int
    order_id: int
    line_from: int
    line_to: int
    not_before: datetime
    deadline_at: datetime


class Standing(Struct, frozen=True):
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
    standing: dict[int, Standing] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    """Products that are no longer for sale."""
    purses: dict[int, int] = field(default_factory=dict)
    """Order id to wallet id; an order without one belongs to a company that never had money in its currency."""
    wallets: dict[int, Wallet] = field(default_factory=dict)
    shelves: dict[Shelf, list[Lot]] = field(default_factory=dict)
    queued: set[Shelf] = field(default_factory=set)
    """Shelves that others wait for already."""


class Ruling(Struct):
    """Everything that is to be stored, and one answer for each command."""

    answers: list[Order | Refusal] = field(default_factory=list)
    orders: dict[int, Order] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    waits_over: list[tuple[int, int]] = field(default_factory=list)
    """(order id, first line) of waits that ended."""
    events: list[OrderEvent] = field(default_factory=list)


class _Plan(Struct):
    """What a finalised order would get now, and what would have to wait."""

    outcomes: list[Outcome] = field(default_factory=list)
    cursors: dict[int, int] = field(default_factory=dict)
    open: list[tuple[Item, int, int]] = field(default_factory=list)


def finalise(facts: Facts, commands: Sequence[Finalise]) -> Ruling:
    """Debit and deliver every order that may be confirmed or resolved; refuse the rest."""
    ruling = Ruling()
    for command in commands:
        try:
            ruling.answers.append(_finalise(facts, ruling, command))
        except Refusal as refusal:
            ruling.answers.append(refusal)
    return ruling


def _finalise(facts: Facts, ruling: Ruling, command: Finalise) -> Order:
    order = _own(facts, command.order_id, command.company_id, command.state)
    _refuse_finalising(facts, order, resolve=command.resolve)
    plan = _plan(facts, ruling, order, command)
    wallet = _paying_wallet(facts, order, command)
    # From here on nothing refuses.
    if command.chance is Chance.CANCELLED:
        return _decline(facts, ruling, order)
    held = command.resolve and bool(plan.open)
    event = Move.HELD if held else Move.PAID
    paid = replace(
        order,
        status=move(order.status, event),
        payment_status=Payment.UNPAID if held else Payment.PAID,
        charged_minor=0 if held else order.total_minor,
        held_minor=order.total_minor if held else 0,
        resolving=command.resolve,
        deadline_at=_deadline(facts, command) if plan.open else None,
    )
    if held:
        _post(facts, ruling, wallet, paid, Kind.HOLD, hold_minor=order.total_minor)
    else:
        _post(
            facts,
            ruling,
            wallet,
            paid,
            Kind.ORDER,
            amount_minor=-order.total_minor,
            vat_minor=-order.vat_minor,
        )
    for item, line_from, line_to in plan.open:
        ruling.waits.append(_wait(paid, item, line_from, line_to, _not_before(facts.now, command)))
    return _deliver(facts, ruling, paid, plan, log.ORDER_PENDING)


def _own(facts: Facts, order_id: int | None, company_id: int, state: State) -> Order:
    """The order, if it is the caller's own and exists for the outside."""
    order = None if order_id is None else facts.orders.get(order_id)
    if (
        order is None
        or order.company_id != company_id
        or order.state != state
        or order.status is Status.DELETED
    ):
        raise OrderNotFound
    return order


def _refuse_finalising(facts: Facts, order: Order, *, resolve: bool) -> None:
    """The refusals of sections 7 and OP-20, in the order of OP-23, up to the stock."""
    standing = facts.standing[order.company_id]
    if not standing.active:
        raise CompanyNotActive
    if not standing.verified:
        raise CompanyNotVerified
    if order.status is not Status.CREATED:
        raise WrongStatus
    if facts.now > order.expires_at:
        raise OrderExpired
    if resolve and len(order.items) > 1:
        raise SeveralItems
    if facts.withdrawn:
        gone = [item.version.name for item in order.items if item.version.product_id in facts.withdrawn]
        if gone:
            raise OffersNotAvailable(tuple(dict.fromkeys(gone)))


def _plan(facts: Facts, ruling: Ruling, order: Order, command: Finalise) -> _Plan:
    """Which codes the order would get; refused if a line that can't wait would get none."""
    if command.chance is Chance.OUT_OF_STOCK:
        raise OutOfStock(order.items[0].version.name)
    plan = _Plan()
    if command.chance is Chance.SLOW or command.chance is Chance.PENDING:
        plan.open = list(order.open_ranges())
        return plan
    for item in order.items:
        at = item.first_line
        # Whoever waits already comes first (OP-48): a new order joins the queue, and the worker serves it in turn.
        if not item.version.async_delivery or (*item.shelf, order.state) not in facts.queued:
            at = _take(facts, ruling, plan, order.state, item, at, item.end_line)
        if at < item.end_line:
            if not item.version.async_delivery:
                raise OutOfStock(item.version.name)
            plan.open.append((item, at, item.end_line))
    if plan.open and command.resolve:
        # Resolve is all or nothing: a code handed over before the limit could not be taken back after it.
        return _Plan(open=list(order.open_ranges()))
    return plan


def _take(
    facts: Facts, ruling: Ruling, plan: _Plan, state: State, item: Item, line_from: int, line_to: int
) -> int:
    """Plan codes for a range of lines from the item's shelf; the first line that got none."""
    at = line_from
    for lot in facts.shelves.get((*item.shelf, state), ()):
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


def _paying_wallet(facts: Facts, order: Order, command: Finalise) -> Wallet | None:
    """The wallet that pays, refused if it can't; None for a free order of a company without one."""
    wallet_id = facts.purses.get(order.id)
    wallet = None if wallet_id is None else facts.wallets[wallet_id]
    available = 0 if wallet is None else wallet.available_minor
    if command.chance is Chance.INSUFFICIENT_BALANCE or available < order.total_minor:
        raise InsufficientBalance
    return wallet


def _decline(facts: Facts, ruling: Ruling, order: Order) -> Order:
    """The sandbox's immediate cancellation: nothing is charged."""
    cancelled = replace(
        order,
        status=move(order.status, Move.DECLINED),
        lines_cancelled=order.lines,
        outcomes=(Outcome(0, order.lines, None, None),),
    )
    ruling.outcomes.append((order.id, cancelled.outcomes[0]))
    return _record(facts, ruling, cancelled, log.ORDER_CANCELLED)


def _wait(order: Order, item: Item, line_from: int, line_to: int, not_before: datetime) -> Wait:
    product_id, face_minor = item.shelf
    assert order.deadline_at is not None
    return Wait(
        order.id & 1,
        product_id,
        face_minor,
        order.company_id,
        order.id,
        line_from,
        line_to,
        not_before,
        order.deadline_at,
    )


def _deadline(facts: Facts, command: Finalise) -> datetime:
    """When the wait for codes ends: Resolve's limit, or the delivery window."""
    return facts.now + (facts.windows.resolve if command.resolve else facts.windows.delivery)


def _not_before(now: datetime, command: Finalise) -> datetime:
    """When a sandbox order that asked to be slow may be delivered."""
    if command.chance is Chance.SLOW:
        return now + timedelta(seconds=command.slow_s)
    if command.chance is Chance.PENDING:
        return now + (timedelta(days=1) if command.resolve else timedelta(seconds=SANDBOX_PENDING_S))
    return now


def _deliver(facts: Facts, ruling: Ruling, order: Order, plan: _Plan, unfinished_event: str) -> Order:
    """The order after the planned codes are handed over."""
    count = sum(outcome.line_to - outcome.line_from for outcome in plan.outcomes)
    ruling.cursors.update(plan.cursors)
    ruling.outcomes.extend([(order.id, outcome) for outcome in plan.outcomes])
    lines_finished = order.lines_finished + count
    done = lines_finished == order.lines
    delivered = replace(
        order,
        status=move(order.status, Move.DELIVERED) if done else order.status,
        lines_finished=lines_finished,
        outcomes=(*order.outcomes, *plan.outcomes),
    )
    return _record(facts, ruling, delivered, log.ORDER_FINISHED if done else unfinished_event)


def _post(
    facts: Facts,
    ruling: Ruling,
    wallet: Wallet | None,
    order: Order,
    kind: Kind,
    *,
    amount_minor: int = 0,
    vat_minor: int = 0,
    hold_minor: int = 0,
) -> None:
    """Book a movement of the order's wallet."""
    if wallet is not None:  # A free order of a company without a wallet moves nothing.
        facts.wallets[wallet.id], entry = post(
            wallet,
            kind,
            amount_minor=amount_minor,
            vat_minor=vat_minor,
            hold_minor=hold_minor,
            order_id=order.id,
        )
        ruling.entries.append(entry)


def _record(facts: Facts, ruling: Ruling, order: Order, event: str) -> Order:
    """The next version of the order, remembered for the store and for the commands that follow."""
    after = replace(order, version=order.version + 1, updated_at=facts.now)
    facts.orders[order.id] = ruling.orders[order.id] = after
    ruling.events.append(OrderEvent(order.id, order.company_id, event, after.version))
    return after


def cancel(facts: Facts, commands: Sequence[Cancel]) -> Ruling:
    """Delete every order that is not confirmed, cancel and refund what is undelivered of the others."""
    ruling = Ruling()
    for command in commands:
        try:
            order = _own(facts, command.order_id, command.company_id, command.state)
            if order.status is Status.CREATED:
                gone = replace(order, status=move(order.status, Move.WITHDRAWN))
                ruling.answers.append(_record(facts, ruling, gone, log.ORDER_DELETED))
            elif order.status is Status.PENDING:
                ruling.answers.append(_cancel_open_lines(facts, ruling, order))
            else:
                raise WrongStatus
        except Refusal as refusal:
            ruling.answers.append(refusal)
    return ruling


def _cancel_open_lines(facts: Facts, ruling: Ruling, order: Order) -> Order:
    """Cancel every line without an outcome and give its money back, from the amounts fixed at Create (OP-45)."""
    dropped: list[Outcome] = []
    refund_minor = vat_minor = 0
    for item, line_from, line_to in order.open_ranges():
        dropped.append(Outcome(line_from, line_to, None, None))
        refund_minor += item.unit_charge_minor * (line_to - line_from)
        vat_minor += item.unit.pay_vat_minor * (line_to - line_from)
        ruling.waits_over.append((order.id, line_from))
    wallet_id = facts.purses.get(order.id)
    wallet = None if wallet_id is None else facts.wallets[wallet_id]
    # The payment decides and not an amount: a free order is paid for, or waits to be, like any other.
    if order.payment_status is Payment.UNPAID:
        _post(facts, ruling, wallet, order, Kind.RELEASE, hold_minor=-order.held_minor)
        refund_minor, payment = 0, Payment.UNPAID
    else:
        _post(facts, ruling, wallet, order, Kind.REFUND, amount_minor=refund_minor, vat_minor=vat_minor)
        payment = Payment.PARTIALLY_REFUNDED if order.lines_finished else Payment.REFUNDED
    ruling.outcomes.extend([(order.id, outcome) for outcome in dropped])
    cancelled = replace(
        order,
        status=move(order.status, Move.CANCELLED),
        payment_status=payment,
        refunded_minor=order.refunded_minor + refund_minor,
        held_minor=0,
        lines_cancelled=sum(outcome.count for outcome in dropped),
        outcomes=(*order.outcomes, *dropped),
    )
    return _record(facts, ruling, cancelled, log.ORDER_CANCELLED)


def deliver_waiting(facts: Facts, waits: Sequence[Wait]) -> Ruling:
    """Hand codes to waiting lines, in the order given, as far as the shelves go."""
    ruling = Ruling()
    for wait in waits:
        order = facts.orders.get(wait.order_id)
        if order is None or order.status is not Status.PENDING:
            continue  # It ended between the look and the lock.
        if _is_late(facts, order):
            continue  # Its time is up: it will be ended, and is not sold to any more.
        open_range = next((r for r in order.open_ranges() if r[1] == wait.line_from), None)
        if open_range is None:
            continue
        item, line_from, line_to = open_range
        plan = _Plan()
        at = _take(facts, ruling, plan, order.state, item, line_from, line_to)
        if at == line_from or (order.resolving and at < line_to):
            continue
        ruling.waits_over.append((order.id, line_from))
        if at < line_to:
            ruling.waits.append(_wait(order, item, at, line_to, wait.not_before))
        if order.payment_status is Payment.UNPAID:
            order = _settle(facts, ruling, order)
        ruling.answers.append(_deliver(facts, ruling, order, plan, log.ORDER_LINE_FINISHED))
    return ruling


def _settle(facts: Facts, ruling: Ruling, order: Order) -> Order:
    """Take the money that Resolve held."""
    wallet_id = facts.purses.get(order.id)
    wallet = None if wallet_id is None else facts.wallets[wallet_id]
    total = order.total_minor
    _post(
        facts,
        ruling,
        wallet,
        order,
        Kind.ORDER,
        amount_minor=-total,
        vat_minor=-order.vat_minor,
        hold_minor=-order.held_minor,
    )
    return replace(order, payment_status=Payment.PAID, charged_minor=total, held_minor=0)


def end_waiting(facts: Facts, order_ids: Sequence[int]) -> Ruling:
    """Cancel what is still open of orders whose time is up: Resolve's limit or the delivery window (OP-44)."""
    ruling = Ruling()
    for order_id in order_ids:
        order = facts.orders.get(order_id)
        if order and order.status is Status.PENDING and _is_late(facts, order):
            ruling.answers.append(_cancel_open_lines(facts, ruling, order))
    return ruling


def _is_late(facts: Facts, order: Order) -> bool:
    """Whether Resolve's limit or the delivery window is over."""
    return order.deadline_at is not None and facts.now >= order.deadline_at
