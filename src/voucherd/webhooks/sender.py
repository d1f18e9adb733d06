"""The sender: takes endpoints in turns, sends their deliveries, and writes the outcomes down.

Quick endpoints and slow ones have places, connections and look-ups of their own, so a receiver that hangs, or a
hundred of them, delays others like it and nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import asyncpg
import structlog

from voucherd import clock
from voucherd.batcher import Batcher
from voucherd.db import UNAVAILABLE, Pool
from voucherd.events import feed
from voucherd.events.feed import Event
from voucherd.vault.seal import Sealer
from voucherd.webhooks import claims, signing
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.claims import Delivery, DeliveryClaim, SendReport, Sent
from voucherd.webhooks.messages import Addressee, Message
from voucherd.webhooks.post import Post, PostOutcome
from voucherd.webhooks.targets import BadTarget, WebhookTarget, read_target

POLL_S: Final = 0.1
RENEW_S: Final = 3.0
STOP_S_MAX: Final = 5.0
QUICK_MAX: Final = 64
"""Endpoints that are sent to at once by this process; the slow ones have places of their own."""
SLOW_MAX: Final = 64
CONCURRENCY: Final = 8
"""Deliveries to one endpoint at once, while none fails."""
TURN_S_MAX: Final = 4.0
"""How long one turn of an endpoint begins new deliveries."""
RECORD_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""How long to wait before outcomes are written down once more, if the database is away or broke a deadlock."""
TARGETS_KEPT: Final = 4_096

logger = structlog.get_logger(__name__)


class EndpointLane:
    """Places for endpoints of one kind."""

    def __init__(self, post: Post, places: int, *, slow: bool) -> None:
        self.post = post
        self.places = places
        self.slow = slow
        self.held: dict[int, DeliveryClaim] = {}

    @property
    def free(self) -> int:
        """How many more endpoints can be taken."""
        return self.places - len(self.held)


