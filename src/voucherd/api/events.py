"""What an integrator asks about what happened: events in pages, one by its id, and all of them as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from voucherd.api import query
from voucherd.api.errors import EventNotFound
from voucherd.api.handlers import Call
from voucherd.api.wire.events import EventMetadata
from voucherd.api.wire.templates import encode
from voucherd.batcher import BatcherFull
from voucherd.events import feed, kinds
from voucherd.events.feed import Cursor, EventFilters
from voucherd.events.listeners import Pass
from voucherd.events.streams import StreamsFull, TooManyStreams
from voucherd.events.wire import written
from voucherd.http import EVENT_STREAM, JSON, HttpError, Request, Response
from voucherd.ids import Identifiers
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services

TYPES: Final = tuple(sorted(kinds.FOR_COMPANIES))
LAST_EVENT_ID: Final = b"last-event-id"
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")
"""Tells a proxy to pass each event on at once."""

TOO_OLD_CODE: Final = "cursor_too_old"
TOO_OLD: Final = "cursor: is from before the oldest event that is kept, begin without it"


class EventQuery(Struct, frozen=True):
    """Which events are asked for, and from which place on."""

    cursor: Cursor | None
    filters: EventFilters
    size: int


class StreamQuery(Struct, frozen=True):
    """Where a stream begins, and what it is about."""

    cursor: Cursor | None
    types: frozenset[str] | None
    from_now: bool
    signed: bool


async def find_events(services: Services, call: Call) -> Response:
    """A page of events, oldest first."""
    asked = read_page(call.request, services.ids)
    try:
        page = await services.streams.page(call.caller, asked.cursor, limit=asked.size, filters=asked.filters)
    except feed.Removed:
        raise _too_old() from None
    data = b",".join([written(event, services.ids) for event in page.events])
    metadata = EventMetadata(asked.size, services.ids.event(page.cursor.place), page.more)
    return Response(200, b'{"data":[%b],"metadata":%b}' % (data, encode(metadata)), JSON)


async def find_event(services: Services, call: Call) -> Response:
    """One event."""
    number = services.ids.event_number(call.parameter)
    found = None if number is None else await services.streams.find(call.caller, number)
    if found is None:
        raise EventNotFound
    return Response(200, written(found, services.ids), JSON)


async def stream(services: Services, call: Call) -> Response:
    """Events as they happen."""
    asked = read_stream(call.request, services.ids)
    # The key is in the request, or nobody would have let it in.
    pass_ = Pass(call.request.headers[b"authorization"], call.request.client_ip)
    try:
        body = await services.streams.listen(
            call.caller,
            pass_,
            cursor=asked.cursor,
            types=asked.types,
            from_now=asked.from_now,
            signing=services.listener_secrets.signing(call.caller.key_id) if asked.signed else None,
        )
    except feed.Removed:
        raise _too_old() from None
    except TooManyStreams:
        raise HttpError(429, "too_many_streams", "too many streams of this key are open") from None
    except StreamsFull:
        raise BatcherFull from None
    return Response(200, body, EVENT_STREAM, [_UNBUFFERED], endless=True)


_EXAMPLE: Final = "evt_62XX8RJAM7KN6YYWY5G4SBJZR4"
_FROM_HERE: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page, or the id of an event. Left out, the page begins with the "
    "oldest event that is kept.",
    _EXAMPLE,
)
_LIMIT: Final = query.limit("events")
_TYPE: Final = query.several("type", "Only events of this type; repeat it for several.", TYPES)
_TRX: Final = query.text("trx", "Only events of this order.")
_FROM, _TO = query.period("events of")
PAGE: Final = (_FROM_HERE, _LIMIT, _TYPE, _TRX, _FROM, _TO)


def read_page(request: Request, ids: Identifiers) -> EventQuery:
    """What a page of events is asked for."""
    given = query.read(request)
    trx, cursor = _TRX.read(given), _FROM_HERE.read(given)
    filters = EventFilters(
        types=_types(given),
        order_id=None if trx is None else ids.order_id(trx) or 0,
        date_from=_FROM.read(given),
        date_to=_TO.read(given),
    )
    size = _LIMIT.read(given)
    return EventQuery(_cursor(_FROM_HERE.name, cursor, ids) if cursor else None, filters, size)


_BEGIN: Final = query.cursor(
    "Where to begin: the id of an event, or the `nextCursor` of a page. Left out, the stream begins now; empty, with "
    "the oldest event that is kept.",
    _EXAMPLE,
)
_LAST: Final = query.in_header(
    "Last-Event-ID",
    "The last `id` that was received. Clients of server-sent events send it by themselves when they come back; it "
    "counts more than `cursor`.",
    _EXAMPLE,
)
_SIGNED: Final = query.flag(
    "signed",
    "Whether each event is signed as a webhook is, with the lines `webhook-timestamp` and `webhook-signature` before "
    "it: sent on as headers, with `id` as `webhook-id` and `data` as the body, it is a webhook. The first message is "
    "of the type `secret`, and its data is the secret of your key, which signs them.",
)
STREAM: Final = (_BEGIN, _LAST, _TYPE, _SIGNED)


def read_stream(request: Request, ids: Identifiers) -> StreamQuery:
    """What a stream is asked for. A client that comes back names the last event that it saw: that counts most."""
    given = query.read(request)
    types = _types(given)
    cursor = _BEGIN.read(given)
    signed = _SIGNED.read(given) is True
    last = request.headers.get(LAST_EVENT_ID, b"").decode("latin-1")
    if last:
        return StreamQuery(_cursor(_LAST.name, last, ids), types, from_now=False, signed=signed)
    place = _cursor(_BEGIN.name, cursor, ids) if cursor else None
    return StreamQuery(place, types, from_now=cursor is None, signed=signed)


def _cursor(name: str, text: str, ids: Identifiers) -> Cursor:
    """A place in the feed: the id of an event, or the cursor of a page."""
    number = ids.event_number(text)
    if number is None:
        raise BadInput(name, "is not one of ours")
    return Cursor(number)


def _types(given: Mapping[str, list[str]]) -> frozenset[str] | None:
    """The types that are asked for; None for all."""
    words = given.get(_TYPE.name)
    if words is None:
        return None
    for word in words:
        if word not in kinds.FOR_COMPANIES:
            raise BadInput(_TYPE.name, f"must be one of {', '.join(TYPES)}")
    return frozenset(words)


def _too_old() -> HttpError:
    return HttpError(410, TOO_OLD_CODE, TOO_OLD)
