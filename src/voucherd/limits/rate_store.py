"""The database's side of rate limits: lends requests of keys' quotas to processes (OP-27)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from voucherd.db import Pool, numbers

SWEEP_MAX: Final = 1_000


class Ask(NamedTuple):
    """What a process wants of a key's quota, and what it did not use of an earlier minute."""

    key_id: int
    limit: int
    want: int
    back: int = 0
    back_number: int = -1


class Loan(NamedTuple):
    """What it got, what is lent in this minute and was in the last one, and how long the minute lasts."""

    key_id: int
    number: int
    given: int
    lent: int
    before: int
    left_ms: int


class Lender:
    """Lends to all keys that ask in one statement. `moment` is for tests: the clock is the database's."""

    def __init__(self, pool: Pool, moment: Callable[[], datetime | None] = lambda: None) -> None:
        self._pool = pool
        self._moment = moment

    async def lend(self, asks: Sequence[Ask]) -> list[Loan]:
        """A loan for each ask, in any order; no key asks twice at once."""
        rows = await self._pool.fetch(
            "SELECT * FROM lend_requests($1::text::bigint[], $2::text::int[], $3::text::int[], $4::text::int[],"
            " $5::text::bigint[], $6)",
            numbers([ask.key_id for ask in asks]),
            numbers([ask.limit for ask in asks]),
            numbers([ask.want for ask in asks]),
            numbers([ask.back for ask in asks]),
            numbers([ask.back_number for ask in asks]),
            self._moment(),
        )
        return [Loan(*row) for row in rows]


async def sweep(pool: Pool) -> int:
    """Forget keys that did not ask for three minutes; how many."""
    gone = await pool.execute(
        """
        DELETE FROM rate_window WHERE key_id IN (
            SELECT key_id FROM rate_window WHERE number < floor(extract(epoch FROM now()) / 60) - 2
            LIMIT $1 FOR UPDATE SKIP LOCKED)
        """,
        SWEEP_MAX,
    )
    return int(gone.rpartition(" ")[2])
