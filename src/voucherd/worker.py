"""The worker: delivers to waiting orders, ends what is out of time, announces what changed. Any number may run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

import structlog

from voucherd import idempotency
from voucherd.catalogue import fx_feed
from voucherd.db import UNAVAILABLE, Pool, open_pool
from voucherd.events import feed as events
from voucherd.heartbeat import EVERY_S as ANSWER_EVERY_S
from voucherd.heartbeat import Heartbeat
from voucherd.ids import Identifiers
from voucherd.limits import rate_store, throttle
from voucherd.mail import outbox
from voucherd.mail.outbox import Outbox
from voucherd.mail.smtp import server_of
from voucherd.orders import background
from voucherd.orders import sweeps as expire
from voucherd.orders.model import Order
from voucherd.orders.rules.ruling import Windows
from voucherd.orders.rules.states import Status
from voucherd.orders.store import Memory
from voucherd.people import letters, links, passkeys
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.settings import Settings
from voucherd.storefront import stock
from voucherd.trail.chain import BLOCK_ROWS_MAX, Sealing
from voucherd.vault import uploads
from voucherd.vault.key_ring import open_key_ring
from voucherd.vault.seal import Sealer
from voucherd.wallet import low_balance
from voucherd.webhooks import fanout, history, messages
from voucherd.webhooks.sender import Sender

DELIVER_EVERY_S: Final = 0.1
DISPATCH_EVERY_S: Final = 0.1
QUOTE_EVERY_S: Final = 1.0
END_EVERY_S: Final = 0.5
ANNOUNCE_EVERY_S: Final = 5.0
REMOVE_EVERY_S: Final = 600.0
FORGET_EVERY_S: Final = 60.0
LOW_EVERY_S: Final = 1.0
STOCK_EVERY_S: Final = 1.0
FX_EVERY_S: Final = 60.0
FAN_OUT_EVERY_S: Final = 0.1
SWEEP_EVERY_S: Final = 60.0
MAIL_EVERY_S: Final = 5.0
SEAL_EVERY_S: Final = 1.0
RESETS_EVERY_S: Final = 5.0
LEAVE_S_MAX: Final = 2.0

logger = structlog.get_logger(__name__)


class Worker:
    """The periodic work."""

    def __init__(
        self,
        pool: Pool,
        sealer: Sealer,
        settings: Settings,
        wake: Callable[[int], None] = lambda _: None,
        ids: Identifiers | None = None,
    ) -> None:
        self._pool = pool
        self._sealing = Sealing(pool)
        server = None if settings.smtp_url is None else server_of(settings.smtp_url)
        self._outbox = Outbox(settings.mail_folder, settings.mail_from, server)
        self._public_url = settings.public_url
        self._heartbeat = Heartbeat(pool)
        # Without identifiers nothing can be told to clients, so nothing is sent to them.
        self.sender = None
        if ids is not None:
            self.sender = Sender(pool, sealer, partial(messages.message, ids), settings.webhook_networks)
        self._window = timedelta(seconds=settings.confirmation_window_s)
        self._memory = Memory(
            Windows(
                timedelta(seconds=settings.delivery_window_s), timedelta(seconds=settings.resolve_limit_s)
            )
        )
        self._fx_url = settings.fx_url
        self._turns: background.Turns = {}
        self._stock_after = 0
        self._wake = wake
        self.dispatcher = Dispatcher(pool, sealer, self._memory, self._told)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to work in the background."""
        self._tasks = [
            asyncio.create_task(self._every(DELIVER_EVERY_S, "deliver", self.deliver)),
            asyncio.create_task(self._every(DISPATCH_EVERY_S, "dispatch", self.dispatcher.dispatch)),
            asyncio.create_task(self._every(DISPATCH_EVERY_S, "follow_up", self.dispatcher.follow_up)),
            asyncio.create_task(self._every(QUOTE_EVERY_S, "quote", self.dispatcher.refresh_quotes)),
            asyncio.create_task(self._every(END_EVERY_S, "end_waiting", self.end_waiting)),
            asyncio.create_task(self._every(ANNOUNCE_EVERY_S, "announce_expired", self.announce_expired)),
            asyncio.create_task(self._every(REMOVE_EVERY_S, "remove_expired", self.remove_expired)),
            asyncio.create_task(self._every(REMOVE_EVERY_S, "remove_events", self.remove_events)),
            asyncio.create_task(self._every(FORGET_EVERY_S, "forget_answers", self.forget_answers)),
            asyncio.create_task(self._every(FORGET_EVERY_S, "forget_windows", self.forget_windows)),
            asyncio.create_task(self._every(FORGET_EVERY_S, "forget_uploads", self.forget_uploads)),
            asyncio.create_task(self._every(LOW_EVERY_S, "announce_low", self.announce_low)),
            asyncio.create_task(self._every(STOCK_EVERY_S, "announce_stock", self.announce_stock)),
            asyncio.create_task(self._every(SEAL_EVERY_S, "seal_trail", self.seal_trail)),
            asyncio.create_task(self._every(ANSWER_EVERY_S, "answer_rollcall", self.answer_rollcall)),
        ]
        if self.sender is not None:
            self.sender.start()
            self._tasks += [
                asyncio.create_task(self._every(FAN_OUT_EVERY_S, "fan_out", self.fan_out)),
                asyncio.create_task(self._every(SWEEP_EVERY_S, "sweep_deliveries", self.sweep_deliveries)),
                asyncio.create_task(self._every(MAIL_EVERY_S, "put_out_mail", self.put_out_mail)),
                asyncio.create_task(self._every(RESETS_EVERY_S, "answer_resets", self.answer_resets)),
                asyncio.create_task(self._every(SWEEP_EVERY_S, "sweep_people", self.sweep_people)),
            ]
        if self._fx_url is not None:
            self._tasks.append(
                asyncio.create_task(self._every(FX_EVERY_S, "refresh_rates", self.refresh_rates))
            )

    async def stop(self) -> None:
        """End the background work; a transaction in flight is undone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.dispatcher.stop()
        if self.sender is not None:
            await self.sender.stop()
        with contextlib.suppress(*UNAVAILABLE):
            async with asyncio.timeout(LEAVE_S_MAX):
                await self._heartbeat.leave()

    async def deliver(self) -> int:
        """Serve waiting lines from the shelves; how many orders moved."""
        moved = await background.deliver_waiting(self._pool, self._memory, self._turns)
        return self._told(moved)

    async def end_waiting(self) -> int:
        """Cancel what is out of time; how many orders ended."""
        return self._told(await expire.end_waiting(self._pool, self._memory))

    async def announce_expired(self) -> int:
        """Announce orders whose confirmation window has passed."""
        return await expire.announce_expired(self._pool, self._window)

    async def remove_expired(self) -> int:
        """Remove orders that expired a month ago."""
        return await expire.remove_expired(self._pool)

    async def remove_events(self) -> int:
        """Remove events that were kept for their time."""
        return await events.remove_old(self._pool)

    async def forget_answers(self) -> int:
        """Forget answers that were kept for repeated requests, after 30 days."""
        return await idempotency.sweep(self._pool)

    async def forget_windows(self) -> int:
        """Forget the counts of keys that have not been used for some minutes."""
        return await rate_store.sweep(self._pool)

    async def forget_uploads(self) -> int:
        """Throw away uploaded files after a quarter of an hour."""
        return await uploads.sweep(self._pool)

    async def announce_low(self) -> int:
        """Announce balances that fell below what their owners chose."""
        return await low_balance.announce(self._pool)

    async def announce_stock(self) -> int:
        """Announce products that came into stock or went out of it, in the next slice of the catalogue."""
        done = await stock.announce(self._pool, self._stock_after)
        self._stock_after = done.after
        return done.announced

    async def seal_trail(self) -> int:
        """Seal what has been added to the audit trail; it goes on at once only where a block was full."""
        sealed = await self._sealing.round()
        return sealed if sealed >= BLOCK_ROWS_MAX else 0

    async def answer_rollcall(self) -> int:
        """Say that this worker is there."""
        return await self._heartbeat.answer()

    async def refresh_rates(self) -> int:
        """Take new exchange rates from their address when they are due."""
        return 0 if self._fx_url is None else await fx_feed.refresh(self._pool, self._fx_url)

    async def fan_out(self) -> int:
        """Make deliveries of new events."""
        done = await fanout.fan_out(self._pool)
        if done and self.sender is not None:
            self.sender.wake()
        return done

    async def sweep_deliveries(self) -> int:
        """Remove deliveries after 30 days."""
        return await history.sweep(self._pool)

    async def put_out_mail(self) -> int:
        """Hand mail to its server, or put it into its folder."""
        return await outbox.put_out(self._pool, self._outbox)

    async def answer_resets(self) -> int:
        """Mail links to those who have forgotten their passwords."""
        return await letters.answer_resets(self._pool, self._public_url)

    async def sweep_people(self) -> int:
        """Remove what is over: tallies of failed sign-ins, links, challenges of passkeys, old mail."""
        sweeps = (throttle.sweep, links.sweep, passkeys.sweep, outbox.sweep)
        return sum([await sweep(self._pool) for sweep in sweeps])

    def _told(self, orders: list[Order]) -> int:
        for order in orders:
            # Confirm and Resolve wait for the last line: one that is delivered on the way must not end their wait.
            if order.status is not Status.PENDING:
                self._wake(order.id)
        return len(orders)

    async def _every(self, pause_s: float, name: str, work: Callable[[], Awaitable[int]]) -> None:
        while True:
            try:
                done = await work()
            except Exception as error:  # noqa: BLE001 - The work goes on when the database is back.
                logger.warning("worker_failed", work=name, error=repr(error))
                done = 0
            # A round that found work looks again at once: there may be more.
            await asyncio.sleep(pause_s if done == 0 else 0)


async def run(settings: Settings, database_url: str) -> None:
    """Work until cancelled."""
    pool = await open_pool(database_url, size_max=settings.pool_size, look_ups=True)
    try:
        async with pool.acquire() as conn:
            # It buys codes and seals them, so it needs the key like the API does.
            key_ring = await open_key_ring(conn, settings)
        worker = Worker(pool, key_ring.sealer, settings, ids=key_ring.identifiers())
        key_ring.start(pool)
        worker.start()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        finally:
            await worker.stop()
            await key_ring.stop()
    finally:
        await pool.close()
