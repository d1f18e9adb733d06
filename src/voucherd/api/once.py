"""Requests with an Idempotency-Key: done once, answered as often as they are sent (OP-28).

What is kept of an answer is enough to write it again, byte for byte: an order is kept as it was shown, and its codes
come from the vault each time; any other answer is kept as bytes. Both are sealed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct, field

from voucherd.access import idempotency
from voucherd.access.idempotency import KEY_CHARS_MAX, Claim, Ticket, Told, Turn
from voucherd.api import handlers
from voucherd.api.errors import HttpError, Op
from voucherd.api.handlers import Call, Service, Shown
from voucherd.api.http import Response
from voucherd.db import Pool
from voucherd.orders.gate import Gate
from voucherd.orders.model import Order
from voucherd.vault.seal import Sealer

HEADER: Final = b"idempotency-key"
REPLAYED: Final = (b"idempotent-replayed", b"true")
LEASE_MARGIN_S: Final = 15.0
_REQUEST_HEADERS: Final = (b"x-sandbox-outcome",)
"""Headers that change what a request asks for."""

logger = structlog.get_logger(__name__)


class Kept(Struct, frozen=True):
    """An answer as it is kept."""

    status: int
    content_type: bytes | None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    order: Order | None = None
    bare: bool = False


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Kept).decode


class Once:
    """Lets each key do its work once."""

    def __init__(self, pool: Pool, sealer: Sealer, service: Service) -> None:
        settings = service.settings
        self._pool = pool
        self._sealer = sealer
        self._service = service
        self._lease_s = max(settings.confirm_wait_s, settings.resolve_limit_s) + LEASE_MARGIN_S
        limit = settings.waiting_calls_max
        self._claims: Gate[Claim, Told] = Gate(
            lambda claims: idempotency.claim(pool, claims, self._lease_s), waiting_max=limit
        )
        self._answers: Gate[tuple[Ticket, bytes | None], None] = Gate(self._keep, waiting_max=limit)

    async def stop(self) -> None:
        """Finish what is in flight."""
        await self._claims.drain()
        await self._answers.drain()

    async def answer(
        self, op: Op, call: Call, key: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """The first answer to this request: from the work, or as it was kept."""
        ticket = Ticket(call.caller.company_id, int(call.caller.state), _hash(_checked(key)))
        told = await self._claims.submit(ticket.company_id, Claim(ticket, _request_hash(call)))
        match told.turn:
            case Turn.OTHER:
                raise HttpError(
                    422, "idempotency_key_reused", "this Idempotency-Key was used for another request"
                )
            case Turn.WAIT:
                raise HttpError(
                    409,
                    "idempotency_key_in_use",
                    "the first request with this Idempotency-Key is still running",
                    headers=[(b"retry-after", b"1")],
                    retryable=True,
                )
            case Turn.ANSWERED:
                assert told.answer is not None
                return await self._again(call, told.answer, ticket)
            case Turn.DONE:
                assert told.order_id is not None
                order_id = told.order_id
                return await self._first(
                    ticket, lambda: handlers.done_before(self._service, call, op, order_id)
                )
        call.ticket = ticket
        return await self._first(ticket, work)

    async def _first(self, ticket: Ticket, work: Callable[[], Awaitable[Response]]) -> Response:
        """The answer of the work, kept before it is given; a failure of ours is not kept."""
        kept: bytes | None = None
        try:
            response = await work()
            if response.status < 500:
                kept = self._sealer.seal_bytes(_place(ticket), _kept(response))
            return response
        finally:
            await self._settle(ticket, kept)

    async def _settle(self, ticket: Ticket, kept: bytes | None) -> None:
        """Keep an answer, or let the next one try. If that fails the claim runs out, and the row tells the rest."""
        try:
            # Also when the client has left: whoever asks again must not wait for nobody.
            await asyncio.shield(self._answers.submit(ticket.company_id, (ticket, kept)))
        except Exception as error:  # noqa: BLE001 - The answer itself is good, and must not be lost for this.
            logger.warning("answer_not_kept", error=repr(error))

    async def _keep(self, answers: Sequence[tuple[Ticket, bytes | None]]) -> list[None]:
        await idempotency.keep(self._pool, answers)
        return [None] * len(answers)

    async def _again(self, call: Call, sealed: bytes, ticket: Ticket) -> Response:
        kept = _decode(self._sealer.open_bytes(_place(ticket), sealed))
        response = Response(kept.status, kept.body, kept.content_type, list(kept.headers))
        if kept.order is not None:
            answer = await self._service.desk.show(kept.order)
            response = handlers.shown(
                self._service, call, answer, kept.status, list(kept.headers), bare=kept.bare
            )
        response.headers.append(REPLAYED)
        return response


def _kept(response: Response) -> bytes:
    shown = response.shown
    order, bare = (shown.order, shown.bare) if isinstance(shown, Shown) else (None, False)
    body = response.body if isinstance(response.body, bytes) and order is None else b""
    return _encode(Kept(response.status, response.content_type, response.headers, body, order, bare))


def _checked(key: bytes) -> bytes:
    if not 1 <= len(key) <= KEY_CHARS_MAX or any(byte < 0x20 or byte > 0x7E for byte in key):
        raise HttpError(
            400, "bad_input", f"Idempotency-Key: must be 1 to {KEY_CHARS_MAX} printable ASCII characters"
        )
    return key


def _request_hash(call: Call) -> bytes:
    request = call.request
    parts = [request.method.encode(), request.path.encode(), request.query, request.body]
    parts += [request.headers.get(name, b"") for name in _REQUEST_HEADERS]
    return _hash(b"".join(len(part).to_bytes(8, "big") + part for part in parts))


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _place(ticket: Ticket) -> bytes:
    return b"answer/%d/%d/" % (ticket.company_id, ticket.state) + ticket.key
