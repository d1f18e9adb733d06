"""The tables of the archive, and what it reads of orders: every statement of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from voucherd.archive.model import (
    ORDER,
    PARTS,
    ArchivedRow,
    ArchiveFile,
    ArchiveMonth,
    next_month,
    start_of,
)
from voucherd.db import Connection, Pool, Tx

_MONTHS: Final = "SELECT month, orders, last_at, written_at, removed_at FROM archive_month"
_FILES: Final = "SELECT month, name, first_id, last_id, orders, bytes, sha256 FROM archive_file"
# One step into the index of companies for each company and state, whatever else lies in the table. Pairs lead to that
# index alone.
_CREATED: Final = """
    company c CROSS JOIN (VALUES (0), (1)) AS s (state) CROSS JOIN LATERAL (
        SELECT id, status, created_at FROM orders
        WHERE company_id = c.id AND (id & 1) = s.state AND (created_at, id) >= ($1::timestamptz, 0)
          AND (created_at, id) < ($2::timestamptz, 0)
        ORDER BY created_at, id {limit}) o
"""
# These stay in the tables: a PIN may still be changed, two people decided about an order, or a purchase is not over.
_STAYS: Final = """
    EXISTS (SELECT FROM order_pin p WHERE p.order_id = o.id)
    OR EXISTS (SELECT FROM approval p WHERE p.order_id = o.id)
    OR EXISTS (SELECT FROM attempt_line l JOIN attempt a ON a.id = l.attempt_id
               WHERE l.order_id = o.id AND a.status < 3)
"""


async def be_alone(conn: Connection) -> bool:
    """Whether this session is the only one that archives, until it ends."""
    return bool(
        await conn.fetchval("SELECT pg_try_advisory_lock(hashtext('orders to files/' || current_schema()))")
    )


async def months(conn: Connection) -> list[ArchiveMonth]:
    """Every month that was written, in order."""
    return [ArchiveMonth(*row) for row in await conn.fetch(f"{_MONTHS} ORDER BY month")]


async def files(conn: Connection, month: date) -> list[ArchiveFile]:
    """The files of a month, in order."""
    return [ArchiveFile(*row) for row in await conn.fetch(f"{_FILES} WHERE month = $1 ORDER BY name", month)]


async def files_over(conn: Connection | Pool, order_id: int) -> list[ArchiveFile]:
    """The files that the order may be in: those whose numbers reach over its own."""
    rows = await conn.fetch(f"{_FILES} WHERE first_id <= $1 AND last_id >= $1 ORDER BY month, name", order_id)
    return [ArchiveFile(*row) for row in rows]


async def is_there(conn: Connection) -> bool:
    """Whether anything was archived; a database that is yet to be migrated has no archive."""
    if not await conn.fetchval("SELECT to_regclass('archive_month') IS NOT NULL"):
        return False
    return bool(await conn.fetchval("SELECT EXISTS (SELECT FROM archive_month)"))


async def begins_at(conn: Connection) -> datetime | None:
    """The moment before which orders are in the archive, and in no list; None where there is no archive."""
    newest = await conn.fetchval("SELECT max(month) FROM archive_month")
    return None if newest is None else start_of(next_month(newest))


async def sold_until(conn: Connection) -> datetime | None:
    """The last moment at which something of an archived order was sold; None where there is no archive."""
    found: datetime | None = await conn.fetchval("SELECT max(last_at) FROM archive_month")
    return found


async def today(conn: Connection) -> date:
    """The day by the database's clock, in UTC."""
    found: date = await conn.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    return found


async def oldest(conn: Connection, until: datetime) -> datetime | None:
    """When the oldest order was made that is in the tables; None if there is none before the moment."""
    found: datetime | None = await conn.fetchval(
        f"SELECT min(o.created_at) FROM {_CREATED.format(limit='LIMIT 1')}",  # noqa: S608 - Constants of ours.
        start_of(date(1, 1, 1)),
        until,
    )
    return found


