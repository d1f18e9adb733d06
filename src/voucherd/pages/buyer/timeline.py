"""What happened to an order, from its creation on: paid, delivered, opened, refunded, and by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from voucherd import trail
from voucherd.actors import ActorKind
from voucherd.approvals.model import Approval, ApprovalStatus
from voucherd.db import Connection
from voucherd.events import kinds
from voucherd.money import Money
from voucherd.orders import reading, register
from voucherd.orders.model import TYPES, Order
from voucherd.orders.reading import ViewCounts
from voucherd.orders.rules.states import Payment
from voucherd.pages.buyer import words
from voucherd.pages.timeline import TimelineRow, person_words
from voucherd.pages.visit import Visit
from voucherd.people import user_store
from voucherd.people.roles import Right
from voucherd.trail import TrailRow
from voucherd.vault import reveals
from voucherd.vault.model import Via
from voucherd.vault.reveals import OrderReveals, RevealRow
from voucherd.words import Words, phrase

EVENTS_MAX: Final = 50
DEEDS_MAX: Final = 50
DELIVERIES_SHOWN_MAX: Final = 10
"""Deliveries that are told one by one; of more the first and the last are."""
SEEN_MAX: Final = 10
_VIEWERS: Final = {ActorKind.KEY: phrase("API key"), ActorKind.RECIPIENT: phrase("Recipient")}
_PAID: Final = (kinds.ORDER_PENDING, kinds.ORDER_FINISHED)


class Timeline(NamedTuple):
    """What happened, oldest first; and up to when it is in the archive who saw codes."""

    steps: list[TimelineRow]
    seen_until: datetime | None


async def timeline(visit: Visit, order: Order, approval: Approval | None) -> Timeline:
    """Everything that is known of the order's life."""
    sees = order.lines_finished > 0 and visit.may(Right.CODES_VIEW)
    seen = OrderReveals([], None)
    async with visit.pool.acquire() as conn:
        if sees:
            seen = await reveals.of_order(conn, order.id, SEEN_MAX, created_at=order.created_at)
        events = await register.happened(conn, order.id, EVENTS_MAX)
        subject = f"order {visit.services.ids.trx_unkept(order.id)}"
        deeds = await trail.about(
            conn, visit.company_id, subject, order.created_at, order.updated_at, DEEDS_MAX
        )
        views = await reading.view_counts(conn, order.id)
        people = await _colleagues(conn, visit.company_id, [*seen.rows, *deeds])
    speak = visit.words
    by = speak.text("API key") if TYPES[order.type] == "api" else ""
    steps = [TimelineRow(order.created_at, speak.text("Created"), "", by)]
    steps += _asked(speak, approval)
    paid = [one.at for one in events if one.type in _PAID]
    if paid and order.payment_status is not Payment.UNPAID:
        total = Money(order.charged_minor, order.payment_currency)
        who = _who(speak, deeds, people, "order.confirm", approval) or by
        steps.append(TimelineRow(min(paid), speak.text("Paid"), speak.amount(total), who))
    steps += _delivered(speak, order)
    steps += _cancelled(speak, order, _who(speak, deeds, people, "order.cancel", None))
    if words.is_expired(order):
        text = speak.text("The price was kept until then. Nothing was charged.")
        steps.append(TimelineRow(order.expires_at, speak.text("Expired"), text))
    steps += _opened(speak, order, views)
    steps += [_seen(speak, one, people) for one in seen.rows]
    return Timeline(sorted(steps, key=lambda step: step.at), seen.archived_until)


async def _colleagues(
    conn: Connection, company_id: int, rows: Sequence[RevealRow | TrailRow]
) -> dict[int, str]:
    """What the people of the company are called that did something or saw codes."""
    ids = {one.actor_id for one in rows if one.actor_kind is ActorKind.PERSON and one.actor_id is not None}
    found = await user_store.find_users(conn, ids)
    return {one.id: person_words(one.name, one.email) for one in found if one.company_id == company_id}


