"""The dispatcher: buys codes for waiting lines, and finds out what became of each purchase. Any number may run.

A purchase is a row before it is a call, the call is made outside any transaction, and its answer is recorded in one.
A worker that dies in between leaves a row with a lease: when that ends, another worker looks the purchase up.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final
from uuid import UUID

import structlog
from msgspec.structs import replace

from voucherd import traces
from voucherd.db import Pool
from voucherd.orders import sweeps
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.purchasing import attempts, claims, outcomes, quoting, routing
from voucherd.purchasing.adapters import Adapters
from voucherd.purchasing.attempts import Attempt
from voucherd.purchasing.calls import CallCounts
from voucherd.purchasing.outcomes import SupplierCall
from voucherd.purchasing.refusals import note_refusal
from voucherd.suppliers.protocol import (
    Answer,
    Bought,
    Finding,
    NotFound,
    Supplier,
    SupplierRefused,
    Unclear,
    UnderWay,
    Why,
)
from voucherd.suppliers.registry import Spec, open_supplier
from voucherd.suppliers.store import SupplierRow, suppliers
from voucherd.vault.seal import Sealer

TASKS_MAX: Final = 256
"""Calls that one dispatcher has under way; more wait for the next round."""
SUPPLIERS_AGE_S_MAX: Final = 1.0
OVERTIME_S: Final = 5.0
"""An adapter ends its calls by itself; one that does not is cut off after this much more."""
STOP_S_MAX: Final = 5.0
WATCHED_MAX: Final = 10_000
RECORD_TRIES_MAX: Final = 200
RECORD_PAUSE_S_MAX: Final = 15.0

logger = structlog.get_logger(__name__)


class Dispatcher:
    """The work at suppliers of one process."""

    def __init__(
        self,
        pool: Pool,
        sealer: Sealer,
        caches: OrderCaches,
        moved: Callable[[list[Order]], object],
        open_with: Callable[[Spec, Pool], Supplier] = open_supplier,
    ) -> None:
        self._pool = pool
        self._sealer = sealer
        self._caches = caches
        self._moved = moved
        self._worker = f"{socket.gethostname()[:60]}/{os.getpid()}/{secrets.token_hex(3)}"
        self._turns = claims.Turns()
        self._rows: dict[int, SupplierRow] = {}
        self._read_at = -SUPPLIERS_AGE_S_MAX
        self._adapters = Adapters(pool, sealer, open_with)
        self._tasks: set[asyncio.Task[None]] = set()
        self._over_at: dict[UUID, float] = {}
        self._stopping = False
        self.calls = CallCounts()

    @property
    def busy(self) -> int:
        """How many calls are under way."""
        return len(self._tasks)

    async def stop(self) -> None:
        """Begin nothing more; give calls under way a moment, and leave the rest to the look-ups of another worker."""
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S_MAX)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._adapters.close()

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────────

    async def dispatch(self) -> int:
        """Route what pauses, claim what can be bought, and begin the calls; how many lines or calls moved."""
        await self._read_suppliers()
        if not self._rows or self._stopping:
            return 0
        routed = await self._routed(await routing.route(self._pool, self._caches.offers))
        begun = 0
        async with self._pool.acquire() as conn:
            wanted = await claims.wanted_suppliers(conn)
        for supplier_id in wanted:
            row = self._rows.get(supplier_id)
            if row is None or self.busy >= TASKS_MAX:
                continue
            adapter = self._adapter(row)
            if adapter is None or not row.active or row.fails:
                left = await routing.leave(self._pool, self._caches.offers, supplier_id)
                routed += await self._routed(left)
                continue
            claiming_at = time.monotonic()
            made = await claims.claim(
                self._pool,
                self._caches.offers,
                row,
                bulk_max=adapter.bulk_max,
                worker=self._worker,
                turns=self._turns,
            )
            for attempt in made:
                self._begin(self._buy(row, adapter, attempt, claiming_at))
            begun += len(made)
        return routed + begun

    async def _routed(self, routed: routing.Routed) -> int:
        """End the orders that must not wait for what nobody sells; how many waits were looked at."""
        if routed.unserved:
            # Decided again under the locks of the orders. After a crash in between they come again with their pause.
            self._moved(
                await sweeps.end_unserved(self._pool, self._caches, routed.unserved, routed.exhausted)
            )
        return routed.count

    async def follow_up(self) -> int:
        """Look up purchases whose outcome is not known; how many."""
        await self._read_suppliers()
        if self.busy >= TASKS_MAX or self._stopping:
            return 0
        lease_s = max((row.timeout_s for row in self._rows.values()), default=0) + attempts.LEASE_MARGIN_S
        lost = await attempts.take_over(self._pool, self._worker, lease_s)
        due = await attempts.take_asking(self._pool, self._worker, lease_s)
        for attempt in (*lost, *due):
            row = self._rows.get(attempt.supplier_id)
            adapter = None if row is None else self._adapter(row)
            # Without an adapter the lease runs out, and the purchase is looked up when there is one again.
            if row is not None and adapter is not None:
                self._begin(self._look_up(row, adapter, attempt))
        return len(lost) + len(due)

    async def refresh_quotes(self) -> int:
        """Ask suppliers for prices that are growing old; how many were asked."""
        await self._read_suppliers()
        due = [] if self._stopping else await quoting.take_due(self._pool)
        # One that was added a moment ago is ours to ask by now, and nobody else will for a while.
        await self._read_suppliers(*due)
        for supplier_id in due:
            self._begin(self._quote(self._rows[supplier_id]))
        return len(due)

    async def settled(self) -> None:
        """Wait until no call is under way: for tests and for a quiet stop."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read_suppliers(self, *wanted: int) -> None:
        """Know the suppliers as they are now, these among them; who has changed gets another adapter."""
        if time.monotonic() - self._read_at < SUPPLIERS_AGE_S_MAX and self._rows.keys() >= set(wanted):
            return
        async with self._pool.acquire() as conn:
            rows = await suppliers(conn)
        self._rows = {row.id: row for row in rows}
        self._read_at = time.monotonic()

    def _adapter(self, row: SupplierRow) -> Supplier | None:
        return self._adapters.of(row, self._tasks)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("dispatcher_failed", error=repr(task.exception()))

    # ── one purchase ──────────────────────────────────────────────────────────────────────────────────

    async def _buy(self, row: SupplierRow, adapter: Supplier, attempt: Attempt, claiming_at: float) -> None:
        # A worker that was held up so long that the lease might end during the call must not call any more. The lease
        # began somewhere in the claim's transaction.
        if time.monotonic() - claiming_at > attempts.LEASE_MARGIN_S / 2:
            held_up = SupplierRefused(Why.CANCELLED, "the worker was held up before the call")
            await self._record(row, adapter, attempt, held_up, None)
            return
        began = time.monotonic()
        answer = await self._asked(row, "buy", lambda: adapter.buy(attempt.reference, attempt.wanted))
        ended = time.monotonic()
        self._unsure_s(attempt, ended + row.settle_s)
        ms = round((ended - began) * 1000)
        await self._record(row, adapter, attempt, answer, ms)

    async def _look_up(self, row: SupplierRow, adapter: Supplier, attempt: Attempt) -> None:
        if not adapter.looks_up:
            await self._record(row, adapter, attempt, Unclear("the supplier can't look purchases up"), None)
            return
        # The worker that called may be at it yet, if the database's clock has jumped and its lease has ended too soon.
        over_s = row.timeout_s + attempts.LEASE_MARGIN_S + row.settle_s
        unsure_s = self._unsure_s(attempt, time.monotonic() + over_s)
        attempt = replace(attempt, settles_in_s=max(attempt.settles_in_s, unsure_s))
        # What nobody waits for any more is taken back where that can be done.
        verb, ask = ("cancel", adapter.cancel) if attempt.orphaned else ("look_up", adapter.look_up)
        found: Finding = await self._asked(row, verb, lambda: ask(attempt.reference, attempt.wanted))
        await self._record(row, adapter, attempt, found, None)

    async def _asked(
        self, row: SupplierRow, verb: str, call: Callable[[], Awaitable[Answer | Finding]]
    ) -> Finding:
        """The supplier's answer; whatever goes wrong in an adapter is no answer at all."""
        began = time.monotonic()
        answer: Finding
        try:
            with traces.outgoing(verb, row.name):
                async with asyncio.timeout(row.timeout_s + OVERTIME_S):
                    answer = await call()
        except TimeoutError:
            answer = Unclear("the call took too long")
        except Exception as error:
            logger.exception("adapter_failed", supplier=row.name)
            answer = Unclear(f"the adapter failed: {type(error).__name__}")
        self.calls.observe(row.name, verb, answer, time.monotonic() - began)
        return answer

    async def _record(
        self, row: SupplierRow, adapter: Supplier, attempt: Attempt, found: Finding, ms: int | None
    ) -> None:
        """Record an answer, again and again if the database is away: it may hold codes that nobody else has."""
        for tries in range(RECORD_TRIES_MAX):
            try:
                self._moved(await self._recorded(row, adapter, attempt, found, ms))
            except (OSError, TimeoutError) as error:
                problem: Exception = error
            except Exception as error:  # noqa: BLE001 - Whatever it is, the answer must not be lost.
                problem = error
            else:
                return
            logger.warning("answer_not_recorded", attempt=attempt.reference, error=repr(problem))
            await asyncio.sleep(min(0.1 * 2.0 ** min(tries, 10), RECORD_PAUSE_S_MAX))
        logger.error("answer_lost", attempt=attempt.reference, supplier=row.name)

    async def _recorded(
        self, row: SupplierRow, adapter: Supplier, attempt: Attempt, found: Finding, ms: int | None
    ) -> list[Order]:
        pool, caches = self._pool, self._caches
        match found:
            case Bought():
                return await outcomes.receive(pool, caches, self._sealer, attempt, found, SupplierCall(ms=ms))
            case SupplierRefused(why, text):
                if why.for_good:
                    # Noted before the lines are let go: else they would be sent there again.
                    await note_refusal(pool, attempt)
                reason = f"{why}: {text}" if text else str(why)
                return await outcomes.fail(
                    pool, caches, attempt, reason, SupplierCall(failed=why is Why.UNREACHABLE, ms=ms)
                )
            case NotFound() if attempt.settled:
                return await outcomes.fail(pool, caches, attempt, "never bought", SupplierCall())
            case NotFound() | UnderWay() if attempt.look_ups < attempts.LOOK_UPS_MAX:
                external_id = found.external_id if isinstance(found, UnderWay) else None
                await outcomes.ask_again(pool, attempt, None, SupplierCall(ms=ms), external_id)
            case NotFound() | UnderWay():
                text = f"still not known after {attempt.look_ups} look-ups"
                return await outcomes.give_up(pool, caches, attempt, text, SupplierCall(ms=ms), rebuy=False)
            case Unclear(text):
                call = SupplierCall(failed=True, ms=ms)
                if not adapter.looks_up or attempt.look_ups >= attempts.LOOK_UPS_MAX:
                    rebuy = row.on_unknown == "rebuy"
                    return await outcomes.give_up(pool, caches, attempt, text, call, rebuy=rebuy)
                await outcomes.ask_again(pool, attempt, text, call, None)
        return []

    def _unsure_s(self, attempt: Attempt, over_at: float) -> float:
        """How long "not found" is not believed yet, by a clock that never jumps; the first moment given counts."""
        while len(self._over_at) >= WATCHED_MAX:
            del self._over_at[next(iter(self._over_at))]
        return self._over_at.setdefault(attempt.id, over_at) - time.monotonic()

    async def _quote(self, row: SupplierRow) -> None:
        adapter = self._adapter(row)
        if adapter is not None:
            await quoting.refresh(self._pool, row, adapter)
