"""Requests and responses, free of any server: what a handler gets and gives."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct, field

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
PROBLEM: Final = b"application/problem+json"
EVENT_STREAM: Final = b"text/event-stream"
HTML: Final = b"text/html; charset=utf-8"
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")


STALL_S_MAX: Final = 30.0
"""How long an endless body waits for a client that does not read."""


class Request(Struct):
    """One call, with its body read."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    client_ip: str
    id: str
    started: float = 0.0
    body_wanted: bool = True
    """Not by HEAD, which is answered like GET otherwise."""


class Response(Struct):
    """One answer; a body that is not bytes is streamed."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    content_type: bytes | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    cache_control: bytes = b"no-store"
    """Answers hold prices and bearer secrets: no cache keeps any unless the answer says otherwise."""
    shown: object | None = None
    """The object that the body was written from, for a handler that has to write it again."""
    endless: bool = False
    """The body goes on until the client leaves, and ends then and there; a client that stops reading is cut off."""

    async def close(self) -> None:
        """End a body that is not read to its end."""
        if not isinstance(self.body, bytes):
            close = getattr(self.body, "aclose", None)
            if close is not None:
                await close()


class Still:
    """An answer that never changes, packed once for those who take it packed. It holds no secret of anybody's."""

    def __init__(self, response: Response) -> None:
        assert isinstance(response.body, bytes)
        self.response = response
        self.body = response.body
        # Without a time in it, so that every process has the same bytes.
        self._packed = gzip.compress(response.body, mtime=0)

    def answer(self, request: Request) -> Response:
        """The answer to this request."""
        still = self.response
        headers = [*still.headers, (b"vary", b"accept-encoding")]
        if b"gzip" not in request.headers.get(b"accept-encoding", b""):
            return Response(still.status, self.body, still.content_type, headers, still.cache_control)
        headers.append((b"content-encoding", b"gzip"))
        return Response(still.status, self._packed, still.content_type, headers, still.cache_control)


class HttpError(Exception):
    """A call that HTTP itself refuses: no such path, a body too large, too many calls …"""

    def __init__(
        self,
        status: int,
        code: str,
        text: str,
        *,
        headers: list[tuple[bytes, bytes]] | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text
        self.headers = headers or []
        self.retryable = retryable
