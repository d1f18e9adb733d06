"""How suppliers are doing, for the operator. Reads only, and never more rows than a person can use."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.db import Connection

COUNTED_MAX: Final = 10_000
"""Waits of one supplier, and unknown purchases of all, that are counted; beyond that it is simply many."""


class Figures(Struct, frozen=True):
    """What is under way at a supplier, and how old its prices are."""

    calls: int = 0
    """Purchases that are being made."""
    waits: int = 0
    """Ranges of lines that wait to be bought there, counted up to COUNTED_MAX."""
    lines: int = 0
    """The lines in them."""
    unknown: int = 0
    """Purchases that a person has to look at."""
    fresh: int = 0
    stale: int = 0
    none: int = 0
    """Offers whose price is young enough, too old, or was never said."""

    @property
    def many(self) -> bool:
        """Whether there are more waits than were counted."""
        return self.waits >= COUNTED_MAX


async def figures(conn: Connection) -> dict[int, Figures]:
    """The figures of every supplier."""
    rows = await conn.fetch(
        """
        SELECT s.id,
               (SELECT count(*)::int FROM attempt WHERE supplier_id = s.id AND status = 0),
               w.waits, w.lines, coalesce(u.unknown, 0), o.fresh, o.stale, o.none
        FROM supplier s
        CROSS JOIN LATERAL (
            SELECT count(*)::int AS waits, coalesce(sum(line_to - line_from), 0)::int AS lines
            FROM (SELECT line_from, line_to FROM waiting WHERE supplier_id = s.id LIMIT $1) few) w
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE quote_id IS NOT NULL AND quoted_at > now() - age)::int AS fresh,
                   count(*) FILTER (WHERE quote_id IS NOT NULL AND quoted_at <= now() - age)::int AS stale,
                   count(*) FILTER (WHERE quote_id IS NULL)::int AS none
            FROM offer CROSS JOIN (SELECT make_interval(secs => s.quote_age_s) AS age) limits
            WHERE supplier_id = s.id AND active) o
        LEFT JOIN (SELECT supplier_id, count(*)::int AS unknown
                   FROM (SELECT supplier_id FROM attempt WHERE status = 2 LIMIT $1) few
                   GROUP BY supplier_id) u ON u.supplier_id = s.id
        """,
        COUNTED_MAX,
    )
    return {row[0]: Figures(*row[1:]) for row in rows}
