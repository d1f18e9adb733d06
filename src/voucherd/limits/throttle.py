"""The only place that touches throttle: tallies of failed tries, shared by all processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

from voucherd.db import Pool, transaction
from voucherd.limits import allowances
from voucherd.limits.allowances import Allowance, Tally

KEPT: Final = timedelta(hours=25)
"""Longer than anything is remembered."""
ROWS_MAX: Final = 200_000
SWEEP_MAX: Final = 5_000


class TooManyTries(Exception):
    """Too many tries in vain: nothing is looked at before this many seconds are over."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(wait_s)
        self.wait_s = wait_s


async def take(pool: Pool, wanted: Mapping[bytes, Allowance]) -> None:
    """Count one try against each of these before it is looked at; refused while one of them pauses.

    It counts first and is forgiven afterwards, so a hundred tries at once are not a hundred free ones.
    """
    keys = sorted(wanted)
    async with transaction(pool) as tx:
        # In one order everywhere, so that two can't wait for each other. One statement makes the rows and locks those
        # that are there: between two of them a try that was right could forgive, and so remove, what is counted here.
        rows = await tx.fetch(
            """
            INSERT INTO throttle AS t (key) SELECT * FROM unnest($1::bytea[]) ORDER BY 1
            ON CONFLICT (key) DO UPDATE SET failures = t.failures
            RETURNING key, failures, last_at, until, clock_timestamp() AS now
            """,
            keys,
        )
        now = max(row["now"] for row in rows)
        tallies = {row["key"]: Tally(row["failures"], row["last_at"], row["until"]) for row in rows}
        wait_s = max(allowances.wait_s(tally, now) for tally in tallies.values())
        if wait_s > 0:
            raise TooManyTries(wait_s)
        counted = {key: allowances.one_more(tally, wanted[key], now) for key, tally in tallies.items()}
        await tx.executemany(
            "UPDATE throttle SET failures = $2, last_at = $3, until = $4 WHERE key = $1",
            [(key, one.failures, one.last_at, one.until) for key, one in counted.items()],
        )


async def forgive(pool: Pool, cleared: Collection[bytes], given_back: Collection[bytes] = ()) -> None:
    """The try was right: forget the first ones' failures, and take this one back from the others."""
    async with transaction(pool) as tx:
        # Locked in the order in which they are counted; one that comes back meanwhile is not this try's.
        rows = await tx.fetch(
            "SELECT key FROM throttle WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE",
            [*cleared, *given_back],
        )
        locked = {row["key"] for row in rows}
        await tx.execute("DELETE FROM throttle WHERE key = ANY($1::bytea[])", list(locked & set(cleared)))
        await tx.execute(
            """
            UPDATE throttle SET failures = greatest(failures - 1, 0), until = least(until, now())
            WHERE key = ANY($1::bytea[])
            """,
            list(locked & set(given_back)),
        )


async def sweep(pool: Pool) -> int:
    """Remove tallies that are forgotten, and the oldest beyond the maximum; how many."""
    removed = await pool.fetch(
        """
        DELETE FROM throttle WHERE key IN (
            (SELECT key FROM throttle WHERE last_at < now() - $1::interval ORDER BY last_at LIMIT $2)
            UNION ALL (SELECT key FROM throttle ORDER BY last_at DESC OFFSET $3 LIMIT $2)
        ) RETURNING true
        """,
        KEPT,
        SWEEP_MAX,
        ROWS_MAX,
    )
    return len(removed)
