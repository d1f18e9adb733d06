"""Sealing again: codes and texts of an older key are sealed with a newer one, in small transactions (OP-95).

A row is replaced only where it still holds the seal that was opened, so no change in between is lost. The mark in front
of each seal tells its key, so a second run does nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from voucherd.db import Connection, Pool, transaction
from voucherd.vault.seal import Sealer, mark

BATCH_MAX: Final = 1_000


class Texts(Struct, frozen=True):
    """A column of sealed texts: what names its rows, and the place that a row was sealed for."""

    table: str
    keys: tuple[str, ...]
    column: str
    place: Callable[..., bytes]
    batch_max: int = BATCH_MAX
    """How many fit into memory at once."""


async def left(conn: Connection, version: int, texts: Sequence[Texts]) -> int:
    """How much is sealed with an older version: lots and texts."""
    lots = await conn.fetchval("SELECT count(*) FROM lot WHERE NOT generated AND key_version < $1", version)
    return int(lots) + sum([await _older_texts(conn, version, one) for one in texts])


async def sealed_with(conn: Connection, texts: Sequence[Texts]) -> dict[int, tuple[int, int, int]]:
    """What each version seals: lots, the codes in them, texts."""
    found: dict[int, tuple[int, int, int]] = {}
    for row in await conn.fetch(
        "SELECT key_version, count(*), sum(size) FROM lot WHERE NOT generated GROUP BY key_version"
    ):
        found[row[0]] = (row[1], row[2], 0)
    for one in texts:
        for row in await conn.fetch(
            f"SELECT {_VERSION.format(column=one.column)}, count(*) FROM {one.table}"  # noqa: S608 - Names of ours.
            f" WHERE {one.column} IS NOT NULL GROUP BY 1"
        ):
            lots, codes, before = found.get(row[0], (0, 0, 0))
            found[row[0]] = (lots, codes, before + row[1])
    return found


async def total(pool: Pool, version: int, texts: Sequence[Texts]) -> int:
    """How many codes and texts are to be sealed again."""
    async with pool.acquire() as conn:
        codes = await conn.fetchval(
            "SELECT coalesce(sum(size), 0) FROM lot WHERE NOT generated AND key_version < $1", version
        )
        return int(codes) + sum([await _older_texts(conn, version, one) for one in texts])


# ── codes ──────────────────────────────────────────────────────────────────────────────────────────────


async def reseal_codes(pool: Pool, sealer: Sealer, version: int) -> AsyncIterator[int]:
    """Seal the codes of all lots with this version; how many at a time."""
    lots = await pool.fetch(
        "SELECT id FROM lot WHERE NOT generated AND key_version < $1 ORDER BY id", version
    )
    for (lot_id,) in lots:
        place = 0
        while True:
            rows = await pool.fetch(
                "SELECT seq, sealed FROM code WHERE lot_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
                lot_id,
                place,
                BATCH_MAX,
            )
            if not rows:
                break
            place = rows[-1]["seq"] + 1
            await _replace_codes(pool, sealer, version, lot_id, [tuple(row) for row in rows])
            yield len(rows)
        # Its codes are all there is of a lot, and nobody adds any.
        await pool.execute(
            "UPDATE lot SET key_version = $2 WHERE id = $1 AND key_version < $2", lot_id, version
        )


async def _replace_codes(
    pool: Pool, sealer: Sealer, version: int, lot_id: int, rows: Sequence[tuple[Any, ...]]
) -> None:
    ours = mark(version)
    old = [(seq, sealed) for seq, sealed in rows if not sealed.startswith(ours)]
    if old:
        await pool.execute(
            """
            UPDATE code c SET sealed = n.fresh FROM unnest($2::int[], $3::bytea[], $4::bytea[]) AS n (seq, old, fresh)
            WHERE c.lot_id = $1 AND c.seq = n.seq AND c.sealed = n.old
            """,
            lot_id,
            [seq for seq, _ in old],
            [sealed for _, sealed in old],
            [sealer.seal(lot_id, seq, *sealer.open(lot_id, seq, sealed)) for seq, sealed in old],
        )


# ── texts ──────────────────────────────────────────────────────────────────────────────────────────────

_VERSION: Final = (
    "CASE WHEN get_byte({column}, 0) = 229 AND get_byte({column}, 1) * 256 + get_byte({column}, 2)"
    " IN (SELECT version FROM vault_key WHERE version > 1)"
    " THEN get_byte({column}, 1) * 256 + get_byte({column}, 2) ELSE 1 END"
)
"""The version by its mark; one in millions of version 1 looks like another, and is sealed again like all."""


async def _older_texts(conn: Connection, version: int, one: Texts) -> int:
    found: int = await conn.fetchval(
        f"SELECT count(*) FROM {one.table} WHERE substring({one.column} FOR 3) <> $1",  # noqa: S608 - Names of ours.
        mark(version),
    )
    return found


async def reseal_texts(pool: Pool, sealer: Sealer, version: int, one: Texts) -> AsyncIterator[int]:
    """Seal a column with this version; how many at a time."""
    columns = ", ".join(one.keys)
    after: tuple[Any, ...] | None = None
    while True:
        places = ", ".join(f"${at + 3}" for at in range(len(one.keys)))
        behind = "" if after is None else f"AND ({columns}) > ({places})"
        rows = await pool.fetch(
            f"SELECT {columns}, {one.column} FROM {one.table}"  # noqa: S608 - Names of ours.
            f" WHERE substring({one.column} FOR 3) <> $1 {behind} ORDER BY {columns} LIMIT $2",
            mark(version),
            one.batch_max,
            *(after or ()),
        )
        if not rows:
            return
        async with transaction(pool) as tx:
            # What was answered once is answered for good: the guard lets only this pass.
            await tx.execute("SET LOCAL voucherd.resealing = 'on'")
            where = " AND ".join(f"{name} = ${at + 3}" for at, name in enumerate(one.keys))
            await tx.executemany(
                f"UPDATE {one.table} SET {one.column} = $1 WHERE {one.column} = $2 AND {where}",  # noqa: S608
                [_again(sealer, one, tuple(row)) for row in rows],
            )
        after = tuple(rows[-1])[:-1]
        yield len(rows)


def _again(sealer: Sealer, one: Texts, row: tuple[Any, ...]) -> tuple[Any, ...]:
    *names, sealed = row
    place = one.place(*names)
    return (sealer.seal_bytes(place, sealer.open_bytes(place, sealed)), sealed, *names)
