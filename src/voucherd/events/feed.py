"""The feed: the event log from any place on, oldest first. A reader who goes on from a cursor misses nothing.

Ids are taken in one order and committed in another, so a reader never passes the mark behind which an event may still
come to light; `settle_events` in the database moves it. To be called outside of transactions.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

import asyncpg
from msgspec import Struct

from voucherd.db import Connection, Pool, as_tenant
from voucherd.events import kinds
from voucherd.ids import State

SCAN_MAX: Final = 2_000
"""Events that one read looks at where a filter may pass over most of them."""

REMOVE_MAX: Final = 5_000
"""Events that one sweep removes."""

KEPT: Final = timedelta(days=90)
LATE_COMMIT_MAX: Final = timedelta(minutes=10)
"""An event carries the time at which its transaction began: so much later may it stand in the feed."""


class Cursor(Struct, frozen=True, order=True):
    """A place in the feed: everything up to it is known to its holder."""

    place: int


START: Final = Cursor(0)


class Event(Struct, frozen=True):
    """One row of the log."""

    id: int
    at: datetime
    company_id: int | None
    state: State | None
    type: str
    order_id: int | None
    seq: int | None
    data: str | None
    """JSON, as it was stored; None for an event that type, order and seq tell completely."""
    reference: str | None = None
    """The client's own text of the order, as long as there is a row of it."""

    @property
    def cursor(self) -> Cursor:
        """The place right behind this event."""
        return Cursor(self.id)

    def concerns(self, company_id: int, state: State) -> bool:
        """Whether this company, with a key of this state, is told."""
        if self.company_id is None:
            return self.type in kinds.FOR_ALL and self.state in (None, state)
        return self.company_id == company_id and self.state == state and self.type in kinds.FOR_COMPANIES


class FeedPage(Struct, frozen=True):
    """Events, and where to go on; `more` if there is something to read there already."""

    events: list[Event]
    cursor: Cursor
    more: bool


class EventFilters(Struct, frozen=True):
    """Which events are wanted."""

    types: Collection[str] | None = None
    """None: all."""
    order_id: int | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None

    @property
    def sparse(self) -> bool:
        """Whether a read may find few among many."""
        return self.types is not None or self.date_from is not None or self.date_to is not None


EVERYTHING: Final = EventFilters()


class Removed(Exception):
    """The cursor is from so long ago that what followed it is no longer kept."""


_COLUMNS: Final = "id, at, company_id, state, type, order_id, seq, data"
_REFERENCE: Final = "(SELECT reference FROM orders WHERE orders.id = order_id) AS reference"
_ALL: Final = f"SELECT {_COLUMNS} FROM event WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3"  # noqa: S608 - Ours.
# An order has a few events: OFFSET has them found first, or the server walks all events between the two places.
_ORDER: Final = f"""
    SELECT {_COLUMNS} FROM (SELECT * FROM event WHERE order_id = $7 OFFSET 0) own
    WHERE id > $1 AND id <= $2 ORDER BY seq LIMIT $3
"""  # noqa: S608 - Constants only.
# Events for all lie in the same index, without a company; events for the operator alone are left out by their type.
# Places are compared as the index has them, and its whole order is asked for: no other index can give that, so the
# server can't walk the events of all companies, which it takes for quicker where it knows that one has many.
_COMPANY: Final = f"""
    SELECT * FROM (
        (SELECT {_COLUMNS} FROM event
         WHERE (company_id, state, id) > ($7, $8, $1) AND (company_id, state, id) <= ($7, $8, $2)
         ORDER BY company_id, state, id LIMIT $3)
        UNION ALL
        (SELECT {_COLUMNS} FROM event WHERE company_id IS NULL AND (state, id) > ($8, $1) AND (state, id) <= ($8, $2)
         ORDER BY company_id, state, id LIMIT $3)
        UNION ALL
        (SELECT {_COLUMNS} FROM event WHERE company_id IS NULL AND state IS NULL AND id > $1 AND id <= $2
         ORDER BY company_id, state, id LIMIT $3)
    ) audience ORDER BY id LIMIT $3
"""  # noqa: S608 - Constants only.


