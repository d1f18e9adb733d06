"""Listeners: one for each open stream, with what waits to be sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Protocol

from msgspec import Struct

from voucherd.events import feed
from voucherd.events.feed import Cursor, Event
from voucherd.ids import State

HEARTBEAT_S: Final = 15.0
BUFFER_BYTES_MAX: Final = 131_072
"""What waits for a client that reads slowly; one that is further behind is cut off and comes back by itself."""


class Pass(Struct, frozen=True):
    """By what right somebody listens. It is asked again and again while they do."""

    authorization: bytes
    client_ip: str


class StreamSigning(Struct, frozen=True):
    """How a stream is signed: with what, and the lines that say so before an event, by its id and its data."""

    secret: str
    head: Callable[[str, bytes], bytes]

    def __repr__(self) -> str:
        return "StreamSigning(***)"


class Reader(Protocol):
    """Who reads events: a key, of a company in one state."""

    @property
    def key_id(self) -> int:
        """The key."""

    @property
    def company_id(self) -> int:
        """Whose key it is."""

    @property
    def state(self) -> State:
        """Live or sandbox."""


class StreamListener:
    """One open stream: whom it is for, and what waits to be sent."""

    __slots__ = ("_parts", "_size", "_waiting", "caller", "ended", "pass_", "place", "signing", "types")

    def __init__(
        self,
        caller: Reader,
        pass_: Pass,
        types: Collection[str] | None,
        signing: StreamSigning | None = None,
    ) -> None:
        self.caller = caller
        self.signing = signing
        self.pass_ = pass_
        self.types = types
        self.place = feed.START
        self.ended = False
        self._parts: list[bytes] = []
        self._size = 0
        self._waiting: asyncio.Future[None] | None = None

    @property
    def audience(self) -> tuple[int, State]:
        """Whose events it hears."""
        return self.caller.company_id, self.caller.state

    def wants(self, event: Event) -> bool:
        """Whether it is to hear of the event, and has not yet."""
        return (
            event.id > self.place.place
            and event.concerns(*self.audience)
            and (self.types is None or event.type in self.types)
        )

    def put(self, message: bytes, place: Cursor) -> None:
        """Have this sent next; a listener that is too far behind is ended instead."""
        if self.ended:
            return
        self.place = place
        self._size += len(message)
        if self._size > BUFFER_BYTES_MAX:
            self._parts.clear()
            self.end()
            return
        self._parts.append(message)
        self._wake()

    def end(self) -> None:
        """Send what waits and no more."""
        self.ended = True
        self._wake()

    async def next(self) -> bytes | None:
        """The bytes to send next: nothing (b"") after a long silence, None at the end."""
        if not self._parts and not self.ended:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(HEARTBEAT_S, self._wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            return parts[0] if len(parts) == 1 else b"".join(parts)
        return None if self.ended else b""

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
