"""The worker: a table of rounds (`ROUNDS`, below), safe in any number of processes at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import structlog

from voucherd import traces
from voucherd.backups import nightly
from voucherd.catalogue import fx_feed
from voucherd.connections import Limits
from voucherd.db import Pool, close, open_pool
from voucherd.events import feed
from voucherd.heartbeat import Heartbeat
from voucherd.idempotency import store as idempotency
from voucherd.ids import Identifiers
from voucherd.limits import rate_store, throttle
from voucherd.mail import outbox
from voucherd.mail.outbox import Outbox
from voucherd.mail.smtp import server_of
from voucherd.orders import background, sweeps
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules.states import Status
from voucherd.people import letters, links, passkeys, policy
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.reports import daily
from voucherd.request_log import store as request_store
from voucherd.sandbox import deeds as sandbox
from voucherd.settings import Settings
from voucherd.setup.running import RunningSettings
from voucherd.storefront import stock
from voucherd.trail.chain import BLOCK_ROWS_MAX, TrailSealing
from voucherd.trail.heads import HeadPublisher
from voucherd.vault import uploads
from voucherd.vault.key_ring import open_key_ring
from voucherd.vault.seal import Sealer
from voucherd.wallet import low_balance
from voucherd.webhooks import fanout, history, messages
from voucherd.webhooks.sender import Sender

logger = structlog.get_logger(__name__)


class Round(NamedTuple):
    """One kind of background work: after a round that found work the next starts at once."""

    name: str
    every_s: float
    concerns: str
    """For whom or for what the round works."""
    work: Callable[[Worker], Awaitable[int]]
    """One round; how much was done."""
    when: Callable[[Worker], bool] = lambda _: True
    """Whether this worker does it at all."""


class RoundStanding:
    """How one round does in this process: plain numbers, for health and metrics."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._well_at = time.monotonic()
        self.rounds = 0
        self.failures = 0
        self.seconds = 0.0

    def ended(self, began: float, *, well: bool) -> None:
        """A round is over."""
        now = time.monotonic()
        self.seconds += now - began
        if well:
            self.rounds += 1
            self._well_at = now
        else:
            self.failures += 1

    def lag_s(self) -> float:
        """How much longer ago than planned it was last done well; one that hangs grows later and later."""
        return max(0.0, time.monotonic() - self._well_at - self._every_s)


