"""The watch: calls that wait for a pending order park here, without a database connection.

An order that ends in this process wakes its calls directly; one that ends elsewhere is seen by a poll of the orders
that are waited for. There is no NOTIFY in a money transaction: it would cost every sale to help a few.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Final

import structlog

from voucherd.db import Pool
from voucherd.orders.rules.states import Status

POLL_S: Final = 0.1
ANSWER_S_MAX: Final = 2.0
"""How long a poll may take; past it the next one is tried."""
_ANY_VERSION: Final = 2**31 - 1
"""What waits for the end alone is told of no version."""

logger = structlog.get_logger(__name__)


class Watch:
    """Waits for orders to stop being pending, or to move at all."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        # By order: who waits, and the version that is known already.
        self._parked: dict[int, dict[asyncio.Future[None], int]] = {}
        self._poller: asyncio.Task[None] | None = None
        self.letting_go = False
        """The process is about to stop: who follows an order goes elsewhere."""

    @property
    def parked(self) -> int:
        """How many calls wait."""
        return sum(map(len, self._parked.values()))

    async def until_done(self, order_id: int, timeout_s: float) -> bool:
        """True once the order is no longer pending, False when the time is up first."""
        return await self.until_moved(order_id, _ANY_VERSION, timeout_s)

    async def until_moved(self, order_id: int, version: int, timeout_s: float) -> bool:
        """True once the order is past this version or no longer pending, False when the time is up first."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.setdefault(order_id, {})[future] = version
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll(), context=Context())
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            return False
        else:
            return True
        finally:
            futures = self._parked.get(order_id)
            if futures is not None:
                futures.pop(future, None)
                if not futures:
                    del self._parked[order_id]

    def wake(self, order_id: int, version: int | None = None) -> None:
        """Tell who waits for this order to look again: all of them, or those only who don't know the version yet."""
        for future, known in self._parked.get(order_id, {}).items():
            if not future.done() and (version is None or version > known):
                future.set_result(None)

    def let_go(self) -> None:
        """Tell everyone to look again, whatever they wait for: the process is about to stop."""
        self.letting_go = True
        for order_id in list(self._parked):
            self.wake(order_id)

    async def _poll(self) -> None:
        while self._parked:
            await asyncio.sleep(POLL_S)
            try:
                rows = await self._pool.fetch(
                    """
                    SELECT o.id, o.status, o.version
                    FROM unnest($1::bigint[], $2::int[]) AS w (id, version) JOIN orders o ON o.id = w.id
                    WHERE o.status <> $3 OR o.version > w.version
                    """,
                    list(self._parked),
                    [min(waiting.values()) for waiting in self._parked.values()],
                    int(Status.PENDING),
                    timeout=ANSWER_S_MAX,
                )
            except Exception as error:  # noqa: BLE001 - A database that is away must not end the watch.
                logger.warning("watch_poll_failed", error=str(error))
                continue
            for row in rows:
                self.wake(row["id"], row["version"] if row["status"] == Status.PENDING else None)

    async def stop(self) -> None:
        """End the poll; calls that still wait run into their own time limits."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
