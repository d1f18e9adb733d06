"""Signs of life: each process says every second that it is there, so that nobody waits for one that is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import structlog
from msgspec import Struct

from voucherd.db import UNAVAILABLE, Connection, Pool

EVERY_S: Final = 1.0
GONE_S: Final = 5.0
"""Who has said nothing for longer is taken for gone: others take over its calls."""
BEAT_S_MAX: Final = 2.0
"""A sign of life that takes longer is given up, and the next one comes before anybody misses it."""
AWAY_S: Final = 45.0
"""A worker that has said nothing for longer is shown to the operator as away."""
LEAVE_S_MAX: Final = 2.0
KEPT_S: Final = 86_400
SHOWN_MAX: Final = 100

THERE: Final = (
    "EXISTS (SELECT FROM process_seen p WHERE p.id = {} AND p.seen_at > now() - make_interval(secs => {}))"
)
"""Whether a process is there, in SQL: its id, and for how many seconds it may have been silent."""

_END_SILENT: Final = r"""
    SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a JOIN pg_roles r ON r.oid = a.usesysid
    WHERE a.datname = current_database() AND a.application_name = current_setting('application_name')
      AND a.state = 'active' AND a.wait_event = 'ClientRead' AND a.backend_xid IS NOT NULL AND a.query !~* '^\s*COPY'
      AND a.state_change
          < clock_timestamp() - nullif(current_setting('idle_in_transaction_session_timeout'), '0')::interval
      AND (pg_has_role(r.oid, 'USAGE') OR (pg_has_role('pg_signal_backend', 'USAGE') AND NOT r.rolsuper))
"""
"""A statement that is used for the first time is sent in two messages. A process that freezes between them is not idle
to PostgreSQL: none of its limits ends that session, which may hold a wallet. One that reads a COPY waits for good."""

_running_here: Final[set[UUID]] = set()
"""Those that are this very process: its tests run several programs in one."""

logger = structlog.get_logger(__name__)


class SeenProcess(Struct, frozen=True):
    """A process that was seen within the last day."""

    host: str
    pid: int
    works: bool
    """Whether it does the background work."""
    started_at: datetime
    seen_at: datetime
    present: bool


class Heartbeat:
    """One process's row."""

    def __init__(self, pool: Pool, *, works: bool) -> None:
        self.id: UUID = uuid4()
        _running_here.add(self.id)
        self._pool = pool
        self._works = works
        self._host = socket.gethostname()[:200] or "unknown"
        self._place = _place()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *others: Callable[[], Awaitable[None]]) -> None:
        """Say from now on that this process is there; the others are done as often, and don't hold that up."""
        await _try(self.beat, failing=False)
        self._tasks = [asyncio.create_task(_repeat(work), name="heartbeat") for work in (self.beat, *others)]

    async def stop(self) -> None:
        """Say that this process ends: what it held is free at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(*UNAVAILABLE):
            async with asyncio.timeout(LEAVE_S_MAX):
                await self.leave()

    async def beat(self) -> None:
        """Say that this process is there, and of those that have ended here that they are not; end silent sessions."""
        neighbours = await self._pool.fetch(
            """
            WITH said AS (
                INSERT INTO process_seen (id, host, pid, place, works) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (id) DO UPDATE SET seen_at = now()
            ), forgotten AS (
                DELETE FROM process_seen WHERE seen_at < now() - make_interval(secs => $6) AND id <> $1
            )
            SELECT id, pid FROM process_seen WHERE place = $4 AND id <> $1
            """,
            self.id,
            self._host,
            os.getpid(),
            self._place,
            self._works,
            KEPT_S,
        )
        ended = [one for one, pid in neighbours if one not in _running_here and not _runs(pid)]
        if ended:
            await self._pool.execute("DELETE FROM process_seen WHERE id = ANY($1::uuid[])", ended)
            logger.warning("process_ended_without_a_word", count=len(ended))
        if freed := await self._pool.fetchval(_END_SILENT):
            logger.warning("silent_session_ended", count=freed)

    async def leave(self) -> None:
        """Take the row away."""
        _running_here.discard(self.id)
        await self._pool.execute("DELETE FROM process_seen WHERE id = $1", self.id)


async def _repeat(work: Callable[[], Awaitable[None]]) -> None:
    fine = True
    while True:
        await asyncio.sleep(EVERY_S)
        fine = await _try(work, failing=not fine)


async def _try(work: Callable[[], Awaitable[None]], *, failing: bool) -> bool:
    """Whether it went well; the first of several failures is logged."""
    try:
        async with asyncio.timeout(BEAT_S_MAX):
            await work()
    except Exception as error:  # noqa: BLE001 - It goes on when the database is back.
        if not failing:
            logger.warning("heartbeat_failed", error=repr(error))
        return False
    return True


def _place() -> str | None:
    """Where the numbers of processes mean what they mean here: a start of the machine, and a namespace on it."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        # Not Linux: its silence tells, a few seconds later.
        return None


def _runs(pid: int) -> bool:
    """Whether another process has this number. Our own number was another's before us."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def seen(conn: Connection) -> list[SeenProcess]:
    """The processes of the last day, those that were seen last first."""
    rows = await conn.fetch(
        """
        SELECT host, pid, works, started_at, seen_at, seen_at > now() - make_interval(secs => $1) AS present
        FROM (SELECT host, pid, works, started_at, seen_at FROM process_seen
              UNION ALL SELECT host, pid, true, started_at, seen_at FROM worker_seen) AS known
        WHERE seen_at > now() - make_interval(secs => $2)
        ORDER BY seen_at DESC LIMIT $3
        """,
        AWAY_S,
        KEPT_S,
        SHOWN_MAX,
    )
    return [SeenProcess(*row) for row in rows]
