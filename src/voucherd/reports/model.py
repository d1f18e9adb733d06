"""What a report is made of: rows by chosen dimensions, one for each currency, and their totals. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from voucherd.money import DIGITS

ROWS_MAX: Final = 100_000
REPORT_S_MAX: Final = 600.0
PLANNING: Final = f"""
    SET LOCAL statement_timeout = '{REPORT_S_MAX:.0f}s';
    SET LOCAL work_mem = '64MB'; SET LOCAL plan_cache_mode = 'auto';
    SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on
"""
"""A report reads much, unlike everything else that the service does on connections set up for look-ups."""


class By(StrEnum):
    """What the rows of a report are about."""

    DAY = "day"
    MONTH = "month"
    PRODUCT = "product"
    BRAND = "brand"
    COMPANY = "company"
    SUPPLIER = "supplier"
    CURRENCY = "currency"
    COUNTRY = "country"


class Unit(StrEnum):
    """What a figure counts."""

    COUNT = "count"
    OWN = "own"  # Minor units of the row's currency.
    EUR = "eur"  # Euro cents, by the rates that were fixed at the time.


class Measure(NamedTuple):
    """A figure of a report, and the SQL that sums it up."""

    name: str
    unit: Unit
    sql: str


Label: TypeAlias = str | None


class ReportLine(Struct, frozen=True):
    """A row: what it is about, its currency, and its figures; a grand total has no currency."""

    labels: tuple[Label, ...]
    currency: str | None
    figures: tuple[int, ...]


class Report(Struct, frozen=True):
    """Rows in order, with a total for each currency."""

    dimensions: tuple[str, ...]
    measures: tuple[Measure, ...]
    lines: list[ReportLine]

    def totals(self) -> list[ReportLine]:
        """The sums of each currency, in order of their codes."""
        sums: dict[str, list[int]] = {}
        for line in self.lines:
            assert line.currency is not None
            _add(sums.setdefault(line.currency, [0] * len(self.measures)), line.figures)
        return [ReportLine((), currency, tuple(figures)) for currency, figures in sorted(sums.items())]

    def grand_total(self) -> ReportLine:
        """What can be added up across currencies: counts and euros; the other figures are 0."""
        sums = [0] * len(self.measures)
        for line in self.lines:
            _add(sums, line.figures)
        mixed = [measure.unit is Unit.OWN for measure in self.measures]
        return ReportLine(
            (), None, tuple(0 if own else total for own, total in zip(mixed, sums, strict=True))
        )


class TooManyRows(Exception):
    """The report would be longer than anyone reads."""

    def __init__(self) -> None:
        super().__init__(f"the report has more than {ROWS_MAX:,} rows: take a shorter time, or fewer --by")


def assembled(
    dimensions: Sequence[str], measures: Sequence[Measure], rows: Iterable[Iterable[Any]]
) -> Report:
    """The report from rows of labels, a currency and figures."""
    wide = len(dimensions)
    lines = [
        ReportLine(tuple(row[:wide]), row[wide], tuple(map(int, row[wide + 1 :]))) for row in map(tuple, rows)
    ]
    if len(lines) > ROWS_MAX:
        raise TooManyRows
    return Report(tuple(dimensions), tuple(measures), lines)


def _add(sums: list[int], figures: Sequence[int]) -> None:
    for at, figure in enumerate(figures):
        sums[at] += figure


_BY_DIGITS: Final = {
    places: ", ".join(f"'{code}'" for code in sorted(DIGITS) if DIGITS[code] == places) for places in (0, 3)
}


def exact(minor: str, currency: str, fx_e8: str) -> str:
    """The amount in euro cents with all its digits."""
    return (
        f"{minor}::numeric * {fx_e8} * CASE WHEN {currency} IN ({_BY_DIGITS[0]}) THEN 0.000001"
        f" WHEN {currency} IN ({_BY_DIGITS[3]}) THEN 0.000000001 ELSE 0.00000001 END"
    )


def rounded(minor: str, currency: str, fx_e8: str) -> str:
    """The amount in whole euro cents, rounded half away from zero as `money.divide_half_up` does."""
    return f"round({exact(minor, currency, fx_e8)})"