def _wanted(source: str) -> str:
    """The rows that pass the filters and, always, the last one that was looked at."""
    return f"""
        WITH scanned AS MATERIALIZED ({source})
        SELECT *, {_REFERENCE} FROM (
            SELECT {_COLUMNS}, ($4::text[] IS NULL OR type = ANY($4)) AND ($5::timestamptz IS NULL OR at >= $5)
                   AND ($6::timestamptz IS NULL OR at <= $6) AS wanted, count(*) OVER () AS scanned,
                   max(id) OVER () AS last
            FROM scanned) one
        WHERE wanted OR id = last ORDER BY id
    """  # noqa: S608 - Constants only.


_READ_ALL: Final = _wanted(_ALL)
_READ_ORDER: Final = _wanted(_ORDER)
_READ_COMPANY: Final = _wanted(_COMPANY)


async def after(
    conn: Connection,
    cursor: Cursor | None,
    *,
    limit: int,
    company_id: int | None = None,
    state: State | None = None,
    filters: EventFilters = EVERYTHING,
) -> FeedPage:
    """What happened after the cursor (None: what is kept), oldest first; of everybody unless a company is named.

    A page may hold fewer events than asked for although more follow: go on from its cursor.
    """
    assert (company_id is None) == (state is None), "a company is asked about together with a state"
    settled, removed = await _settle(conn)
    if cursor is not None and cursor.place < removed:
        raise Removed
    bounds = await _bounds(conn, removed if cursor is None else cursor.place, settled, filters)
    if company_id is None or state is None:
        return await _page(conn, bounds, limit, None, None, filters)
    async with as_tenant(conn, company_id, state):
        return await _page(conn, bounds, limit, company_id, state, filters)


async def _page(
    conn: Connection,
    bounds: tuple[int, int],
    limit: int,
    company_id: int | None,
    state: State | None,
    filters: EventFilters,
) -> FeedPage:
    start, stop = bounds
    scan = max(limit, SCAN_MAX) if filters.sparse else limit + 1
    types = filters.types
    if types is None and company_id is not None:
        types = kinds.FOR_COMPANIES
    given = [start, stop, scan, types and list(types), filters.date_from, filters.date_to]
    if filters.order_id is not None:
        rows = await conn.fetch(_READ_ORDER, *given, filters.order_id)
    elif company_id is None:
        rows = await conn.fetch(_READ_ALL, *given)
    else:
        rows = await conn.fetch(_READ_COMPANY, *given, company_id, state)
    found = [_event(row) for row in rows if row["wanted"]]
    if company_id is not None and state is not None:
        found = [event for event in found if event.concerns(company_id, state)]
    if len(found) > limit:
        return FeedPage(found[:limit], found[limit - 1].cursor, more=True)
    if rows and rows[0]["scanned"] == scan:
        return FeedPage(found, Cursor(rows[0]["last"]), more=True)
    return FeedPage(found, Cursor(max(start, stop)), more=False)


async def head(conn: Connection) -> Cursor:
    """The place behind everything that has happened."""
    settled, _ = await _settle(conn)
    return Cursor(settled)


async def find(conn: Connection, event_id: int, company_id: int, state: State) -> Event | None:
    """One event, if it is kept and the company is told of it."""
    row = await conn.fetchrow(f"SELECT {_COLUMNS}, {_REFERENCE} FROM event WHERE id = $1", event_id)  # noqa: S608 - A constant.
    event = None if row is None else _event(row)
    return event if event is not None and event.concerns(company_id, state) else None


async def these(conn: Connection, event_ids: Collection[int]) -> dict[int, Event]:
    """The events with these ids, as far as they are kept."""
    rows = await conn.fetch(
        f"SELECT {_COLUMNS}, {_REFERENCE} FROM event WHERE id = ANY($1::bigint[])",  # noqa: S608 - A constant.
        list(event_ids),
    )
    return {row["id"]: _event(row) for row in rows}


