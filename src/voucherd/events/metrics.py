"""How much happens: events of the last minutes, at a cost that does not depend on how many there are."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection

WINDOW_S: Final = 300
COUNTED_MAX: Final = 2_000
"""Events that are looked at; beyond that the rate means "at least"."""


class Rate(Struct, frozen=True):
    """Events of the last five minutes."""

    count: int
    last_at: datetime | None

    @property
    def many(self) -> bool:
        """Whether there are more than were counted."""
        return self.count >= COUNTED_MAX


async def take(conn: Connection) -> Rate:
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
    return Rate(*row)
