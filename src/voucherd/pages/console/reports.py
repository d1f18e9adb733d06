"""Reports: sales, margin, VAT and stock, each with a chart, a table and a file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from voucherd.catalogue.store import list_brands
from voucherd.companies.places import countries
from voucherd.db import Connection
from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages import product_words
from voucherd.pages.console.inputs import optional_day, product_names
from voucherd.pages.forms import midnight
from voucherd.pages.render import attachment, figure, in_pages, qualified, render, sheet
from voucherd.pages.visit import Visit, missing
from voucherd.reports import shelves, sold
from voucherd.reports.model import By, Label, Report, ReportLine, TooManyRows
from voucherd.reports.sold import SalesArchived, Span
from voucherd.reports.written import columns, csv_text, values, words
from voucherd.services import Services

REPORT_S_MAX: Final = 20.0
DAYS_MAX: Final = 1_100
DAILY_MAX: Final = 62
"""Days of a chart that has a bar for each; a longer one has a bar for each month."""
ROWS_SHOWN_MAX: Final = 100
BARS_MAX: Final = 24
EXPIRING: Final = timedelta(days=30)
_HEIGHT: Final = 100
"""The height of a chart's scale; a bar and the pause behind it are 12 wide."""
_STEP: Final = 12

Asked: TypeAlias = Callable[[Connection, Span, list[By]], Awaitable[Report]]


async def _stock(conn: Connection, _span: Span, by: list[By]) -> Report:
    return await shelves.stock(conn, by or [By.PRODUCT], EXPIRING)


class Bar(Struct, frozen=True):
    """One bar: where it begins and how high it is, from the top, and what it says."""

    x: int
    y: float
    height: float
    said: str
    below: bool
    """It stands for less than nothing."""


class Chart(Struct, frozen=True):
    """Bars on a scale from `lowest` to `highest`, with the height of nothing."""

    width: int
    bars: list[Bar]
    highest: int
    lowest: int
    zero: float
    first: str
    last: str

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self.highest == self.lowest == 0


class ReportKind(NamedTuple):
    """A report: how it is made, what its rows may be about, and what its chart shows."""

    label: str
    said: str
    ask: Asked
    by: tuple[By, ...]
    charted: str
    chart: str


_SOLD: Final = (By.PRODUCT, By.BRAND, By.COMPANY, By.SUPPLIER, By.COUNTRY, By.DAY, By.MONTH)
KINDS: Final = {
    "sales": ReportKind(
        "Sales", "What was delivered and paid for.", sold.sales, _SOLD, "priceEur", "Sales, in EUR before VAT"
    ),
    "margin": ReportKind(
        "Margin",
        "Prices before VAT less what the codes were bought for.",
        sold.margin,
        _SOLD,
        "marginEur",
        "Margin, in EUR",
    ),
    "vat": ReportKind(
        "VAT",
        "What VAT was charged, by country, category and rate.",
        sold.vat,
        (By.MONTH, By.COMPANY),
        "vatEur",
        "VAT, in EUR",
    ),
    "stock": ReportKind(
        "Stock",
        "What is in stock now, and what expires within 30 days.",
        _stock,
        (By.PRODUCT, By.BRAND, By.SUPPLIER),
        "valueEur",
        "Value in stock, in EUR",
    ),
}


class Wish(NamedTuple):
    """What is asked for; the last day is part of it."""

    kind: str
    first: date
    last: date
    by: list[By]
    state: State

    @property
    def span(self) -> Span:
        """The same as reports count it."""
        return Span(midnight(self.first), midnight(self.last + timedelta(days=1)), self.state)


async def report(visit: Visit) -> Response:
    """One report of a period, as a chart and a table."""
    wish = await _wish(visit)
    kind = KINDS[wish.kind]
    found, chart = None, None
    if not visit.problems:
        try:
            found = await _ask(visit.services, wish, wish.by)
            chart = await _chart(visit.services, wish, found)
        except TimeoutError:
            visit.problems["to"] = f"this takes longer than {REPORT_S_MAX:g} seconds: choose a shorter time"
        except TooManyRows:
            visit.problems["by"] = "these are more rows than anyone reads: choose a shorter time"
        except SalesArchived as archived:
            visit.problems["from"] = str(archived)
    by = wish.by[0].value if wish.by else ""
    chosen = {"from": wish.first.isoformat(), "to": wish.last.isoformat(), "by": by}
    return render(
        "console/report.html",
        visit,
        kinds=[(name, one.label) for name, one in KINDS.items()],
        name=wish.kind,
        kind=kind,
        chosen=chosen,
        choices=_choices(wish.kind),
        presets=[] if wish.kind == "stock" else _presets(f"/console/reports/{wish.kind}", by),
        table=None if found is None else await _table(visit.services, found),
        chart=chart,
        highest="" if chart is None else _round_euros(chart.highest),
        lowest="" if chart is None else _round_euros(chart.lowest),
        totals=None if found is None else _totals(found),
    )


