"""Archiving of the audit trail: sealed blocks are written to files, hashed again from there, and only then removed.

It may stop at any point, and the next run goes on. Blocks that are not noted in the database are written anew. Those
that are noted are removed by small transactions: each reads its blocks from the table, and removes them if they are
the same as in the file. Blocks leave in the order of the chain, and the chain itself (trail_seal) stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.archive import store
from voucherd.archive.block_files import BlockReader, BlockWriter, Row
from voucherd.archive.files import OpenedFile, refuse_without_library
from voucherd.archive.model import ArchiveRefused, Progress
from voucherd.db import Connection, Tx, within
from voucherd.trail import archived, chain
from voucherd.trail.archived import BlockFile
from voucherd.trail.chain import BOOKS, Block, Book
from voucherd.trail.verification import LOWEST, BlockUnreadable

FILE_ROWS: Final = 1_000_000
"""A file ends with the block with which it has so many rows."""
FILE_BLOCKS_MAX: Final = 20_000
"""Blocks of a quiet shop have a row or two."""
GROUP_ROWS: Final = 5_000
"""Rows that are read, written and removed together; the blocks of a group are whole, so it may have twice as many."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_AT: Final = 1
"""Where the moment of a row stands, in microseconds since 1970."""


class ArchivedBook(Struct, frozen=True):
    """What a run did with a book."""

    book: str
    blocks: int
    """That were written to files."""
    removed: int
    """Rows that left the table."""


async def archive_books(
    conn: Connection, actor: Actor, folder: Path, key: bytes, before: datetime, progress: Progress
) -> list[ArchivedBook]:
    """Bring the blocks into the archive that have no row from this moment on; what the run did with each book."""
    refuse_without_library()
    if not await store.be_alone(conn):
        raise ArchiveRefused("another run of the archive is under way")
    done = []
    for book in BOOKS:
        blocks = removed = 0
        last = await archived.last_file(conn, book.name)
        if last is not None and last.removed_at is None:
            removed += await _remove_file(conn, actor, folder, book, last, progress)
        while file := await _write_file(conn, actor, folder, book, key, before, progress):
            blocks += file.blocks
            removed += await _remove_file(conn, actor, folder, book, file, progress)
        done.append(ArchivedBook(book.name, blocks, removed))
    return done


