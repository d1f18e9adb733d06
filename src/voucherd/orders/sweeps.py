"""The sweeps: what time alone does to orders. Each is safe to run anywhere, any number of times, at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

import asyncpg

from voucherd.db import Pool, Tx
from voucherd.orders import store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules import waiting
from voucherd.vault.model import Shelf

SWEEP_MAX: Final = 500
EXPIRED_KEPT: Final = timedelta(days=30)
"""How long an order that was never confirmed can still be found (OP-40)."""
LATE_COMMIT_MAX: Final = timedelta(minutes=10)
"""The mark stays this far behind, for orders whose creation committed late."""
SWEEP_S_MAX: Final = 600.0


async def end_waiting(pool: Pool, caches: OrderCaches) -> list[Order]:
    """Cancel and refund what is still undelivered at its deadline (OP-44), a crashed Resolve included (OP-46)."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await conn.fetch(
            "SELECT DISTINCT order_id FROM (SELECT order_id FROM waiting WHERE deadline_at <= now() "
            "ORDER BY deadline_at LIMIT $1) late",
            SWEEP_MAX,
        )
        order_ids = [row["order_id"] for row in rows]
        if not order_ids:
            return []
        facts = await store.load(conn, order_ids, caches)
        ruling = waiting.end_waiting(facts, sorted(order_ids))
        await store.save(conn, ruling)
    return [answer for answer in ruling.answers if isinstance(answer, Order)]


async def end_unserved(
    pool: Pool, caches: OrderCaches, order_ids: Collection[int], exhausted: Collection[tuple[Shelf, int]]
) -> list[Order]:
    """Cancel and refund what must not wait for codes that nobody sells any more (OP-140)."""
    async with pool.acquire() as conn, conn.transaction():
        facts = await store.load(conn, sorted(order_ids), caches, with_shelves=True)
        ruling = waiting.end_unserved(facts, exhausted)
        await store.save(conn, ruling)
    return [answer for answer in ruling.answers if isinstance(answer, Order)]


async def announce_expired(pool: Pool, window: timedelta) -> int:
    """Append `order.expired`, once, to every order whose confirmation window has passed (OP-40)."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await _unconfirmed(conn, "expired", window, timedelta(), _NOT_TOLD)
        return await tell_expired(conn, [row["id"] for row in rows if row["late"]])


async def tell_expired(tx: Tx, order_ids: list[int]) -> int:
    """Append `order.expired` to those of these orders that are not confirmed and were not told of it; how many."""
    if not order_ids:
        return 0
    await tx.execute(_LOCK, order_ids)
    told = await tx.fetchval(
        f"""
        WITH bumped AS (
            UPDATE orders SET version = version + 1 WHERE id = ANY($1::bigint[]) AND status = 0 {_NOT_TOLD}
            RETURNING id, company_id, version
        ), told AS (
            INSERT INTO event (at, company_id, state, type, order_id, seq)
            SELECT now(), company_id, (id & 1)::smallint, 'order.expired', id, version FROM bumped RETURNING 1
        )
        SELECT count(*) FROM told
        """,  # noqa: S608 - A constant of ours.
        order_ids,
    )
    return int(told)


async def remove_expired(pool: Pool, window: timedelta) -> int:
    """Remove orders that were never confirmed, 30 days after their window (OP-40)."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await _unconfirmed(conn, "removed", window, EXPIRED_KEPT)
        order_ids = [row["id"] for row in rows if row["late"]]
        if not order_ids:
            return 0
        await conn.execute(_LOCK, order_ids)
        gone = await conn.execute("DELETE FROM orders WHERE id = ANY($1::bigint[]) AND status = 0", order_ids)
    return int(gone.rpartition(" ")[2])


# From one look to the next each order is looked at once: the index of companies is entered at the mark, one step for
# each company. Pairs are compared because they lead to that index alone, whatever the server knows of the table.
_NEXT: Final = """
    SELECT o.id, o.created_at, o.expires_at < now() - $3::interval AS late
    FROM company c CROSS JOIN (VALUES (0), (1)) AS s (state) CROSS JOIN LATERAL (
        SELECT id, created_at, expires_at FROM orders
        WHERE company_id = c.id AND (id & 1) = s.state AND (created_at, id) >= ($1::timestamptz, 0)
          AND (created_at, id) < (now() - $2::interval - $3::interval, 0) AND status = 0 {also}
        ORDER BY created_at, id LIMIT $4) o
    ORDER BY o.created_at LIMIT $4
"""
_NOT_TOLD: Final = (
    "AND NOT EXISTS (SELECT FROM event e WHERE e.order_id = orders.id AND e.type = 'order.expired')"
)
_LOCK: Final = "SELECT FROM orders WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE"


async def _unconfirmed(
    tx: Tx, mark: str, window: timedelta, kept: timedelta, also: str = ""
) -> list[asyncpg.Record]:
    """The next orders that were not confirmed in their window and then kept for so long; moves the mark behind them."""
    # One sweep at a time moves the mark; the others leave it to that one.
    if not await tx.fetchval(
        "SELECT pg_try_advisory_xact_lock(hashtext($1 || '/' || current_schema()))", mark
    ):
        return []
    upto = await tx.fetchval("SELECT coalesce((SELECT upto FROM sweep WHERE name = $1), '-infinity')", mark)
    # The first look of all, and one after a long pause, may be at millions of orders.
    await tx.execute(f"SET LOCAL statement_timeout = '{SWEEP_S_MAX:.0f}s'")
    rows = await tx.fetch(_NEXT.format(also=also), upto, window, kept, SWEEP_MAX, timeout=SWEEP_S_MAX)
    # An order made under a longer window is not late yet: the mark waits for it.
    early = [row["created_at"] for row in rows if not row["late"]]
    whole = [rows[-1]["created_at"]] if len(rows) == SWEEP_MAX else []
    await tx.execute(
        """
        INSERT INTO sweep (name, upto)
        VALUES ($1, least($2, now() - greatest($3::interval + $4::interval, $5::interval)))
        ON CONFLICT (name) DO UPDATE SET upto = excluded.upto
        """,
        mark,
        min(early + whole, default=None),
        window,
        kept,
        LATE_COMMIT_MAX,
    )
    return rows
