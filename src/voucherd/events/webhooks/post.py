"""One POST to a receiver: bounded in time and in size, through the guard, without redirects, and never an exception."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Sequence
from functools import cache
from typing import Final

import httpcore
import httpx
from msgspec import Struct

from voucherd.events.webhooks.addresses import Network
from voucherd.events.webhooks.reach import CONNECT_S_MAX, GuardedNetwork, Refused, Resolve, Resolver
from voucherd.events.webhooks.targets import Target

TIMEOUT_S: Final = 15.0
"""From the look-up of the name to the last byte of the answer's head."""
REST_S_MAX: Final = 2.0
"""For the rest of an answer whose status is known already."""
REPLY_BYTES_MAX: Final = 16 * 1024
KEPT_HEAD_CHARS: Final = 1_000
KEPT_BODY_CHARS: Final = 500
KEEP_ALIVE_S: Final = 4.0
"""Shorter than servers keep a connection: one that they close while we write costs a retry."""
KEPT_CONNECTIONS_MAX: Final = 64
AGENT: Final = b"voucherd-webhooks/1"


class Outcome(Struct, frozen=True):
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
        self._timeout_s = timeout_s
        self._resolver = Resolver() if resolve is None else None
        reached = resolve or self._resolver
        assert reached is not None, "one of the two is there"
        # No limit of connections here: whoever sends bounds what is under way, and nobody is to wait for another's.
        self._pools = {
            scheme: httpcore.AsyncConnectionPool(
                ssl_context=trusted or _trusted(),
                max_connections=None,
                max_keepalive_connections=KEPT_CONNECTIONS_MAX,
                keepalive_expiry=KEEP_ALIVE_S,
                network_backend=GuardedNetwork(scheme, own, reached),
            )
            for scheme in ("https", "http")
        }

    async def send(self, target: Target, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Outcome:
        """What became of the message. Never later than the time limit, and never an exception."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._pools[target.scheme].handle_async_request(
                    _request(target, headers, body)
                )
        except Refused as refusal:
            return Outcome(_ms(began), error=f"refused: {refusal}")
        except TimeoutError:
            return Outcome(_ms(began), error=f"no answer within {self._timeout_s:g} seconds")
        # Only the kind of error is told: its text may quote what was sent.
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            return Outcome(_ms(began), error=_words(error))
        except Exception as error:  # noqa: BLE001 - Whatever a receiver does, it is only its own delivery that fails.
            return Outcome(_ms(began), error=f"failed: {type(error).__name__}")
        ms = _ms(began)
        rest = await _rest(response)
        lines = [f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in response.headers]
        return Outcome(
            ms,
            status=response.status,
            head=_plain("\n".join(lines))[:KEPT_HEAD_CHARS],
            body=_plain(rest.decode("utf-8", "replace"))[:KEPT_BODY_CHARS],
        )

    async def close(self) -> None:
        """Close the connections."""
        for pool in self._pools.values():
            await pool.aclose()
        if self._resolver is not None:
            self._resolver.close()


def _request(target: Target, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> httpcore.Request:
    return httpcore.Request(
        b"POST",
        httpcore.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.path.encode(),
        ),
        headers=[
            (b"host", target.authority.encode()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"identity"),
            (b"user-agent", AGENT),
            *headers,
        ],
        content=body,
        extensions={"timeout": {"connect": CONNECT_S_MAX}},
    )


async def _rest(response: httpcore.Response) -> bytes:
    """The beginning of the answer's body. What it is decides nothing, so whatever goes wrong here is no matter."""
    body = bytearray()
    try:
        async with asyncio.timeout(REST_S_MAX):
            async for part in response.aiter_stream():
                body += part
                if len(body) > REPLY_BYTES_MAX:
                    break
    except Exception:  # noqa: BLE001 - See above.
        body += b""
    finally:
        with contextlib.suppress(Exception):
            await response.aclose()
    return bytes(body)


def _words(error: Exception) -> str:
    cause = error.__cause__ or error.__context__
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate refused: {cause.verify_message}"[:200]
    return {
        "ConnectError": "no connection",
        "ConnectTimeout": "no connection in time",
        "RemoteProtocolError": "the connection was closed, or what came back is not HTTP",
        "ReadError": "the connection was lost",
        "WriteError": "the connection was lost",
    }.get(type(error).__name__, type(error).__name__)


def _plain(text: str) -> str:
    """The text without what a database or a terminal would choke on."""
    return "".join([c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text])


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