async def _write_file(
    conn: Connection, actor: Actor, folder: Path, book: Book, key: bytes, before: datetime, progress: Progress
) -> BlockFile | None:
    """Write the next blocks that are old enough to a file, read it back, and note it; None if there are none."""
    last = await archived.last_file(conn, book.name)
    number, place = (0, LOWEST) if last is None else (last.last_block, last.last_id)
    writer, youngest = None, 0
    for group in _groups(await chain.blocks_after(conn, book, number, FILE_BLOCKS_MAX)):
        rows = await _rows(conn, book, place, group)
        old = _old_enough(group, rows, (before - _EPOCH) // timedelta(microseconds=1))
        if old:
            writer = writer or BlockWriter(folder, book)
            kept = [row for row in rows if row[0] <= old[-1].last_id]
            if len(kept) != sum(block.rows for block in old):
                raise ArchiveRefused(f"{book.name} is not as it was sealed: run `voucherd audit`")
            writer.add(old, kept)
            youngest = max(youngest, *(row[_AT] for row in kept))
            place = old[-1].last_id
            progress(f"writing {book.name}", writer.rows, writer.rows)
        if len(old) < len(group) or (writer is not None and writer.rows >= FILE_ROWS):
            break
    if writer is None:
        return None
    file = writer.end(moment(youngest))
    await check_file(conn, folder, book, file, key)
    async with within(conn) as tx:
        await archived.note_file(tx, file)
        await trail.record(tx, actor, "archive.write", _words(file), {"rows": file.rows})
    return file


def moment(at: int) -> datetime:
    """The moment of a row as it lies in a file."""
    return _EPOCH + timedelta(microseconds=at)


def _groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The blocks in groups that are read together."""
    group: list[Block] = []
    rows = 0
    for block in blocks:
        group.append(block)
        rows += block.rows
        if rows >= GROUP_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


async def _rows(conn: Connection, book: Book, place: int, group: Sequence[Block]) -> list[Row]:
    """The rows of these blocks, from the table; one too many shows in their hashes."""
    limit = sum(block.rows for block in group) + 1
    return [tuple(row) for row in await chain.rows_between(conn, book, place, group[-1].last_id, limit)]


def _old_enough(group: Sequence[Block], rows: Sequence[Row], before: int) -> list[Block]:
    """The blocks up to the first one with a row that is too young."""
    first_young = min((row[0] for row in rows if row[_AT] >= before), default=None)
    return [block for block in group if first_young is None or block.last_id < first_young]


async def check_file(conn: Connection, folder: Path, book: Book, file: BlockFile, key: bytes | None) -> None:
    """Refuse a file whose blocks do not have the hashes that were sealed; without the key their rows are counted."""
    reader = BlockReader(folder)
    blocks = await chain.blocks_after(conn, book, file.first_block - 1, file.blocks)
    for block in blocks:
        rows = _filed(reader, file, block)
        wrong = "rows are missing" if len(rows) != block.rows else chain.wrong_with(block, rows, key)
        if wrong:
            raise ArchiveRefused(f"block {block.block} of {book.name}, in {file.place}: {wrong}")
    if [block.block for block in blocks] != list(range(file.first_block, file.last_block + 1)):
        raise ArchiveRefused(f"{file.place} has other blocks than the chain")


def _filed(reader: BlockReader, file: BlockFile, block: Block) -> list[Row]:
    try:
        return reader.rows(file, block)
    except BlockUnreadable as wrong:
        raise ArchiveRefused(str(wrong)) from None


async def _remove_file(
    conn: Connection, actor: Actor, folder: Path, book: Book, file: BlockFile, progress: Progress
) -> int:
    """Take the blocks of a file out of their table."""
    reader = BlockReader(folder)
    blocks = await chain.blocks_after(conn, book, file.first_block - 1, file.blocks)
    removed = seen = 0
    for group in _groups(blocks):
        filed = [(block, _filed(reader, file, block)) for block in group]
        async with within(conn) as tx:
            removed += await _remove_group(tx, book, filed)
        seen += sum(block.rows for block in group)
        progress(f"removing {book.name}", seen, file.rows)
    async with within(conn) as tx:
        await archived.note_removed(tx, file)
        detail = {"rows": removed, "kept": file.rows - removed}
        await trail.record(tx, actor, "archive.remove", _words(file), detail)
    return removed


async def _remove_group(tx: Tx, book: Book, filed: Sequence[tuple[Block, list[Row]]]) -> int:
    """Remove those of the blocks that are in the table still; refused if they are not as in the file."""
    blocks = [block for block, _ in filed]
    stored = iter(await _rows(tx, book, blocks[0].first_id - 1, blocks))
    whole = []
    at_hand = next(stored, None)
    for block, rows in filed:
        own = []
        while at_hand is not None and at_hand[0] <= block.last_id:
            own.append(at_hand)
            at_hand = next(stored, None)
        if own == rows:
            whole.append(block.block)
        elif len(own) >= len(rows) or not set(own) <= set(rows):
            raise ArchiveRefused(
                f"block {block.block} of {book.name} is not as it was sealed: run `voucherd audit`"
            )
    return await archived.remove(tx, book.name, whole) if whole else 0


def _words(file: BlockFile) -> str:
    return f"{file.book} blocks {file.first_block} to {file.last_block}"


def find_reveals(folder: Path, files: Sequence[BlockFile], order_id: int, limit: int) -> list[dict[str, Any]]:
    """The reveals of an order that are in these files, newest first; refused if one can't be read."""
    found: list[dict[str, Any]] = []
    for file in reversed(files):
        rows = list(OpenedFile(folder, file).where("order_id", order_id))
        found += islice(reversed(rows), limit - len(found))
        if len(found) == limit:
            break
    return found
