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
from time import monotonic
from typing import Final

import msgspec
import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from voucherd.api import handlers
from voucherd.api.errors import Op
from voucherd.api.failures import IN_USE
from voucherd.api.handlers import Call, ShownOrder
from voucherd.batcher import Batcher, BatcherFull, bounds_of
from voucherd.db import Pool, Tx, transaction
from voucherd.heartbeat import Heartbeat
from voucherd.http import HttpError, Response
from voucherd.idempotency import store as idempotency
from voucherd.idempotency.model import KEY_CHARS_MAX, Claim, ClaimResult, KnownRequest, Ticket, TicketTaken
from voucherd.orders.model import Order
from voucherd.services import Services
from voucherd.vault.seal import KeyNotKnown, Sealer

HEADER: Final = b"idempotency-key"
REPLAYED: Final = (b"idempotent-replayed", b"true")
RENEW_AFTER_S: Final = idempotency.LEASE_S / 3
HELD_S_MAX: Final = 300.0
"""No call works for so long: a claim that is older is not renewed any more."""
FREE_S_MAX: Final = 1.0
"""A call that failed waits so long for its ticket to be free again, and no longer: its client is to hear of it."""
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


class _Held(Struct, frozen=True):
    """Since when a claim is held, and when it was last renewed."""

    claimed_at: float
    renewed_at: float


