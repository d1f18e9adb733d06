"""The only place that touches request_log and request_count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Pool
from voucherd.statements import Where

SLOTS: Final = 10_000
"""Calls of a company in one state that are kept; the newest takes the place of the oldest."""
KEPT: Final = timedelta(days=7)
REMOVED_MAX: Final = 2_000
SEQ_MAX: Final = 2**63 - 1


class Answered(Struct, frozen=True):
    """A call and its answer as they are kept."""

    company_id: int
    state: int
    at: datetime
    request_id: str
    key_id: int
    method: str
    path: str
    status: int
    ms: int
    request: str
    answer: str
    seq: int = 0


class Filters(Struct, frozen=True):
    """Which calls are asked for."""

    request_id: str | None = None
    path: str | None = None
    """How it begins."""
    status: int | None = None
    key_id: int | None = None


_COLUMNS: Final = "company_id, state, at, request_id, key_id, method, path, status, ms, request, answer, seq"


async def write(pool: Pool, calls: Sequence[Answered]) -> None:
    """Keep these calls, oldest first: one statement, however many companies made them."""
    assert len(calls) < SLOTS, "no slot is written twice at once"
    await pool.execute(
        f"""
        WITH given AS (
            SELECT * FROM unnest($1::int[], $2::smallint[], $3::timestamptz[], $4::text[], $5::bigint[], $6::text[],
                                 $7::text[], $8::smallint[], $9::int[], $10::text[], $11::text[]) WITH ORDINALITY
                 AS given (company_id, state, at, request_id, key_id, method, path, status, ms, request, answer, place)
        ), counted AS (
            INSERT INTO request_count AS c (company_id, state, logged)
            SELECT company_id, state, count(*) FROM given GROUP BY company_id, state ORDER BY company_id, state
            ON CONFLICT (company_id, state) DO UPDATE SET logged = c.logged + excluded.logged
            RETURNING c.company_id, c.state, c.logged
        ), numbered AS (
            SELECT g.*, c.logged + 1 - row_number() OVER (PARTITION BY g.company_id, g.state ORDER BY g.place DESC)
                   AS seq
            FROM given g JOIN counted c ON c.company_id = g.company_id AND c.state = g.state
        )
        INSERT INTO request_log ({_COLUMNS}, slot)
        SELECT {_COLUMNS}, seq % {SLOTS} FROM numbered
        ON CONFLICT (company_id, state, slot) DO UPDATE
        SET seq = excluded.seq, at = excluded.at, request_id = excluded.request_id, key_id = excluded.key_id,
            method = excluded.method, path = excluded.path, status = excluded.status, ms = excluded.ms,
            request = excluded.request, answer = excluded.answer
        """,  # noqa: S608 - Constants only.
        [one.company_id for one in calls],
        [one.state for one in calls],
        [one.at for one in calls],
        [one.request_id for one in calls],
        [one.key_id for one in calls],
        [one.method for one in calls],
        [one.path for one in calls],
        [one.status for one in calls],
        [one.ms for one in calls],
        [one.request for one in calls],
        [one.answer for one in calls],
    )


async def page(
    conn: Connection,
    company_id: int,
    state: int,
    filters: Filters,
    *,
    size: int,
    before: int | None = None,
    oldest: bool = False,
) -> list[Answered]:
    """A company's calls in one state, newest or oldest first, behind this one; at most its slots are looked at."""
    less, start, way = (">", -1, "ASC") if oldest else ("<", SEQ_MAX, "DESC")
    where = Where()
    where.also("company_id = :company_id", company_id=company_id)
    where.also("state = :state", state=int(state))
    where.also(f"seq {less} :before", before=start if before is None else before)
    where.also("at > now() - CAST(:kept AS interval)", kept=KEPT)
    where.also("request_id = :request_id", request_id=filters.request_id)
    where.also("starts_with(path, :path)", path=filters.path)
    where.also("status = :status", status=filters.status)
    where.also("key_id = :key_id", key_id=filters.key_id)
    rows = await conn.fetch(
        f"SELECT {_COLUMNS} FROM request_log WHERE {where} "  # noqa: S608 - Constants only.
        f"ORDER BY company_id, state, seq {way} LIMIT {where.parameter(size)}",
        *where.values,
    )
    return [Answered(*row) for row in rows]


async def sweep(pool: Pool) -> int:
    """Remove calls that were kept long enough, some at a time; how many."""
    gone = await pool.execute(
        """
        DELETE FROM request_log WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM request_log WHERE at < now() - $1::interval ORDER BY at LIMIT $2
            FOR UPDATE SKIP LOCKED))
        """,
        KEPT,
        REMOVED_MAX,
    )
    return int(gone.rpartition(" ")[2])
