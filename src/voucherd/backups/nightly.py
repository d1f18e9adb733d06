"""The nightly backup of the embedded database: when it is due, by one process at a time, and how many are kept."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from voucherd import backups, clock
from voucherd.actors import SYSTEM, Actor
from voucherd.backups import Backup, base_backups
from voucherd.backups.base_backups import Kept
from voucherd.db import Connection, Pool, transaction
from voucherd.embedded import EmbeddedPostgres
from voucherd.settings import Settings

LOCK: Final = ".lock"
FIRST_AFTER_S: Final = 300.0
"""A database without any backup gets its first one when the worker has run for so long."""
LOOK_EVERY_S: Final = 60.0

logger = structlog.get_logger(__name__)


def due(found: list[Kept], hour: int, now: datetime) -> bool:
    """Whether the hour has struck since the last backup; there must be one."""
    struck = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return found[-1].at < (struck if struck <= now else struck - timedelta(days=1))


class NightlyBackups:
    """Looks now and then whether a backup is due, takes it, and removes old ones."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings
        self._first_at = time.monotonic() + FIRST_AFTER_S

    @property
    def wanted(self) -> bool:
        """Whether there is anything to back up: a server of your own has its own tools."""
        return self._settings.database_url is None and self._settings.backup_keep > 0

    async def round(self) -> int:
        """Take a backup if one is due and nobody else is at it; how many were taken."""
        async with self._pool.acquire() as conn:
            if await archive_stuck(conn):
                # The server keeps what it can't archive, until its disk is full.
                logger.error("archive_stuck", folder=str(self._settings.backup_folder))
        if not self._due():
            return 0
        with alone(self._settings.backup_folder) as mine:
            # Another process may have taken it a moment ago.
            if mine and self._due():
                taken, about = await take(self._pool, SYSTEM, self._settings)
                logger.info("backup_taken", path=str(taken.path), bytes=about.bytes, seconds=about.seconds)
        # Never again at once, whatever became of it.
        return 0

    def _due(self) -> bool:
        found = base_backups.kept(self._settings.backup_folder)
        if not found:
            return time.monotonic() >= self._first_at
        return due(found, self._settings.backup_hour, clock.now())


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """Whether this is the only process that takes a backup into the folder; the kernel forgets one that was killed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


async def take(pool: Pool, actor: Actor, settings: Settings) -> tuple[Kept, Backup]:
    """Take a backup into the folder now, write it down, and remove those that are too many."""
    url = EmbeddedPostgres(settings.data).dsn
    async with pool.acquire() as conn:
        as_base = await can_copy(conn)
    taken, about = await base_backups.take(url, settings.backup_folder, as_base=as_base)
    async with transaction(pool) as tx:
        await backups.record_taken(tx, actor, taken.path, about)
    await asyncio.to_thread(base_backups.prune, settings.backup_folder, settings.backup_keep)
    return taken, about


async def archive_stuck(conn: Connection) -> bool:
    """Whether the server has failed to archive its log since it last succeeded."""
    return bool(
        await conn.fetchval(
            "SELECT last_failed_time > coalesce(last_archived_time, '-infinity') FROM pg_stat_archiver"
        )
    )


async def can_copy(conn: Connection) -> bool:
    """Whether the server has the role for base backups: one that 0.1.0 made has it not."""
    return bool(await conn.fetchval("SELECT to_regrole($1) IS NOT NULL", base_backups.ROLE))
