"""Background delivery: lines that were paid and wait for codes get them when the shelf is filled again.

Companies take turns, and within a company the oldest order comes first (OP-48). The look is cheap and unlocked; what
it finds is decided again under locks, so any number of workers may look at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from voucherd.db import Connection, Pool
from voucherd.orders import store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules import waiting
from voucherd.orders.rules.waits import Wait
from voucherd.orders.wait_store import COLUMNS, wait_of

TURN_MAX: Final = 64
"""Waits that one round takes from one company: its share of a batch, not its whole backlog."""
BATCH_MAX: Final = 256
SHELVES_MAX: Final = 100
TURNS_MAX: Final = 10_000

Turns: TypeAlias = dict[tuple[int, int, int], int]
"""The company that was served last from each shelf: the next one begins, also when codes come in one by one."""

# A loose index scan: the distinct shelves that someone waits for, one index probe each.
_SHELVES = """
    WITH RECURSIVE wanted AS (
        (SELECT state, product_id, face_minor FROM waiting ORDER BY state, product_id, face_minor LIMIT 1)
        UNION ALL
        SELECT next.* FROM wanted w CROSS JOIN LATERAL (
            SELECT n.state, n.product_id, n.face_minor FROM waiting n
            WHERE (n.state, n.product_id, n.face_minor) > (w.state, w.product_id, w.face_minor)
            ORDER BY n.state, n.product_id, n.face_minor LIMIT 1) next
    )
    SELECT w.* FROM wanted w
    WHERE EXISTS (SELECT FROM lot l WHERE l.product_id = w.product_id AND l.face_minor = w.face_minor
                  AND l.state = w.state AND NOT l.exhausted AND NOT (l.generated AND EXISTS (
                      SELECT FROM offer o JOIN supplier s ON s.id = o.supplier_id
                      WHERE o.product_id = w.product_id AND o.state = w.state AND o.active AND s.active))
                  AND (l.expires_at IS NULL OR l.expires_at > now()))
    LIMIT $1
"""

# Each company's oldest waits, numbered, so that every company's first comes before anyone's second.
_TURNS = f"""
    WITH RECURSIVE companies AS (
        (SELECT company_id FROM waiting WHERE state = $1 AND product_id = $2 AND face_minor = $3
         ORDER BY company_id LIMIT 1)
        UNION ALL
        SELECT next.company_id FROM companies c CROSS JOIN LATERAL (
            SELECT company_id FROM waiting WHERE state = $1 AND product_id = $2 AND face_minor = $3
            AND company_id > c.company_id ORDER BY company_id LIMIT 1) next
    )
    SELECT {COLUMNS} FROM companies c CROSS JOIN LATERAL (
        SELECT *, row_number() OVER (ORDER BY order_id, line_from) AS turn FROM (
            SELECT * FROM waiting WHERE state = $1 AND product_id = $2 AND face_minor = $3
            AND company_id = c.company_id AND not_before <= now() AND attempt_id IS NULL
            ORDER BY order_id, line_from LIMIT $4) oldest) w
    ORDER BY w.turn, w.company_id <= $6, w.company_id LIMIT $5
"""  # noqa: S608 - Constants only.


async def deliver_waiting(pool: Pool, caches: OrderCaches, turns: Turns) -> list[Order]:
    """Serve one batch from every shelf that has codes and people who wait; the orders that moved."""
    moved: list[Order] = []
    async with pool.acquire() as conn:
        for row in await conn.fetch(_SHELVES, SHELVES_MAX):
            shelf = (row["state"], row["product_id"], row["face_minor"])
            rows = await conn.fetch(_TURNS, *shelf, TURN_MAX, BATCH_MAX, turns.get(shelf, 0))
            waits = [wait_of(row) for row in rows]
            served = await _deliver(conn, waits, caches) if waits else []
            if served:
                if len(turns) >= TURNS_MAX:
                    turns.clear()
                turns[shelf] = served[-1].company_id
                moved += served
    return moved


async def _deliver(conn: Connection, waits: Sequence[Wait], caches: OrderCaches) -> list[Order]:
    async with conn.transaction():
        facts = await store.load(conn, {wait.order_id for wait in waits}, caches, with_shelves=True)
        ruling = waiting.deliver_waiting(facts, waits)
        await store.save(conn, ruling)
    return [answer for answer in ruling.answers if isinstance(answer, Order)]
