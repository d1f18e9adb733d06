"""What was sold: sales, margin and VAT over one span of time, from the ranges of lines that were delivered.

A sale is a line that got its code, at the moment it did. What was refunded or cancelled never was one. Ranges stay
ranges: those that share a price, a lot and a company are counted together before anything else is done with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.archive import store as archive
from voucherd.db import Connection
from voucherd.ids import State
from voucherd.reports.model import (
    PLANNING,
    REPORT_S_MAX,
    ROWS_MAX,
    By,
    Measure,
    Report,
    Unit,
    assembled,
    exact,
    rounded,
)

_PRICE_EUR: Final = rounded("g.pay_price_minor", "g.payment_currency", "g.payment_fx_e8")
_VAT_EUR: Final = rounded("g.pay_vat_minor", "g.payment_currency", "g.payment_fx_e8")
_TURNOVER_EUR: Final = rounded("g.pay_turnover_minor", "g.payment_currency", "g.payment_fx_e8")
_COST_EUR: Final = rounded("l.purchase_minor", "l.purchase_currency", "l.purchase_fx_e8")
_MARGIN_EUR: Final = (
    f"round({exact('g.price_minor', 'g.price_currency', 'g.price_fx_e8')}"
    f" - {exact('l.purchase_minor', 'l.purchase_currency', 'l.purchase_fx_e8')})"
)


def _sum(of: str) -> str:
    return f"sum(g.codes * ({of}))"


_CODES: Final = Measure("codes", Unit.COUNT, "sum(g.codes)")
_PRICE: Final = Measure("price", Unit.OWN, _sum("g.pay_price_minor"))
_VAT: Final = Measure("vat", Unit.OWN, _sum("g.pay_vat_minor"))

SALES: Final = (
    _CODES,
    _PRICE,
    _VAT,
    Measure("inclVat", Unit.OWN, _sum("g.pay_price_minor + g.pay_vat_minor")),
    Measure("priceEur", Unit.EUR, _sum(_PRICE_EUR)),
    Measure("vatEur", Unit.EUR, _sum(_VAT_EUR)),
    Measure("inclVatEur", Unit.EUR, _sum(f"{_PRICE_EUR} + {_VAT_EUR}")),
)
MARGIN: Final = (
    _CODES,
    _PRICE,
    # The margin is what the lines say in commissionEur; the price is what it and the cost add up to.
    Measure("priceEur", Unit.EUR, _sum(f"{_COST_EUR} + {_MARGIN_EUR}")),
    Measure("costEur", Unit.EUR, _sum(_COST_EUR)),
    Measure("marginEur", Unit.EUR, _sum(_MARGIN_EUR)),
)
VAT: Final = (
    _CODES,
    _PRICE,
    Measure("turnover", Unit.OWN, _sum("g.pay_turnover_minor")),
    _VAT,
    Measure("turnoverEur", Unit.EUR, _sum(_TURNOVER_EUR)),
    Measure("vatEur", Unit.EUR, _sum(_VAT_EUR)),
)

_LABELS: Final = {
    By.DAY: "g.day::text",
    By.MONTH: "to_char(g.month, 'YYYY-MM')",
    By.PRODUCT: "p.slug",
    By.BRAND: "b.slug",
    By.COMPANY: "c.name",
    By.SUPPLIER: "l.supplier",
    By.COUNTRY: "g.country",
}
# The rate itself is not stored: it is the country's on the day of Create if that gives the VAT that was charged, and
# nothing if none was (reverse charge, or outside the EU).
_RATE: Final = """CASE WHEN g.turnover_minor = 0 THEN NULL
    WHEN g.vat_minor = round(g.turnover_minor * g.rate_bp * 0.0001) THEN to_char(g.rate_bp * 0.01, 'FM990.00')
    WHEN g.vat_minor = 0 THEN '0.00' END"""
_VAT_LABELS: Final = {"country": "g.country", "vatCategory": "g.vat_category", "rate": _RATE}

# Whatever a report does not ask for is left out of its statement, so that more ranges are counted together.
_KEYS: Final = {
    "company_id": "o.company_id",
    "version_id": "i.version_id",
    "lot_id": "s.lot_id",
    "day": "(s.at AT TIME ZONE 'UTC')::date",
    "month": "date_trunc('month', s.at AT TIME ZONE 'UTC')",
    "country": "k.country",
    "vat_category": "w.vat_category",
    "rate_bp": "t.rate_bp",
    "payment_currency": "o.payment_currency",
    "payment_fx_e8": "o.payment_fx_e8",
    "price_currency": "i.price_currency",
    "price_fx_e8": "i.price_fx_e8",
    "price_minor": "i.price_minor",
    "vat_minor": "i.vat_minor",
    "turnover_minor": "i.turnover_minor",
    "pay_price_minor": "i.pay_price_minor",
    "pay_vat_minor": "i.pay_vat_minor",
    "pay_turnover_minor": "i.pay_turnover_minor",
}
_BEFORE: Final = {
    "k": "JOIN company k ON k.id = o.company_id",
    "w": "JOIN product_version w ON w.id = i.version_id",
    "t": """LEFT JOIN (
                SELECT country, rate_bp, valid_from,
                       lead(valid_from, 1, 'infinity') OVER (PARTITION BY country ORDER BY valid_from) AS valid_to
                FROM vat_rate) t
              ON t.country = k.country AND (o.created_at AT TIME ZONE 'UTC')::date >= t.valid_from
             AND (o.created_at AT TIME ZONE 'UTC')::date < t.valid_to""",
}
"""What is joined before ranges are counted together, by its letter."""
_AFTER: Final = {
    "c": "JOIN company c ON c.id = g.company_id",
    "v": "JOIN product_version v ON v.id = g.version_id",
    "p": "JOIN product p ON p.id = v.product_id",
    "b": "JOIN brand b ON b.id = v.brand_id",
    "l": "JOIN lot l ON l.id = g.lot_id",
}
"""What is joined afterwards, to far fewer rows."""


class Span(Struct, frozen=True):
    """The sales that are asked for: from a moment on, and before another."""

    since: datetime
    until: datetime
    state: State


class SalesArchived(Exception):
    """The report would lack sales: orders of that time are in the archive."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"sales up to {until:%Y-%m-%d} are in the archive: choose a later day to begin with")


