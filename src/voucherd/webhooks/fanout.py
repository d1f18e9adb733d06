"""From events to deliveries: set-based, one step at a time, and the place in the feed moves in the same commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voucherd.db import Connection, Pool, Tx
from voucherd.events import feed, kinds
from voucherd.events.feed import Cursor, Event
from voucherd.webhooks.retries import BROKEN_FAILURES

EVENTS_MAX: Final = 1_000
"""Events of one step."""
ROWS_MAX: Final = 20_000
"""Deliveries of one step, about: an event that every company is told of makes many."""

TYPES: Final = kinds.FOR_COMPANIES - {kinds.PING}
"""Events that are sent to every endpoint that asked for them. A ping goes to the one endpoint that it is for."""

MATCHES: Final = """
    FROM event e
    JOIN webhook w ON w.company_id = e.company_id AND w.state = e.state
    LEFT JOIN order_webhook o ON o.order_id = e.order_id
    WHERE e.type = ANY($3) AND (w.types = '{}' OR e.type = ANY(w.types)) AND (w.url IS NOT NULL OR o.url IS NOT NULL)
"""
"""Events of one company and the endpoints that want them; orders' own addresses through the endpoint for those."""
BROADCASTS: Final = """
    FROM event e
    JOIN webhook w ON e.state IS NULL OR w.state = e.state
    WHERE e.company_id IS NULL AND e.type = ANY($3) AND (w.types = '{}' OR e.type = ANY(w.types)) AND w.url IS NOT NULL
"""
_RANGE: Final = "e.id > $1 AND e.id <= $2"
# An endpoint is told of what happens from its making on; of a feed that stood still for days it does not get the past.
_SINCE: Final = "w.enabled AND e.at >= w.created_at - interval '1 minute'"


async def fan_out(pool: Pool) -> int:
    """Make deliveries of the next events; how many events. One at a time over all workers."""
    async with pool.acquire() as conn:
        upto = await conn.fetchval("SELECT upto FROM webhook_cursor")
        try:
            page = await feed.after(conn, Cursor(upto), limit=EVENTS_MAX)
        except feed.Removed:
            # Nobody sent anything for months: what is no longer kept can't be sent any more.
            page = await feed.after(conn, None, limit=EVENTS_MAX)
        stop = await _stop(conn, page.events) or page.cursor.place
        if stop <= upto:
            return 0
        async with conn.transaction():
            free = await conn.fetchval(
                "SELECT pg_try_advisory_xact_lock(hashtext('webhooks/' || current_schema()))"
            )
            if not free or upto != await conn.fetchval("SELECT upto FROM webhook_cursor"):
                return 0
            if page.events:
                await _deliver(conn, upto, stop)
            await conn.execute("UPDATE webhook_cursor SET upto = $1", stop)
    return len(page.events)


async def _stop(conn: Connection, events: Sequence[Event]) -> int | None:
    """Where to stop short of the page's end, because events for everybody would make too many rows; None: nowhere."""
    told_all = [event for event in events if event.type in kinds.FOR_ALL]
    if not told_all:
        return None
    endpoints = await conn.fetchval("SELECT count(*) FROM webhook WHERE enabled")
    most = max(1, ROWS_MAX // max(1, endpoints))
    return told_all[most].id - 1 if len(told_all) > most else None


async def _deliver(tx: Tx, start: int, stop: int) -> None:
    given = (start, stop, list(TYPES))
    found = await tx.fetch(
        f"SELECT w.id {MATCHES} AND {_RANGE} AND {_SINCE} UNION SELECT w.id {BROADCASTS} AND {_RANGE} AND {_SINCE}",
        *given,
    )
    numbers = sorted(row["id"] for row in found)
    if not numbers:
        return
    # Locked first and in order, and looked at afterwards: a transaction that releases an endpoint sees these,
    # or this sees that it was released.
    await tx.execute(
        "SELECT FROM webhook_queue WHERE webhook_id = ANY($1::bigint[]) ORDER BY webhook_id FOR UPDATE",
        numbers,
    )
    await tx.execute(
        f"""
        INSERT INTO webhook_delivery (webhook_id, event_id, type, url, next_at)
        SELECT w.id, e.id, e.type, CASE WHEN w.url IS NULL THEN o.url END, now() + coalesce((
            SELECT make_interval(secs => delay_s) FROM webhook_delay l WHERE l.order_id = e.order_id), '0')
        {MATCHES} AND {_RANGE} AND {_SINCE} AND w.id = ANY($4::bigint[])
        UNION ALL
        SELECT w.id, e.id, e.type, NULL, now() {BROADCASTS} AND {_RANGE} AND {_SINCE} AND w.id = ANY($4::bigint[])
        ON CONFLICT DO NOTHING
        """,  # noqa: S608 - Constants only.
        *given,
        numbers,
    )
    await make_due(tx, numbers)


async def make_due(tx: Tx, numbers: Sequence[int]) -> None:
    """Let endpoints with new deliveries be taken, unless one is taken already, disabled, or left alone for a while."""
    await tx.execute(
        """
        UPDATE webhook_queue q SET next_at = now() FROM webhook w
        WHERE q.webhook_id = ANY($1::bigint[]) AND w.id = q.webhook_id AND w.enabled
          AND (q.next_at IS NULL OR (q.next_at > now() AND NOT q.leased AND q.failures < $2))
        """,
        list(numbers),
        BROKEN_FAILURES,
    )
