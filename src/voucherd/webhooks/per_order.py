"""Addresses of single orders: said at Create, beside the company's endpoints."""

from __future__ import annotations

from collections.abc import Sequence

from voucherd.db import Tx


async def note(tx: Tx, urls: Sequence[tuple[int, str]]) -> None:
    """Remember where the events of these orders go, in the transaction that makes the orders."""
    await tx.execute(
        "INSERT INTO order_webhook (order_id, url) SELECT * FROM unnest($1::bigint[], $2::text[])",
        [order_id for order_id, _ in urls],
        [url for _, url in urls],
    )
