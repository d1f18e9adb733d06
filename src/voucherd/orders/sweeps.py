"""The sweeps: what time alone does to orders. Each is safe to run anywhere, any number of times, at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from voucherd.db import Pool, Tx
from voucherd.orders import store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules import waiting

SWEEP_MAX: Final = 500
EXPIRED_KEPT: Final = timedelta(days=30)
"""How long an order that was never confirmed can still be found (OP-40)."""
LATE_COMMIT_MAX: Final = timedelta(minutes=10)
"""The mark stays this far behind, for orders whose creation committed late."""


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


async def announce_expired(pool: Pool, window: timedelta) -> int:
    """Append `order.expired`, once, to every order whose confirmation window has passed (OP-40)."""
    async with pool.acquire() as conn, conn.transaction():
        # One sweep at a time moves the mark; the others leave it to that one.
        if not await conn.fetchval(
            "SELECT pg_try_advisory_xact_lock(hashtext('expired/' || current_schema()))"
        ):
            return 0
        upto = await conn.fetchval("SELECT upto FROM sweep WHERE name = 'expired'")
        rows = await conn.fetch(
            """
            SELECT o.id, o.created_at, o.expires_at < now() AS late FROM orders o
            WHERE o.status = 0 AND o.created_at < now() - $2::interval
              AND ($1::timestamptz IS NULL OR o.created_at >= $1)
              AND NOT EXISTS (SELECT FROM event e WHERE e.order_id = o.id AND e.type = 'order.expired')
            ORDER BY o.created_at LIMIT $3
            """,
            upto,
            window,
            SWEEP_MAX,
        )
        told = await _tell_expired(conn, [row["id"] for row in rows if row["late"]])
        # An order made under a longer window is not late yet: the mark waits for it.
        early = [row["created_at"] for row in rows if not row["late"]]
        whole = [rows[-1]["created_at"]] if len(rows) == SWEEP_MAX else []
        await conn.execute(
            """
            INSERT INTO sweep (name, upto) VALUES ('expired', least($1, now() - $2::interval - $3::interval))
            ON CONFLICT (name) DO UPDATE SET upto = excluded.upto
            """,
            min(early + whole, default=None),
            window,
            LATE_COMMIT_MAX,
        )
    return told


async def _tell_expired(tx: Tx, order_ids: list[int]) -> int:
    if not order_ids:
        return 0
    await tx.execute("SELECT FROM orders WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE", order_ids)
    told = await tx.fetchval(
        """
        WITH bumped AS (
            UPDATE orders SET version = version + 1 WHERE id = ANY($1::bigint[]) AND status = 0
            RETURNING id, company_id, version
        ), told AS (
            INSERT INTO event (at, company_id, state, type, order_id, seq)
            SELECT now(), company_id, (id & 1)::smallint, 'order.expired', id, version FROM bumped RETURNING 1
        )
        SELECT count(*) FROM told
        """,
        order_ids,
    )
    return int(told)


async def remove_expired(pool: Pool) -> int:
    """Remove orders that were never confirmed, 30 days after their window (OP-40)."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await conn.fetch(
            """
            SELECT id FROM orders WHERE id IN (
                SELECT id FROM orders WHERE status = 0 AND created_at < now() - $1::interval
                AND expires_at < now() - $1::interval LIMIT $2)
            ORDER BY id FOR UPDATE
            """,
            EXPIRED_KEPT,
            SWEEP_MAX,
        )
        await conn.execute(
            "DELETE FROM orders WHERE id = ANY($1::bigint[]) AND status = 0", [row["id"] for row in rows]
        )
    return len(rows)
