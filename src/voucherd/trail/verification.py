"""Whether the books are as they were sealed: links, rows, blocks in the archive, and rows that nobody seals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

import asyncpg
from msgspec import Struct

from voucherd.db import Connection
from voucherd.trail import archived
from voucherd.trail.archived import BlockFile
from voucherd.trail.chain import (
    BLOCKS,
    BOOKS,
    GENESIS,
    PLAIN,
    TRAIL,
    Block,
    Book,
    Head,
    holds,
    rows_between,
    wrong_with,
)

LATE_MAX: Final = timedelta(hours=1)
"""A row that waits for longer has no worker, or a transaction beside it that does not end."""
LOWEST: Final = -(2**63)
"""Ids begin at 1, so a row with a lower one was put in by hand."""


class Flaw(Struct, frozen=True):
    """Something that is wrong with a book."""

    book: str
    block: int | None
    first_id: int | None
    last_id: int | None
    wrong: str


class BlockSource(Protocol):
    """Reads blocks that are in files of the archive."""

    def rows(self, file: BlockFile, block: Block) -> Sequence[tuple[Any, ...]]:
        """The rows of a block, in order; raises `BlockUnreadable` if its file is not the one that was written."""


class BlockUnreadable(Exception):
    """A block's file is not there, or not what was written; the message says what is wrong with it."""


async def verify(
    conn: Connection,
    key: bytes | None,
    noted: Sequence[Head] = (),
    since: Sequence[Head] = (),
    archive: BlockSource | None = None,
) -> AsyncIterator[Flaw]:
    """The faults of the books, in one snapshot: to be called within a transaction that has one.

    Without the key what is in a keyed block is counted only. Heads that somebody noted must be in the chain. Blocks up
    to the heads of `since` are taken for checked. Of blocks that have left for the archive the links are checked and,
    where there is a source to read them from, the rows.
    """
    for head in noted:
        if not await holds(conn, head):
            yield Flaw(
                head.book,
                head.block,
                None,
                None,
                "was noted and is not there: the chain was cut or rewritten",
            )
    for book in BOOKS:
        number, place, previous, version = await _start(conn, book, since)
        files = _Files(await archived.files(conn, book.name), archive)
        async for row in conn.cursor(
            f"{BLOCKS} AND block > $2 ORDER BY block", book.name, number, prefetch=200
        ):
            block = Block(*row)
            if flaw := _link(block, number, place, previous, version):
                yield Flaw(book.name, block.block, block.first_id, block.last_id, flaw)
            if flaw := await _content(conn, book, block, place, key, files):
                yield Flaw(book.name, block.block, block.first_id, block.last_id, flaw)
            # From here on with what the block says of itself: one flaw is told once, not once for each block after it.
            number, place, previous, version = block.block, block.last_id, block.hash, block.version
        if flaw_late := await _late(conn, book, place):
            yield flaw_late


async def _start(conn: Connection, book: Book, since: Sequence[Head]) -> tuple[int, int, bytes, int]:
    """Behind which block and row the check begins, and what the next block must follow."""
    for head in since:
        if head.book == book.name and await holds(conn, head):
            row = await conn.fetchrow(f"{BLOCKS} AND block = $2", book.name, head.block)
            assert row is not None, "it is in this snapshot"
            block = Block(*row)
            return block.block, block.last_id, block.hash, block.version
    return 0, LOWEST, GENESIS, PLAIN


def _link(block: Block, number: int, place: int, previous: bytes, version: int) -> str | None:
    if block.block != number + 1:
        return f"block {number + 1} is missing"
    if block.previous != previous or block.first_id <= place:
        return "does not follow the block before it"
    return "has no key, although the block before it has one" if block.version < version else None


class _Files:
    """The files of a book, for blocks that come in order."""

    def __init__(self, files: Sequence[BlockFile], source: BlockSource | None) -> None:
        self.source = source
        self._files = list(reversed(files))

    def of(self, block: Block) -> BlockFile | None:
        """The file that holds the block; None if it is in none."""
        while self._files and self._files[-1].last_block < block.block:
            self._files.pop()
        found = self._files[-1] if self._files else None
        return found if found is not None and found.first_block <= block.block else None


async def _content(
    conn: Connection, book: Book, block: Block, place: int, key: bytes | None, files: _Files
) -> str | None:
    # One more than there may be is enough to know.
    rows = await rows_between(conn, book, place, block.last_id, block.rows + 1)
    if len(rows) > block.rows:
        return "rows were added"
    file = files.of(block)
    if len(rows) == block.rows:
        return wrong_with(block, rows, key)
    if file is None:
        return "rows are missing"
    return await _left(conn, book, block, rows, key, file, files.source)


async def _left(
    conn: Connection,
    book: Book,
    block: Block,
    rows: Sequence[asyncpg.Record],
    key: bytes | None,
    file: BlockFile,
    source: BlockSource | None,
) -> str | None:
    """What is wrong with a block whose rows have left their table, but for those that payments are tied to."""
    if rows and not (book is TRAIL and await _all_tied(conn, [row["id"] for row in rows])):
        return "its rows are neither all in the table nor all in the archive"
    if source is None:
        return None
    try:
        filed = source.rows(file, block)
    except BlockUnreadable as wrong:
        return str(wrong)
    if len(filed) != block.rows:
        return "rows are missing in its file"
    if not {tuple(row) for row in rows} <= set(filed):
        return "rows were changed"
    return wrong_with(block, filed, key)


async def _all_tied(conn: Connection, ids: Sequence[int]) -> bool:
    """Whether each of these rows of the trail tells of a payment, which is why it stays."""
    tied = await conn.fetchval("SELECT count(*) FROM payment_deed WHERE trail_id = ANY($1::bigint[])", ids)
    return bool(tied == len(ids))


async def _late(conn: Connection, book: Book, place: int) -> Flaw | None:
    row = await conn.fetchrow(
        f"SELECT min(id), max(id) FROM {book.name} WHERE id > $1 AND at < now() - $2::interval",  # noqa: S608
        place,
        LATE_MAX,
    )
    if row is None or row[0] is None:
        return None
    return Flaw(book.name, None, row[0], row[1], "not sealed for an hour or longer: no worker runs")
