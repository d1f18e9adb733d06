"""Pages out of templates: one environment, and what every page knows."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from voucherd.http import HTML, Response
from voucherd.ids import State
from voucherd.money import Money, digits
from voucherd.pages.assets import static_paths, templates
from voucherd.pages.nav import WAITING, current, nav_of
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.sheets.writing import Format, Row, csv_rows, write

FILE_TYPES: Final = {
    "csv": b"text/csv; charset=utf-8",
    "xlsx": b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pdf": b"application/pdf",
}
ROWS_AT_ONCE: Final = 1_000
THIN: Final = "\u202f"
"""Groups digits, and never breaks a line."""


def render(template: str, visit: Visit, /, *, status: int | None = None, **facts: Any) -> Response:
    """A page; every page gets navigation, state, flash, and the form with its problems."""
    groups = nav_of(visit.person)
    visit.flash_shown = True
    known = {
        "visit": visit,
        "person": visit.person,
        "sandbox": visit.person is not None and visit.state is State.SANDBOX,
        "groups": groups,
        "here": current(groups, visit.request.path),
        "flash": visit.session.flash if visit.session is not None else None,
        "form": visit.form,
        "problems": visit.problems,
    }
    page = environment().get_template(template).render(known | facts)
    return Response(status or (422 if visit.problems else 200), page.encode(), HTML)


def attachment(
    name: str, content: bytes | AsyncIterator[bytes], content_type: bytes | None = None
) -> Response:
    """A file that the browser keeps under this name."""
    kind = content_type or FILE_TYPES[name.rpartition(".")[2]]
    return Response(200, content, kind, [(b"content-disposition", f'attachment; filename="{name}"'.encode())])


async def sheet(
    visit: Visit, name: str, columns: Sequence[str], pages: AsyncIterator[Sequence[Row]], *, title: str
) -> Response:
    """A table as the file that the address asks for: CSV as it is read, or XLSX."""
    if visit.query.get("format") != "xlsx":
        return attachment(f"{name}.csv", _csv(columns, pages))
    rows = [row async for page in pages for row in page]
    stream = io.BytesIO()
    await asyncio.to_thread(write, stream, Format.XLSX, title, columns, rows)
    return attachment(f"{name}.xlsx", stream.getvalue())


async def in_pages(rows: Iterable[Row]) -> AsyncIterator[Sequence[Row]]:
    """Rows that are there already, some at a time, so that other visitors have their turn between."""
    left = iter(rows)
    while page := list(islice(left, ROWS_AT_ONCE)):
        yield page
        await asyncio.sleep(0)


async def _csv(columns: Sequence[str], pages: AsyncIterator[Sequence[Row]]) -> AsyncIterator[bytes]:
    yield csv_rows([columns])
    async for page in pages:
        yield csv_rows(page)


@cache
def environment() -> Environment:
    """Every template, compiled when it is used first and never read again."""
    made = Environment(
        loader=DictLoader(dict(templates())),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        money=money, moment=moment, day=day, number=number, qualified=qualified, hue=hue, figure=figure
    )
    made.globals.update(static=static_paths(), Right=Right, WAITING=WAITING)
    return made


def money(amount: Money) -> Markup:
    """An amount such as 1 234.50 EUR, in one piece."""
    return Markup('<span class="money">{}&nbsp;<abbr>{}</abbr></span>').format(
        figure(amount), amount.currency
    )


def figure(amount: Money) -> str:
    """The number of an amount, with its digits in groups of three."""
    places = digits(amount.currency)
    whole, part = divmod(abs(amount.minor), 10**places)
    sign = "−" if amount.minor < 0 else ""
    text = f"{sign}{whole:,}".replace(",", THIN)
    return f"{text}.{part:0{places}d}" if places else text


def moment(at: datetime | None) -> Markup:
    """A moment in UTC, to the minute."""
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%-d %b %Y, %H:%M")
    )


def day(at: datetime | None) -> Markup:
    """The day of a moment."""
    if at is None:
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(at.strftime("%Y-%m-%d"), at.strftime("%-d %b %Y"))


def number(count: int) -> str:
    """A count with its digits in groups of three."""
    return f"{count:,}".replace(",", THIN)


def hue(name: str) -> int:
    """One of eight colours, always the same for a name."""
    return sum(name.encode()) % 8


def qualified(path: str, parameters: Mapping[str, object]) -> str:
    """A path with those parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path
