"""Requests and responses, free of any server: what a handler gets and gives."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

from msgspec import Struct, field

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
PROBLEM: Final = b"application/problem+json"
EVENT_STREAM: Final = b"text/event-stream"
HTML: Final = b"text/html; charset=utf-8"
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")


STALL_S_MAX: Final = 30.0
"""How long an endless body waits for a client that does not read."""


ADMITTED_S: Final = 0.5
"""How long a body may take until its sender is judged once more: rights that end are over within a second."""


REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,128}")
"""What a client may call its own request; anything else gets an id of ours."""
_TRACEPARENT: Final = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


_METHODS: Final = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT"})


def method_word(method: str) -> str:
    """The method as figures and logs name it: only the usual ones have a name, and not whatever a client writes."""
    return method if method in _METHODS else "other"


class KnownCaller(Protocol):
    """Whose request it is, once its key is known."""

    @property
    def key_id(self) -> int:
        """The number of the key; never the key."""

    @property
    def company_id(self) -> int:
        """Whose key it is."""

    @property
    def state(self) -> int:
        """0 for a live key, 1 for one of the sandbox."""


class BodyReader(Protocol):
    """Takes a body while it arrives, so that nobody has to collect it first."""

    def write(self, part: bytes) -> None:
        """The next part; refused if it can't be what is expected."""


class Request(Struct):
    """One call; its body is read once it was admitted."""

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
    admission: Any = None
    """What was found out about the caller before the body was read; it is not asked again."""
    reader: BodyReader | None = None
    """Who reads the body; without one it is collected in `body`."""
    limit_s: float = 0.0
    """How many seconds the answer may take; 0 stands for as many as any other call's."""
    goes_on: bool = False
    """Whether its work goes on when the client was told that it takes too long: until it ends, nobody may repeat it."""
    given_up: bool = False
    """Whether the client was told so."""
    route: str = ""
    """The path as its table writes it, such as `/api/1.03/order/{trx}`; empty where there is no such path."""
    caller: KnownCaller | None = None
    batch: int = 0
    """How many calls the batch has that serves it; 0 for a call without one."""
    root: str = ""
    """The path under which a proxy in front serves us, without a slash at its end."""
    gate: Any = None
    """The span of its wait for a batch, where traces are wanted."""

    @property
    def traceparent(self) -> str | None:
        """The trace that the client says this call is part of (W3C Trace Context); None if it says nothing readable."""
        given = self.headers.get(b"traceparent")
        return given.decode() if given is not None and _TRACEPARENT.fullmatch(given) else None

    @property
    def took_long(self) -> bool:
        """Whether it began to arrive so long ago that its sender is to be judged once more."""
        return time.perf_counter() - self.started > ADMITTED_S

    @property
    def has_body(self) -> bool:
        """Whether its head tells of a body."""
        return self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers


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