class Worker:
    """Runs the rounds of the table, each in a task of its own."""

    def __init__(
        self,
        pool: Pool,
        sealer: Sealer,
        settings: Settings,
        wake: Callable[[int], None] = lambda _: None,
        ids: Identifiers | None = None,
    ) -> None:
        self.pool = pool
        self.url = settings.public_url
        self._choose(settings)
        self.stock = stock.Announcer(pool)
        self.sender = None
        if ids is not None:
            self.sender = Sender(pool, sealer, partial(messages.message, ids), settings.webhook_networks)
        self._caches = OrderCaches.empty(settings)
        self.dispatcher = Dispatcher(pool, sealer, self._caches, self._wake_calls)
        self.backups = nightly.NightlyBackups(pool, settings)
        self._sealing = TrailSealing(pool, sealer.trail_key)
        self._heads = HeadPublisher(pool, settings.data)
        self._turns: background.Turns = {}
        self._wake = wake
        self._tasks: list[asyncio.Task[None]] = []
        self.rounds: dict[str, RoundStanding] = {}

    def _choose(self, settings: Settings) -> None:
        self.fx_url = settings.fx_url
        self.window = timedelta(seconds=settings.confirmation_window_s)
        server = None if settings.smtp_url is None else server_of(settings.smtp_url)
        self.outbox = Outbox(settings.mail_folder, settings.sender, server, settings.public_url)

    def use(self, settings: Settings) -> None:
        """Work by these settings from now on."""
        self._choose(settings)
        self._caches.use(settings)

    def start(self) -> None:
        """Begin to work in the background."""
        chosen = [round_ for round_ in ROUNDS if round_.when(self)]
        self.rounds |= {round_.name: RoundStanding(round_.every_s) for round_ in chosen}
        self._tasks = [asyncio.create_task(self._repeat(round_), name=round_.name) for round_ in chosen]
        if self.sender is not None:
            self.sender.start()

    async def stop(self) -> None:
        """End the background work; a transaction in flight is undone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.dispatcher.stop()
        if self.sender is not None:
            await self.sender.stop()

    async def run_once(self, name: str) -> int:
        """One round of this name, now; how much was done."""
        (chosen,) = [round_ for round_ in ROUNDS if round_.name == name]
        return await chosen.work(self)

    async def deliver(self) -> int:
        """Serve waiting lines from the shelves; how many orders moved."""
        return self._wake_calls(await background.deliver_waiting(self.pool, self._caches, self._turns))

    async def end_waiting(self) -> int:
        """Cancel lines that are out of time; how many orders ended."""
        return self._wake_calls(await sweeps.end_waiting(self.pool, self._caches))

    async def announce_expired(self) -> int:
        """Announce orders whose window is over, those that a test clock shortened among them."""
        told = await sweeps.announce_expired(self.pool, self.window)
        return told + await sandbox.announce_expired(self.pool, self.window)

    async def seal_trail(self) -> int:
        """Seal new rows of the audit trail; it goes on at once only where a block was full."""
        sealed = await self._sealing.round()
        if sealed:
            await self._heads.publish()
        return sealed if sealed >= BLOCK_ROWS_MAX else 0

    async def fan_out(self) -> int:
        """Make deliveries of new events, and wake the sender."""
        done = await fanout.fan_out(self.pool)
        if done and self.sender is not None:
            self.sender.wake()
        return done

    async def refresh_rates(self) -> int:
        """Take new exchange rates from their address when they are due."""
        return 0 if self.fx_url is None else await fx_feed.refresh(self.pool, self.fx_url)

    def _wake_calls(self, orders: list[Order]) -> int:
        """Wake the calls that wait for an order that has ended; how many orders moved."""
        for order in orders:
            # Confirm and Resolve wait for the last line: one that is delivered on the way must not end their wait.
            if order.status is not Status.PENDING:
                self._wake(order.id)
        return len(orders)

    async def _repeat(self, round_: Round) -> None:
        standing = self.rounds[round_.name]
        while True:
            began = time.monotonic()
            try:
                done = await round_.work(self)
            except Exception as error:  # noqa: BLE001 - The work goes on when the database is back.
                logger.warning("worker_failed", work=round_.name, error=repr(error))
                done = 0
                standing.ended(began, well=False)
            else:
                standing.ended(began, well=True)
            await asyncio.sleep(round_.every_s if done == 0 else 0)


def _tells(worker: Worker) -> bool:
    """Without identifiers nothing can be told to clients, so nothing is sent to them."""
    return worker.sender is not None


ROUNDS: Final = (
    Round("deliver", 0.1, "orders that wait for stock", lambda w: w.deliver()),
    Round("dispatch", 0.1, "lines to buy at suppliers", lambda w: w.dispatcher.dispatch()),
    Round("follow_up", 0.1, "purchases without an outcome", lambda w: w.dispatcher.follow_up()),
    Round("refresh_quotes", 1.0, "suppliers' prices", lambda w: w.dispatcher.refresh_quotes()),
    Round("end_waiting", 0.5, "orders out of time", lambda w: w.end_waiting()),
    Round("announce_expired", 5.0, "orders that expired", lambda w: w.announce_expired()),
    Round(
        "remove_expired", 600.0, "orders never confirmed", lambda w: sweeps.remove_expired(w.pool, w.window)
    ),
    Round("remove_events", 600.0, "events older than 90 days", lambda w: feed.remove_old(w.pool)),
    Round("remove_answers", 60.0, "answers stored for retries", lambda w: idempotency.sweep(w.pool)),
    Round("remove_rate_windows", 60.0, "rate limits of idle keys", lambda w: rate_store.sweep(w.pool)),
    Round("remove_requests", 60.0, "calls in the request log", lambda w: request_store.sweep(w.pool)),
    Round("remove_uploads", 60.0, "uploaded files", lambda w: uploads.sweep(w.pool)),
    Round("announce_low", 1.0, "balances below their alert", lambda w: low_balance.announce(w.pool)),
    Round("announce_stock", 1.0, "products in or out of stock", lambda w: w.stock.round()),
    Round("add_up_sales", 1.0, "what was sold on each day", lambda w: daily.add_up(w.pool)),
    Round("seal_trail", 1.0, "the audit trail", lambda w: w.seal_trail()),
    Round(
        "back_up",
        nightly.LOOK_EVERY_S,
        "backups of the embedded database",
        lambda w: w.backups.round(),
        lambda w: w.backups.wanted,
    ),
    Round("fan_out", 0.1, "webhooks of new events", lambda w: w.fan_out(), _tells),
    Round("remove_deliveries", 60.0, "webhooks sent long ago", lambda w: history.sweep(w.pool), _tells),
    Round(
        "send_mail", 5.0, "mail to people", lambda w: outbox.put_out(w.pool, w.outbox, links.renew), _tells
    ),
    Round(
        "answer_resets", 5.0, "forgotten passwords", lambda w: letters.answer_resets(w.pool, w.url), _tells
    ),
    Round("change_rules", 5.0, "looser rules whose day is over", lambda w: policy.put_in_force(w.pool)),
    Round("remove_tallies", 60.0, "failed sign-ins", lambda w: throttle.sweep(w.pool), _tells),
    Round("remove_links", 60.0, "mailed links", lambda w: links.sweep(w.pool), _tells),
    Round("remove_challenges", 60.0, "passkeys' challenges", lambda w: passkeys.sweep(w.pool), _tells),
    Round("remove_mail", 60.0, "mail sent long ago", lambda w: outbox.sweep(w.pool), _tells),
    Round("refresh_rates", 60.0, "exchange rates", lambda w: w.refresh_rates()),
)
"""Everything that happens without a request, and how often it is looked for."""


Beside: TypeAlias = Callable[[Worker, Settings], AbstractAsyncContextManager[None]]
"""What runs beside a worker."""


async def run(settings: Settings, database_url: str, beside: Beside | None = None) -> None:
    """Work until cancelled."""
    traces.start(settings.traces_url)
    limits = Limits.of_service(settings.transaction_s_max)
    pool = await open_pool(database_url, size_max=settings.pool_size, look_ups=True, limits=limits)
    try:
        async with pool.acquire() as conn:
            # It buys codes and seals them, so it needs the key like the API does.
            key_ring = await open_key_ring(conn, settings)
        running = RunningSettings(pool, settings)
        await running.refresh()
        worker = Worker(pool, key_ring.sealer, running.now, ids=key_ring.identifiers())
        running.tell(worker.use)
        heartbeat = Heartbeat(pool, works=True)
        await heartbeat.start(running.refresh)
        key_ring.start(pool)
        worker.start()
        try:
            async with contextlib.nullcontext() if beside is None else beside(worker, settings):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
        finally:
            await worker.stop()
            await heartbeat.stop()
            await key_ring.stop()
    finally:
        await close(pool)
        if settings.traces_url is not None:
            await asyncio.to_thread(traces.stop)
