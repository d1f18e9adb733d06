"""The shapes of events, for the document; their bytes are made by `events.wire`, which webhooks use too."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from voucherd.api.wire.fields import Moment, doc
from voucherd.events.kinds import FOR_COMPANIES


class EventMetadata(Struct):
    """Where a page of events ends."""

    pageSize: Annotated[
        int, doc("The most events that a page holds: the `limit` that was asked for.", minimum=1)
    ]
    nextCursor: Annotated[str, doc("The `cursor` of the next call, at the end of the feed, too.")]
    more: Annotated[bool, doc("Whether there is more to read there already.")]


class Event(Struct):
    """Something that happened. It looks the same here, in a stream and in a webhook, however often it is told."""

    id: Annotated[str, doc("Identifier of the event. The same event has it wherever it is told.")]
    type: Annotated[str, doc("What happened.", enum=sorted(FOR_COMPANIES))]
    timestamp: Annotated[Moment, doc("When it happened.")]
    data: Annotated[
        dict[str, Any],
        doc(
            "What it happened to. Of an order: `trx`, your `reference` (null if there is none, or the order was never "
            "confirmed and is removed), `state`, `orderStatus` right after the event, and `seq`, "
            "which counts the order's events from 1. Never a code."
        ),
    ]


class EventPage(Struct):
    """A page of events."""

    data: Annotated[list[Event], doc("The events, oldest first.")]
    metadata: Annotated[EventMetadata, doc("Where to go on.")]
