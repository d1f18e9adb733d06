"""Reading query strings: what every list shares. Unknown parameters are ignored; a bad one is named (OP-25)."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from msgspec import Struct

from voucherd.http import Request
from voucherd.money import DIGITS
from voucherd.orders.rules.refusals import BadInput

PAGE_SIZE: Final = 50
PAGE_SIZE_MAX: Final = 200
PAGE_MAX: Final = 1_000_000
FIELDS_MAX: Final = 100

Given: TypeAlias = dict[str, list[str]]
"""The values of each parameter, in the order in which they were sent."""


class PageQuery(Struct, frozen=True):
    """Which part of a list is asked for: a numbered page, or what follows a cursor (an empty one: the beginning)."""

    size: int
    number: int | None
    cursor: str | None


def read(request: Request) -> Given:
    """The parameters of a request."""
    given: Given = {}
    try:
        pairs = parse_qsl(
            request.query.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise BadInput("query", "is not valid") from None
    for name, value in pairs:
        if any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in value):
            raise BadInput(name[:50], "must have no control characters")
        given.setdefault(name, []).append(value)
    return given


def one(given: Given, name: str) -> str | None:
    """The value of a parameter that may be given once."""
    values = given.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise BadInput(name, "must be given once")
    return values[0]


def whole(given: Given, name: str, default: int, most: int, *, least: int = 1) -> int:
    """A whole number from `least` to `most`."""
    text = one(given, name)
    if text is None:
        return default
    if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise BadInput(name, f"must be between {least} and {most}")
    return int(text)


def choice(given: Given, name: str, choices: tuple[str, ...]) -> str | None:
    """One of these words, in any case."""
    text = one(given, name)
    if text is None:
        return None
    for word in choices:
        if text.lower() == word.lower():
            return word
    rest = ", ".join(choices[:-1])
    raise BadInput(name, f"must be {rest} or {choices[-1]}")


def currency(name: str, text: str) -> str:
    """A currency code in any case (OP-06). Not every letter that has a capital of ours is one: "ſ" is no "s"."""
    code = text.upper()
    if not text.isascii() or code not in DIGITS:
        raise BadInput(name, "must be an ISO 4217 currency code")
    return code


def moment(given: Given, name: str) -> datetime | None:
    """A date or date-time of ISO 8601; without a zone it is UTC."""
    text = one(given, name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(name, "must be an ISO 8601 date or date-time") from None


def write_place(number: int) -> str:
    """The cursor of a list whose places are numbers."""
    return base64.urlsafe_b64encode(b"%d" % number).decode().rstrip("=")


def read_place(cursor: str) -> int:
    """The number in a cursor of such a list."""
    try:
        plain = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        found = re.fullmatch(rb"[0-9]{1,18}", plain)
    except (ValueError, binascii.Error, UnicodeError):
        found = None
    if found is None:
        raise BadInput("cursor", "is not one of ours")
    return int(found[0])


def page(given: Given) -> PageQuery:
    """The part of the list that is asked for (OP-03)."""
    size = whole(given, "limit", PAGE_SIZE, PAGE_SIZE_MAX)
    cursor = one(given, "cursor")
    if cursor is None:
        return PageQuery(size, whole(given, "page", 1, PAGE_MAX), None)
    if "page" in given:
        raise BadInput("page", "can not be combined with cursor")
    return PageQuery(size, None, cursor)
