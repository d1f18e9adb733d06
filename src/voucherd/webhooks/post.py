"""One POST to a receiver: bounded in time and in size, through the guard, without redirects, and never an exception."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from functools import cache
from typing import Final

import httpx
from msgspec import Struct

from voucherd.webhooks import outbound
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.exchange import Broken, ReceiverAnswer, ReceiverExchange
from voucherd.webhooks.outbound import AddressRefused, Resolve, Resolver
from voucherd.webhooks.targets import WebhookTarget

TIMEOUT_S: Final = 15.0
"""From the look-up of the name to the last byte of the answer's head."""
REST_S_MAX: Final = 2.0
"""For the rest of an answer whose status is known already."""
KEPT_HEAD_CHARS: Final = 1_000
KEPT_BODY_CHARS: Final = 500
KEEP_ALIVE_S: Final = 4.0
"""Shorter than servers keep a connection."""
KEPT_A_HOST: Final = 8
KEPT_CONNECTIONS_MAX: Final = 256
_HEAD: Final = (
    "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    "accept: */*\r\naccept-encoding: identity\r\nuser-agent: voucherd-webhooks/1\r\n"
)


class PostOutcome(Struct, frozen=True):
    """What came of one attempt: a status, or the reason why there is none."""

    ms: int
    status: int | None = None
    error: str | None = None
    head: str = ""
    body: str = ""

    @property
    def delivered(self) -> bool:
        """Whether the receiver has it. A redirect is a failure: nobody signed for the other place."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver wants nothing any more."""
        return self.status == 410


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates are believed; read once, because it takes longer than a call."""
    return httpx.create_ssl_context(trust_env=False)


class Post:
    """Sends messages over connections that are kept for a moment."""

    def __init__(
        self,
        own: Sequence[Network] = (),
        *,
        resolve: Resolve | None = None,
        trusted: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._own = tuple(own)
        self._timeout_s = timeout_s
        self._tls = trusted
        self._resolver = Resolver() if resolve is None else None
        self._resolve: Resolve = resolve or self._resolver or Resolver()
        self._idle: dict[tuple[str, str, int], list[tuple[ReceiverExchange, asyncio.TimerHandle]]] = {}
        self._kept = 0

    async def send(
        self, target: WebhookTarget, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> PostOutcome:
        """What became of the message. Never later than the time limit, and never an exception."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                exchange, answer = await self._asked(target, _request(target, headers, body))
        except Exception as error:  # noqa: BLE001 - Whatever a receiver does, it is only its own delivery that fails.
            return PostOutcome(_ms(began), error=_why(error, self._timeout_s))
        ms = _ms(began)
        await self._finish(target, exchange)
        return _outcome(ms, answer)

    async def _asked(self, target: WebhookTarget, request: bytes) -> tuple[ReceiverExchange, ReceiverAnswer]:
        """The head of the answer, and the connection that it came by."""
        kept = self._take(target)
        if kept is not None:
            try:
                return kept, await _ask(kept, request)
            except Broken as failure:
                if not failure.untouched:
                    raise
                # The receiver had closed it meanwhile; that says nothing about this delivery.
        fresh = await outbound.connect(
            target, self._own, self._resolve, self._tls or _trusted(), ReceiverExchange
        )
        return fresh, await _ask(fresh, request)

    async def _finish(self, target: WebhookTarget, exchange: ReceiverExchange) -> None:
        """Read the rest of the answer. It decides nothing, so a failure here is no matter."""
        try:
            async with asyncio.timeout(REST_S_MAX):
                await exchange.rest()
        except TimeoutError:
            exchange.close()
        finally:
            if exchange.reusable and exchange.is_open:
                self._keep(target, exchange)
            else:
                exchange.close()

    def _take(self, target: WebhookTarget) -> ReceiverExchange | None:
        kept = self._idle.get((target.scheme, target.host, target.port), [])
        while kept:
            exchange, timer = kept.pop()
            self._kept -= 1
            timer.cancel()
            if exchange.is_open:
                return exchange
        return None

    def _keep(self, target: WebhookTarget, exchange: ReceiverExchange) -> None:
        # By name: two names at one address are two receivers.
        key = (target.scheme, target.host, target.port)
        kept = self._idle.setdefault(key, [])
        if len(kept) >= KEPT_A_HOST or self._kept >= KEPT_CONNECTIONS_MAX:
            exchange.close()
            return
        self._kept += 1
        timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_S, self._expire, key, exchange)
        kept.append((exchange, timer))

    def _expire(self, key: tuple[str, str, int], exchange: ReceiverExchange) -> None:
        exchange.close()
        left = [pair for pair in self._idle.get(key, ()) if pair[0] is not exchange]
        self._kept -= len(self._idle.get(key, ())) - len(left)
        self._idle[key] = left
        if not left:
            del self._idle[key]

    async def close(self) -> None:
        """Close the connections."""
        for kept in self._idle.values():
            for exchange, timer in kept:
                timer.cancel()
                exchange.close()
        self._idle.clear()
        if self._resolver is not None:
            self._resolver.close()
        # One turn of the loop, in which the sockets close.
        await asyncio.sleep(0)


async def _ask(exchange: ReceiverExchange, request: bytes) -> ReceiverAnswer:
    """The head of the answer; a connection that is not waited for any more is closed."""
    try:
        return await exchange.ask(request)
    except BaseException:
        exchange.close()
        raise


def _request(target: WebhookTarget, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bytes:
    head = _HEAD.format(path=target.path, host=target.authority, length=len(body)).encode()
    return b"".join([head, *(b"%b: %b\r\n" % pair for pair in headers), b"\r\n", body])


def _why(error: Exception, timeout_s: float) -> str:  # noqa: PLR0911 - One line for each kind.
    """Why there was no answer. Of most errors only the kind is told: their text may quote what was sent."""
    match error:
        case AddressRefused():
            return f"refused: {error}"
        case Broken():
            return str(error)
        case TimeoutError():
            return str(error) or f"no answer within {timeout_s:g} seconds"
        case ssl.SSLCertVerificationError():
            return f"certificate refused: {error.verify_message}"[:200]
        case ssl.SSLError():
            return "no connection: TLS failed"
        case OSError():
            return "no connection"
    return f"failed: {type(error).__name__}"


def _outcome(ms: int, answer: ReceiverAnswer) -> PostOutcome:
    lines = [f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in answer.headers]
    return PostOutcome(
        ms,
        status=answer.status,
        head=_plain("\n".join(lines))[:KEPT_HEAD_CHARS],
        body=_plain(answer.body.decode("utf-8", "replace"))[:KEPT_BODY_CHARS],
    )


def _plain(text: str) -> str:
    """The text without what a database or a terminal would choke on."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text])


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
