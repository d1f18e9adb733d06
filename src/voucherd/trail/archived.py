"""Blocks that have left for the archive: which files hold them, and up to which moment (OP-134)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Tx

_FILES: Final = (
    "SELECT book, first_block, last_block, first_id, last_id, rows, last_at, bytes, sha256, removed_at"
    " FROM archived_blocks"
)


class BlockFile(Struct, frozen=True):
    """A file of the archive with whole blocks of a book."""

    book: str
    first_block: int
    last_block: int
    first_id: int
    last_id: int
    rows: int
    last_at: datetime
    """No row of it is younger."""
    size: int
    sha256: bytes
    removed_at: datetime | None = None
    """When its rows had left the table; None while they are leaving."""

    @property
    def place(self) -> str:
        """Where it lies, from the folder of the archive on."""
        return f"{self.book}/{self.first_block:012d}.parquet"

    @property
    def blocks(self) -> int:
        """How many it holds."""
        return self.last_block - self.first_block + 1


async def files(conn: Connection, book: str) -> list[BlockFile]:
    """The files of a book, in order."""
    return [
        BlockFile(*row) for row in await conn.fetch(f"{_FILES} WHERE book = $1 ORDER BY first_block", book)
    ]


async def last_file(conn: Connection, book: str) -> BlockFile | None:
    """The file with the newest blocks of a book that are in the archive."""
    row = await conn.fetchrow(f"{_FILES} WHERE book = $1 ORDER BY first_block DESC LIMIT 1", book)
    return None if row is None else BlockFile(*row)


async def count(conn: Connection) -> int:
    """How many blocks of all books are in the archive."""
    return int(
        await conn.fetchval("SELECT coalesce(sum(last_block - first_block + 1), 0) FROM archived_blocks")
    )


async def until(conn: Connection, book: str) -> datetime | None:
    """The moment up to which rows of a book are in the archive; None if none are."""
    file = await last_file(conn, book)
    return None if file is None else file.last_at


async def note_file(tx: Tx, file: BlockFile) -> None:
    """Write down that these blocks are in a file."""
    await tx.execute("SELECT set_config('voucherd.archiving', 'on', true)")
    await tx.execute(
        "INSERT INTO archived_blocks"
        " (book, first_block, last_block, first_id, last_id, rows, last_at, bytes, sha256)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        file.book,
        file.first_block,
        file.last_block,
        file.first_id,
        file.last_id,
        file.rows,
        file.last_at,
        file.size,
        file.sha256,
    )


async def remove(tx: Tx, book: str, blocks: Sequence[int]) -> int:
    """Take the blocks from the first of these to the last out of their table; how many rows left."""
    return int(await tx.fetchval("SELECT remove_archived_blocks($1, $2, $3)", book, blocks[0], blocks[-1]))


async def note_removed(tx: Tx, file: BlockFile) -> None:
    """Write down that all rows of a file have left their table that do."""
    await tx.execute("SELECT set_config('voucherd.archiving', 'on', true)")
    await tx.execute(
        "UPDATE archived_blocks SET removed_at = now() WHERE book = $1 AND first_block = $2",
        file.book,
        file.first_block,
    )
