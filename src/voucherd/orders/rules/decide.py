"""The decisions that a client's call asks for, apart from Create. Pure: no clock, no chance, no database.

Each function takes the facts as loaded and a list of commands, and gives back one ruling for all of them. The
commands are decided one after another on a working copy of the facts, so the second call for an order, a wallet or
a code in one batch sees what the first one did, and a large order that can't be paid takes nothing from the small
one behind it. Everything that can say no comes first (OP-23); below the line nothing refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from voucherd.actors import TrailEntry
from voucherd.approvals.model import Consent, needed
from voucherd.events import kinds
from voucherd.idempotency.model import Ticket
from voucherd.ids import State
from voucherd.limits.spending import SpendLimit, spend_key
from voucherd.orders.model import Item, Order, Outcome
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    ApprovalRefused,
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    SpendLimitExceeded,
    WrongStatus,
)
from voucherd.orders.rules.ruling import (
    Facts,
    PlannedCodes,
    Ruling,
    cancel_lines,
    deliver,
    next_version,
    plan_codes,
    post_entry,
)
from voucherd.orders.rules.sandbox import SANDBOX_PENDING_S, SandboxOutcome, codes_from
from voucherd.orders.rules.states import Move, Payment, Status, move
from voucherd.orders.rules.waits import Wait
from voucherd.suppliers.offers import one_for_all, share_out
from voucherd.vault.model import Shelf, Viewer
from voucherd.wallet.ledger import EntryKind

SHELF_FIRST: Final = timedelta(seconds=1)
"""What joins a queue at a filled shelf gives the shelf this long before a supplier is asked."""


class Finalise(Struct, frozen=True):
    """Confirm or Resolve one order."""

    order_id: int | None
    company_id: int
    state: State
    resolve: bool
    sandbox_outcome: SandboxOutcome = SandboxOutcome.FINISHED
    slow_s: int = 0
    limits: tuple[SpendLimit, ...] = ()
    """What the caller and its company may spend."""
    ticket: Ticket | None = None
    approve_from_eur_minor: int | None = None
    """From here on a second person is needed; None where none is, as for keys that confirm alone (OP-101)."""
    consent: Consent | None = None
    """A second person's yes, which this call carries out."""
    viewer: Viewer | None = None
    """Who is shown the codes; None if nobody is."""
    entry: TrailEntry | None = None
    """What the audit trail says of it; None for the calls of keys, whose events say enough."""


class Cancel(Struct, frozen=True):
    """Cancel one order."""

    order_id: int | None
    company_id: int
    state: State
    at_limit: bool = False
    """Resolve's own cancellation at its limit, so that codes are written down as shown by Resolve."""
    ticket: Ticket | None = None
    viewer: Viewer | None = None
    entry: TrailEntry | None = None


class _OpenLines(Struct, frozen=True):
    """Lines that can't be delivered at once, and where they are to wait."""

    item: Item
    line_from: int
    line_to: int
    supplier_id: int | None = None
    ask_at: datetime | None = None


class _Allocation(Struct):
    """What a finalised order would get now, and what would have to wait."""

    plan: PlannedCodes = field(default_factory=PlannedCodes)
    open: list[_OpenLines] = field(default_factory=list)


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
    order = _order_of_caller(facts, command.order_id, command.company_id, command.state)
    _refuse_finalising(facts, order, command)
    allocation = _allocate(facts, ruling, order, command)
    _refuse_unpayable(facts, order, command)
    _refuse_overspending(facts, order, command)
    _refuse_unapproved(facts, order, command)
    # From here on nothing refuses.
    if command.sandbox_outcome is SandboxOutcome.CANCELLED:
        return _decline(facts, ruling, order)
    total_minor, held = order.total_minor, command.resolve and bool(allocation.open)
    if held:
        post_entry(facts, ruling, order, EntryKind.HOLD, hold_minor=total_minor)
    else:
        post_entry(
            facts, ruling, order, EntryKind.ORDER, amount_minor=-total_minor, vat_minor=-order.vat_minor
        )
    _count_spending(facts, ruling, order, command)
    deadline_at = None
    if allocation.open:
        deadline_at, not_before = _deadline(facts, command), _codes_from(facts, command)
        ruling.waits += [_wait(order, one, not_before, deadline_at, command) for one in allocation.open]
    return deliver(
        facts,
        ruling,
        order,
        allocation.plan,
        kinds.ORDER_PENDING,
        status=move(order.status, Move.HELD if held else Move.PAID),
        payment_status=Payment.UNPAID if held else Payment.PAID,
        charged_minor=0 if held else total_minor,
        held_minor=total_minor if held else 0,
        resolving=command.resolve,
        deadline_at=deadline_at,
    )


