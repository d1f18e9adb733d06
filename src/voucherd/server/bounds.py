"""Bounds of a connection: how much a client may send at once and how long it may take, and how it is refused."""

from __future__ import annotations

from enum import IntEnum
from math import inf
from typing import Final

from voucherd.http import STALL_S_MAX, HttpError

HEAD_BYTES_MAX: Final = 16_384
FIELDS_MAX: Final = 100
URL_BYTES_MAX: Final = 8_192
PIPELINED_MAX: Final = 64
"""Calls that may wait on one connection for the answers before theirs; the rest has to be sent again."""

HEAD_S_MAX: Final = 10.0
BODY_S_MAX: Final = 30.0
BODY_BYTES_A_SECOND_MIN: Final = 16_384
"""A body has half a minute, and a second more for each so many bytes that it may have."""

CHUNKS_MIN: Final = 256
CHUNK_BYTES_MIN: Final = 256
"""A body may have so many chunks however small they are, and one more for each so many bytes of it."""

DROPPED_BYTES_MAX: Final = 1024 * 1024
"""The rest of a refused body is read over where it is known to be no larger than that; else the connection ends."""

LINGER_S: Final = 2.0
CLOSE_S_MAX: Final = 10.0

UNREADABLE: Final = HttpError(400, "bad_request", "this is not HTTP")
AMBIGUOUS: Final = HttpError(400, "bad_request", "a header that may be there once is there twice")
MANY_CHUNKS: Final = HttpError(400, "too_many_chunks", "the body comes in too many small chunks")
NO_HOST: Final = HttpError(400, "bad_request", "the Host header is missing")
OTHER_CODING: Final = HttpError(400, "unknown_coding", "the only Transfer-Encoding that is read is chunked")
LONG_URL: Final = HttpError(414, "address_too_long", f"the address must be at most {URL_BYTES_MAX} bytes")
LARGE_HEAD: Final = HttpError(
    431, "headers_too_large", f"headers must be at most {FIELDS_MAX}, of {HEAD_BYTES_MAX} bytes together"
)
SLOW: Final = HttpError(408, "too_slow", "the request did not arrive in time", retryable=True)
PIPELINED: Final = HttpError(503, "busy", "too many calls wait on this connection", retryable=True)
LATE: Final = HttpError(503, "late", "no answer in time", headers=[(b"retry-after", b"1")], retryable=True)
LATE_WRITE: Final = HttpError(
    503,
    "late",
    "no answer in time: it may be done or not, so look before you send it again",
    headers=[(b"retry-after", b"1")],
    retryable=True,
)
"""The client is not told that nothing has happened: nobody knows."""
FULL: Final = HttpError(503, "busy", "too many connections", headers=[(b"retry-after", b"1")], retryable=True)

ONCE: Final = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"cookie",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
        b"transfer-encoding",
        b"x-sandbox-outcome",
    }
)
"""Headers of which a second one makes a request mean two things."""

NOTHING, HEAD, BODY = range(3)
"""What is being read. Plain numbers: they are looked at several times in each call."""


class ConnectionState(IntEnum):
    """What a connection is doing."""

    NEW = 0
    HEAD = 1
    BODY = 2
    BUSY = 3
    IDLE = 4
    STALLED = 5
    LINGERING = 6
    CLOSING = 7


def patience_s(keep_alive_s: float, body_bytes_max: int) -> dict[ConnectionState, float]:
    """How long a connection may stay in each state; a call that is being answered has limits of its own."""
    return {
        ConnectionState.NEW: HEAD_S_MAX,
        ConnectionState.HEAD: HEAD_S_MAX,
        ConnectionState.BODY: BODY_S_MAX + body_bytes_max / BODY_BYTES_A_SECOND_MIN,
        ConnectionState.BUSY: inf,
        ConnectionState.IDLE: keep_alive_s,
        ConnectionState.STALLED: STALL_S_MAX,
        ConnectionState.LINGERING: LINGER_S,
        ConnectionState.CLOSING: CLOSE_S_MAX,
    }
