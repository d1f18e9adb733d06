"""One connection to a receiver: a request, then the head of its answer and a little of its body.

A protocol of its own, because a general client costs ten times as much for each delivery and knows many ways that a
delivery must not take: redirects, proxies, cookies, compression.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 16 * 1024
ANSWER_BYTES_MAX: Final = 256 * 1024
"""Whatever an answer is made of: chunks of one byte and headers after the body count too."""


class Broken(Exception):
    """No answer came: the text says why. `untouched` if not a byte of one did."""

    def __init__(self, text: str, *, untouched: bool = False) -> None:
        super().__init__(text)
        self.untouched = untouched


class ReceiverAnswer(Struct):
    """What came back so far."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = []
    body: bytes = b""


class ReceiverExchange(asyncio.Protocol):
    """A connection that carries one request at a time, and may be used again after a whole answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser: Any = None
        self._answer = ReceiverAnswer()
        self._head: asyncio.Future[ReceiverAnswer] | None = None
        self._whole: asyncio.Future[None] | None = None
        self._received = 0
        self.reusable = False

    @property
    def is_open(self) -> bool:
        """Whether a request can be written to it."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        # A transport of uvloop is one in all but its class.
        self._transport = cast(asyncio.Transport, transport)

    async def ask(self, request: bytes) -> ReceiverAnswer:
        """The head of the answer to a request; the rest may still come."""
        assert self._transport is not None, "the caller waits for the connection first"
        loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        self._answer, self._received, self.reusable = ReceiverAnswer(headers=[]), 0, False
        self._head, self._whole = loop.create_future(), loop.create_future()
        self._transport.write(request)
        return await self._head

    async def rest(self) -> None:
        """Wait until the answer is whole, or as much of it as is wanted."""
        if self._whole is not None:
            await self._whole

    def close(self) -> None:
        """Let go of it, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    # ── what the loop says ────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        """A part of the answer. What comes without a request is not for us."""
        if self._head is None or self._whole is None or self._whole.done():
            self.close()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail("what came back is not HTTP")
            return
        if not self._head.done() and self._received > HEAD_BYTES_MAX:
            self._fail("the head of the answer is too long")
        elif self._received > ANSWER_BYTES_MAX:
            self._end(reusable=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone: the answer ends here, if it had begun."""
        self._fail("the connection was closed")

    # ── what the parser says ──────────────────────────────────────────────────────────────────────────

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line of the head."""
        self._answer.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; one that only informs is followed by another."""
        status = self._parser.get_status_code()
        if status < 200:
            self._answer.headers.clear()
            return
        self._answer.status = status
        if self._head is not None and not self._head.done():
            self._head.set_result(self._answer)

    def on_body(self, body: bytes) -> None:
        """A part of the body, kept as far as it is wanted."""
        self._answer.body += body[: BODY_BYTES_MAX - len(self._answer.body)]
        if len(self._answer.body) >= BODY_BYTES_MAX:
            self._end(reusable=False)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._answer.status:
            self._end(reusable=self._parser.should_keep_alive())

    def _end(self, *, reusable: bool) -> None:
        if self._whole is not None and not self._whole.done():
            self.reusable = reusable
            self._whole.set_result(None)
            if not reusable:
                self.close()

    def _fail(self, text: str) -> None:
        self.close()
        if self._head is not None and not self._head.done():
            self._head.set_exception(Broken(text, untouched=self._received == 0))
        self._end(reusable=False)
