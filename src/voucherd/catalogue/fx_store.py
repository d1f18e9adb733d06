"""The tables fx_margin and fx_feed, and the past of fx_rate."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from msgspec import Struct

from voucherd.catalogue.store import FxRate
from voucherd.db import Connection, Tx

HISTORY_MAX: Final = 10_000
"""Days of one currency: more than the European Central Bank has published since 1999."""
PROBLEM_CHARS_MAX: Final = 500


class FxFeed(Struct, frozen=True):
    """How the refresh of rates stands, by the database's clock."""

    now: datetime
    newest_day: date | None
    """The last day of which the bank's rates are there."""
    attempted_at: datetime | None
    taken_at: datetime | None
    problem: str | None


async def margins(conn: Connection) -> dict[tuple[str, str], int]:
    """Every margin in basis points, by the currency of the price and that of the payment."""
    rows = await conn.fetch(
        "SELECT from_currency, to_currency, margin_bp FROM fx_margin ORDER BY from_currency, to_currency"
    )
    return {(row[0], row[1]): row[2] for row in rows}


async def set_margin(tx: Tx, from_currency: str, to_currency: str, margin_bp: int) -> None:
    """Sets the margin of a pair; it replaces what the pair had before."""
    await tx.execute(
        """INSERT INTO fx_margin (from_currency, to_currency, margin_bp) VALUES ($1, $2, $3)
           ON CONFLICT (from_currency, to_currency) DO UPDATE SET margin_bp = excluded.margin_bp, set_at = now()""",
        from_currency,
        to_currency,
        margin_bp,
    )


async def remove_margin(tx: Tx, from_currency: str, to_currency: str) -> bool:
    """Removes the margin of a pair; whether there was one."""
    removed = await tx.fetchval(
        "DELETE FROM fx_margin WHERE from_currency = $1 AND to_currency = $2 RETURNING true",
        from_currency,
        to_currency,
    )
    return removed is not None


async def history(conn: Connection, currency: str) -> list[FxRate]:
    """Every rate that the currency had, newest first."""
    rows = await conn.fetch(
        """SELECT currency, day, eur_e8, source, set_at FROM fx_rate WHERE currency = $1
           ORDER BY day DESC LIMIT $2""",
        currency,
        HISTORY_MAX,
    )
    return [FxRate(**row) for row in rows]


async def feed(conn: Connection) -> FxFeed:
    """How the refresh stands."""
    row = await conn.fetchrow(
        """SELECT now(), (SELECT max(day) FROM fx_rate WHERE source = 'ecb'), attempted_at, taken_at, problem
           FROM fx_feed"""
    )
    assert row is not None, "The migration made the row."
    return FxFeed(*row)


async def claim_feed(tx: Tx, seen: FxFeed) -> bool:
    """Whether nobody else has begun a refresh since; then it is ours to make."""
    claimed = await tx.fetchval(
        "UPDATE fx_feed SET attempted_at = now() WHERE attempted_at IS NOT DISTINCT FROM $1 RETURNING true",
        seen.attempted_at,
    )
    return claimed is not None


async def note_feed(tx: Tx, problem: str | None) -> None:
    """Writes down how a refresh ended."""
    await tx.execute(
        "UPDATE fx_feed SET problem = $1, taken_at = CASE WHEN $1::text IS NULL THEN now() ELSE taken_at END",
        None if problem is None else problem[:PROBLEM_CHARS_MAX],
    )