async def report_file(visit: Visit) -> Response:
    """The same report as a file."""
    wish = await _wish(visit)
    if visit.problems:
        said = "; ".join(f"{field}: {text}" for field, text in visit.problems.items())
        raise HttpError(400, "bad_period", said)
    try:
        found = await _ask(visit.services, wish, wish.by)
    except (TimeoutError, TooManyRows):
        raise HttpError(400, "too_much", "This is too much for a page: choose a shorter time.") from None
    except SalesArchived as archived:
        raise HttpError(400, "archived", f"From: {archived}.") from None
    name = f"{wish.kind}-{wish.first}-{wish.last}"
    if visit.query.get("format") == "xlsx":
        rows = [[*line.labels, *values(found, line)] for line in found.lines]
        return await sheet(visit, name, columns(found), in_pages(rows), title=KINDS[wish.kind].label)
    return attachment(f"{name}.csv", (await asyncio.to_thread(csv_text, found)).encode())


async def _wish(visit: Visit) -> Wish:
    """What the address asks for; without a period this month."""
    name = visit.parameters.get("report", "sales")
    if name not in KINDS:
        raise missing()
    today = (await visit.pool.fetchval("SELECT now()")).astimezone(UTC).date()
    last = visit.ask("to", optional_day) or today
    first = visit.ask("from", optional_day) or last.replace(day=1)
    if not visit.problems and first > last:
        visit.problems["from"] = "must not be after the last day"
    elif not visit.problems and (last - first).days > DAYS_MAX:
        visit.problems["from"] = f"a page shows {DAYS_MAX} days at most"
    wanted = visit.query.get("by")
    by = [one for one in KINDS[name].by if one.value == wanted]
    return Wish(name, first, last, by, visit.state)


async def _ask(services: Services, wish: Wish, by: list[By]) -> Report:
    """The report, half a minute old at most: many look at the same one, and it reads much."""

    async def found() -> Report:
        async with asyncio.timeout(REPORT_S_MAX):
            return await services.lists.read(
                lambda conn: KINDS[wish.kind].ask(conn, wish.span, by), s_max=REPORT_S_MAX
            )

    return await services.reports.get((wish.kind, wish.first, wish.last, wish.state, *by), found)


def _choices(name: str) -> list[tuple[str, str]]:
    """What the rows may be about; stock is about products unless told otherwise."""
    words_of = [(one.value, one.value.capitalize()) for one in KINDS[name].by]
    return words_of if name == "stock" else [("", "Currency only"), *words_of]


async def _chart(services: Services, wish: Wish, found: Report) -> Chart:
    """The chart: over time, or for stock the most valuable rows."""
    kind = KINDS[wish.kind]
    at = [measure.name for measure in found.measures].index(kind.charted)
    if wish.kind == "stock":
        sums = _sums(found, 0, at)
        largest = sorted(sums, key=lambda label: (-sums[label], label))[:BARS_MAX]
        named = await _names(services, found.dimensions[0], largest)
        return bars([(named.get(label, label), sums[label], _euros(sums[label])) for label in largest])
    daily = (wish.last - wish.first).days < DAILY_MAX
    by = By.DAY if daily else By.MONTH
    timed = found if wish.by == [by] else await _ask(services, wish, [by])
    sums = _sums(timed, timed.dimensions.index(by.value), at)
    labels = _days(wish.first, wish.last) if daily else _months(wish.first, wish.last)
    return bars([(said, sums.get(label, 0), _euros(sums.get(label, 0))) for label, said in labels])


def _sums(found: Report, dimension: int, at: int) -> dict[str, int]:
    sums: dict[str, int] = {}
    for line in found.lines:
        label = line.labels[dimension] or "–"
        sums[label] = sums.get(label, 0) + line.figures[at]
    return sums


async def _table(services: Services, found: Report) -> dict[str, Any]:
    """Columns as (label, class) and rows of cells; files have the labels, people read names."""
    wide = len(found.dimensions)
    names, lines = columns(found), found.lines[:ROWS_SHOWN_MAX]
    named = [
        await _names(services, dimension, {line.labels[at] for line in lines})
        for at, dimension in enumerate(found.dimensions)
    ]
    return {
        "columns": [(_title(words(name)), "end" if at > wide else "") for at, name in enumerate(names)],
        "rows": [
            [
                *(known.get(label, label) or "–" for known, label in zip(named, line.labels, strict=True)),
                *_cells(found, line),
            ]
            for line in lines
        ],
        "more": max(0, len(found.lines) - ROWS_SHOWN_MAX),
        "wide": wide,
    }


