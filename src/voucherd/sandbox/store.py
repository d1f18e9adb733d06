"""The only place that touches test_clock."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from voucherd.db import Connection, Tx


class TestClock(Struct, frozen=True):
    """How far the time of a company's sandbox is ahead, and what it is there."""

    __test__ = False

    ahead: timedelta
    now: datetime
    """The time in the sandbox, by the database's clock."""


async def read(conn: Connection, company_id: int) -> TestClock:
    """The clock of a company; one that was never moved shows the real time."""
    row = await conn.fetchrow(
        "SELECT coalesce((SELECT ahead_s FROM test_clock WHERE company_id = $1), 0), now()", company_id
    )
    assert row is not None, "a SELECT without a FROM has one row"
    ahead = timedelta(seconds=row[0])
    return TestClock(ahead, row[1] + ahead)


async def lock(tx: Tx, company_id: int) -> TestClock:
    """The same; nobody else moves it until the transaction ends."""
    await tx.execute(
        "INSERT INTO test_clock (company_id, ahead_s) VALUES ($1, 0) ON CONFLICT DO NOTHING", company_id
    )
    await tx.execute("SELECT FROM test_clock WHERE company_id = $1 FOR UPDATE", company_id)
    return await read(tx, company_id)


async def set_ahead(tx: Tx, company_id: int, ahead: timedelta) -> None:
    """Show a time that is so far ahead from now on; the caller holds the lock."""
    await tx.execute(
        "UPDATE test_clock SET ahead_s = $2, moved_at = now() WHERE company_id = $1",
        company_id,
        int(ahead.total_seconds()),
    )


async def look_at(tx: Tx, company_id: int, moment: datetime | None) -> None:
    """When to look next for orders whose shortened window is over; None: none of them is open."""
    await tx.execute("UPDATE test_clock SET next_at = $2 WHERE company_id = $1", company_id, moment)


async def take_due(tx: Tx) -> int | None:
    """A company with an order whose shortened window is over, locked; None if there is none, or others are at them."""
    found: int | None = await tx.fetchval(
        "SELECT company_id FROM test_clock WHERE next_at <= now() ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED"
    )
    return found
