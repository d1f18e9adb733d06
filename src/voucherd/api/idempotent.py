"""Requests with an Idempotency-Key: done once, answered as often as they are sent (OP-28).

An order's effect names its order in its own transaction, and its answer is kept right after. Any other write keeps its
answer in its own transaction (`write`): a new key or secret is in its first answer and nowhere else, so after a crash
either both are there, or neither.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import structlog
from msgspec import Struct, field

from voucherd.api import handlers
from voucherd.api.errors import Op
from voucherd.api.failures import IN_USE
from voucherd.api.handlers import Call, ShownOrder
from voucherd.batcher import Batcher, bounds_of
from voucherd.db import Pool, Tx, transaction
from voucherd.http import HttpError, Response
from voucherd.idempotency import store as idempotency
from voucherd.idempotency.model import KEY_CHARS_MAX, Claim, ClaimResult, KnownRequest, Ticket
from voucherd.orders.model import Order
from voucherd.services import Services
from voucherd.vault.seal import KeyNotKnown, Sealer

HEADER: Final = b"idempotency-key"
REPLAYED: Final = (b"idempotent-replayed", b"true")
LEASE_MARGIN_S: Final = 15.0
_REQUEST_HEADERS: Final = (b"x-sandbox-outcome",)
"""Headers that change what a request asks for."""

logger = structlog.get_logger(__name__)


class Write(Struct, frozen=True):
    """A write under way that is no order: do it in `tx`, then say what its answer is."""

    tx: Tx
    services: Services
    call: Call

    async def answered(self, response: Response) -> Response:
        """The answer, which holds from now on for every repetition of the request."""
        ticket = self.call.ticket
        if ticket is not None:
            kept = seal(self.services.sealer, ticket, response)
            await idempotency.keep_with(self.tx, ticket, kept)
        return response


@asynccontextmanager
async def write(services: Services, call: Call) -> AsyncIterator[Write]:
    """The transaction of a write; a refusal that is raised in it undoes it."""
    async with transaction(services.pool) as tx:
        yield Write(tx, services, call)


class IdempotentCalls:
    """Lets each key do its work once."""

    def __init__(self, pool: Pool, sealer: Sealer, services: Services) -> None:
        settings = services.settings
        self._pool = pool
        self._sealer = sealer
        self._services = services
        self._lease_s = max(settings.confirm_wait_s, settings.resolve_limit_s) + LEASE_MARGIN_S
        self._claims: Batcher[Claim, KnownRequest] = Batcher(
            lambda claims: idempotency.claim(pool, claims, self._lease_s), **bounds_of(settings)
        )
        # An answer is kept however late: the next call with its key waits for it.
        self._answers: Batcher[tuple[Ticket, bytes | None], None] = Batcher(
            self._keep, waiting_max=settings.waiting_calls_max, run_s_max=settings.batch_limit_s
        )

    async def stop(self) -> None:
        """Finish the batches in flight."""
        await self._claims.drain()
        await self._answers.drain()

    async def answer(
        self, op: Op, call: Call, key: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """The first answer to this request: from the work, or as it was kept."""
        caller, request = call.caller, _request_hash(call)
        ticket = Ticket(caller.company_id, int(caller.state), _hash(_checked(key)))
        told = await self._claims.submit(ticket.company_id, Claim(ticket, request, caller.counter_id))
        if told.turn is ClaimResult.FOREIGN:
            # Another key of the company sent the same header: what that one was told is not for this one.
            own = _hash(b"%d:%b" % (caller.counter_id, key))
            ticket = Ticket(caller.company_id, int(caller.state), own)
            told = await self._claims.submit(ticket.company_id, Claim(ticket, request, caller.counter_id))
        match told.turn:
            case ClaimResult.OTHER | ClaimResult.FOREIGN:
                raise HttpError(
                    422, "idempotency_key_reused", "this Idempotency-Key was used for another request"
                )
            case ClaimResult.WAIT:
                raise HttpError(
                    409,
                    *IN_USE,
                    headers=[(b"retry-after", b"1")],
                    retryable=True,
                )
            case ClaimResult.ANSWERED:
                assert told.answer is not None
                return await self._again(call, told.answer, ticket)
            case ClaimResult.DONE:
                assert told.order_id is not None
                order_id = told.order_id
                return await self._first(
                    ticket, lambda: handlers.done_before(self._services, call, op, order_id)
                )
        call.ticket = ticket
        return await self._first(ticket, work)

    async def _first(self, ticket: Ticket, work: Callable[[], Awaitable[Response]]) -> Response:
        """The answer of the work, kept before it is given; a failure of ours is not kept."""
        answer: bytes | None = None
        try:
            response = await work()
            if response.status < 500:
                answer = seal(self._sealer, ticket, response)
            return response
        finally:
            # What was kept together with its effect is kept already, and stays.
            await self._settle(ticket, answer)

    async def _settle(self, ticket: Ticket, answer: bytes | None) -> None:
        """Keep an answer, or let the next one try. If that fails the claim runs out, and the row tells the rest."""
        try:
            # Also when the client has left: a repeated request must not wait for nobody.
            await asyncio.shield(self._answers.submit(ticket.company_id, (ticket, answer)))
        except Exception as error:  # noqa: BLE001 - The answer itself is good, and must not be lost for this.
            logger.warning("answer_not_kept", error=repr(error))

    async def _keep(self, answers: Sequence[tuple[Ticket, bytes | None]]) -> list[None]:
        await idempotency.keep(self._pool, answers)
        return [None] * len(answers)

    async def _again(self, call: Call, sealed: bytes, ticket: Ticket) -> Response:
        try:
            first = open_(self._sealer, ticket, sealed)
        except KeyNotKnown:
            # A key that is newer than what this process has last seen: it looks at once.
            assert self._sealer.refresh is not None, "a service's keys come from its ring"
            async with self._pool.acquire() as conn:
                await self._sealer.refresh(conn)
            first = open_(self._sealer, ticket, sealed)
        response = Response(first.status, first.body, first.content_type, list(first.headers))
        if first.order is not None:
            answer = await self._services.orders.show(first.order)
            response = await handlers.shown(
                self._services, call, answer, first.status, list(first.headers), bare=first.bare
            )
        response.headers.append(REPLAYED)
        return response


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


class StoredAnswer(Struct, frozen=True):
    """An answer as it is kept."""

    status: int
    content_type: bytes | None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    order: Order | None = None
    bare: bool = False


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(StoredAnswer).decode


def seal(sealer: Sealer, ticket: Ticket, response: Response) -> bytes:
    """The answer as it is stored."""
    shown = response.shown
    order, bare = (shown.order, shown.bare) if isinstance(shown, ShownOrder) else (None, False)
    body = response.body if isinstance(response.body, bytes) and order is None else b""
    kept = StoredAnswer(response.status, response.content_type, response.headers, body, order, bare)
    return sealer.seal_bytes(place(ticket), _encode(kept))


def open_(sealer: Sealer, ticket: Ticket, sealed: bytes) -> StoredAnswer:
    """The answer as it was given."""
    return _decode(sealer.open_bytes(place(ticket), sealed))


def place(ticket: Ticket) -> bytes:
    """Where the answer is sealed."""
    return b"answer/%d/%d/" % (ticket.company_id, ticket.state) + ticket.key