async def _names(services: Services, dimension: str, labels: Collection[Label]) -> dict[Label, str]:
    """What these labels of a report are called; those that are names already are left out."""
    wanted = {label for label in labels if label}
    found: Mapping[str, str] = {}
    if dimension == By.PRODUCT:
        async with services.pool.acquire() as conn:
            found = await product_names(conn, wanted)
    elif dimension == By.BRAND:
        async with services.pool.acquire() as conn:
            found = {one.slug: one.name for one in await list_brands(conn)}
    elif dimension == By.COUNTRY:
        found = countries()
    elif dimension == "vatCategory":
        found = product_words.VAT
    called = Counter(found.get(label) for label in wanted)
    # Two of one name are told apart by what files call them.
    return {
        label: name if called[name] == 1 else f"{name} ({label})"
        for label in wanted
        if (name := found.get(label)) is not None
    }


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]


def _totals(found: Report) -> list[list[str]]:
    """A row for each currency, and one for all where there are several."""
    gap = max(len(found.dimensions) - 1, 0)
    lines = found.totals()
    rows = [
        [*([f"Total {line.currency}"] if found.dimensions else []), *[""] * gap, *_cells(found, line)]
        for line in lines
    ]
    if len(lines) > 1:
        cells = _cells(found, found.grand_total())
        whole = [*(["All"] if found.dimensions else []), *[""] * gap, *cells]
        rows.append(whole)
    return rows


def _cells(found: Report, line: ReportLine) -> list[str]:
    """The currency and the figures of a row, with their digits in groups."""
    currency, *figures = values(found, line)
    return [
        currency or "all",
        *("" if one is None else f"{one:,}".replace(",", "\u202f").replace("-", "−") for one in figures),
    ]


def _presets(path: str, by: str) -> list[tuple[str, str]]:
    """Periods that are often asked for."""
    today = datetime.now(UTC).date()
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    spans = (
        ("This month", month, today),
        ("Last month", before, month - timedelta(days=1)),
        ("30 days", today - timedelta(days=29), today),
        ("This year", today.replace(month=1, day=1), today),
    )
    return [(label, qualified(path, {"from": one, "to": two, "by": by})) for label, one, two in spans]


def _days(first: date, last: date) -> list[tuple[str, str]]:
    """The label of each day, and how people write it."""
    days = (first + timedelta(days=at) for at in range((last - first).days + 1))
    return [(day.isoformat(), f"{day.day} {day:%b %Y}") for day in days]


def _months(first: date, last: date) -> list[tuple[str, str]]:
    """The label of each month, and how people write it."""
    count = (last.year - first.year) * 12 + last.month - first.month
    places = (first.year * 12 + first.month - 1 + at for at in range(count + 1))
    months = (date(place // 12, place % 12 + 1, 1) for place in places)
    return [(month.isoformat()[:7], f"{month:%b %Y}") for month in months]


def _euros(minor: int) -> str:
    return f"{figure(Money(minor, 'EUR'))} EUR"


def _round_euros(minor: int) -> str:
    """An end of the scale, without cents where it has none."""
    return _euros(minor).replace(".00 ", " ")


def bars(points: Sequence[tuple[str, int, str]]) -> Chart:
    """A bar for each (label, amount, what it says), in order; the scale holds nothing and all of them."""
    amounts = [amount for _, amount, _ in points]
    highest, lowest = _next_round(max([0, *amounts])), -_next_round(-min([0, *amounts]))
    span = highest - lowest or 1
    zero = round(highest * _HEIGHT / span, 2)
    drawn = []
    for at, (label, amount, said) in enumerate(points):
        height = round(abs(amount) * _HEIGHT / span, 2)
        y = zero if amount < 0 else round(zero - height, 2)
        drawn.append(Bar(at * _STEP, y, height, f"{label}: {said}", amount < 0))
    ends = (points[0][0], points[-1][0]) if points else ("", "")
    return Chart(len(points) * _STEP, drawn, highest, lowest, zero, *ends)


def _next_round(amount: int) -> int:
    """The next number that is easy to read: 1, 2 or 5 with zeros behind it."""
    if amount <= 0:
        return 0
    power: int = 10 ** (len(str(amount)) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= amount)