async def remove_old(pool: Pool, kept: timedelta = KEPT) -> int:
    """Remove the oldest events, as far as they were kept long enough; how many it looked at.

    What people did about purchases is in the same log, and stays.
    """
    async with pool.acquire() as conn:
        await _settle(conn)
    async with pool.acquire() as conn, conn.transaction():
        # One sweep at a time moves the mark; the others leave it to that one.
        if not await conn.fetchval(
            "SELECT pg_try_advisory_xact_lock(hashtext('events/' || current_schema()))"
        ):
            return 0
        gone = await conn.fetchrow(
            """
            WITH oldest AS (
                SELECT e.id, e.at, e.type, bool_and(e.at < now() - $1::interval) OVER (ORDER BY e.id) AS old
                FROM event_mark m CROSS JOIN LATERAL (
                    SELECT id, at, type FROM event WHERE id > m.removed AND id <= m.settled ORDER BY id LIMIT $2) e
            ), gone AS (
                DELETE FROM event WHERE id = ANY(ARRAY(SELECT id FROM oldest WHERE old AND type = ANY($3)))
            )
            SELECT count(*) AS count, max(id) AS last, max(at) AS at FROM oldest WHERE old
            """,
            kept,
            REMOVE_MAX,
            list(kinds.FOR_COMPANIES),
        )
        assert gone is not None, "a count is always there"
        if gone["count"]:
            await conn.execute(
                "UPDATE event_mark SET removed = $1, removed_at = greatest(removed_at, $2)",
                gone["last"],
                gone["at"],
            )
    return int(gone["count"])


async def _settle(conn: Connection) -> tuple[int, int]:
    """Move the mark; where it stands, and up to where events were removed."""
    row = await conn.fetchrow("SELECT settled_id, removed_id FROM settle_events()")
    assert row is not None, "it has one row"
    return row[0], row[1]


async def _bounds(conn: Connection, start: int, stop: int, filters: EventFilters) -> tuple[int, int]:
    """The part of the feed in which events of these dates can be."""
    if filters.date_from is not None:
        start = max(start, await _before(conn, start, stop, filters.date_from - LATE_COMMIT_MAX))
    if filters.date_to is not None:
        stop = await _before(conn, start, stop, filters.date_to + LATE_COMMIT_MAX)
    return start, stop


async def _before(conn: Connection, low: int, high: int, moment: datetime) -> int:
    """A place with an event from before the moment at it, and one from after it behind it; times ascend roughly."""
    # Halving: some thirty steps down the primary key, however many events there are, and no index for times.
    place = await conn.fetchval(
        """
        WITH RECURSIVE search (low, high) AS (
            SELECT $1::bigint, $2::bigint + 1
            UNION ALL
            SELECT CASE WHEN e.at < $3 THEN m.middle ELSE s.low END, CASE WHEN e.at < $3 THEN s.high ELSE m.middle END
            FROM search s CROSS JOIN LATERAL (SELECT (s.low + s.high) / 2 AS middle) m
            LEFT JOIN LATERAL (SELECT at FROM event WHERE id >= m.middle ORDER BY id LIMIT 1) e ON true
            WHERE s.high - s.low > 1
        )
        SELECT max(low) FROM search
        """,
        low,
        high,
        moment,
    )
    return int(place)


def _event(row: asyncpg.Record) -> Event:
    state = row["state"]
    return Event(
        row["id"],
        row["at"],
        row["company_id"],
        None if state is None else State(state),
        row["type"],
        row["order_id"],
        row["seq"],
        row["data"],
        row["reference"],
    )


WINDOW_S: Final = 300
COUNTED_MAX: Final = 2_000
"""Events that are looked at; beyond that the rate means "at least"."""


class EventRate(Struct, frozen=True):
    """Events of the last five minutes."""

    count: int
    last_at: datetime | None

    @property
    def many(self) -> bool:
        """Whether there are more than were counted."""
        return self.count >= COUNTED_MAX


async def take(conn: Connection) -> EventRate:
    """The rate of now."""
    row = await conn.fetchrow(
        """
        SELECT count(*) FILTER (WHERE at > now() - make_interval(secs => $1))::int, max(at)
        FROM (SELECT at FROM event ORDER BY id DESC LIMIT $2) newest
        """,
        WINDOW_S,
        COUNTED_MAX,
    )
    assert row is not None, "it has one row"
    return EventRate(*row)
