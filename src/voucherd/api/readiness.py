"""Readiness: whether a sale could be stored now, tried out on the database once a second at most."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

from voucherd import migrate
from voucherd.db import Connection, Pool

ANSWER_S_MAX: Final = 1.5
"""A database that takes longer hangs; the answer is there within two seconds."""
KEPT_S: Final = 1.0

# The UPDATE is refused where nothing may be written: on a standby, or where transactions are read-only by default. It
# looks at no row. The message makes the COMMIT wait for the disk, and for a synchronous standby, as a sale's does, and
# leaves nothing to vacuum. The count does not fit into so little memory: it needs a few pages of a file, which a full
# disk has no room for. All of it is one transaction: that is how the server takes statements that come together.
_WRITE: Final = """
    SET LOCAL work_mem = '64kB';
    UPDATE access_epoch SET epoch = epoch WHERE false;
    SELECT pg_logical_emit_message(true, 'voucherd', 'ready');
    SELECT count(*) FROM generate_series(1, 5000)
"""


class Readiness:
    """What keeps this process from selling."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asked_at = 0.0
        self._look: asyncio.Task[str] | None = None
        self._known_later: frozenset[int] | None = None

    async def missing(self) -> str:
        """What is missing, in a few words; nothing if all is well."""
        now = monotonic()
        if self._look is None or (self._look.done() and now - self._asked_at >= KEPT_S):
            self._asked_at = now
            self._look = asyncio.get_running_loop().create_task(self._missing())
        # Whoever asks at the same time gets the same answer, and nobody takes it from the others by leaving.
        return await asyncio.shield(self._look)

    async def _missing(self) -> str:
        try:
            async with asyncio.timeout(ANSWER_S_MAX), self._pool.acquire() as conn:
                await conn.execute(_WRITE)
                return await self._schema(conn)
        except Exception as error:  # noqa: BLE001 - Whatever is wrong, the answer is "not ready".
            return f"database: {type(error).__name__}"

    async def _schema(self, conn: Connection) -> str:
        """What is wrong with the schema; who sells already goes on when it was migrated for a successor."""
        waiting = await migrate.pending(conn)
        if waiting:
            return f"migrations: {len(waiting)} to run"
        newest = max(migration.version for migration in migrate.migrations())
        rows = await conn.fetch("SELECT version FROM schema_migration WHERE version > $1", newest)
        later = frozenset(row["version"] for row in rows)
        if self._known_later is None:
            self._known_later = later
        # A migration only adds to what the program before knows, but nobody starts the program before afterwards.
        return "migrations: the database is newer than this program" if self._known_later & later else ""
