"""Events: their words, parameters and examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Raw

from voucherd.api import query
from voucherd.api.errors import Op
from voucherd.api.events import TYPES
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import query_parameter
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Part, Success, Words
from voucherd.api.wire.events import EventMetadata
from voucherd.api.wire.templates import encode
from voucherd.events import kinds
from voucherd.events.feed import KEPT, Event
from voucherd.events.listeners import HEARTBEAT_S
from voucherd.events.streams import RETRY_MS, STREAMS_OF_KEY_MAX
from voucherd.events.wire import written
from voucherd.ids import State

EVENTS: Final = "Events"
_FIRST: Final = 1_204


def _happened() -> list[Event]:
    """What became of the sample order."""
    order = examples.sample(in_stock=2)
    told = ((kinds.ORDER_CREATED, examples.CREATED_AT), (kinds.ORDER_FINISHED, examples.CONFIRMED_AT))
    return [
        Event(
            _FIRST + seq,
            at + timedelta(milliseconds=4),
            order.company_id,
            State.LIVE,
            type_,
            order.id,
            seq,
            None,
        )
        for seq, (type_, at) in enumerate(told, 1)
    ]


def _event(_version: str, _public_url: str) -> Raw:
    return Raw(written(_happened()[-1], examples.IDS))


def _page(_version: str, _public_url: str) -> Raw:
    happened = _happened()
    metadata = EventMetadata(query.PAGE_SIZE, examples.IDS.event(happened[-1].id), more=False)
    data = b",".join([written(event, examples.IDS) for event in happened])
    return Raw(b'{"data":[%b],"metadata":%b}' % (data, encode(metadata)))


def _stream(_public_url: str) -> str:
    event = _happened()[-1]
    before, name = examples.IDS.event(_FIRST + 1), examples.IDS.event(event.id)
    told = written(event, examples.IDS).decode()
    return (
        f"retry: {RETRY_MS}\nid: {before}\n\nid: {name}\nevent: {event.type}\ndata: {told}\n\n"
        f": still here\nid: {name}\n\n"
    )


def _place() -> str:
    return examples.IDS.event(_FIRST)


_TYPE: Final = query_parameter(
    "type",
    "Only events of this type; repeat it for several.",
    {"type": "array", "items": {"type": "string", "enum": list(TYPES)}},
    style="form",
    explode=True,
)

_PAGE: Final[tuple[Part, ...]] = (
    query_parameter(
        "cursor",
        "Where to go on: the `nextCursor` of the last page, or the id of an event. Left out, the page begins with the "
        "oldest event that is kept.",
        {"type": "string"},
        allowEmptyValue=True,
        example=_place(),
    ),
    query_parameter(
        "limit",
        "The most events that a page holds.",
        {"type": "integer", "minimum": 1, "maximum": query.PAGE_SIZE_MAX, "default": query.PAGE_SIZE},
    ),
    _TYPE,
    query_parameter("trx", "Only events of this order.", {"type": "string"}),
    query_parameter(
        "dateFrom",
        "Only events of this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone.",
        {"type": "string"},
        example="2026-01-01",
    ),
    query_parameter(
        "dateTo",
        "Only events of this moment or earlier. A bare date is its first moment.",
        {"type": "string"},
        example="2026-02-01T00:00:00Z",
    ),
)

_STREAM: Final[tuple[Part, ...]] = (
    query_parameter(
        "cursor",
        "Where to begin: the id of an event, or the `nextCursor` of a page. Left out, the stream begins now; empty, "
        "with the oldest event that is kept.",
        {"type": "string"},
        allowEmptyValue=True,
        example=_place(),
    ),
    {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The last `id` that was received. Clients of server-sent events send it by themselves when they "
        "come back; it counts more than `cursor`.",
        "schema": {"type": "string"},
        "example": _place(),
    },
    _TYPE,
)

WORDS: Final[dict[Op, Words]] = {
    Op.EVENTS: Words(
        "findEvents",
        "Find events",
        EVENTS,
        f"What happened to your orders, your balance and the catalogue, oldest first. Events are kept for {KEPT.days} "
        "days. Go on with `nextCursor`, also after the last page: nothing is missed and nothing comes twice. A page "
        "may hold fewer events than `limit`, or none, while `more` is true. The events of one order come in the order "
        "of their `seq`.",
        (
            Success(
                200,
                "A page of events.",
                {"page": ("An order was created and finished", _page)},
                schema={"$ref": REF + "EventPage"},
            ),
        ),
        _PAGE,
    ),
    Op.EVENT: Words(
        "findEvent",
        "Find event",
        EVENTS,
        "One event, exactly as it was told before.",
        (
            Success(
                200,
                "The event.",
                {"event": ("An order was finished", _event)},
                schema={"$ref": REF + "Event"},
            ),
        ),
        (
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "The id of the event.",
                "schema": {"type": "string"},
                "example": _place(),
            },
        ),
    ),
    Op.EVENT_STREAM: Words(
        "streamEvents",
        "Stream events",
        EVENTS,
        "Events as they happen, as server-sent events: `data` is the same JSON as in Find event, `event` its type, and "
        "`id` the place from which to go on. Any client of server-sent events comes back by itself after a break and "
        f"misses nothing. After {HEARTBEAT_S:.0f} seconds without an event a comment shows that the line is alive.\n\n"
        "A stream counts once for the rate limit, and ends when its key is revoked. A client that does not read is cut "
        f"off. A key may have {STREAMS_OF_KEY_MAX} streams open in each process of the service; more are refused with "
        "`429`, `too many streams of this key are open`.",
        (Success(200, "A stream without an end.", stream=_stream),),
        _STREAM,
    ),
}
