"""The log of deliveries, and messages to be sent again: replays, recoveries and test messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.ids import State
from voucherd.webhooks import endpoints
from voucherd.webhooks.endpoints import Endpoint

KEPT: Final = timedelta(days=30)
"""How long deliveries are kept, and how far back a recovery goes."""
REMOVED_MAX: Final = 2_000
RECOVERED_PAGE: Final = 1_000
RECOVERED_MAX: Final = 50_000
"""Events that one recovery looks at; where there are more it says from when to go on."""
STATUSES: Final = ("waiting", "delivered", "failed")
EVENT_MAX: Final = 2**63 - 1
SCAN_MAX: Final = 10_000
"""Deliveries that one page looks at where filters may pass over most of them; the next page goes on behind."""


class SendAttempt(Struct, frozen=True):
    """One time that a delivery was tried."""

    number: int
    sent_at: datetime
    ms: int
    url: str
    http: int | None
    error: str | None
    head: str
    body: str


class Logged(Struct, frozen=True):
    """One delivery with its attempts, oldest first."""

    webhook_id: int
    event_id: int
    type: str
    status: str
    next_at: datetime | None
    created_at: datetime
    attempts: tuple[SendAttempt, ...]


class DeliveryPage(NamedTuple):
    """Deliveries, and the event behind which more may be found."""

    rows: list[Logged]
    before: int | None


class Recovered(Struct, frozen=True):
    """How many events were queued, and from when to go on if that was not all."""

    queued: int
    next_since: datetime | None


async def deliveries(
    conn: Connection,
    webhook_id: int | None,
    *,
    size: int,
    before: int | None = None,
    status: str | None = None,
    type_: str | None = None,
    oldest: bool = False,
) -> DeliveryPage:
    """Deliveries of an endpoint, or of all, newest events first or oldest; a page may be short although more follow."""
    # Two statements, because one for both would be planned for neither. The whole order of the key is asked for where
    # there is one endpoint: no other index can give that.
    way, behind, start = ("ASC", ">", 0) if oldest else ("DESC", "<", EVENT_MAX)
    whose, order = "$1::bigint IS NULL", f"event_id {way}, webhook_id"
    if webhook_id is not None:
        whose, order = "webhook_id >= $1 AND webhook_id <= $1", f"webhook_id {way}, event_id {way}"
    given = [webhook_id, start if before is None else before]
    scanned = f"""
        SELECT webhook_id, event_id, type, status, next_at, created_at FROM webhook_delivery
        WHERE {whose} AND event_id {behind} $2 ORDER BY {order}
    """  # noqa: S608 - Constants only.
    rows: list[Any] = await conn.fetch(
        f"""
        SELECT * FROM ({scanned} LIMIT $6) looked_at
        WHERE ($3::smallint IS NULL OR status = $3) AND ($4::text IS NULL OR type = $4)
        ORDER BY {order} LIMIT $5
        """,  # noqa: S608 - Constants only.
        *given,
        None if status is None else STATUSES.index(status),
        type_,
        size + 1,
        SCAN_MAX,
    )
    last = rows[size - 1] if len(rows) > size else None
    if last is None and (status or type_):
        # The page is short: it ends where it looked last, unless that was everything.
        last = await conn.fetchrow(f"{scanned} OFFSET $3 LIMIT 1", *given, SCAN_MAX - 1)
    page = rows[:size]
    attempts = await _attempts(conn, page)
    logged = [
        Logged(
            row["webhook_id"],
            row["event_id"],
            row["type"],
            STATUSES[row["status"]],
            row["next_at"],
            row["created_at"],
            tuple(attempts.get((row["webhook_id"], row["event_id"]), ())),
        )
        for row in page
    ]
    return DeliveryPage(logged, None if last is None else last["event_id"])


async def _attempts(conn: Connection, page: Sequence[Any]) -> dict[tuple[int, int], list[SendAttempt]]:
    """The attempts of these deliveries, oldest first, by endpoint and event."""
    tried = await conn.fetch(
        """
        SELECT a.webhook_id, a.event_id, a.number, a.sent_at, a.ms, a.url, a.http, a.error, a.head, a.body
        FROM unnest($1::bigint[], $2::bigint[]) AS d (webhook_id, event_id)
        CROSS JOIN LATERAL (
            SELECT * FROM webhook_attempt WHERE webhook_id = d.webhook_id AND event_id = d.event_id OFFSET 0) a
        ORDER BY a.webhook_id, a.event_id, a.number
        """,
        [row["webhook_id"] for row in page],
        [row["event_id"] for row in page],
    )
    attempts: dict[tuple[int, int], list[SendAttempt]] = {}
    for row in tried:
        attempts.setdefault((row["webhook_id"], row["event_id"]), []).append(SendAttempt(*tuple(row)[2:]))
    return attempts


async def ping(tx: Tx, endpoint: Endpoint) -> int:
    """Queue a test message for one endpoint; the id of its event. A disabled endpoint gets it when it is enabled."""
    assert endpoint.url is not None, "the caller names an address where the endpoint has none"
    await endpoints.lock(tx, endpoint.id)
    event_id = await tx.fetchval(
        """
        INSERT INTO event (at, company_id, state, type, data)
        VALUES (now(), $1, $2, $3, jsonb_build_object('message', 'Hello from voucherd.')) RETURNING id
        """,
        endpoint.company_id,
        int(endpoint.state),
        kinds.PING,
    )
    await tx.execute(
        "INSERT INTO webhook_delivery (webhook_id, event_id, type, next_at) VALUES ($1, $2, $3, now())",
        endpoint.id,
        event_id,
        kinds.PING,
    )
    await _make_due(tx, [endpoint.id])
    return int(event_id)


async def replay(tx: Tx, event: Event, chosen: Sequence[Endpoint]) -> int:
    """Send an event once more, to those of these endpoints that are enabled; to how many."""
    numbers = sorted(endpoint.id for endpoint in chosen if endpoint.enabled)
    await _lock_all(tx, numbers)
    done = await tx.fetch(
        """
        INSERT INTO webhook_delivery (webhook_id, event_id, type, url, next_at)
        SELECT w.id, $2, $3, o.url, now() FROM webhook w
        LEFT JOIN order_webhook o ON w.url IS NULL AND o.order_id = $4
        WHERE w.id = ANY($1::bigint[]) AND (w.url IS NOT NULL OR o.url IS NOT NULL)
        ON CONFLICT (webhook_id, event_id) DO UPDATE SET status = 0, tries = 0, next_at = now()
        RETURNING webhook_id
        """,
        numbers,
        event.id,
        event.type,
        event.order_id,
    )
    await _make_due(tx, [row["webhook_id"] for row in done])
    return len(done)


async def queue_missed(tx: Tx, endpoint: Endpoint, events: Sequence[Event]) -> int:
    """Queue those of these events that failed, or that the endpoint never got; how many."""
    await endpoints.lock(tx, endpoint.id)
    done = await tx.fetch(
        """
        INSERT INTO webhook_delivery AS d (webhook_id, event_id, type, url, next_at)
        SELECT w.id, e.id, e.type, CASE WHEN w.url IS NULL THEN o.url END, now()
        FROM webhook w CROSS JOIN event e LEFT JOIN order_webhook o ON o.order_id = e.order_id
        WHERE w.id = $1 AND e.id = ANY($2::bigint[]) AND (w.url IS NOT NULL OR o.url IS NOT NULL)
          -- What lies behind the place of the fan-out is its own to deliver.
          AND e.id <= (SELECT upto FROM webhook_cursor)
        ON CONFLICT (webhook_id, event_id) DO UPDATE SET status = 0, tries = 0, next_at = now() WHERE d.status = 2
        RETURNING 1
        """,
        endpoint.id,
        [event.id for event in events],
    )
    if done:
        await _make_due(tx, [endpoint.id])
    return len(done)


async def hasten(tx: Tx, company_id: int, state: State, by: timedelta) -> int:
    """Bring closer, by so much, what the company's endpoints wait for; how many deliveries (OP-146)."""
    assert state is State.SANDBOX, "the time of real deliveries is the real one"
    rows = await tx.fetch(
        "SELECT id FROM webhook WHERE company_id = $1 AND state = $2 ORDER BY id", company_id, int(state)
    )
    numbers = [row["id"] for row in rows]
    await _lock_all(tx, numbers)
    hastened = await tx.execute(
        "UPDATE webhook_delivery SET next_at = next_at - $2::interval"
        " WHERE webhook_id = ANY($1::bigint[]) AND status = 0",
        numbers,
        by,
    )
    # One that is being sent to is put back to where its next delivery is due.
    await tx.execute(
        """
        UPDATE webhook_queue SET failing_since = failing_since - $2::interval,
               next_at = CASE WHEN leased THEN next_at ELSE next_at - $2 END
        WHERE webhook_id = ANY($1::bigint[])
        """,
        numbers,
        by,
    )
    await tx.execute(
        "UPDATE webhook SET old_until = old_until - $2::interval"
        " WHERE id = ANY($1::bigint[]) AND old_until IS NOT NULL",
        numbers,
        by,
    )
    return int(hastened.rpartition(" ")[2])


