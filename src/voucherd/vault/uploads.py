"""Files that people uploaded, in the table upload: sealed, tried out, taken in, and gone after a quarter of an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.vault.seal import Sealer

FILE_BYTES_MAX: Final = 32 * 1024 * 1024
KEPT: Final = timedelta(minutes=15)
"""How long a file is kept while its owner decides about the report on it."""
REMEMBERED: Final = timedelta(days=30)
SILENT_MAX: Final = timedelta(seconds=30)
"""The process that works on a file says so every second; after this silence it is taken for dead."""
SWEPT_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 200
LISTED_MAX: Final = 20


class UploadPhase(IntEnum):
    """How far a file is; the number is what the database keeps."""

    TRYING = 0
    READY = 1
    TAKING = 2
    TAKEN = 3
    REFUSED = 4


class UploadRow(Struct, frozen=True):
    """A file that was uploaded, without its content."""

    id: UUID
    user_id: int
    who: str
    kind: str
    name: str
    bytes: int
    terms: dict[str, Any]
    phase: UploadPhase
    permille: int
    report: dict[str, Any] | None
    created_at: datetime
    seen_at: datetime
    kept: bool
    """Whether the file itself is still there."""
    now: datetime

    @property
    def stopped(self) -> bool:
        """Whether it was left in the middle: the process that worked on it is gone."""
        return self.phase in (UploadPhase.TRYING, UploadPhase.TAKING) and self.now - self.seen_at > SILENT_MAX

    @property
    def running(self) -> bool:
        """Whether somebody works on it."""
        return self.phase in (UploadPhase.TRYING, UploadPhase.TAKING) and not self.stopped

    @property
    def can_be_taken(self) -> bool:
        """Whether it was tried out, and lies here still."""
        return self.kept and (
            self.phase is UploadPhase.READY or (self.phase is UploadPhase.TAKING and self.stopped)
        )


_COLUMNS: Final = """
    u.id, u.user_id, coalesce(nullif(a.name, ''), a.email), u.kind, u.name, u.bytes, u.terms::text, u.status,
    u.permille, u.report::text, u.created_at, u.seen_at,
    u.sealed IS NOT NULL AND u.created_at > now() - $1::interval, now()
"""


def _row(row: Any) -> UploadRow:
    values = list(row)
    values[6] = msgspec.json.decode(values[6])
    values[7] = UploadPhase(values[7])
    values[9] = None if values[9] is None else msgspec.json.decode(values[9])
    return UploadRow(*values)


def place_of(upload_id: UUID) -> bytes:
    """Where a file is sealed."""
    return b"upload/" + upload_id.bytes


async def keep(
    tx: Tx,
    sealer: Sealer,
    *,
    upload_id: UUID,
    user_id: int,
    kind: str,
    name: str,
    content: bytes,
    terms: Mapping[str, Any],
) -> None:
    """Keep a file, sealed, while its owner looks at the report on it."""
    # In a thread: millions of bytes take a while, and others have calls to answer.
    sealed = await asyncio.to_thread(sealer.seal_bytes, place_of(upload_id), content)
    await tx.execute(
        """INSERT INTO upload (id, user_id, kind, name, bytes, terms, sealed)
           VALUES ($1, $2, $3, $4, $5, $6::text::jsonb, $7)""",
        upload_id,
        user_id,
        kind,
        name[:NAME_CHARS_MAX] or "file",
        len(content),
        msgspec.json.encode(terms).decode(),
        sealed,
    )


async def find(conn: Connection, upload_id: UUID, kind: str) -> UploadRow | None:
    """The upload of that id."""
    row = await conn.fetchrow(
        f"SELECT {_COLUMNS} FROM upload u JOIN app_user a ON a.id = u.user_id WHERE u.id = $2 AND u.kind = $3",  # noqa: S608 - Ours.
        KEPT,
        upload_id,
        kind,
    )
    return None if row is None else _row(row)


async def newest(conn: Connection, kind: str) -> list[UploadRow]:
    """The last files that were uploaded."""
    rows = await conn.fetch(
        f"""SELECT {_COLUMNS} FROM upload u JOIN app_user a ON a.id = u.user_id WHERE u.kind = $2
            ORDER BY u.created_at DESC LIMIT $3""",  # noqa: S608 - Ours.
        KEPT,
        kind,
        LISTED_MAX,
    )
    return [_row(row) for row in rows]


async def begin_taking(tx: Tx, sealer: Sealer, upload_id: UUID) -> bytes | None:
    """Begin to take the file in, and get its content; None if somebody else does, or it is not there any more."""
    sealed = await tx.fetchval(
        """UPDATE upload SET status = 2, permille = 0, seen_at = now()
           WHERE id = $1 AND sealed IS NOT NULL AND created_at > now() - $2::interval
             AND (status = 1 OR (status = 2 AND seen_at < now() - $3::interval)) RETURNING sealed""",
        upload_id,
        KEPT,
        SILENT_MAX,
    )
    return None if sealed is None else await asyncio.to_thread(sealer.open_bytes, place_of(upload_id), sealed)


async def note_progress(conn: Pool | Connection, upload_id: UUID, permille: int) -> None:
    """Say how far it is, and that somebody is still at it."""
    await conn.execute(
        "UPDATE upload SET permille = $2, seen_at = now() WHERE id = $1 AND status IN (0, 2)",
        upload_id,
        max(0, min(permille, 1_000)),
    )


async def end(tx: Pool | Tx, upload_id: UUID, phase: UploadPhase, report: Mapping[str, Any]) -> None:
    """Say what came of it; only a file that is ready to be taken is kept."""
    await tx.execute(
        """UPDATE upload SET status = $2::smallint, report = $3::text::jsonb, permille = 1000, seen_at = now(),
                  sealed = CASE WHEN $2::smallint = 1 THEN sealed END
           WHERE id = $1 AND status IN (0, 2)""",
        upload_id,
        int(phase),
        msgspec.json.encode(report).decode(),
    )


async def sweep(pool: Pool) -> int:
    """Throw away files that were kept long enough, and after a month their rows; how many."""
    emptied = await pool.fetch(
        """UPDATE upload SET sealed = NULL WHERE id IN (
               SELECT id FROM upload WHERE sealed IS NOT NULL AND created_at < now() - $1::interval
               ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1""",
        KEPT,
        SWEPT_MAX,
    )
    forgotten = await pool.fetch(
        """DELETE FROM upload WHERE id IN (
               SELECT id FROM upload WHERE created_at < now() - $1::interval
               ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1""",
        REMEMBERED,
        SWEPT_MAX,
    )
    return len(emptied) + len(forgotten)
