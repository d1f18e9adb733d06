"""Reports as people and spreadsheets read them: columns, figures with their digits, CSV. Pure."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import Any

from voucherd.money import Money
from voucherd.reports.model import Measure, Report, ReportLine, Unit
from voucherd.sheets.csv_text import guarded


def columns(report: Report) -> list[str]:
    """The names of a report's columns: what its rows are about, the currency, the figures."""
    percent = ["marginPercent"] if _margin_at(report) is not None else []
    return [*report.dimensions, "currency", *(measure.name for measure in report.measures), *percent]


def values(report: Report, line: ReportLine) -> list[Any]:
    """The currency and the figures of a row, as numbers with their digits."""
    figures = [_figure(*pair, line.currency) for pair in zip(report.measures, line.figures, strict=True)]
    at = _margin_at(report)
    percent = [] if at is None else [_percent(line.figures[at], line.figures[at - 2])]
    return [line.currency, *figures, *percent]


def csv_text(report: Report) -> str:
    """Rows alone: a total among them would be counted twice in the sum of the column."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([kebab(column) for column in columns(report)])
    for line in report.lines:
        labels = ["" if label is None else guarded(label) for label in line.labels]
        writer.writerow([*labels, *("" if value is None else value for value in values(report, line))])
    return text.getvalue()


def kebab(name: str) -> str:
    """The name of a column as a file has it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def words(name: str) -> str:
    """The name of a column as people read it."""
    return (
        kebab(name)
        .replace("-", " ")
        .replace(" eur", " EUR")
        .replace("vat", "VAT")
        .replace("percent", "%")
        .replace("rate", "rate %")
    )


def _margin_at(report: Report) -> int | None:
    """Where the margin is, if there is one; the price in EUR is two before it."""
    names = [measure.name for measure in report.measures]
    return names.index("marginEur") if "marginEur" in names else None


def _percent(margin_minor: int, price_minor: int) -> Decimal | None:
    return round(Decimal(100 * margin_minor) / price_minor, 2) if price_minor else None


def _figure(measure: Measure, minor: int, currency: str | None) -> int | Decimal | None:
    if measure.unit is Unit.COUNT:
        return minor
    if measure.unit is Unit.EUR:
        return Money(minor, "EUR").decimal()
    return None if currency is None else Money(minor, currency).decimal()