class IdempotentCalls:
    """Lets each key do its work once."""

    def __init__(self, pool: Pool, sealer: Sealer, services: Services, heartbeat: Heartbeat) -> None:
        settings = services.settings
        self._pool = pool
        self._sealer = sealer
        self._services = services
        self._process = heartbeat.id
        self._held: dict[Ticket, _Held] = {}
        """The claims of calls under way, the one that was renewed longest ago first."""
        self._unkept: dict[Ticket, bytes | None] = {}
        """Answers that the database did not take yet, and claims that it did not free (None)."""
        self._unkept_max = limit = settings.waiting_calls_max
        self._claims: Batcher[Claim, KnownRequest] = Batcher(self._claim, **bounds_of(settings))
        # An answer is kept however late: the next call with its key waits for it.
        self._answers: Batcher[tuple[Ticket, bytes | None], KnownRequest | None] = Batcher(
            self._keep, waiting_max=limit, run_s_max=settings.batch_limit_s
        )

    async def stop(self) -> None:
        """Finish the batches in flight."""
        await self._claims.drain()
        await self._answers.drain()

    async def renew(self) -> None:
        """Hold on to the claims of calls under way, and keep what could not be kept before: often there is neither."""
        due = self._due(monotonic())
        if due:
            await idempotency.renew(self._pool, due)
        if self._unkept:
            await self._keep([*self._unkept.items()])

    def _due(self, now: float) -> list[Ticket]:
        """The claims that are to be renewed now."""
        old: list[Ticket] = []
        for ticket, held in self._held.items():
            if now - held.renewed_at < RENEW_AFTER_S:
                break
            old.append(ticket)
        due: list[Ticket] = []
        for ticket in old:
            claimed_at = self._held.pop(ticket).claimed_at
            if now - claimed_at < HELD_S_MAX:
                self._held[ticket] = _Held(claimed_at, now)
                due.append(ticket)
        return due

    async def answer(
        self, op: Op, call: Call, key: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """The first answer to this request: from the work, or as it was kept."""
        caller, request = call.caller, _request_hash(call)
        ticket = Ticket(caller.company_id, int(caller.state), _hash(_checked(key)))
        told = await self._claimed(Claim(ticket, request, caller.counter_id))
        if told.turn is ClaimResult.FOREIGN:
            # Another key of the company sent the same header: what that one was told is not for this one.
            own = _hash(b"%d:%b" % (caller.counter_id, key))
            ticket = Ticket(caller.company_id, int(caller.state), own)
            told = await self._claimed(Claim(ticket, request, caller.counter_id))
        ticket = replace(ticket, fence=told.fence)
        match told.turn:
            case ClaimResult.OTHER | ClaimResult.FOREIGN:
                raise HttpError(
                    422, "idempotency_key_reused", "this Idempotency-Key was used for another request"
                )
            case ClaimResult.WAIT | ClaimResult.ANSWERED:
                return await self._answer_of_another(call, ticket, told)
            case ClaimResult.DONE:
                assert told.order_id is not None
                order_id = told.order_id
                return await self._first(
                    call, ticket, lambda: handlers.done_before(self._services, call, op, order_id)
                )
        call.ticket = ticket
        return await self._first(call, ticket, work)

    async def _claimed(self, claim: Claim) -> KnownRequest:
        """What the claim is told; if the call is given up meanwhile, what it claims is free again."""
        asked = self._claims.submit(claim.ticket.company_id, claim)
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda told: self._unwanted(claim.ticket, told))
            raise

    def _unwanted(self, ticket: Ticket, told: asyncio.Future[KnownRequest]) -> None:
        if not told.cancelled() and told.exception() is None and told.result().fence:
            self._free(replace(ticket, fence=told.result().fence))

    async def _claim(self, claims: Sequence[Claim]) -> list[KnownRequest]:
        told = await idempotency.claim(self._pool, claims, self._process)
        now = monotonic()
        for claim, one in zip(claims, told, strict=True):
            if one.fence:
                self._held[replace(claim.ticket, fence=one.fence)] = _Held(now, now)
        return told

    async def _first(self, call: Call, ticket: Ticket, work: Callable[[], Awaitable[Response]]) -> Response:
        """The answer of the work, kept before it is given; a failure of ours is not kept."""
        try:
            response = await work()
        except asyncio.CancelledError:
            # Nobody waits for the answer, so nobody waits for this: a repeated request must not wait for nobody.
            self._free(ticket)
            raise
        except TicketTaken:
            another = await self._answers.submit(ticket.company_id, (ticket, None))
            return await self._answer_of_another(call, ticket, another or KnownRequest(ClaimResult.WAIT))
        except Exception:
            await self._freed(ticket)
            raise
        if response.status >= 500:
            await self._freed(ticket)
            return response
        # What was kept together with its effect is kept already, and stays.
        answer = seal(self._sealer, ticket, response)
        try:
            another = await self._settle(ticket, answer)
        except Exception as error:
            # The next heartbeat tries again, and the claim is held until then. What was done can be told all the
            # same; not so a refusal, which a call that has the ticket by now may make untrue.
            logger.warning("answer_not_kept", error=repr(error))
            self._keep_later([(ticket, answer)])
            if response.status >= 400:
                raise
            return response
        if another is None:
            return response
        await response.close()
        return await self._answer_of_another(call, ticket, another)

    async def _settle(self, ticket: Ticket, answer: bytes) -> KnownRequest | None:
        """Keep an answer; what holds instead where the ticket is another call's by now."""
        return await asyncio.shield(self._answers.submit(ticket.company_id, (ticket, answer)))

    async def _freed(self, ticket: Ticket) -> None:
        """Let the next one try, from before the client hears of the failure, unless that takes too long."""
        await asyncio.wait([self._free(ticket)], timeout=FREE_S_MAX)

    def _free(self, ticket: Ticket) -> asyncio.Future[KnownRequest | None]:
        """Let the next one try; if that fails the next heartbeat does it, and the row tells the rest."""
        self._held.pop(ticket, None)
        try:
            freed = self._answers.submit(ticket.company_id, (ticket, None))
        except BatcherFull:
            self._keep_later([(ticket, None)])
            freed = asyncio.get_running_loop().create_future()
            freed.set_result(None)
        freed.add_done_callback(_noted)
        return freed

    async def _keep(self, answers: Sequence[tuple[Ticket, bytes | None]]) -> list[KnownRequest | None]:
        try:
            lost = await idempotency.keep(self._pool, answers)
        except BaseException:
            self._keep_later(answers)
            raise
        for ticket, _ in answers:
            self._held.pop(ticket, None)
            self._unkept.pop(ticket, None)
        return [lost.get(ticket) for ticket, _ in answers]

    def _keep_later(self, answers: Sequence[tuple[Ticket, bytes | None]]) -> None:
        for ticket, answer in answers:
            if len(self._unkept) < self._unkept_max:
                self._unkept[ticket] = answer

    async def _answer_of_another(self, call: Call, ticket: Ticket, told: KnownRequest) -> Response:
        """What the call that has the ticket answered; refused for now if it has not yet."""
        if told.answer is None:
            raise HttpError(409, *IN_USE, headers=[(b"retry-after", b"1")], retryable=True)
        return await self._again(call, told.answer, ticket)

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


def _noted(freed: asyncio.Future[KnownRequest | None]) -> None:
    if not freed.cancelled() and (error := freed.exception()) is not None:
        logger.warning("ticket_not_freed", error=repr(error))


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