async def sweep(pool: Pool) -> int:
    """Remove deliveries that were kept long enough; how many."""
    gone = await pool.fetchval(
        """
        WITH gone AS (
            DELETE FROM webhook_delivery d USING (
                SELECT webhook_id, event_id FROM webhook_delivery WHERE created_at < now() - $1::interval
                ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED) old
            WHERE d.webhook_id = old.webhook_id AND d.event_id = old.event_id RETURNING 1)
        SELECT count(*) FROM gone
        """,
        KEPT,
        REMOVED_MAX,
    )
    return int(gone)


async def _lock_all(tx: Tx, numbers: Sequence[int]) -> None:
    await tx.execute(
        "SELECT FROM webhook_queue WHERE webhook_id = ANY($1::bigint[]) ORDER BY webhook_id FOR UPDATE",
        list(numbers),
    )


async def _make_due(tx: Tx, numbers: Sequence[int]) -> None:
    """Somebody asks for it now: an endpoint that was left alone for its failures is tried at once."""
    await tx.execute(
        """
        UPDATE webhook_queue q SET next_at = now() FROM webhook w
        WHERE q.webhook_id = ANY($1::bigint[]) AND w.id = q.webhook_id AND w.enabled AND NOT q.leased
        """,
        list(numbers),
    )
