"""The chain: blocks of settled rows, each hashed together with the hash of the block before it, with the vault's key.

Ids are taken in one order and committed in another, so only rows that nothing older can join any more are sealed. The
comment on the table event_mark (migration 0009) tells how that is known: a transaction that inserts holds the lock of
the table from before it takes an id until after its commit is visible. So: read the last id that was taken, then who
holds the lock; when all of those are gone, every id up to there is in the table or never will be.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import Struct

from voucherd.db import Connection, Pool

BLOCK_ROWS_MAX: Final = 5_000
LATE_MAX: Final = timedelta(hours=1)
"""A row that waits for longer has no worker, or a transaction beside it that does not end."""
GENESIS: Final = bytes(32)
"""What the first block follows."""
PLAIN: Final = 1
"""The version of blocks that were sealed without a key, by programs before 0.2.0."""
KEYED: Final = 2
LOWEST: Final = -(2**63)
"""Ids begin at 1, so a row with a lower one was put in by hand."""


class Book(Struct, frozen=True):
    """A table that is sealed, and the columns that its hashes cover, in the form in which they do."""

    name: str
    columns: str


_MOMENT: Final = "(extract(epoch FROM at) * 1000000)::bigint"
TRAIL: Final = Book(
    "trail",
    f"id, {_MOMENT}, actor_kind, actor_id, actor, action, subject, company_id, state, text(address), request_id, "
    "detail::text",
)
REVEAL: Final = Book(
    "reveal",
    f"id, {_MOMENT}, order_id, company_id, line_from, lines, via, actor_kind, actor_id, text(address)",
)
BOOKS: Final = (TRAIL, REVEAL)


class Block(Struct, frozen=True):
    """A sealed run of rows."""

    block: int
    first_id: int
    last_id: int
    rows: int
    previous: bytes
    hash: bytes
    version: int


class Head(Struct, frozen=True):
    """The newest block of a book: who has noted it can tell later whether anything before it was changed."""

    book: str
    block: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.book}:{self.block}:{self.hash.hex()}"


class Flaw(Struct, frozen=True):
    """Something that is wrong with a book."""

    book: str
    block: int | None
    first_id: int | None
    last_id: int | None
    wrong: str


def digest(previous: bytes, rows: Iterable[asyncpg.Record], key: bytes | None) -> bytes:
    """The hash of a block: of the hash before it, and of each row as one line of JSON; with the key if there is one."""
    hashed = sha256(previous) if key is None else hmac.new(key, previous, sha256)
    encode = msgspec.json.encode
    for row in rows:
        hashed.update(encode(tuple(row)))
        hashed.update(b"\n")
    return hashed.digest()


class TrailSealing:
    """Seals the books round after round; remembers only who was writing when it last looked."""

    def __init__(self, pool: Pool, key: bytes) -> None:
        self._pool = pool
        self._key = key
        self._seen: dict[str, tuple[int, frozenset[str]]] = {}

    async def round(self) -> int:
        """Seal a block of each book that has one; how many rows that were."""
        sealed = 0
        for book in BOOKS:
            async with self._pool.acquire() as conn:
                settled = await self._settled(conn, book)
                if settled:
                    sealed += await _seal(conn, book, settled, self._key)
        return sealed

    async def _settled(self, conn: Connection, book: Book) -> int:
        """The id up to which nothing is under way any more; 0 if that is not known."""
        # First the id and then the lock: a transaction that took one of these ids holds it still, or has ended.
        taken: int = await conn.fetchval(
            "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0)",
            book.name,
        )
        writers: frozenset[str] = frozenset(
            row[0]
            for row in await conn.fetch(
                """
                SELECT virtualtransaction FROM pg_locks
                WHERE locktype = 'relation' AND relation = $1::text::regclass AND mode = 'RowExclusiveLock' AND granted
                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """,
                book.name,
            )
        )
        if not writers:
            self._seen.pop(book.name, None)
            return taken
        seen, waits_for = self._seen.get(book.name) or (0, writers)
        if waits_for & writers:
            self._seen.setdefault(book.name, (taken, writers))
            return 0
        self._seen[book.name] = (taken, writers)
        return seen


async def _seal(conn: Connection, book: Book, settled: int, key: bytes) -> int:
    """Seal the next block, which ends at the settled id at the latest."""
    async with conn.transaction():
        # One at a time; the others leave it to that one.
        if not await conn.fetchval(
            "SELECT pg_try_advisory_xact_lock(hashtext('seal/' || current_schema() || '/' || $1))", book.name
        ):
            return 0
        last = await last_block(conn, book)
        place, previous = (0, GENESIS) if last is None else (last.last_id, last.hash)
        rows = await conn.fetch(
            f"SELECT {book.columns} FROM {book.name} WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",  # noqa: S608
            place,
            settled,
            BLOCK_ROWS_MAX,
        )
        if rows:
            await conn.execute(
                """
                INSERT INTO trail_seal (book, block, first_id, last_id, rows, previous, hash, version)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                """,
                book.name,
                1 if last is None else last.block + 1,
                rows[0]["id"],
                rows[-1]["id"],
                len(rows),
                previous,
                digest(previous, rows, key),
                KEYED,
            )
    return len(rows)


async def last_block(conn: Connection, book: Book) -> Block | None:
    """The newest block of a book."""
    row = await conn.fetchrow(f"{_BLOCKS} ORDER BY block DESC LIMIT 1", book.name)
    return None if row is None else Block(*row)


async def heads(conn: Connection) -> list[Head]:
    """The head of each book that has one."""
    found = [(book, await last_block(conn, book)) for book in BOOKS]
    return [Head(book.name, last.block, last.hash) for book, last in found if last is not None]


async def holds(conn: Connection, noted: Head) -> bool:
    """Whether a head that somebody noted is in the chain still."""
    return bool(
        await conn.fetchval(
            "SELECT EXISTS (SELECT FROM trail_seal WHERE book = $1 AND block = $2 AND hash = $3)",
            noted.book,
            noted.block,
            noted.hash,
        )
    )


_BLOCKS: Final = (
    "SELECT block, first_id, last_id, rows, previous, hash, version FROM trail_seal WHERE book = $1"
)


async def verify(
    conn: Connection, key: bytes | None, noted: Sequence[Head] = (), since: Sequence[Head] = ()
) -> AsyncIterator[Flaw]:
    """The faults of the books, in one snapshot: to be called within a transaction that has one.

    Without the key what is in a keyed block is counted only. Heads that somebody noted must be in the chain. Blocks up
    to the heads of `since` are taken for checked.
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
        async for row in conn.cursor(
            f"{_BLOCKS} AND block > $2 ORDER BY block", book.name, number, prefetch=200
        ):
            block = Block(*row)
            if flaw := _link(block, number, place, previous, version):
                yield Flaw(book.name, block.block, block.first_id, block.last_id, flaw)
            if flaw := await _content(conn, book, block, place, key):
                yield Flaw(book.name, block.block, block.first_id, block.last_id, flaw)
            # From here on with what the block says of itself: one flaw is told once, not once for each block after it.
            number, place, previous, version = block.block, block.last_id, block.hash, block.version
        if flaw_late := await _late(conn, book, place):
            yield flaw_late


