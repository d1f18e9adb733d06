"""An event as it is sent. Pure: the id and the body are the same at every attempt."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from voucherd.events import wire
from voucherd.events.feed import Event
from voucherd.ids import Identifiers, State


class MessageFormat(StrEnum):
    """How an event is written to an endpoint (OP-137)."""

    STANDARD = "standard"
    """As `GET event` and the streams show it."""
    CLASSIC = "classic"
    """As receivers of other services read it."""


class Addressee(Protocol):
    """What a message depends on in the endpoint that gets it."""

    @property
    def format(self) -> MessageFormat:
        """How it wants events written."""

    @property
    def state(self) -> State:
        """Whose events it gets."""

    @property
    def description(self) -> str:
        """What its owner calls it."""


class Message(Struct, frozen=True):
    """The id of an event, and the bytes that are signed."""

    id: str
    body: bytes


def message(ids: Identifiers, event: Event, addressee: Addressee) -> Message:
    """The message of an event, in the format of the endpoint that gets it."""
    classic = addressee.format is MessageFormat.CLASSIC
    body = _classic(ids, event, addressee) if classic else wire.written(event, ids)
    return Message(ids.event(event.id), body)


def _classic(ids: Identifiers, event: Event, addressee: Addressee) -> bytes:
    """The classic format: a name in capitals, and of an order its trx and reference alone."""
    data = wire.data_of(event, ids)
    data.pop("state", None)
    if event.order_id is not None:
        data = {"trx": data["trx"], "reference": data["reference"]}
    return msgspec.json.encode(
        {
            "event": event.type.upper().replace(".", "_"),
            "state": addressee.state.word,
            "apiKeyDescription": addressee.description,
            "data": data,
        }
    )