def _order_of_caller(facts: Facts, order_id: int | None, company_id: int, state: State) -> Order:
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


def _refuse_finalising(facts: Facts, order: Order, command: Finalise) -> None:
    """The refusals of sections 7 and OP-20, in the order of OP-23, up to the stock."""
    standing, told = facts.standing[order.company_id], command.sandbox_outcome
    if not standing.active:
        raise CompanyNotActive
    if not standing.verified or told is SandboxOutcome.UNVERIFIED:
        raise CompanyNotVerified
    if order.status is not Status.CREATED:
        raise WrongStatus
    if facts.now > order.expires_at or told is SandboxOutcome.EXPIRED:
        raise OrderExpired
    if command.resolve and len(order.items) > 1:
        raise SeveralItems
    if told is SandboxOutcome.WITHDRAWN:
        raise OffersNotAvailable(tuple(dict.fromkeys(item.version.name for item in order.items)))
    if facts.withdrawn:
        gone = [item.version.name for item in order.items if item.version.product_id in facts.withdrawn]
        if gone:
            raise OffersNotAvailable(tuple(dict.fromkeys(gone)))


def _allocate(facts: Facts, ruling: Ruling, order: Order, command: Finalise) -> _Allocation:
    """Which codes the order would get; refused if a line that can't wait would get none."""
    if command.sandbox_outcome is SandboxOutcome.OUT_OF_STOCK:
        raise OutOfStock(order.items[0].version.name)
    allocation = _Allocation()
    if command.sandbox_outcome is SandboxOutcome.PARTIAL:
        return _allocate_half(facts, ruling, order, command)
    if command.sandbox_outcome is SandboxOutcome.SLOW or command.sandbox_outcome is SandboxOutcome.PENDING:
        asks = _codes_from(facts, command)
        for item in order.items:
            sold_elsewhere = (*item.shelf, order.state) in facts.offers
            allocation.open.append(
                _OpenLines(item, item.first_line, item.end_line, ask_at=asks if sold_elsewhere else None)
            )
        return allocation
    for item in order.items:
        shelf = (*item.shelf, order.state)
        at = item.first_line
        # Orders that wait already come first (OP-48): a new order joins the queue, and the worker serves it in turn.
        if not item.version.async_delivery or shelf not in facts.queued:
            at = plan_codes(ruling, allocation.plan, facts.shelves.get(shelf, ()), at, item.end_line)
        if at < item.end_line:
            allocation.open += _places_to_wait(
                facts, item, shelf, item.first_line if command.resolve else at, command
            )
    if allocation.open and command.resolve:
        # Resolve is all or nothing: a code handed over before the limit could not be taken back after it.
        allocation.plan = PlannedCodes()
    return allocation


def _allocate_half(facts: Facts, ruling: Ruling, order: Order, command: Finalise) -> _Allocation:
    """The sandbox's partial delivery: half of the lines get codes, the others wait for none."""
    allocation = _Allocation()
    half = 0 if command.resolve else order.lines // 2
    for item in order.items:
        at, end = item.first_line, min(item.end_line, half)
        if at < end:
            at = plan_codes(
                ruling, allocation.plan, facts.shelves.get((*item.shelf, order.state), ()), at, end
            )
        if at < item.end_line:
            allocation.open.append(_OpenLines(item, at, item.end_line))
    return allocation


def _places_to_wait(facts: Facts, item: Item, shelf: Shelf, at: int, command: Finalise) -> list[_OpenLines]:
    """Where the item's lines from `at` on are to wait; refused if they can't wait and nobody has them (OP-43)."""
    end, can_wait = item.end_line, item.version.async_delivery
    offers = facts.offers.get(shelf, [])
    pausing = facts.now if shelf in facts.offers else None
    if shelf in facts.queued and can_wait and sum(lot.left for lot in facts.shelves[shelf]) >= end - at:
        # It only waits for its turn at the shelf.
        return [_OpenLines(item, at, end, ask_at=None if pausing is None else pausing + SHELF_FIRST)]
    if command.resolve:
        offer = one_for_all(offers, end - at)
        if offer is None and not can_wait:
            raise OutOfStock(item.version.name)
        if offer is None:
            return [_OpenLines(item, at, end, ask_at=pausing)]
        return [_OpenLines(item, at, end, supplier_id=offer.supplier_id)]
    places: list[_OpenLines] = []
    for offer, count in share_out(offers, end - at):
        places.append(_OpenLines(item, at, at + count, supplier_id=offer.supplier_id))
        at += count
    if at < end:
        if not can_wait:
            raise OutOfStock(item.version.name)
        places.append(_OpenLines(item, at, end, ask_at=pausing))
    return places