async def _start(conn: Connection, book: Book, since: Sequence[Head]) -> tuple[int, int, bytes, int]:
    """Behind which block and row the check begins, and what the next block must follow."""
    for head in since:
        if head.book == book.name and await holds(conn, head):
            row = await conn.fetchrow(f"{_BLOCKS} AND block = $2", book.name, head.block)
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


async def _content(conn: Connection, book: Book, block: Block, place: int, key: bytes | None) -> str | None:
    rows: list[Any] = await conn.fetch(
        f"SELECT {book.columns} FROM {book.name} WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",  # noqa: S608
        place,
        block.last_id,
        # One more than there may be is enough to know.
        block.rows + 1,
    )
    if len(rows) < block.rows:
        return "rows are missing"
    if len(rows) > block.rows:
        return "rows were added"
    if block.version == KEYED and key is None:
        return None
    hashed = digest(block.previous, rows, key if block.version == KEYED else None)
    return None if hmac.compare_digest(hashed, block.hash) else "rows were changed"


async def _late(conn: Connection, book: Book, place: int) -> Flaw | None:
    row = await conn.fetchrow(
        f"SELECT min(id), max(id) FROM {book.name} WHERE id > $1 AND at < now() - $2::interval",  # noqa: S608
        place,
        LATE_MAX,
    )
    if row is None or row[0] is None:
        return None
    return Flaw(book.name, None, row[0], row[1], "not sealed for an hour or longer: no worker runs")
