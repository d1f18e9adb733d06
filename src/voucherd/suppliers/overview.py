"""How suppliers are doing, for the operator. Reads only, and never more rows than a person can use."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State

COUNTED_MAX: Final = 10_000
"""Waits of one supplier, and unknown purchases of all, that are counted; beyond that it is simply many."""


OFFERS_SHOWN_MAX: Final = 200
LATELY_MAX: Final = 200


class SupplierFigures(Struct, frozen=True):
    """The purchases under way at a supplier, and the age of its prices."""

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


async def figures(conn: Connection) -> dict[int, SupplierFigures]:
    """The figures of every supplier."""
    rows = await conn.fetch(
        """
        SELECT s.id,
               -- In the order of the index of those that are being made, so that no other one is walked.
               (SELECT count(*)::int FROM (SELECT FROM attempt WHERE supplier_id = s.id AND status = 0
                                           ORDER BY lease_until LIMIT $1) made),
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
    return {row[0]: SupplierFigures(*row[1:]) for row in rows}


class ProductOffer(Struct, frozen=True):
    """One supplier's offer of a product, and the last that was said about it."""

    supplier: str
    face_minor: int
    face_to_minor: int | None
    stock: int
    quoted_at: datetime | None
    price_minor: int | None
    price_to_minor: int | None
    currency: str | None
    fx_e8: int | None


async def offers_of(conn: Connection, product_id: int, state: State) -> list[ProductOffer]:
    """Who sells a product to us, of those whom we buy from."""
    rows = await conn.fetch(
        """
        SELECT s.name, o.face_minor, o.face_to_minor, o.stock, o.quoted_at, q.price_minor, q.price_to_minor, q.currency,
               q.fx_e8
        FROM offer o JOIN supplier s ON s.id = o.supplier_id LEFT JOIN quote q ON q.id = o.quote_id
        WHERE o.product_id = $1 AND o.state = $2 AND o.active AND s.active ORDER BY s.name, o.face_minor LIMIT $3
        """,
        product_id,
        int(state),
        OFFERS_SHOWN_MAX,
    )
    return [ProductOffer(*row) for row in rows]


class Lately(Struct, frozen=True):
    """How the last calls of a supplier went."""

    calls: int
    failed: int
    unknown: int
    middle_ms: int | None
    slow_ms: int | None
    """As long as one call in twenty takes, or longer."""
    hour_ended: int = 0
    hour_failed: int = 0
    """Of the calls of the last hour: those that have ended, and those of them that brought nothing."""

    @property
    def failed_percent(self) -> int:
        """How many of a hundred calls brought nothing, or nobody knows."""
        return 0 if not self.calls else round(100 * (self.failed + self.unknown) / self.calls)


NO_CALLS: Final = Lately(0, 0, 0, None, None)
OFTEN_OF: Final = 4
"""One failed call in so many is worth a look."""


class SupplierJudgement(Struct, frozen=True):
    """How a supplier is doing, in one line; the kind is that of a badge."""

    kind: str
    text: str


def judge(lately: Lately, breaker: str, *, active: bool, quote_error: str | None = None) -> SupplierJudgement:
    """How a supplier is doing, by its calls of the last hour, its breaker and its prices. Pure."""
    failed, ended = lately.hour_failed, lately.hour_ended
    counted = f"{failed} of {ended} {'call' if ended == 1 else 'calls'} in the last hour"
    alone = f": {counted}" if ended else ""
    # The first that holds is said.
    rules = (
        (not active, "", "Paused"),
        (0 < failed == ended, "bad", f"Failing: {counted}"),
        (breaker == "open", "bad", f"Failing, left alone for a while{alone}"),
        (0 < ended <= failed * 2, "bad", f"Fails often: {counted}"),
        (0 < ended <= failed * OFTEN_OF, "warn", f"Fails now and then: {counted}"),
        (quote_error is not None, "warn", "Its prices can’t be read"),
        (breaker == "half-open", "warn", "Being tried again after failures"),
        (True, "good", "Good"),
    )
    return next(SupplierJudgement(kind, text) for holds, kind, text in rules if holds)


async def lately(conn: Connection, state: State) -> dict[int, Lately]:
    """The last calls of every supplier of a day, at most LATELY_MAX of each."""
    rows = await conn.fetch(
        """
        SELECT s.id, c.calls, c.failed, c.unknown, c.middle_ms, c.slow_ms, c.hour_ended, c.hour_failed
        FROM supplier s CROSS JOIN LATERAL (
            SELECT count(*)::int AS calls, count(*) FILTER (WHERE status = 4)::int AS failed,
                   count(*) FILTER (WHERE status = 2)::int AS unknown,
                   percentile_disc(0.5) WITHIN GROUP (ORDER BY call_ms) AS middle_ms,
                   percentile_disc(0.95) WITHIN GROUP (ORDER BY call_ms) AS slow_ms,
                   count(*) FILTER (WHERE status > 1 AND placed_at > now() - interval '1 hour')::int AS hour_ended,
                   count(*) FILTER (WHERE status IN (2, 4) AND placed_at > now() - interval '1 hour')::int
                     AS hour_failed
            FROM (SELECT status, call_ms, placed_at FROM attempt
                  WHERE supplier_id = s.id AND placed_at > now() - interval '1 day'
                  ORDER BY placed_at DESC LIMIT $2) newest) c
        WHERE s.state = $1
        """,
        int(state),
        LATELY_MAX,
    )
    return {row[0]: Lately(*row[1:]) for row in rows}