async def open_orders(conn: Connection, month: date) -> int:
    """How many orders of the month are not over."""
    return int(
        await conn.fetchval(
            f"SELECT count(*) FROM {_CREATED.format(limit='')} WHERE o.status IN (0, 1)",  # noqa: S608 - Ours.
            start_of(month),
            start_of(next_month(month)),
        )
    )


async def has_closed(conn: Connection, month: date) -> bool:
    """Whether an order of the month may leave the tables."""
    return bool(
        await conn.fetchval(
            f"SELECT EXISTS (SELECT FROM {_CREATED.format(limit='')} WHERE o.status IN (2, 3, 4)"  # noqa: S608 - Ours.
            f" AND NOT ({_STAYS}))",
            start_of(month),
            start_of(next_month(month)),
        )
    )


async def numbers(conn: Connection, day: date) -> list[int]:
    """The orders of a day that may leave the tables, in the order of their numbers."""
    rows = await conn.fetch(
        f"SELECT o.id FROM {_CREATED.format(limit='')} WHERE o.status IN (2, 3, 4) AND NOT ({_STAYS})"  # noqa: S608 - Ours.
        " ORDER BY o.id",
        start_of(day),
        start_of(day) + timedelta(days=1),
    )
    return [row[0] for row in rows]


async def read(conn: Connection, order_ids: Sequence[int], *, lock: bool = False) -> list[ArchivedRow]:
    """The orders as the archive keeps them, in the order of their numbers; locked, if they are to leave."""
    rows = await conn.fetch(
        f"SELECT {', '.join(ORDER)} FROM orders WHERE id = ANY($1::bigint[]) ORDER BY id"  # noqa: S608 - Ours.
        f"{' FOR UPDATE' if lock else ''}",
        order_ids,
    )
    found: dict[int, dict[str, Any]] = {
        row["id"]: {**row, "webhook_url": None, **{part: [] for part in PARTS}} for row in rows
    }
    for part, (table, columns, order) in PARTS.items():
        wanted = ", ".join(f"{name}::text" if name == "attempt_id" else name for name in columns)
        for row in await conn.fetch(
            f"SELECT order_id, {wanted} FROM {table} WHERE order_id = ANY($1::bigint[])"  # noqa: S608 - Ours.
            f" ORDER BY order_id, {order}",
            list(found),
        ):
            found[row["order_id"]][part].append({name: row[name] for name in columns})
    for order_id, url in await conn.fetch(
        "SELECT order_id, url FROM order_webhook WHERE order_id = ANY($1::bigint[])", list(found)
    ):
        found[order_id]["webhook_url"] = url
    return list(found.values())


async def note_month(tx: Tx, month: date, last_at: datetime, written: Sequence[ArchiveFile]) -> None:
    """Write down that a month is in these files."""
    await _as_archive(tx)
    orders = sum(one.orders for one in written)
    await tx.execute(
        "INSERT INTO archive_month (month, orders, last_at) VALUES ($1, $2, $3)", month, orders, last_at
    )
    await tx.executemany(
        "INSERT INTO archive_file (month, name, first_id, last_id, orders, bytes, sha256)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        [(o.month, o.name, o.first_id, o.last_id, o.orders, o.size, o.sha256) for o in written],
    )


async def remove(tx: Tx, month: date, order_ids: Sequence[int]) -> int:
    """Take these orders out of the tables; how many were there."""
    return int(await tx.fetchval("SELECT remove_archived($1, $2)", month, order_ids))


async def note_removed(tx: Tx, month: date) -> None:
    """Write down that all orders of a month have left the tables that do."""
    await _as_archive(tx)
    await tx.execute("UPDATE archive_month SET removed_at = now() WHERE month = $1", month)


async def _as_archive(tx: Tx) -> None:
    """Let this transaction write the tables of the archive, if it is the owner's."""
    await tx.execute("SELECT set_config('voucherd.archiving', 'on', true)")
