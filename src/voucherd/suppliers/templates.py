"""Requests with blanks: `{reference}`, `{sku}`, `{count}` … in paths, queries, headers and JSON bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from voucherd.money import Money
from voucherd.suppliers.protocol import Sku, WantedCodes

Values: TypeAlias = Mapping[str, str | int | Decimal]

BLANKS: Final = frozenset(
    {
        "reference",
        "sku",
        "count",
        "face",
        "face_minor",
        "currency",
        "price_max",
        "price_max_minor",
        "price_currency",
    }
)
_BLANK: Final = re.compile(r"\{\{|\}\}|\{([a-z_]+)(:text)?\}|[{}]")


class Unsendable(Exception):
    """A value can't stand where the description wants it; nothing was sent."""


def values_for(reference: str, wanted: WantedCodes | Sku) -> dict[str, str | int | Decimal]:
    """What the blanks stand for. A price has none: there is no purchase yet to give a reference or a count."""
    values: dict[str, str | int | Decimal] = {"reference": reference, "sku": wanted.sku} | _money(
        "face", wanted.face
    )
    values["currency"] = wanted.face.currency
    if isinstance(wanted, WantedCodes):
        values |= {"count": wanted.count, "price_currency": wanted.price_max.currency}
        values |= _money("price_max", wanted.price_max)
    return values


def _money(name: str, money: Money) -> dict[str, str | int | Decimal]:
    return {name: money.decimal(), f"{name}_minor": money.minor}


def check(template: Any, allowed: frozenset[str] = BLANKS) -> None:
    """A ValueError if a text in the template has a blank that does not exist, or a brace that is not closed."""
    for text in _texts(template):
        for found in _BLANK.finditer(text):
            if found[0] in ("{", "}"):
                raise ValueError(f"has a {found[0]!r} that stands alone ({{{{ and }}}} stand for themselves)")
            if found[1] and found[1] not in allowed:
                raise ValueError(f"has {{{found[1]}}}; there are {', '.join(sorted(allowed))}")


def uses(template: Any, blank: str) -> bool:
    """Whether the template has this blank somewhere."""
    return any(found[1] == blank for text in _texts(template) for found in _BLANK.finditer(text))


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict):
        for value in template.values():
            yield from _texts(value)
    elif isinstance(template, list):
        for value in template:
            yield from _texts(value)


def fill_path(template: str, values: Values) -> str:
    """The path, each value as one segment or a part of one."""
    return _fill(template, values, lambda text: quote(text, safe=""))


def fill_query(template: Mapping[str, str], values: Values) -> str:
    """The query, without its question mark."""
    pairs = [(name, _fill(text, values)) for name, text in template.items()]
    return "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)


def fill_headers(template: Mapping[str, str], values: Values) -> dict[str, str]:
    """The headers; refused if a value has characters that no header has."""
    filled = {name: _fill(text, values) for name, text in template.items()}
    for name, text in filled.items():
        if not text.isascii() or not text.isprintable():
            raise Unsendable(f"the header {name} would not be printable ASCII")
    return filled


def fill_body(template: Any, values: Values) -> Any:
    """The body: a text that is one blank becomes its value, so numbers stay numbers; `{count:text}` is a text."""
    if isinstance(template, str):
        found = _BLANK.fullmatch(template)
        if found is not None and found[1] and not found[2]:
            return values[found[1]]
        return _fill(template, values)
    if isinstance(template, dict):
        return {name: fill_body(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [fill_body(value, values) for value in template]
    return template


def _fill(template: str, values: Values, dressed: Callable[[str], str] = str) -> str:
    def filled(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else dressed(_plain(values[found[1]]))

    return _BLANK.sub(filled, template)


def _plain(value: str | int | Decimal) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