class Sender:
    """Sends in the background until it is stopped. Any number may run, on any machines."""

    def __init__(
        self,
        pool: Pool,
        sealer: Sealer,
        write: Callable[[Event, Addressee], Message],
        own: Sequence[Network] = (),
        make_post: Callable[[Sequence[Network]], Post] = Post,
    ) -> None:
        self._pool = pool
        self._sealer = sealer
        self._write = write
        self._target: Callable[[str], WebhookTarget] = lru_cache(TARGETS_KEPT)(
            lambda url: read_target(url, own)
        )
        self.lanes = (
            EndpointLane(make_post(own), QUICK_MAX, slow=False),
            EndpointLane(make_post(own), SLOW_MAX, slow=True),
        )
        self._wake = asyncio.Event()
        self._turns: set[asyncio.Task[None]] = set()
        # An attempt that is written down twice only counts as two, so any failure may be tried again.
        self._records: Batcher[SendReport, None] = Batcher(
            self._record, waiting_max=QUICK_MAX + SLOW_MAX, in_flight_max=1, stores=False
        )
        self._loops: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        """Begin to send."""
        self._loops = [asyncio.create_task(self._send()), asyncio.create_task(self._renew())]

    def wake(self) -> None:
        """Look for something due now."""
        self._wake.set()

    async def stop(self) -> None:
        """Begin nothing more; give calls under way a moment. The next sender sends the rest again."""
        self._stopping = True
        for loop in self._loops:
            loop.cancel()
        if self._turns:
            await asyncio.wait(self._turns, timeout=STOP_S_MAX)
        for turn in self._turns:
            turn.cancel()
        await asyncio.gather(*self._loops, *self._turns, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S_MAX):
                await self._records.drain()
        for lane in self.lanes:
            await lane.post.close()

    async def settled(self) -> None:
        """Wait until nothing is under way: for tests."""
        while any(lane.held for lane in self.lanes):
            await asyncio.gather(*self._turns)
            await self._records.drain()
            await asyncio.sleep(0)  # For those who hear of it.

    # ── rounds ────────────────────────────────────────────────────────────────────────────────────────

    async def _send(self) -> None:
        while not self._stopping:
            self._wake.clear()
            begun = 0
            try:
                begun = await self.round()
            except Exception as error:  # noqa: BLE001 - The work goes on when the database is back.
                logger.warning("webhooks_failed", error=repr(error))
            if not begun:
                # Not wait_for: where it ends in the moment of a cancellation, Python 3.11 forgets the cancellation.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._wake.wait()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            held = [claim for lane in self.lanes for claim in lane.held.values()]
            if held:
                try:
                    await claims.renew(self._pool, held)
                except Exception as error:  # noqa: BLE001 - Then others send it once more.
                    logger.warning("webhook_leases_not_renewed", error=repr(error))

    async def round(self) -> int:
        """Take endpoints as far as there are places, and begin to send; how many were taken."""
        begun = 0
        for lane in self.lanes:
            if lane.free <= 0 or self._stopping:
                continue
            taken = await claims.claim(self._pool, self._sealer, slow=lane.slow, endpoints_max=lane.free)
            events: dict[int, Event] = {}
            numbers = {delivery.event_id for claim in taken for delivery in claim.deliveries}
            if numbers:
                async with self._pool.acquire() as conn:
                    events = await feed.these(conn, numbers)
            for claim in taken:
                lane.held[claim.webhook_id] = claim
                self._begin(self._turn(lane, claim, events))
            begun += len(taken)
        return begun

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)

    # ── one endpoint ──────────────────────────────────────────────────────────────────────────────────

    async def _turn(self, lane: EndpointLane, claim: DeliveryClaim, events: dict[int, Event]) -> None:
        """Send the deliveries that are due at one endpoint, a few at a time, until one fails or the turn is over."""
        report = SendReport(claim, [])
        queue = iter(claim.deliveries)
        ends_at = time.monotonic() + TURN_S_MAX

        async def work_off(queue: Iterator[Delivery]) -> None:
            for delivery in queue:
                sent = await self._attempt(lane, claim, delivery, events.get(delivery.event_id))
                report.sent.append(sent)
                failed = claim.url is not None and not sent.outcome.delivered
                if failed or self._stopping or time.monotonic() > ends_at:
                    # The rest is due as before, and comes in another turn.
                    for _ in queue:
                        pass

        try:
            count = 1 if claim.failures else CONCURRENCY
            await asyncio.gather(*[work_off(queue) for _ in range(min(count, len(claim.deliveries)))])
        finally:
            recorded = self._records.submit(claim.webhook_id, report)
            recorded.add_done_callback(lambda recorded: self._let_go(lane, report, recorded))

    async def _attempt(
        self, lane: EndpointLane, claim: DeliveryClaim, delivery: Delivery, event: Event | None
    ) -> Sent:
        url = delivery.url or claim.url or ""
        sent_at = clock.now()
        try:
            outcome = await self._post(lane, claim, url, event, int(sent_at.timestamp()))
        except BadTarget as rule:
            outcome = PostOutcome(0, error=f"refused: the address {rule}")
        return Sent(delivery, url, sent_at, outcome)

    async def _post(
        self, lane: EndpointLane, claim: DeliveryClaim, url: str, event: Event | None, now_s: int
    ) -> PostOutcome:
        if event is None:
            return PostOutcome(0, error="the event is no longer kept")
        if claim.keys is None:
            return PostOutcome(0, error="the secret of the endpoint can't be opened")
        target = self._target(url)
        message = self._write(event, claim)
        signature = signing.sign(claim.keys.secrets, message.id, now_s, message.body)
        headers = [
            (b"webhook-id", message.id.encode()),
            (b"webhook-timestamp", b"%d" % now_s),
            (b"webhook-signature", signature.encode()),
            *claim.keys.headers,
        ]
        return await lane.post.send(target, headers, message.body)

    async def _record(self, reports: Sequence[SendReport]) -> list[None]:
        for pause_s in RECORD_PAUSES_S:
            try:
                await claims.record(self._pool, reports)
            except (*UNAVAILABLE, asyncpg.TransactionRollbackError) as error:
                logger.warning("webhooks_not_recorded", error=repr(error))
                await asyncio.sleep(pause_s)
            else:
                return [None] * len(reports)
        raise TimeoutError

    def _let_go(self, lane: EndpointLane, report: SendReport, recorded: asyncio.Future[None]) -> None:
        """The endpoint may be taken again. An outcome that is lost means another try: at least once."""
        lane.held.pop(report.claim.webhook_id, None)
        if not recorded.cancelled() and (error := recorded.exception()) is not None:
            logger.error("webhooks_sent_unrecorded", endpoint=report.claim.webhook_id, error=repr(error))
        self._wake.set()
