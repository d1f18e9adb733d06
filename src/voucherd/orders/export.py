"""The codes of an order left as a file (OP-56)."""

from __future__ import annotations

from voucherd.db import Connection
from voucherd.ids import State


async def mark_downloaded(conn: Connection, order_id: int, company_id: int, state: State) -> None:
    """Note it, once. Neither the order's version nor its time moves: who reads a file changes no order."""
    await conn.execute(
        "UPDATE orders SET downloaded = true WHERE id = $1 AND company_id = $2 AND (id & 1) = $3 AND NOT downloaded",
        order_id,
        company_id,
        int(state),
    )
