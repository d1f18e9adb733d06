"""The parameters of a request: each says what it means and reads what was sent. A bad one is named (OP-25)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from msgspec.structs import replace

from voucherd import clock
from voucherd.http import Request
from voucherd.money import DIGITS
from voucherd.orders.rules.refusals import BadInput

PAGE_SIZE: Final = 50
PAGE_SIZE_MAX: Final = 200
PAGE_MAX: Final = 1_000_000
OFFSET_MAX: Final = PAGE_MAX * PAGE_SIZE_MAX
"""As deep as pages lead."""
FIELDS_MAX: Final = 100
NAME_CHARS_MAX: Final = 50
"""Of a parameter's name as it is told to whoever sent it."""

Given: TypeAlias = dict[str, list[str]]
"""The values of each parameter, in the order in which they were sent."""


T = TypeVar("T")


class Parameter(Struct, Generic[T], frozen=True):
    """A parameter, of the query unless another place is named: what it means, what it may be, and how it is read."""

    name: str
    words: str
    schema: dict[str, Any]
    parse: Callable[[str, str], T]
    """What becomes of its name and text, or the rule that the text breaks."""
    default: T
    style: dict[str, Any] = {}
    """How it is written, where that is not how most are."""
    example: str | int | None = None
    required: bool = False
    place: str = "query"

    @property
    def described(self) -> dict[str, Any]:
        """The parameter as the OpenAPI document has it."""
        part = {"name": self.name, "in": self.place, "description": self.words, "schema": self.schema}
        more = {"required": self.required or None, "example": self.example} | self.style
        return part | {name: value for name, value in more.items() if value is not None}

    def read(self, given: Given) -> T:
        """What was given, or the default."""
        values = given.get(self.name)
        if values is None:
            return self.default
        if len(values) > 1:
            raise BadInput(self.name, "must be given once")
        return self.parse(self.name, values[0])


class PageQuery(Struct, frozen=True):
    """Which part of a list is asked for: by its place, or what follows a cursor (an empty one: the beginning)."""

    size: int
    skip: int | None
    """How many come before it; None in a walk by cursor."""
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
            raise BadInput(_told(name), "must have no control characters")
        given.setdefault(name, []).append(value)
    return given


def refuse_unknown(request: Request, parameters: Iterable[Parameter[Any]]) -> None:
    """Refuse a parameter that the call does not have: one that was ignored would lead its client astray."""
    known = [parameter.name for parameter in parameters if parameter.place == "query"]
    for name in read(request):
        if name not in known:
            raise BadInput(_told(name), _instead(name, known))


def _instead(name: str, known: Sequence[str]) -> str:
    """What to send instead of a parameter that there is not."""
    if name in (_NUMBER.name, _OFFSET.name) and "cursor" in known:
        return "is not offered here, use cursor"
    by_letters = {one.lower(): one for one in known}
    near = get_close_matches(name[:NAME_CHARS_MAX].lower(), by_letters, n=1)
    return "is not a parameter of this call" + "".join(f", did you mean {by_letters[one]}?" for one in near)


def _told(name: str) -> str:
    """A name that a client made up, fit to be told."""
    return "".join(c if c.isprintable() else "?" for c in name[:NAME_CHARS_MAX]) or "query"


def currency(name: str, text: str) -> str:
    """A currency code in any case (OP-06). Not every letter that has a capital of ours is one: "ſ" is no "s"."""
    code = text.upper()
    if not text.isascii() or code not in DIGITS:
        raise BadInput(name, "must be an ISO 4217 currency code")
    return code


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


# ── kinds of parameters ───────────────────────────────────────────────────────────────────────────────────


def text(name: str, words: str, **rules: Any) -> Parameter[str | None]:
    """Any text; its rules are checked by the reader."""
    return Parameter(name, words, {"type": "string", **rules}, lambda _, given: given, None)


def in_path(name: str, words: str, example: str) -> Parameter[str | None]:
    """A parameter of the path."""
    return replace(text(name, words), place="path", required=True, example=example)


def in_header(name: str, words: str, example: str, **rules: Any) -> Parameter[str | None]:
    """A header."""
    return replace(text(name, words, **rules), place="header", example=example)


def cursor(words: str, example: str, name: str = "cursor") -> Parameter[str | None]:
    """Where to go on in a list; an empty one is its beginning."""
    return replace(text(name, words), style={"allowEmptyValue": True}, example=example)


def word(name: str, words: str, *, most: int) -> Parameter[str | None]:
    """A text that is not empty, of so many characters at most."""
    schema = {"type": "string", "minLength": 1, "maxLength": most}
    return Parameter(name, words, schema, lambda name, given: short(name, given, most), None)


def short(name: str, given: str, most: int) -> str:
    """A text that is not empty, of so many characters at most."""
    if not 1 <= len(given) <= most:
        raise BadInput(name, f"must be 1 to {most} characters")
    return given


