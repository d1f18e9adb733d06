"""An event as it is sent. Pure: the id and the body are the same at every attempt."""

from __future__ import annotations

from msgspec import Struct

from voucherd.events import wire
from voucherd.events.feed import Event
from voucherd.ids import Identifiers


class Message(Struct, frozen=True):
    """The id of an event, and the bytes that are signed."""

    id: str
    body: bytes


def message(ids: Identifiers, event: Event) -> Message:
    """The message of an event: its one form, which `GET event` and the streams show too."""
    return Message(ids.event(event.id), wire.written(event, ids))
