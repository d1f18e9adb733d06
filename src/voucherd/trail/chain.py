"""The chain: blocks of settled rows, each hashed together with the hash of the block before it, with the vault's key.

Ids are taken in one order and committed in another, so only rows that nothing older can join any more are sealed. The
comment on the table event_mark (migration 0009) tells how that is known: a transaction that inserts holds the lock of
the table from before it takes an id until after its commit is visible. So: read the last id that was taken, then who
holds the lock; when all of those are gone, every id up to there is in the table or never will be.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import Struct

from voucherd.db import Connection, Pool

BLOCK_ROWS_MAX: Final = 5_000
GENESIS: Final = bytes(32)
"""What the first block follows."""
PLAIN: Final = 1
"""The version of blocks that were sealed without a key, by programs before 0.2.0."""
KEYED: Final = 2


class Book(Struct, frozen=True):
    """A table that is sealed, and the columns that its hashes cover, in the form in which they do."""

    name: str
    kinds: Mapping[str, str]
    """The columns by name, each with its kind in a file of the archive."""

    @property
    def columns(self) -> str:
        """The columns as they are read to be hashed."""
        return ", ".join(_HASHED.get(name, name) for name in self.kinds)


_HASHED: Final = {
    "at": "(extract(epoch FROM at) * 1000000)::bigint",
    "address": "text(address)",
    "detail": "detail::text",
}
_NUMBER: Final = "int64"
_TEXT: Final = "string"
TRAIL: Final = Book(
    "trail",
    {
        "id": _NUMBER,
        "at": _NUMBER,
        "actor_kind": _NUMBER,
        "actor_id": _NUMBER,
        "actor": _TEXT,
        "action": _TEXT,
        "subject": _TEXT,
        "company_id": _NUMBER,
        "state": _NUMBER,
        "address": _TEXT,
        "request_id": _TEXT,
        "detail": _TEXT,
    },
)
REVEAL: Final = Book(
    "reveal",
    {
        "id": _NUMBER,
        "at": _NUMBER,
        "order_id": _NUMBER,
        "company_id": _NUMBER,
        "line_from": _NUMBER,
        "lines": _NUMBER,
        "via": _NUMBER,
        "actor_kind": _NUMBER,
        "actor_id": _NUMBER,
        "address": _TEXT,
    },
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


def digest(previous: bytes, rows: Iterable[asyncpg.Record | tuple[Any, ...]], key: bytes | None) -> bytes:
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
        rows = await rows_between(conn, book, place, settled, BLOCK_ROWS_MAX)
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
    row = await conn.fetchrow(f"{BLOCKS} ORDER BY block DESC LIMIT 1", book.name)
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


BLOCKS: Final = (
    "SELECT block, first_id, last_id, rows, previous, hash, version FROM trail_seal WHERE book = $1"
)


def wrong_with(
    block: Block, rows: Sequence[asyncpg.Record | tuple[Any, ...]], key: bytes | None
) -> str | None:
    """What is wrong with all the rows of a block; without the key of a keyed one nobody can tell."""
    if block.version == KEYED and key is None:
        return None
    hashed = digest(block.previous, rows, key if block.version == KEYED else None)
    return None if hmac.compare_digest(hashed, block.hash) else "rows were changed"


async def rows_between(
    conn: Connection, book: Book, place: int, last_id: int, limit: int
) -> list[asyncpg.Record]:
    """The rows behind a place up to an id, as they are hashed."""
    return await conn.fetch(
        f"SELECT {book.columns} FROM {book.name} WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",  # noqa: S608
        place,
        last_id,
        limit,
    )


async def blocks_after(conn: Connection, book: Book, number: int, limit: int) -> list[Block]:
    """The blocks behind this one, in order."""
    rows = await conn.fetch(f"{BLOCKS} AND block > $2 ORDER BY block LIMIT $3", book.name, number, limit)
    return [Block(*row) for row in rows]