def whole(
    name: str, words: str, *, least: int = 1, most: int, default: int, example: int | None = None
) -> Parameter[int]:
    """A whole number from `least` to `most`."""

    def parse(name: str, given: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", given) or not least <= int(given) <= most:
            raise BadInput(name, f"must be between {least} and {most}")
        return int(given)

    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return Parameter(name, words, schema, parse, default, example=example)


def _untold(parameter: Parameter[T]) -> Parameter[T]:
    """The same without its default in the document: generated clients would send it with every call (OP-149)."""
    schema = {name: rule for name, rule in parameter.schema.items() if name != "default"}
    return replace(parameter, schema=schema)


def choice(
    name: str, words: str, choices: tuple[str, ...], default: str | None = None
) -> Parameter[str | None]:
    """One of these words, in any case."""

    def parse(name: str, given: str) -> str:
        for one in choices:
            if given.lower() == one.lower():
                return one
        raise BadInput(name, either(choices))

    schema = {"type": "string", "enum": choices} | ({} if default is None else {"default": default})
    return Parameter(name, words, schema, parse, None)


def several(name: str, words: str, choices: Sequence[str]) -> Parameter[None]:
    """A parameter that may be repeated; its reader takes all that was given."""
    schema = {"type": "array", "items": {"type": "string", "enum": choices}}
    return Parameter(name, words, schema, lambda *_: None, None, {"style": "form", "explode": True})


def flag(name: str, words: str) -> Parameter[bool | None]:
    """True or false."""
    parse = choice(name, words, ("true", "false")).parse
    return Parameter(name, words, {"type": "boolean"}, lambda *given: parse(*given) == "true", None)


def amount(name: str, words: str) -> Parameter[Decimal | None]:
    """A decimal number that is not negative, exactly as it is written."""

    def parse(name: str, given: str) -> Decimal:
        if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,8})?", given):
            raise BadInput(name, "must be a number")
        return Decimal(given)

    return Parameter(name, words, {"type": "number", "minimum": 0}, parse, None)


def currency_code(name: str, words: str, example: str | None = None) -> Parameter[str | None]:
    """A currency."""
    schema = {"type": "string", "pattern": "^[A-Za-z]{3}$"}
    return Parameter(name, words, schema, currency, None, example=example)


def moment(name: str, words: str, example: str, *, required: bool = False) -> Parameter[datetime | None]:
    """A date or date-time of ISO 8601; without a zone it is UTC."""
    return Parameter(name, words, {"type": "string"}, _moment, None, example=example, required=required)


def _moment(name: str, given: str) -> datetime:
    try:
        found = datetime.fromisoformat(given.replace(" ", "+"))
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(name, "must be an ISO 8601 date or date-time") from None
    return clock.brought_into_reach(found)


def either(choices: Sequence[str]) -> str:
    """The rule of a parameter that must be one of these."""
    return f"must be {', '.join(choices[:-1])} or {choices[-1]}"


# ── parameters of several lists ───────────────────────────────────────────────────────────────────────────


def limit(what: str, *, default: int = PAGE_SIZE, most: int = PAGE_SIZE_MAX) -> Parameter[int]:
    """The most that a page holds."""
    return whole("limit", f"The most {what} that a page holds.", default=default, most=most)


def period(what: str) -> tuple[Parameter[datetime | None], Parameter[datetime | None]]:
    """From when and until when."""
    first = (
        f"Only {what} this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone."
    )
    last = f"Only {what} this moment or earlier. A bare date is its first moment."
    return (
        moment("dateFrom", first, "2026-01-01"),
        replace(moment("dateTo", last, "2026-02-01T00:00:00Z"), parse=_last_moment),
    )


def _last_moment(name: str, given: str) -> datetime:
    """The end of the millisecond that was given: moments are shown in milliseconds, and what is shown is compared.

    Whoever names a microsecond means that one.
    """
    found = _moment(name, given)
    return found if found.microsecond % 1000 else found.replace(microsecond=found.microsecond + 999)


BY_TIME: Final = choice("sortOrder", "`desc`: newest first. `asc`: oldest first.", ("asc", "desc"), "desc")
_NUMBER: Final = _untold(
    whole(
        "page",
        "Number of the page: the first unless it is sent. Not together with `offset` or `cursor`.",
        most=PAGE_MAX,
        default=1,
    )
)
_OFFSET: Final = _untold(
    whole("offset", "How many to pass over, in place of `page`.", least=0, most=OFFSET_MAX, default=0)
)


class Pages:
    """The parameters of a list that has numbered pages and cursors (OP-03)."""

    def __init__(self, what: str, example: str) -> None:
        self._limit = limit(what)
        go_on = "Where to go on: the `nextCursor` of the last page, or empty to begin a walk."
        self._cursor = cursor(go_on, example)
        self.parameters = (_NUMBER, self._limit, _OFFSET, self._cursor)

    def read(self, given: Given) -> PageQuery:
        """The part of the list that is asked for."""
        size = self._limit.read(given)
        ways = [one.name for one in (self._cursor, _NUMBER, _OFFSET) if one.name in given]
        if len(ways) > 1:
            raise BadInput(ways[1], f"can not be combined with {ways[0]}")
        place = self._cursor.read(given)
        if place is not None:
            return PageQuery(size, None, place)
        skip = _OFFSET.read(given) if _OFFSET.name in given else (_NUMBER.read(given) - 1) * size
        return PageQuery(size, skip, None)