async def sales(conn: Connection, span: Span, by: Sequence[By]) -> Report:
    """What was sold, for how much."""
    return await _report(conn, span, _chosen(by), SALES)


async def margin(conn: Connection, span: Span, by: Sequence[By]) -> Report:
    """What was earned: prices before VAT less what the codes were bought for."""
    return await _report(conn, span, _chosen(by), MARGIN)


async def vat(conn: Connection, span: Span, by: Sequence[By]) -> Report:
    """The VAT that is due, by country, category and rate besides the chosen dimensions."""
    return await _report(conn, span, _VAT_LABELS | _chosen(by), VAT)


def _chosen(by: Sequence[By]) -> dict[str, str]:
    """The labels that are asked for, each once. The currency is one always."""
    return {one.value: _LABELS[one] for one in by if one is not By.CURRENCY}


async def _report(
    conn: Connection, span: Span, labels: dict[str, str], measures: tuple[Measure, ...]
) -> Report:
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        archived_until = await archive.sold_until(conn)
        if archived_until is not None and span.since <= archived_until:
            raise SalesArchived(archived_until)
        await conn.execute(PLANNING)
        rows = await conn.fetch(
            _query(labels, measures), span.since, span.until, span.state, timeout=REPORT_S_MAX
        )
    return assembled(tuple(labels), measures, rows)


def _query(labels: dict[str, str], measures: tuple[Measure, ...]) -> str:
    shown = ", ".join([*labels.values(), "g.payment_currency", *(measure.sql for measure in measures)])
    after = _needed(_AFTER, shown)
    keys = {name: sql for name, sql in _KEYS.items() if re.search(rf"\bg\.{name}\b", f"{shown} {after}")}
    before = _needed(_BEFORE, " ".join(keys.values()))
    # The state is asked of the order, for whose ids the server knows how many are odd.
    return f"""
        WITH gathered ({", ".join(keys)}, codes) AS MATERIALIZED (
            SELECT {", ".join(keys.values())},
                   sum(least(s.line_to, i.first_line + i.amount) - greatest(s.line_from, i.first_line))
            FROM outcome s
            JOIN order_item i ON i.order_id = s.order_id
             AND s.line_from < i.first_line + i.amount AND s.line_to > i.first_line
            JOIN orders o ON o.id = s.order_id
            {before}
            WHERE s.lot_id IS NOT NULL AND s.at >= $1 AND s.at < $2 AND (o.id & 1) = $3
            GROUP BY {_places(len(keys))})
        SELECT {shown}
        FROM gathered g {after}
        GROUP BY {_places(len(labels) + 1)} ORDER BY {_places(len(labels) + 1)} LIMIT {ROWS_MAX + 1}
    """  # noqa: S608 - Constants of ours.


def _needed(joins: dict[str, str], text: str) -> str:
    """The joins whose letters are in the text, or in another join that is needed, in their order."""
    found = ""
    for letter, join in reversed(joins.items()):
        if re.search(rf"\b{letter}\.", f"{text} {found}"):
            found = f"{join} {found}"
    return found


def _places(count: int) -> str:
    return ", ".join(str(at + 1) for at in range(count))
