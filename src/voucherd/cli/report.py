"""`voucherd report`: sales, margin, VAT and stock."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import RenderableType
from typer import Option

from voucherd import clock
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, show, stacked, table
from voucherd.cli.words import StateOption, StateWord, midnight
from voucherd.db import Connection
from voucherd.reports import shelves, sold
from voucherd.reports.model import By, Report, ReportLine
from voucherd.reports.sold import Span
from voucherd.reports.written import columns, csv_text, values, words

app = noun()

EXPIRING_DAYS_MAX: Final = 3_650
SPARE: Final = {
    *("priceEur", "vatEur", "inclVatEur", "turnoverEur", "valueEur"),
    *("expiringValue", "expiredCodes", "expiredValue"),
}
"""What a narrow terminal can do without."""


class Form(StrEnum):
    """How a report is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def read_day(text: str) -> date:
    """The day in a text such as 2026-01-31."""
    with suppress(ValueError):
        day = date.fromisoformat(text.strip())
        if clock.in_reach(day):
            return day
    raise typer.BadParameter(f"{text!r} is not a day such as 2026-01-31")


From: TypeAlias = Annotated[
    date | None,
    Option("--from", metavar="DAY", parser=read_day, help="The first day, UTC; else this month's."),
]
To: TypeAlias = Annotated[
    date | None,
    Option("--to", metavar="DAY", parser=read_day, help="The day after the last one; else tomorrow."),
]
ByOption: TypeAlias = Annotated[list[By] | None, Option("--by", help="A row for each; may be repeated.")]
FormOption: TypeAlias = Annotated[Form, Option("--format", help="How to write it.")]


_SOLD: Final = {
    "sales": (sold.sales, "What was delivered and paid for: price, VAT and both, by currency."),
    "margin": (sold.margin, "What was earned: prices before VAT less what the codes were bought for."),
    "vat": (sold.vat, "What VAT was charged, by country, category and rate."),
}


def _add(name: str) -> None:
    """Make a report of the sales of some days a command."""
    read, about = _SOLD[name]

    async def told(
        context: CommandContext,
        since: From = None,
        until: To = None,
        by: ByOption = None,
        state: StateOption = StateWord.LIVE,
        form: FormOption = Form.TABLE,
    ) -> Output | None:
        async with context.connection() as connection:
            span = await _span(connection, since, until, state)
            report = await read(connection, span, by or [])
        days = {"state": span.state.word, "from": span.since.date(), "to": span.until.date()}
        return _told(context, name, report, form, days)

    told.__doc__ = about
    command(app, name)(told)


for _name in _SOLD:
    _add(_name)


@command(app, "stock")
async def stock(
    context: CommandContext,
    by: ByOption = None,
    expiring_days: Annotated[
        int, Option("--expiring", min=1, max=EXPIRING_DAYS_MAX, help="Days that count as soon.")
    ] = 30,
    form: FormOption = Form.TABLE,
) -> Output | None:
    """What is on the shelf now: codes, what they cost, and what expires soon."""
    chosen = by or [By.PRODUCT]
    wrong = [one.value for one in chosen if one is not By.CURRENCY and one not in shelves.LABELS]
    if wrong:
        raise typer.BadParameter(
            f"--by {wrong[0]}: stock is told apart by product, brand, supplier or currency"
        )
    async with context.connection() as connection:
        report = await shelves.stock(connection, chosen, timedelta(days=expiring_days))
        now = await connection.fetchval("SELECT now()")
    return _told(context, "stock", report, form, {"at": now, "expiringDays": expiring_days})


async def _span(connection: Connection, since: date | None, until: date | None, state: StateWord) -> Span:
    """The days that are asked for; without any, this month up to now."""
    today = (await connection.fetchval("SELECT now()")).astimezone(UTC).date()
    first = since or (until or today).replace(day=1)
    last = until or today + timedelta(days=1)
    if first >= last:
        raise typer.BadParameter(f"--from {first} must be before --to {last}")
    return Span(midnight(first), midnight(last), state.state)


def _told(
    context: CommandContext, name: str, report: Report, form: Form, about: dict[str, Any]
) -> Output | None:
    answer = Output(_document(name, report, about), _view(name, report, about))
    if form is Form.CSV and not context.as_json:
        sys.stdout.write(csv_text(report))
        sys.stdout.flush()
        return None
    if form is Form.JSON:
        show(answer, as_json=True)
        return None
    return answer


def _document(name: str, report: Report, about: dict[str, Any]) -> dict[str, Any]:
    names = columns(report)

    def told(line: ReportLine) -> dict[str, Any]:
        return dict(zip(names, [*line.labels, *values(report, line)], strict=True))

    wide = len(report.dimensions)

    def summed(line: ReportLine) -> dict[str, Any]:
        told = dict(zip(names[wide:], values(report, line), strict=True))
        return told if line.currency else {name: value for name, value in told.items() if value is not None}

    return {
        "report": name,
        **about,
        "by": [*report.dimensions, "currency"],
        "rows": [told(line) for line in report.lines],
        "totals": [summed(line) for line in report.totals()],
        "total": summed(report.grand_total()),
    }


def _view(name: str, report: Report, about: dict[str, Any]) -> RenderableType:
    dimensions = report.dimensions
    rows: list[Sequence[object]] = [(*line.labels, *values(report, line)) for line in report.lines]
    totals = report.totals()
    if dimensions:
        gap = ("",) * (len(dimensions) - 1)
        rows += [("total", *gap, *values(report, line)) for line in totals]
    if len(totals) > 1:
        whole = ["" for _ in dimensions] + values(report, report.grand_total())
        rows.append(("all", *whole[1:]))
    names = columns(report)
    wide = len(dimensions) + 1
    marks = ["?>" if column in SPARE else ">" for column in names[wide:]]
    figures = [mark + words(column) for mark, column in zip(marks, names[wide:], strict=True)]
    heads = [*map(words, names[:wide]), *figures]
    return stacked(f"{name}, {_when(about)}", table(heads, rows, empty="Nothing."))


def _when(about: dict[str, Any]) -> str:
    if "at" in about:
        return f"{about['at']:%Y-%m-%d %H:%M} UTC, soon is within {about['expiringDays']} days"
    return f"{about['from']} up to {about['to']}, {about['state']}"