def _asked(speak: Words, approval: Approval | None) -> Iterator[TimelineRow]:
    """The request for a second person, and what became of it."""
    if approval is None:
        return
    asker = person_words(approval.requester_name, approval.requester)
    yield TimelineRow(approval.requested_at, speak.text("Approval asked for"), approval.note, asker)
    if approval.decided_at is not None:
        approved = approval.status is ApprovalStatus.APPROVED
        rejected = approval.status is ApprovalStatus.REJECTED
        title = speak.text(
            phrase("Approved")
            if approved
            else phrase("Rejected")
            if rejected
            else phrase("Request withdrawn")
        )
        yield TimelineRow(approval.decided_at, title, "", _decider(approval), "good" if approved else "bad")


def _decider(approval: Approval) -> str:
    return person_words(approval.decider_name or "", approval.decider or "")


def _who(
    speak: Words, deeds: list[TrailRow], people: dict[int, str], action: str, approval: Approval | None
) -> str:
    """Who did this, as far as the trail tells; whoever approved an order has paid for it."""
    if approval is not None and approval.status is ApprovalStatus.APPROVED:
        return _decider(approval)
    row = next((one for one in deeds if one.action == action or one.action.startswith(action)), None)
    if row is None:
        return ""
    if row.actor_kind is not ActorKind.PERSON:
        return speak.text("The operator")
    return people.get(row.actor_id or 0, row.actor)


def _delivered(speak: Words, order: Order) -> Iterator[TimelineRow]:
    counts: dict[datetime, int] = defaultdict(int)
    for outcome in order.outcomes:
        if outcome.lot_id is not None:
            counts[outcome.at or order.updated_at] += outcome.count
    times = sorted(counts)
    if len(times) > DELIVERIES_SHOWN_MAX:
        rest = sum(counts[at] for at in times[1:])
        times, counts = [times[0], times[-1]], {times[0]: counts[times[0]], times[-1]: rest}
    for at in times:
        last = at == times[-1] and order.lines_finished == order.lines
        yield TimelineRow(
            at, speak.text("Delivered"), _part(speak, counts[at], order.lines), "", "good" if last else ""
        )


def _cancelled(speak: Words, order: Order, by: str) -> Iterator[TimelineRow]:
    gone = [outcome for outcome in order.outcomes if outcome.lot_id is None]
    if gone:
        at = max(outcome.at or order.updated_at for outcome in gone)
        refunded = Money(order.refunded_minor, order.payment_currency)
        count = sum(outcome.count for outcome in gone)
        text = _part(speak, count, order.lines)
        if refunded.minor:
            text = speak.text("{codes}, {money} refunded", codes=text, money=speak.amount(refunded))
        yield TimelineRow(at, speak.text("Cancelled"), text, by, "bad")


def _part(speak: Words, count: int, lines: int) -> str:
    """How many of an order's codes."""
    return speak.plural("{part} of {count} code", "{part} of {count} codes", lines, part=speak.number(count))


def _opened(speak: Words, order: Order, views: ViewCounts) -> Iterator[TimelineRow]:
    if views.first_opened is not None:
        text = speak.text("{part} of {all} so far", part=views.opened, all=order.lines_finished)
        yield TimelineRow(views.first_opened, speak.text("First link opened"), text, speak.text("Recipient"))
    if views.first_shown is not None:
        text = speak.text("{part} of {all} so far", part=views.shown, all=order.lines_finished)
        yield TimelineRow(views.first_shown, speak.text("First code shown"), text, speak.text("Recipient"))
    if views.first_returned is not None:
        text = speak.text("{part} of {all} so far", part=views.returned, all=order.lines_finished)
        yield TimelineRow(views.first_returned, speak.text("Returned"), text, "", "bad")


def _seen(speak: Words, one: RevealRow, people: dict[int, str]) -> TimelineRow:
    title = speak.text("Downloaded") if one.via is Via.FILE else speak.text("Shown")
    if one.actor_kind is ActorKind.PERSON:
        who = people.get(one.actor_id or 0) or speak.text("Somebody who has left")
    else:
        who = speak.text(_VIEWERS.get(one.actor_kind, phrase("The operator")))
    return TimelineRow(one.at, title, speak.plural("{count} code", "{count} codes", one.lines), who)
