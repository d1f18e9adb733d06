"""How webhooks do, in a few numbers that cost the same whatever waits."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.db import Connection

COUNTED_MAX: Final = 1_000
"""Endpoints that are counted; beyond that a figure means "at least"."""


class WebhookFigures(Struct, frozen=True):
    """Where endpoints stand, and how late the oldest that is due and in order is sent to."""

    late_s: float = 0.0
    failing: int = 0
    disabled: int = 0


async def take(conn: Connection) -> WebhookFigures:
    """The figures of now."""
    row = await conn.fetchrow(
        """
        SELECT coalesce(extract(epoch FROM now() - (SELECT next_at FROM webhook_queue WHERE NOT slow AND next_at < now()
                                                    ORDER BY next_at LIMIT 1)), 0)::float8,
               (SELECT count(*) FROM (SELECT FROM webhook_queue WHERE slow AND failures > 0 AND next_at IS NOT NULL
                                      LIMIT $1) failing),
               (SELECT count(*) FROM (SELECT FROM webhook WHERE disabled_reason IS NOT NULL LIMIT $1) disabled)
        """,
        COUNTED_MAX,
    )
    assert row is not None, "it has one row"
    return WebhookFigures(*row)
