"""The past and the future of vat_rate. What has begun never changes: orders were priced with it."""

from __future__ import annotations

from datetime import date
from typing import Final

from msgspec import Struct

from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.db import Connection, Tx

RATE_BP_MAX: Final = 5_000
_TODAY: Final = "(now() AT TIME ZONE 'UTC')::date"


class VatRate(Struct, frozen=True):
    """A country's standard rate from a day on."""

    country: str
    valid_from: date
    rate_bp: int
    begun: bool


class BadVatRate(ValueError):
    """The rate can't be set; says which field, and why."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


async def history(conn: Connection) -> list[VatRate]:
    """Every rate, by country, the newest first."""
    rows = await conn.fetch(
        f"""SELECT country, valid_from, rate_bp, valid_from <= {_TODAY} FROM vat_rate
            ORDER BY country, valid_from DESC"""  # noqa: S608 - A constant of ours.
    )
    return [VatRate(*row) for row in rows]


async def rate_on(conn: Connection, country: str, day: date) -> int | None:
    """The country's rate on a day, in basis points; None where there is none."""
    rate: int | None = await conn.fetchval(
        "SELECT rate_bp FROM vat_rate WHERE country = $1 AND valid_from <= $2 ORDER BY valid_from DESC LIMIT 1",
        country,
        day,
    )
    return rate


async def announce(tx: Tx, country: str, valid_from: date, rate_bp: int) -> None:
    """Let a country have this rate from a day to come; it replaces what was announced for the same day."""
    if country not in EU_COUNTRIES:
        raise BadVatRate("country", "must be a member state of the EU, such as NL")
    if not 0 <= rate_bp <= RATE_BP_MAX:
        raise BadVatRate("rate", f"must be between 0% and {RATE_BP_MAX // 100}%")
    if not await tx.fetchval(f"SELECT $1::date > {_TODAY}", valid_from):
        raise BadVatRate("from", "must be a day to come: orders were priced with what holds today")
    await tx.execute(
        """INSERT INTO vat_rate (country, valid_from, rate_bp) VALUES ($1, $2, $3)
           ON CONFLICT (country, valid_from) DO UPDATE SET rate_bp = excluded.rate_bp""",
        country,
        valid_from,
        rate_bp,
    )


async def withdraw(tx: Tx, country: str, valid_from: date) -> bool:
    """Take back a rate that has not begun; whether there was one."""
    gone = await tx.fetchval(
        f"DELETE FROM vat_rate WHERE country = $1 AND valid_from = $2 AND valid_from > {_TODAY} RETURNING true",  # noqa: S608 - Ours.
        country,
        valid_from,
    )
    return gone is not None
