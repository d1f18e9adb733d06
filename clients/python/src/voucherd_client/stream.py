"""Server-sent events, read from bytes as they come; and when to come back after the connection broke."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

from voucherd_client.errors import UnreadableAnswer
from voucherd_client.steps import Outcome, Request, Retries, failure_of, pause_s

LINE_BYTES_MAX: Final = 1024 * 1024
"""No event is nearly so long: what is longer is no stream of ours."""
SILENCE_S_MAX: Final = 40.0
"""The service says something every 15 seconds; a line that is silent for longer is dead."""
ATTEMPTS_MAX: Final = 20
"""So often in a row it is tried in vain to come back."""

T = TypeVar("T")


class Stream(Struct, Generic[T], frozen=True):
    """A stream to listen to, and how each event is read."""

    request: Request
    read: Callable[[bytes], T]
    retries: Retries

    def begin(self) -> Reading[T]:
        """A reading from the place that the request names."""
        return Reading(self)


class Reading(Generic[T]):
    """What was heard of a stream so far: where it goes on, and what is not complete yet."""

    def __init__(self, stream: Stream[T], chance: Callable[[], float] = random.random) -> None:
        self._stream = stream
        self._chance = chance
        self._begun = b""
        self._data: list[bytes] = []
        self._place: str | None = None
        self._last: str | None = None
        self._in_vain = 0
        self._rest_s = stream.retries.first_pause_s

    @property
    def request(self) -> Request:
        """What to send: after a break, it asks for what follows the last event."""
        asked = self._stream.request
        if self._last is None:
            return asked
        return Request(
            method=asked.method,
            path=asked.path,
            query=asked.query,
            headers={**asked.headers, "Last-Event-ID": self._last},
        )

    def heard(self, chunk: bytes) -> Iterator[T]:
        """The events that these bytes complete. One counts as heard once the next is asked for."""
        self._in_vain = 0
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > LINE_BYTES_MAX:
            raise UnreadableAnswer("the stream is none of events")
        for line in lines:
            name, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"id":
                self._place = value.decode("latin-1")
            elif name == b"data":
                self._data.append(value)
            elif name == b"retry" and value.isdigit() and len(value) <= 6:
                self._rest_s = int(value) / 1_000
            elif not line.removesuffix(b"\r"):
                if self._data:
                    data, self._data = b"\n".join(self._data), []
                    yield self._stream.read(data)
                self._last = self._place or self._last

    def pause_s(self, outcome: Outcome) -> float:
        """How long to rest before coming back; raises what ends the stream for good."""
        # What was begun comes again, from the last event on.
        self._begun, self._data, self._place = b"", [], None
        self._in_vain += 1
        if outcome is None:
            return self._rest_s * (0.5 + self._chance() / 2)
        failure = failure_of(outcome)
        rest_s = pause_s(failure, self._in_vain, self._stream.retries, self._chance())
        if rest_s is None or self._in_vain >= ATTEMPTS_MAX:
            raise failure
        return rest_s
