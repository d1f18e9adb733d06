"""The watch: calls that wait for a pending order park here, without a database connection.

An order that ends in this process wakes its calls directly; one that ends elsewhere is seen by a poll of the orders
that are waited for. There is no NOTIFY in a money transaction: it would cost every sale to help a few.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from voucherd.db import Pool
from voucherd.orders.states import Status

POLL_S: Final = 0.1
logger = structlog.get_logger(__name__)


class Watch:
    """Waits for orders to stop being pending."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._parked: dict[int, set[asyncio.Future[None]]] = {}
        self._poller: asyncio.Task[None] | None = None

    @property
    def parked(self) -> int:
        """How many calls wait."""
        return sum(map(len, self._parked.values()))

    async def until_done(self, order_id: int, timeout_s: float) -> bool:
        """True once the order is no longer pending, False when the time is up first."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked.setdefault(order_id, set()).add(future)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll())
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            return False
        else:
            return True
        finally:
            futures = self._parked.get(order_id)
            if futures is not None:
                futures.discard(future)
                if not futures:
                    del self._parked[order_id]

    def wake(self, order_id: int) -> None:
        """Tell everyone who waits for this order to look again."""
        for future in self._parked.get(order_id, ()):
            if not future.done():
                future.set_result(None)

    def let_go(self) -> None:
        """Tell everyone to look again, whatever they wait for: the process is about to stop."""
        for order_id in list(self._parked):
            self.wake(order_id)

    async def _poll(self) -> None:
        while self._parked:
            await asyncio.sleep(POLL_S)
            try:
                rows = await self._pool.fetch(
                    "SELECT id FROM orders WHERE id = ANY($1::bigint[]) AND status <> $2",
                    list(self._parked),
                    int(Status.PENDING),
                )
            except Exception as error:  # noqa: BLE001 - A database that is away must not end the watch.
                logger.warning("watch_poll_failed", error=str(error))
                continue
            for row in rows:
                self.wake(row["id"])

    async def stop(self) -> None:
        """End the poll; calls that still wait run into their own time limits."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
