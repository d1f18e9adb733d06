"""Heartbeats: each worker says every few seconds that it is at work, for the operator to see."""

from __future__ import annotations

import os
import socket
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

from msgspec import Struct

from voucherd.db import Connection, Pool

EVERY_S: Final = 10.0
PRESENT_S: Final = 45.0
"""A worker that has said nothing for longer is away."""
KEPT_S: Final = 86_400
SHOWN_MAX: Final = 100


class SeenWorker(Struct, frozen=True):
    """A worker that was seen within the last day."""

    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    present: bool


class Heartbeat:
    """One worker's row."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._id: UUID = uuid4()
        self._host = socket.gethostname()[:200] or "unknown"

    async def beat(self) -> int:
        """Say that this worker is there, and forget those that have long been away."""
        await self._pool.execute(
            """
            WITH gone AS (DELETE FROM worker_seen WHERE seen_at < now() - make_interval(secs => $4) AND id <> $1)
            INSERT INTO worker_seen (id, host, pid) VALUES ($1, $2, $3)
            ON CONFLICT (id) DO UPDATE SET seen_at = now()
            """,
            self._id,
            self._host,
            os.getpid(),
            KEPT_S,
        )
        return 0

    async def leave(self) -> None:
        """Say that this worker ends."""
        await self._pool.execute("DELETE FROM worker_seen WHERE id = $1", self._id)


async def seen(conn: Connection) -> list[SeenWorker]:
    """The workers of the last day, those that are there first."""
    rows = await conn.fetch(
        """
        SELECT host, pid, started_at, seen_at, seen_at > now() - make_interval(secs => $1) AS present
        FROM worker_seen ORDER BY seen_at DESC LIMIT $2
        """,
        PRESENT_S,
        SHOWN_MAX,
    )
    return [SeenWorker(*row) for row in rows]
