"""The timeline of an order: created, paid, bought, delivered, opened, returned, refunded, and by whom. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.events import kinds
from voucherd.orders.model import TYPES, Order, Outcome
from voucherd.orders.register import Happened
from voucherd.pages.console.purchase_words import reason_words
from voucherd.pages.render import figure, number
from voucherd.pages.timeline import TimelineRow
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import Record
from voucherd.trail import TrailRow
from voucherd.vault.model import Via
from voucherd.vault.reveals import RevealRow
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.store import Movement

VIEWS_SHOWN: Final = 5
"""Links and returns that have a row each; of more, the first and the last one are told."""
SAME_CHANGE: Final = timedelta(minutes=1)
"""A change takes less than this."""
SYSTEM: Final = "System"
VIAS: Final = {
    Via.CONFIRM: "in the answer to Confirm",
    Via.RESOLVE: "in the answer to Resolve",
    Via.FIND: "through the API",
    Via.FIND_ALL: "through the API",
    Via.LINES: "through the API",
    Via.FILE: "as a file",
    Via.PORTAL: "in the portal",
    Via.REDEMPTION: "by the redemption link",
    Via.CANCEL: "in the answer to Cancel",
}
_MONEY: Final = {
    EntryKind.ORDER: ("Paid", "good"),
    EntryKind.REFUND: ("Refunded", "warn"),
    EntryKind.HOLD: ("Amount held", ""),
    EntryKind.RELEASE: ("Amount released", ""),
}
_DEEDS: Final = {
    "order.protect": "PIN of the links changed",
    "order.show": "Codes shown on the command line",
    "order.expire": "Expired by the test clock",
}
"""Deeds that nothing else tells of."""


class OrderHistory(Struct, frozen=True):
    """What is known of an order's life."""

    order: Order
    events: Sequence[Happened] = ()
    deeds: Sequence[TrailRow] = ()
    movements: Sequence[Movement] = ()
    purchases: Sequence[Record] = ()
    reveals: Sequence[RevealRow] = ()
    names: Mapping[tuple[ActorKind, int], str] = {}
    """What keys and people are called, by their kind and number."""
    settlers: Mapping[str, str] = {}
    """What the people are called that decided about purchases, by their address."""
    links: bool = False
    """Whether the reader may follow a purchase."""


def timeline(history: OrderHistory) -> list[TimelineRow]:
    """What happened, oldest first; what happened at once stands in the order of an order's life."""
    parts = (_created, _bought, _money, _delivered, _cancelled, _ended, _shown, _opened, _done)
    rows = [(row.at, place, row) for place, part in enumerate(parts) for row in part(history)]
    return [row for _, _, row in sorted(rows, key=lambda one: one[:2])]


def _created(history: OrderHistory) -> Iterator[TimelineRow]:
    order = history.order
    items = ", ".join(f"{number(item.amount)} × {item.version.name}" for item in order.items[:3])
    more = f" and {len(order.items) - 3} more" if len(order.items) > 3 else ""
    by = "Portal" if TYPES[order.type] == "portal" else "API"
    yield TimelineRow(order.created_at, "Order created", f"{items}{more}", by, "note")


def _money(history: OrderHistory) -> Iterator[TimelineRow]:
    for one in history.movements:
        title, kind = _MONEY.get(one.kind, (one.kind.word.capitalize(), ""))
        amount = one.amount if one.amount.minor else one.hold
        text = f"{figure(amount).lstrip('−')} {amount.currency}"
        at = _begun(history, one.at)
        yield TimelineRow(at, title, text, _doer(history, at, "order.confirm", "order.cancel"), kind)


def _begun(history: OrderHistory, at: datetime) -> datetime:
    """When the change began that an entry of the wallet was written in: entries carry the time of their writing."""
    earlier = [one.at for one in history.events if at - SAME_CHANGE <= one.at <= at]
    return max(earlier, default=at)


def _bought(history: OrderHistory) -> Iterator[TimelineRow]:
    for one in history.purchases:
        name = f"purchase {str(one.id)[:8]}"
        if history.links:
            name = Markup('<a href="/console/purchases/{}">{}</a>').format(one.id, name)
        count = f"{number(one.count)} {'code' if one.count == 1 else 'codes'}"
        said = Markup("{}, {}").format(count, name)
        yield TimelineRow(one.placed_at, f"Ordered from {one.supplier}", said, SYSTEM, "note")
        why = reason_words(one.reason)
        ended = one.ended_at or one.placed_at
        by = history.settlers.get(one.settled_by or "", one.settled_by) or one.supplier
        if one.phase is AttemptPhase.BOUGHT:
            came = f"{number(one.codes)} of {number(one.count)} codes"
            yield TimelineRow(ended, f"Bought from {one.supplier}", came, by, "good")
        elif one.phase is AttemptPhase.FAILED:
            yield TimelineRow(ended, f"Not bought from {one.supplier}", why, by, "warn")
        elif one.phase is AttemptPhase.UNKNOWN:
            yield TimelineRow(ended, f"Purchase at {one.supplier} needs a decision", why, "", "bad")


