"""Pages out of templates: one environment, and what every page knows."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import DictLoader, Environment, StrictUndefined, pass_context
from markupsafe import Markup, escape

from voucherd.http import HTML, Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages import addresses
from voucherd.pages.assets import icons, static_paths, templates
from voucherd.pages.nav import WAITING, current, home, nav_of
from voucherd.pages.roles import role_word
from voucherd.pages.statuses import STATUSES
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.sheets.writing import Format, Row, csv_rows, write
from voucherd.words import ENGLISH, Words

FILE_TYPES: Final = {
    "csv": b"text/csv; charset=utf-8",
    "xlsx": b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pdf": b"application/pdf",
}
ROWS_AT_ONCE: Final = 1_000
TEXTS_MAX: Final = 20_000
"""More than there are texts in all languages."""
_reader: ContextVar[Words] = ContextVar("reader", default=ENGLISH)
"""To whom the page that is being written speaks. Macros know it, too, however they were imported."""


def render(template: str, visit: Visit, /, *, status: int | None = None, **facts: Any) -> Response:
    """A page; every page gets navigation, state, flash, and the form with its problems."""
    groups = nav_of(visit.person)
    here = current(groups, visit.path)
    asked = visit.request.method == "GET" and status is None
    visit.flash_shown = True
    known = {
        "visit": visit,
        "words": visit.words,
        "person": visit.person,
        "sandbox": visit.person is not None and visit.state is State.SANDBOX,
        "groups": groups,
        "beside": (addresses.beside(visit.path) if asked else here) or home(visit.person),
        "home": home(visit.person),
        "here": here,
        "flash": visit.session.flash if visit.session is not None else None,
        "form": visit.form,
        "problems": visit.problems,
        "shop": visit.services.settings.operator_name,
        "logo": visit.services.running.logo,
    }
    spoken = _reader.set(visit.words)
    try:
        page = environment().get_template(template).render(known | facts)
    finally:
        _reader.reset(spoken)
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
    spoken: dict[str, Callable[[Any], str]] = {
        "money": money,
        "moment": moment,
        "day": day,
        "number": number,
        "figure": figure,
        "amount": amount,
        "decimal": decimal,
    }
    made.filters.update({name: _when_shown(filter_) for name, filter_ in spoken.items()})
    made.filters.update(qualified=qualified, hue=hue, merged=merged, role=_role)
    made.globals.update(
        static=static_paths(), Right=Right, WAITING=WAITING, STATUSES=STATUSES, icon=icon, icons=icons()
    )
    made.globals.update(_=_text, gettext=_text, ngettext=_plural)
    return made


def _when_shown(filter_: Callable[[Any], str]) -> Callable[[Any, Any], str]:
    """The filter, kept from Jinja, which would apply it to a literal once for all readers."""
    return pass_context(lambda _context, value: filter_(value))


@cache
def icon(name: str) -> Markup:
    """A drawing beside words that say the same: nobody needs to see it."""
    return Markup(
        '<svg class="icon" viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">{}</svg>'
    ).format(Markup(icons()[name]))  # noqa: S704 - drawings of our own.


def money(amount: Money) -> Markup:
    """An amount such as 1 234.50 EUR, in one piece."""
    number, currency = escape(figure(amount)), escape(amount.currency)
    return Markup(f'<span class="money">{number}&nbsp;<abbr>{currency}</abbr></span>')  # noqa: S704 - Escaped.


def figure(amount: Money) -> str:
    """The number of an amount, with its digits in groups of three."""
    return _reader.get().figure(amount)


def amount(money: Money) -> str:
    """An amount in one piece without markup, for buttons and titles."""
    return _reader.get().amount(money)


def decimal(plain: str) -> str:
    """A rate or a percentage as the reader writes it."""
    return _reader.get().decimal(plain)


def number(count: int) -> str:
    """A count with its digits in groups of three."""
    return _reader.get().number(count)


def moment(at: datetime | None) -> Markup:
    """A moment in the reader's time zone, to the minute."""
    if at is None:
        return Markup("–")
    return _time(at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), _reader.get().moment(at))


def day(at: datetime | date | None) -> Markup:
    """The day of a moment in the reader's time zone."""
    if at is None:
        return Markup("–")
    here = at.astimezone(_reader.get().tzinfo) if isinstance(at, datetime) else at
    return _time(here.strftime("%Y-%m-%d"), _reader.get().day(at))


def _time(plain: str, shown: str) -> Markup:
    """A time for programs, and as it is shown."""
    return Markup(f'<time datetime="{plain}">{escape(shown)}</time>')  # noqa: S704 - Escaped.


def _text(english: str, /, **values: object) -> Markup:
    """Words of a template in the reader's language. They may hold tags of ours; the values are escaped."""
    text = _found(_reader.get().language, english)
    # A list says the same words in each row: most have no place for a value, and are ready.
    return text.format(**values) if values or "{" in text or "}" in text else text


@lru_cache(maxsize=TEXTS_MAX)
def _found(language: str, english: str) -> Markup:
    """Words of ours in a language."""
    return Markup(Words(language).find(english))  # noqa: S704 - Our own words.


def _plural(one: str, many: str, count: int, /, **values: object) -> Markup:
    """Words for a count in the reader's language; the count is in the place `{count}`."""
    words = _reader.get()
    text = Markup(words.find_plural(one, many, count))  # noqa: S704 - Our own words.
    return text.format(count=words.number(count), **values)


def _role(role: str) -> Markup:
    """What a role is called."""
    return _text(role_word(role))


def hue(name: str) -> int:
    """One of eight colours, always the same for a name."""
    return sum(name.encode()) % 8


def merged(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, object]:
    """Both together; the second one leads."""
    return {**first, **second}


def qualified(path: str, parameters: Mapping[str, object]) -> str:
    """A path with those parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path
