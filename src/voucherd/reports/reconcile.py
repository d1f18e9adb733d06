"""A supplier's statement against our purchases: what is charged and not known, known and not charged, or different.

Reads only: the statement lies in tables of this connection that are gone with the transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from voucherd.db import Pool, Tx, take_long
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.reports.charges import Charge

BATCH_ROWS: Final = 10_000
FINDINGS_MAX: Final = 10_000
"""Differences that are listed; all are counted."""


class Difference(StrEnum):
    """How the two sides differ about a purchase."""

    NOT_OURS = "not-ours"  # In their file, and unknown to us.
    NOT_CHARGED = "not-charged"  # Bought by our books, and not in their file.
    NOT_BOUGHT = "not-bought"  # Charged by them, and not bought by our books.
    REPEATED = "repeated"  # In their file more than once.
    COUNT = "count"
    AMOUNT = "amount"
    CURRENCY = "currency"


DIFFERENCES: Final = {
    Difference.NOT_OURS: "they charge it, we know no such purchase",
    Difference.NOT_CHARGED: "we bought it, they don’t charge it",
    Difference.NOT_BOUGHT: "they charge it, by our books nothing was bought",
    Difference.REPEATED: "they charge it more than once",
    Difference.COUNT: "another number of codes",
    Difference.AMOUNT: "another amount",
    Difference.CURRENCY: "another currency",
}
"""Each of them in words."""


class Discrepancy(Struct, frozen=True):
    """One difference. What one side does not say is None."""

    difference: Difference
    row: int | None
    key: str
    attempt_id: UUID | None
    phase: AttemptPhase | None
    their_count: int | None
    our_count: int | None
    their_minor: int | None
    their_currency: str | None
    our_minor: int | None
    our_currency: str | None
    quarantined: int
    rows: int


class Result(Struct, frozen=True):
    """What came of comparing."""

    since: datetime
    until: datetime
    charges: int
    """Rows of theirs in the period."""
    left_out: int
    """Rows of theirs outside of it."""
    purchases: int
    """Ours in the period that brought codes."""
    counts: dict[Difference, int]
    findings: list[Discrepancy]
    totals: list[tuple[str, int, int]]
    """Currency, what they charge, and what our books say of the period."""


class NothingToCompare(Exception):
    """The file has no charge in it, so there is no period either."""


async def batches(charges: Iterator[Charge]) -> AsyncIterator[Sequence[Charge]]:
    """The charges of a file, some at a time: a file may be longer than memory."""
    while batch := await asyncio.to_thread(lambda: list(islice(charges, BATCH_ROWS))):
        yield batch


async def reconcile(
    pool: Pool,
    supplier_id: int,
    batches: AsyncIterator[Sequence[Charge]],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Result:
    """Compare charges with our purchases; without a period it is that of the charges, in whole days."""
    async with pool.acquire() as conn, conn.transaction(isolation="repeatable_read"):
        await take_long(conn)
        await conn.execute(_ROWS)
        async for batch in batches:
            await conn.copy_records_to_table("their_row", records=[_record(charge) for charge in batch])
        since, until = await _period(conn, since, until)
        left_out = await conn.execute("DELETE FROM their_row WHERE at < $1 OR at >= $2", since, until)
        await conn.execute("ANALYZE their_row")
        await conn.execute(_CHARGES, supplier_id)
        await conn.execute("ANALYZE charge")
        await conn.execute(_OURS, supplier_id, since, until)
        await conn.execute("ANALYZE ours")
        await conn.execute(_FINDINGS)
        return Result(
            since,
            until,
            await conn.fetchval("SELECT count(*) FROM their_row"),
            int(left_out.split()[-1]),
            await conn.fetchval("SELECT count(*) FROM ours WHERE inside AND codes > 0"),
            await _counts(conn),
            await _listed(conn),
            [tuple(row) for row in await conn.fetch(_TOTALS)],
        )


def _record(charge: Charge) -> tuple[Any, ...]:
    return (
        charge.row,
        charge.reference,
        charge.key,
        charge.external_id,
        charge.count,
        charge.amount_minor,
        charge.currency,
        charge.at,
    )


async def _period(tx: Tx, since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    row = await tx.fetchrow("SELECT date_trunc('day', min(at)), date_trunc('day', max(at)) FROM their_row")
    assert row is not None, "an aggregate gives one row"
    first, last = row
    if first is None and (since is None or until is None):
        raise NothingToCompare
    return since or first, until or last + timedelta(days=1)


_ROWS: Final = """
    CREATE TEMP TABLE their_row (row_no integer, reference uuid, key text, external_id text, count integer,
                                 amount_minor bigint, currency text, at timestamptz) ON COMMIT DROP