def _refuse_unpayable(facts: Facts, order: Order, command: Finalise) -> None:
    """Refuse what the wallet can't pay; a free order needs no wallet."""
    wallet_id = facts.wallet_of_order.get(order.id)
    available = 0 if wallet_id is None else facts.wallets[wallet_id].available_minor
    if command.sandbox_outcome is SandboxOutcome.INSUFFICIENT_BALANCE or available < order.total_minor:
        raise InsufficientBalance


def _refuse_overspending(facts: Facts, order: Order, command: Finalise) -> None:
    """Refuse what is above a limit of the company or the key (OP-61)."""
    for limit in command.limits:
        cost = order.eur_minor
        if limit.order_max is not None and cost > limit.order_max:
            raise SpendLimitExceeded
        spent = facts.spent.get(spend_key(order.company_id, limit, order.state), 0)
        if limit.day_max is not None and spent + cost > limit.day_max:
            raise SpendLimitExceeded


def _refuse_unapproved(facts: Facts, order: Order, command: Finalise) -> None:
    """Refuse what a second person has to allow, and what nobody else allows (OP-93)."""
    consent = command.consent
    if consent is None:
        approve_from = command.approve_from_eur_minor
        if approve_from is not None and needed(approve_from, order.eur_minor):
            raise ApprovalNeeded
        return
    approval = facts.approvals.get(consent.number)
    if (
        approval is None
        or not approval.open
        or approval.order_id != order.id
        or approval.requested_by == consent.by
        or (consent.by, approval.requested_by) not in facts.second_persons
    ):
        raise ApprovalRefused


def _count_spending(facts: Facts, ruling: Ruling, order: Order, command: Finalise) -> None:
    for limit in command.limits:
        if limit.day_max is not None:
            whose = spend_key(order.company_id, limit, order.state)
            facts.spent[whose] = ruling.spent[whose] = facts.spent.get(whose, 0) + order.eur_minor


def _decline(facts: Facts, ruling: Ruling, order: Order) -> Order:
    """The sandbox's immediate cancellation: nothing is charged."""
    cancelled = Outcome(0, order.lines, None, None)
    ruling.outcomes.append((order.id, cancelled))
    return next_version(
        facts,
        ruling,
        order,
        kinds.ORDER_CANCELLED,
        status=move(order.status, Move.DECLINED),
        lines_cancelled=order.lines,
        outcomes=(cancelled,),
    )


def _wait(
    order: Order, open_: _OpenLines, not_before: datetime, deadline_at: datetime, command: Finalise
) -> Wait:
    product_id, face_minor = open_.item.shelf
    return Wait(
        order.id & 1,
        product_id,
        face_minor,
        order.company_id,
        order.id,
        open_.line_from,
        open_.line_to,
        not_before,
        deadline_at,
        urgent=command.resolve,
        supplier_id=open_.supplier_id,
        ask_at=open_.ask_at,
    )


def _codes_from(facts: Facts, command: Finalise) -> datetime:
    """When lines that wait may get codes: at once, but in the sandbox as it was told."""
    return codes_from(facts.now, command.sandbox_outcome, command.slow_s, resolve=command.resolve)


def _deadline(facts: Facts, command: Finalise) -> datetime:
    """When the wait for codes ends: Resolve's limit, or the delivery window."""
    if command.sandbox_outcome is SandboxOutcome.PARTIAL and not command.resolve:
        return facts.now + timedelta(seconds=SANDBOX_PENDING_S)
    return facts.now + (facts.windows.resolve if command.resolve else facts.windows.delivery)


def cancel(facts: Facts, commands: Sequence[Cancel]) -> Ruling:
    """Delete every order that is not confirmed, cancel and refund the undelivered lines of the others."""
    ruling = Ruling()
    for command in commands:
        try:
            order = _order_of_caller(facts, command.order_id, command.company_id, command.state)
            if order.status is Status.CREATED:
                gone = move(order.status, Move.WITHDRAWN)
                ruling.answers.append(next_version(facts, ruling, order, kinds.ORDER_DELETED, status=gone))
            elif order.status is Status.PENDING:
                # What a supplier still sends for these lines goes to the shelf (OP-45).
                ruling.answers.append(cancel_lines(facts, ruling, order, facts.waits[order.id]))
            else:
                raise WrongStatus
        except Refusal as refusal:
            ruling.answers.append(refusal)
    return ruling
