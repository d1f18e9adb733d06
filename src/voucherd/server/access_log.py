"""The access log: one JSON line for an answered request, written by a thread, so that no call waits for a log.

It holds what leads from a client's question to what happened here, and nothing that is worth stealing: no path, query,
header or body, only the route as its table writes it and the number of the key.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from voucherd import logs
from voucherd.http import Request, Response, method_word

ONE_IN: Final = 100
"""Of the calls that went well, a sampled log has one of so many."""
SLOW_S: Final = 1.0
"""A call that took longer is always in it."""
WAITING_MAX: Final = 10_000
"""Lines that wait for the thread; more are dropped, and counted."""
EVERY_S: Final = 0.25
STOP_S_MAX: Final = 1.0

_encode: Final = msgspec.json.Encoder().encode


class _Answered(Struct, frozen=True):
    """What is kept of a call until its line is written; never the request, whose body may be large."""

    at: float
    request_id: str
    traceparent: str | None
    method: str
    route: str
    status: int
    seconds: float
    key_id: int | None
    company_id: int | None
    bytes: int | None
    batch: int


class AccessLog:
    """Collects lines, all of them or a sample, and writes them by and by."""

    def __init__(self, *, full: bool, write: Callable[[bytes], object] | None = None) -> None:
        self._full = full
        self._write = write or (lambda chunk: os.write(2, chunk))
        self._waiting: deque[_Answered] = deque()
        self._count = 0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def note(self, request: Request, response: Response, seconds: float) -> None:
        """Remember one answer, if it is to be in the log."""
        self._count = count = self._count + 1
        status, caller = response.status, request.caller
        # Nearly every call ends here, so this is asked first.
        if status < 400 and count % ONE_IN and seconds < SLOW_S and not self._full:
            return
        # Who has a key is told why it was refused. Strangers could fill a disk with their refusals.
        if 400 <= status < 500 and caller is None and seconds < SLOW_S and count % ONE_IN and not self._full:
            return
        if len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        self._waiting.append(
            _Answered(
                time.time(),
                request.id,
                request.traceparent,
                method_word(request.method),
                request.route,
                status,
                seconds,
                None if caller is None else caller.key_id,
                None if caller is None else caller.company_id,
                len(response.body) if isinstance(response.body, bytes) else None,
                request.batch,
            )
        )

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._work, name="access-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, unless whoever reads the log does not."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_S_MAX)

    def _work(self) -> None:
        while not self._stopping.wait(EVERY_S):
            self._put_out()
        self._put_out()

    def _put_out(self) -> None:
        for chunk, lines in self._chunks():
            try:
                self._write(chunk)
            except OSError:
                self.dropped += lines

    def _chunks(self) -> Iterator[tuple[bytes, int]]:
        """What waits, in pieces that a pipe takes whole: lines of several processes never mix."""
        chunk, lines = b"", 0
        for _ in range(len(self._waiting)):
            line = _line(self._waiting.popleft())
            if chunk and len(chunk) + len(line) > select.PIPE_BUF:
                yield chunk, lines
                chunk, lines = b"", 0
            chunk += line
            lines += 1
        if chunk:
            yield chunk, lines


def _line(one: _Answered) -> bytes:
    found = {
        "event": "request",
        "level": "info",
        "at": datetime.fromtimestamp(one.at, UTC).isoformat().replace("+00:00", "Z"),
        # A client may write anything there, a secret of its own by mistake, too.
        "request_id": logs.scrub(one.request_id),
        "trace_id": None if one.traceparent is None else logs.trace_id(one.traceparent),
        "method": one.method,
        "route": one.route or None,
        "status": one.status,
        "ms": round(one.seconds * 1000, 2),
        "key_id": one.key_id,
        "company_id": one.company_id,
        "bytes": one.bytes,
        "batch": one.batch or None,
    }
    return _encode({name: value for name, value in found.items() if value is not None}) + b"\n"
