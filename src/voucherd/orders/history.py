"""What happened to one order, and who was told of it, for the operator. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection

STATUSES: Final = ("waiting", "delivered", "failed")


class Happened(Struct, frozen=True):
    """One event of an order."""

    id: int
    at: datetime
    type: str
    seq: int


class Notification(Struct, frozen=True):
    """One delivery of an event to an endpoint, and how it went the last time that it was tried."""

    url: str
    type: str
    status: str
    tries: int
    http: int | None
    error: str | None
    next_at: datetime | None


async def happened(conn: Connection, order_id: int, limit: int) -> list[Happened]:
    """The events of an order, newest first."""
    rows = await conn.fetch(
        "SELECT id, at, type, seq FROM event WHERE order_id = $1 ORDER BY seq DESC LIMIT $2", order_id, limit
    )
    return [Happened(*row) for row in rows]


async def told(conn: Connection, event_ids: Sequence[int], limit: int) -> list[Notification]:
    """The deliveries of these events, newest first."""
    rows = await conn.fetch(
        """
        SELECT coalesce(d.url, w.url, '') AS url, d.type, d.status, d.tries, a.http, a.error, d.next_at
        FROM webhook_delivery d JOIN webhook w ON w.id = d.webhook_id
        LEFT JOIN LATERAL (
            SELECT http, error FROM webhook_attempt WHERE webhook_id = d.webhook_id AND event_id = d.event_id
            ORDER BY number DESC LIMIT 1) a ON true
        WHERE d.event_id = ANY($1::bigint[]) ORDER BY d.event_id DESC, d.webhook_id LIMIT $2
        """,
        list(event_ids),
        limit,
    )
    return [
        Notification(
            row["url"],
            row["type"],
            STATUSES[row["status"]],
            row["tries"],
            row["http"],
            row["error"],
            row["next_at"],
        )
        for row in rows
    ]
