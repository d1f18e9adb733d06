"""From a supplier's answer to values that can be believed. What can't be is `Garbled`, whatever it is.

A reason names the field and the rule, never the text: codes are bearer secrets, and reasons end in logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from re import Pattern
from typing import Any, Final, NoReturn

from voucherd.money import BadAmount, Money, UnknownCurrency
from voucherd.suppliers.protocol import (
    CODE_CHARS_MAX,
    EXTERNAL_ID_CHARS_MAX,
    REASON_CHARS_MAX,
    SERIAL_CHARS_MAX,
    SURPLUS_MAX,
    Code,
)
from voucherd.vault.lines import read_expiry

NUMBER_CHARS_MAX: Final = 40
STOCK_MAX: Final = 1_000_000_000
YEAR_MAX: Final = 2999
"""A later expiry is a supplier's way to say never, or a mistake."""


class Garbled(Exception):
    """The answer can't be understood; the text says why and quotes nothing of it."""


def tree(body: bytes) -> Any:
    """The JSON in a body: strict UTF-8, numbers exact, no key twice, nothing that JSON does not have."""
    try:
        return json.loads(
            body.decode(),
            parse_float=_number,
            parse_int=_whole,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError):
        raise Garbled("the answer is not JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Garbled("the answer has a key twice")
    return found


def _number(text: str) -> Decimal:
    if len(text) > NUMBER_CHARS_MAX:
        raise Garbled("the answer has a number that is too long")
    try:
        return Decimal(text)
    except ArithmeticError:
        raise Garbled("the answer has a number that is too large") from None


def _whole(text: str) -> int:
    if len(text) > NUMBER_CHARS_MAX:
        raise Garbled("the answer has a number that is too long")
    return int(text)


def _constant(_text: str) -> NoReturn:
    raise Garbled("the answer has a number that is none")


def amount(value: object, currency: object, *, minor: bool = False) -> Money:
    """An exact, positive amount of money."""
    if not isinstance(currency, str) or not currency.isascii():
        raise Garbled("the price has no currency")
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise Garbled("the price is not a number")
    try:
        if minor:
            whole = value if isinstance(value, int) else int(str(value)) if str(value).isascii() else -1
            money = Money(whole, currency.upper())
            Money.parse(money.decimal(), money.currency)
        else:
            money = Money.parse(value if isinstance(value, Decimal) else str(value), currency)
    except (BadAmount, UnknownCurrency, ValueError):
        raise Garbled("the price is not an amount of its currency") from None
    if money.minor <= 0:
        raise Garbled("the price is not above zero")
    return money


def stock(value: object) -> int:
    """How many a supplier says it has."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < NUMBER_CHARS_MAX:
        value = int(value)
    # Not every whole number may be written out: that of 1e999999 would take minutes.
    if (
        isinstance(value, Decimal)
        and value.adjusted() < NUMBER_CHARS_MAX
        and value == value.to_integral_value()
    ):
        value = int(value)
    if not isinstance(value, int) or value < 0:
        raise Garbled("the stock is not a number")
    return min(value, STOCK_MAX)


def text(value: object, chars_max: int = EXTERNAL_ID_CHARS_MAX) -> str | None:
    """A short printable text or a whole number as text; None for anything else, for what matters little."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and 0 < len(value) <= chars_max and value.isprintable() else None


def reason(said: str) -> str:
    """A supplier's words, cut and cleaned for a log."""
    return "".join(c if c.isprintable() else " " for c in said[:REASON_CHARS_MAX]).strip()


def moment(value: object, never: Sequence[str] = ()) -> datetime | None:
    """When a code expires; None for one that does not."""
    if value is None or value == "" or value in never:
        return None
    found = read_expiry(value) if isinstance(value, str) and len(value) <= NUMBER_CHARS_MAX else None
    if found is None or found.year < 2000 or found.year > YEAR_MAX:
        raise Garbled("an expiry is not a date")
    return found


def codes(
    rows: Iterable[tuple[object, object, object]],
    count: int,
    *,
    pattern: Pattern[str] | None = None,
    never: Sequence[str] = (),
) -> tuple[Code, ...]:
    """The codes in rows of (code, serial, expiry), each once; a row without a code is one not delivered yet."""
    found: dict[str, Code] = {}
    for at, (given, serial, expires) in enumerate(rows):
        if at >= (count + SURPLUS_MAX) * 2:
            raise Garbled("far more codes than were asked for")
        if given is None or given == "":
            continue
        code = _code(given, pattern)
        # The same code twice is one code: it can be redeemed once.
        found.setdefault(code, Code(code, _serial(serial), moment(expires, never)))
    if len(found) > count + SURPLUS_MAX:
        raise Garbled("far more codes than were asked for")
    return tuple(found.values())


def _code(given: object, pattern: Pattern[str] | None) -> str:
    code = text(given, CODE_CHARS_MAX)
    if code is None:
        raise Garbled(f"a code is not printable text of at most {CODE_CHARS_MAX} characters")
    code = code.strip()
    if not code:
        raise Garbled("a code is blank")
    if pattern is not None and pattern.fullmatch(code) is None:
        raise Garbled("a code does not look as it should")
    return code


def _serial(given: object) -> str:
    if given is None or given == "":
        return ""
    serial = text(given, SERIAL_CHARS_MAX)
    if serial is None:
        raise Garbled(f"a serial is not printable text of at most {SERIAL_CHARS_MAX} characters")
    return serial.strip()