def _delivered(history: OrderHistory) -> Iterator[TimelineRow]:
    order, sum_ = history.order, 0
    for at, outcomes in _by_time(order, delivered=True):
        count = sum(one.count for one in outcomes)
        sum_ += count
        text = f"{number(count)} {'code' if count == 1 else 'codes'}"
        if count < order.lines:
            text += f", {number(sum_)} of {number(order.lines)} so far"
        yield TimelineRow(at, "Delivered", text, SYSTEM, "good")


def _cancelled(history: OrderHistory) -> Iterator[TimelineRow]:
    for at, outcomes in _by_time(history.order, delivered=False):
        count = sum(one.count for one in outcomes)
        text = f"{number(count)} {'code' if count == 1 else 'codes'}"
        yield TimelineRow(at, "Cancelled", text, _doer(history, at, "order.cancel") or SYSTEM, "bad")


def _by_time(order: Order, *, delivered: bool) -> Iterator[tuple[datetime, list[Outcome]]]:
    wanted = [one for one in order.outcomes if (one.lot_id is not None) is delivered]

    def at(one: Outcome) -> datetime:
        return one.at or order.updated_at

    for moment, outcomes in groupby(sorted(wanted, key=at), key=at):
        yield moment, list(outcomes)


def _ended(history: OrderHistory) -> Iterator[TimelineRow]:
    for one in history.events:
        if one.type == kinds.ORDER_EXPIRED:
            yield TimelineRow(one.at, "Expired", "It was not confirmed in time", SYSTEM, "")
        elif one.type == kinds.ORDER_DELETED:
            yield TimelineRow(
                one.at, "Withdrawn", "Nothing was charged", _doer(history, one.at, "order.cancel"), ""
            )


def _shown(history: OrderHistory) -> Iterator[TimelineRow]:
    """Who saw codes; looks of one way by the same one after another are one row."""

    def alike(one: RevealRow) -> tuple[ActorKind, int | None, Via]:
        return one.actor_kind, one.actor_id, one.via

    ordered = sorted(history.reveals, key=lambda one: one.id)
    for _, group in groupby((one for one in ordered if one.via is not Via.REDEMPTION), key=alike):
        looks = list(group)
        first = looks[0]
        most = max(one.lines for one in looks)
        times = f", {number(len(looks))} times" if len(looks) > 1 else ""
        text = f"{number(most)} {'code' if most == 1 else 'codes'} {VIAS[first.via]}{times}"
        by = viewer_words(history.names, first.actor_kind, first.actor_id)
        if first.address:
            by = Markup("{}, {}").format(by, first.address)
        yield TimelineRow(first.at, "Codes shown", text, by, "")


def _opened(history: OrderHistory) -> Iterator[TimelineRow]:
    views = history.order.views
    opened = [(one.voucher_at or one.link_at, one.line) for one in views]
    returned = [(one.returned_at, one.line) for one in views]
    yield from _lines(opened, "Opened", "Recipient", "good")
    yield from _lines(returned, "Returned", "", "warn")


def _lines(
    moments: Sequence[tuple[datetime | None, int]], title: str, by: str, kind: str
) -> Iterator[TimelineRow]:
    """A row for each line that it happened to, or for the first and the last one of many."""
    found = sorted((at, line) for at, line in moments if at is not None)
    if len(found) <= VIEWS_SHOWN:
        for at, line in found:
            yield TimelineRow(at, title, f"Code {number(line + 1)}", by, kind)
        return
    for (at, line), word in ((found[0], "the first"), (found[-1], "the last")):
        yield TimelineRow(at, title, f"Code {number(line + 1)}, {word} of {number(len(found))}", by, kind)


def _done(history: OrderHistory) -> Iterator[TimelineRow]:
    for deed in history.deeds:
        if deed.action in _DEEDS:
            yield TimelineRow(deed.at, _DEEDS[deed.action], "", _person(history, deed), "")


def _doer(history: OrderHistory, at: datetime, *actions: str) -> str:
    """Who did it: the deed was written down in the same transaction; nobody where it was no person's."""
    found = next((deed for deed in history.deeds if deed.at == at and deed.action in actions), None)
    if found is not None:
        return _person(history, found)
    answered = (one for one in history.reveals if one.via in (Via.CONFIRM, Via.RESOLVE))
    key = next((one for one in answered if one.at == at), None)
    return "" if key is None else viewer_words(history.names, key.actor_kind, key.actor_id)


def _person(history: OrderHistory, deed: TrailRow) -> str:
    if deed.actor_kind is ActorKind.SYSTEM:
        return SYSTEM
    named = deed.actor_kind in (ActorKind.PERSON, ActorKind.OPERATOR)
    return history.names.get((deed.actor_kind, deed.actor_id or 0), deed.actor) if named else deed.actor


def viewer_words(names: Mapping[tuple[ActorKind, int], str], kind: ActorKind, number_: int | None) -> str:
    """Who saw codes or did something, by kind and number."""
    name = names.get((kind, number_ or 0), "")
    words = {
        ActorKind.KEY: f"API key {name}" if name else "API key",
        ActorKind.RECIPIENT: "Recipient",
        ActorKind.SYSTEM: SYSTEM,
        ActorKind.COMMAND: "Command line",
    }
    return words.get(kind, name or kind.word.capitalize())
