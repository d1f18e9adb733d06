"""The tables of recoveries, and the numbers of the whole schema, which jump when a new epoch starts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.ids import epoch_blocks

LARGE_STEP: Final = 1_000_000_000
SMALL_STEP: Final = 1_000_000
"""How far numbers of 64 and of 32 bits jump; those of orders by their own rule (`ids.epoch_blocks`)."""
SOURCE_CHARS_MAX: Final = 300
OPEN_ORDERS_SHOWN_MAX: Final = 100


class Restore(Struct, frozen=True):
    """A restore that was noted and not recovered from yet."""

    id: int
    moment: datetime
    source: str


async def note_restore(tx: Tx, moment: datetime, source: str) -> None:
    """Write down that this database is of an earlier moment; one that is noted already stays as it is."""
    await tx.execute(
        "INSERT INTO recovery (moment, source) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        moment,
        source[:SOURCE_CHARS_MAX],
    )


async def be_alone(tx: Tx) -> None:
    """Be the only recovery of this database until the transaction ends."""
    await tx.execute("SELECT pg_advisory_xact_lock(hashtext('recover/' || current_schema()))")


async def open_restore(conn: Connection) -> Restore | None:
    """The restore that nobody has recovered from yet, if any."""
    row = await conn.fetchrow("SELECT id, moment, source FROM recovery WHERE recovered_at IS NULL")
    return None if row is None else Restore(*row)


async def recovered_since(conn: Connection, moment: datetime) -> bool:
    """Whether this database was recovered after the moment: then it is not as it was at the moment."""
    return bool(await conn.fetchval("SELECT EXISTS (SELECT FROM recovery WHERE recovered_at >= $1)", moment))


async def close_restore(tx: Tx, restore_id: int) -> None:
    """From here on it may sell again."""
    await tx.execute("UPDATE recovery SET recovered_at = clock_timestamp() WHERE id = $1", restore_id)


async def last_trace(conn: Connection) -> datetime:
    """When the database was last used, as far as it knows: the end of what it can be trusted about."""
    found: datetime = await conn.fetchval(
        """
        SELECT coalesce(greatest((SELECT max(at) FROM (SELECT at FROM event ORDER BY id DESC LIMIT 1) e),
                                 (SELECT max(at) FROM (SELECT at FROM trail ORDER BY id DESC LIMIT 1) t),
                                 (SELECT max(applied_at) FROM schema_migration)), now())
        """
    )
    return found


async def jump(tx: Tx, lost_s: float) -> dict[str, int]:
    """Let every sequence jump over what the lost time may have taken; the number each goes on behind."""
    rows = await tx.fetch(
        """
        SELECT c.relname, t.typname, coalesce(pg_sequence_last_value(c.oid), 0)
        FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid JOIN pg_type t ON t.oid = s.seqtypid
        WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname
        """
    )
    ends: dict[str, int] = {}
    for name, kind, last in rows:
        if name == "order_block":
            ends[name] = epoch_blocks(last, lost_s)
        else:
            ends[name] = last + (LARGE_STEP if kind == "int8" else SMALL_STEP)
    # Not undone with the transaction: numbers that are left out for nothing harm nobody.
    await tx.execute(
        "SELECT setval(quote_ident(n.name)::regclass, n.value)"
        " FROM unnest($1::text[], $2::bigint[]) AS n (name, value)",
        list(ends),
        list(ends.values()),
    )
    return ends


async def cursors(conn: Connection, lots: Sequence[int]) -> dict[int, int]:
    """How far these lots have sold."""
    rows = await conn.fetch("SELECT id, cursor FROM lot WHERE id = ANY($1::bigint[])", list(lots))
    return {row[0]: row[1] for row in rows}


async def open_orders(conn: Connection) -> tuple[int, list[int]]:
    """Orders that were paid or held and waited for codes at the moment: how many, and the first of them."""
    rows = await conn.fetch(
        "SELECT DISTINCT order_id FROM waiting ORDER BY order_id LIMIT $1", OPEN_ORDERS_SHOWN_MAX
    )
    count: int = await conn.fetchval("SELECT count(DISTINCT order_id) FROM waiting")
    return count, [row[0] for row in rows]
