"""What single orders say at Create about their webhooks: an address of their own, and in the sandbox how late."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd.db import Tx


async def note(tx: Tx, urls: Sequence[tuple[int, str]]) -> None:
    """Remember where the events of these orders go, in the transaction that makes the orders."""
    if urls:
        await tx.execute(
            "INSERT INTO order_webhook (order_id, url) SELECT * FROM unnest($1::bigint[], $2::text[])",
            [order_id for order_id, _ in urls],
            [url for _, url in urls],
        )


async def delay(tx: Tx, delays: Sequence[tuple[int, int]]) -> None:
    """Remember by how many seconds the events of these orders are to be late, in the same transaction (OP-145)."""
    if delays:
        await tx.execute(
            "INSERT INTO webhook_delay (order_id, delay_s) SELECT * FROM unnest($1::bigint[], $2::int[])",
            [order_id for order_id, _ in delays],
            [delay_s for _, delay_s in delays],
        )
