"""The meaning of every field of events."""

from __future__ import annotations

from typing import Any, Final

from voucherd.api.events import TYPES

FIELDS: Final[dict[str, dict[str, tuple[str, dict[str, Any]]]]] = {
    "Event": {
        "id": ("Identifier of the event. The same event has it wherever it is told.", {}),
        "type": ("What happened.", {"enum": list(TYPES)}),
        "timestamp": ("When it happened.", {"format": "date-time"}),
        "data": (
            "What it happened to. Of an order: `trx`, `state`, `orderStatus` right after the event, and `seq`, which "
            "counts the order's events from 1. Never a code.",
            {},
        ),
    },
    "EventPage": {"data": ("The events, oldest first.", {}), "metadata": ("Where to go on.", {})},
    "EventMetadata": {
        "pageSize": ("The most events that a page holds: the `limit` that was asked for.", {"minimum": 1}),
        "nextCursor": ("The `cursor` of the next call, at the end of the feed, too.", {}),
        "more": ("Whether there is more to read there already.", {}),
    },
}
