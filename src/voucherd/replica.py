"""Reads that decide nothing: from a standby where one is given and keeps up, else from the primary (OP-131)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import asyncpg
import structlog

from voucherd.db import UNAVAILABLE, Connection, Pool

LOOK_EVERY_S: Final = 1.0
"""Pause between two looks how far the standby has come."""
LOOK_S_MAX: Final = 1.0
AWAY_S: Final = 5.0
"""A standby that failed or lags is left alone for so long."""
READ_S_MAX: Final = 5.0
"""For one read there, before the primary is asked instead."""

T = TypeVar("T")

logger = structlog.get_logger(__name__)

# Every process writes its heartbeat each second, so the last transaction of a standby that keeps up is a moment old.
_LAG: Final = (
    "SELECT pg_is_in_recovery(),"
    " coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8, 'infinity')"
)


class Behind(Exception):
    """The standby has not come as far as this read needs; others it may well serve."""


class Lagging(Exception):
    """The standby is further behind than anybody should see."""


class ReadPool:
    """Connections for lists, statements and reports."""

    def __init__(self, primary: Pool, replica: Pool | None = None, lag_s_max: float = 5.0) -> None:
        self._primary = primary
        self._replica = replica
        self._lag_s_max = lag_s_max
        self._looked_at = self._away_until = float("-inf")
        self.reads = {"primary": 0, "replica": 0}
        """How many reads each has answered."""

    async def read(self, work: Callable[[Connection], Awaitable[T]], *, s_max: float = READ_S_MAX) -> T:
        """What the work reads. It must change nothing: where the standby fails it, the primary does it again."""
        if self._replica is not None and time.monotonic() >= self._away_until:
            try:
                return await self._from_replica(self._replica, work, s_max)
            except Behind:
                pass
            except (
                Lagging,
                asyncpg.SerializationError,
                asyncpg.DeadlockDetectedError,
                *UNAVAILABLE,
            ) as error:
                # A standby ends reads that hold up its replay, and says so as a failed serialization.
                self._away_until = time.monotonic() + AWAY_S
                logger.warning(
                    "replica_left_alone", error=f"{type(error).__name__} {error}"[:300], seconds=AWAY_S
                )
        async with self._primary.acquire() as conn:
            found = await work(conn)
        self.reads["primary"] += 1
        return found

    async def _from_replica(
        self, replica: Pool, work: Callable[[Connection], Awaitable[T]], s_max: float
    ) -> T:
        async with asyncio.timeout(LOOK_S_MAX) as limit:
            async with replica.acquire() as conn:
                if time.monotonic() - self._looked_at >= LOOK_EVERY_S:
                    await self._look(conn)
                limit.reschedule(asyncio.get_running_loop().time() + s_max)
                found = await work(conn)
        self.reads["replica"] += 1
        return found

    async def _look(self, conn: Connection) -> None:
        """Refuse a standby that lags; one that was promoted is a primary, and has everything."""
        row = await conn.fetchrow(_LAG)
        assert row is not None
        standby, lag_s = row
        if standby and lag_s > self._lag_s_max:
            raise Lagging(f"{lag_s:.1f} seconds")
        self._looked_at = time.monotonic()
