"""The shapes of events, for the document; their bytes are made by `events.wire`, which webhooks use too."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class EventMetadata(Struct):
    """Where a page of events ends."""

    pageSize: int
    nextCursor: str
    more: bool


class Event(Struct):
    """Something that happened. It looks the same here, in a stream and in a webhook, however often it is told."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


class EventPage(Struct):
    """A page of events."""

    data: list[Event]
    metadata: EventMetadata