"""
# All rows about one purchase together: a charge, its credit and the charge after that are one matter.
_CHARGES: Final = """
    CREATE TEMP TABLE charge ON COMMIT DROP AS
    WITH by_their_id AS (
        SELECT DISTINCT ON (a.external_id) a.external_id, a.id FROM attempt a
        WHERE a.supplier_id = $1 AND a.external_id IN (SELECT external_id FROM their_row)
        ORDER BY a.external_id, a.placed_at
    ), matched AS (
        SELECT r.*, coalesce(a.id, b.id) AS attempt_id FROM their_row r
        LEFT JOIN attempt a ON a.id = r.reference AND a.supplier_id = $1
        LEFT JOIN by_their_id b ON b.external_id = r.external_id
    )
    SELECT attempt_id, min(key) AS key, min(row_no) AS row_no, count(*)::int AS rows,
           count(*) FILTER (WHERE amount_minor > 0)::int AS charged, sum(count)::bigint AS count,
           sum(amount_minor)::bigint AS amount_minor, min(currency) AS currency,
           count(DISTINCT currency)::int AS currencies
    FROM matched GROUP BY attempt_id, CASE WHEN attempt_id IS NULL THEN key END
"""
_OURS: Final = """
    CREATE TEMP TABLE ours ON COMMIT DROP AS
    SELECT a.id, a.external_id, a.status, a.codes, a.quarantined, a.placed_at >= $2 AND a.placed_at < $3 AS inside,
           coalesce(l.amount_minor, 0)::bigint AS amount_minor, l.currency
    FROM attempt a LEFT JOIN LATERAL (
        SELECT purchase_currency AS currency, sum(size * purchase_minor) AS amount_minor FROM lot
        WHERE attempt_id = a.id GROUP BY 1 ORDER BY 2 DESC LIMIT 1) l ON true
    WHERE a.supplier_id = $1 AND ((a.placed_at >= $2 AND a.placed_at < $3)
                                  OR a.id IN (SELECT attempt_id FROM charge WHERE attempt_id IS NOT NULL))
"""
_FINDINGS: Final = """
    CREATE TEMP TABLE finding ON COMMIT DROP AS
    WITH pair AS (
        SELECT c.*, o.status, o.codes, o.quarantined, o.amount_minor AS our_minor, o.currency AS our_currency,
               c.amount_minor IS DISTINCT FROM o.amount_minor OR c.count <> o.codes AS differs
        FROM charge c LEFT JOIN ours o ON o.id = c.attempt_id
    ), named AS (
        SELECT p.*, unnest(CASE
            WHEN attempt_id IS NULL THEN ARRAY['not-ours']
            WHEN codes = 0 THEN CASE WHEN amount_minor = 0 THEN '{}' ELSE ARRAY['not-bought'] END
            WHEN charged > 1 AND differs THEN ARRAY['repeated']
            WHEN currencies > 1 OR currency <> our_currency THEN ARRAY['currency']
            ELSE array_remove(ARRAY[CASE WHEN count <> codes THEN 'count' END,
                                    CASE WHEN amount_minor <> our_minor THEN 'amount' END], NULL)
        END) AS difference FROM pair p
    )
    SELECT difference, row_no, key, attempt_id, status, count AS their_count, codes AS our_count,
           amount_minor AS their_minor, currency AS their_currency, our_minor, our_currency,
           coalesce(quarantined, 0) AS quarantined, rows
    FROM named
    UNION ALL
    SELECT 'not-charged', NULL, coalesce(external_id, id::text), id, status, NULL, codes, NULL, NULL, amount_minor,
           currency, quarantined, 0
    FROM ours o WHERE inside AND codes > 0 AND NOT EXISTS (SELECT FROM charge WHERE attempt_id = o.id)
"""
_TOTALS: Final = """
    SELECT currency, sum(theirs)::bigint, sum(mine)::bigint FROM (
        SELECT currency, amount_minor AS theirs, 0 AS mine FROM their_row
        UNION ALL SELECT currency, 0, amount_minor FROM ours WHERE inside AND currency IS NOT NULL) both_sides
    GROUP BY currency ORDER BY currency
"""


async def _counts(tx: Tx) -> dict[Difference, int]:
    rows = await tx.fetch("SELECT difference, count(*) FROM finding GROUP BY difference")
    found = {Difference(row[0]): row[1] for row in rows}
    return {one: found[one] for one in Difference if one in found}


async def _listed(tx: Tx) -> list[Discrepancy]:
    rows = await tx.fetch(
        """
        SELECT difference, row_no, key, attempt_id, status, their_count::int, our_count, their_minor, their_currency,
               our_minor, our_currency, quarantined, rows
        FROM finding ORDER BY row_no NULLS LAST, key, difference LIMIT $1
        """,
        FINDINGS_MAX,
    )
    return [_finding(list(row)) for row in rows]


def _finding(values: list[Any]) -> Discrepancy:
    values[0] = Difference(values[0])
    values[4] = None if values[4] is None else AttemptPhase(values[4])
    return Discrepancy(*values)
