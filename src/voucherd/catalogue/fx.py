"""Exchange rates as the European Central Bank publishes them, daily or historical, XML or CSV. Pure.

The bank says how much of a currency one euro buys; the service keeps what one unit of the currency is worth
in euros, in steps of 1e-8 (OP-50). A file is believed as a whole or not at all: the first thing wrong with it
refuses it, in one line that says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final
from xml.parsers import expat

from voucherd.money import DIGITS, RATE_DIGITS, RATE_ONE, divide_half_up

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Twice the bank's largest file, the whole history since 1999 as XML."""

EUR_E8_MAX: Final = 10_000 * RATE_ONE
"""No currency is worth more than this many euros."""

BASE: Final = "EUR"

MARGIN_BP_MAX: Final = 5_000
"""The highest margin on a rate: a half."""

_CODE: Final = re.compile(r"[A-Z]{3}")
_PLAIN: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,12}))?")
_ISO_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WRITTEN_DAY: Final = re.compile(r"([0-9]{1,2}) ([A-Z][a-z]+) ([0-9]{4})")
# The bank writes English months, whatever the locale of this machine.
_MONTHS: Final = {
    "January": 1,
    "February": 2,
    "March": 3,
    "April": 4,
    "May": 5,
    "June": 6,
    "July": 7,
    "August": 8,
    "September": 9,
    "October": 10,
    "November": 11,
    "December": 12,
}


class BadRates(ValueError):
    """The file or the rate can't be believed; says where and why."""


@dataclass(frozen=True, slots=True)
class DayRates:
    """One day's rates: what one unit of each currency was worth in EUR, ×1e8."""

    day: date
    eur_e8: dict[str, int]


def parse_rate(text: str) -> int:
    """What one unit is worth in EUR, from a text such as "0.92"."""
    match = _PLAIN.fullmatch(text.strip())
    if match is None:
        raise BadRates(f"{_short(text)} is not a rate, such as '0.92'")
    fraction = (match[2] or "").rstrip("0")
    if len(fraction) > RATE_DIGITS:
        raise BadRates(f"{_short(text)} has more than {RATE_DIGITS} digits after the point")
    return _believable(int(match[1] + fraction.ljust(RATE_DIGITS, "0")), text)


def parse_ecb(content: bytes) -> list[DayRates]:
    """The days in one of the bank's files, XML or CSV, whichever it is."""
    if content[:2] == b"PK":
        raise BadRates("this is a zip archive: unpack it first")
    return parse_xml(content) if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<" else parse_csv(content)


def parse_xml(content: bytes) -> list[DayRates]:
    """The days in the bank's XML: `<Cube time>` holds one `<Cube currency rate>` for each currency."""
    text = _decode(content)
    # An entity needs a document type, and the bank's files have none.
    if "<!DOCTYPE" in text:
        raise BadRates(f"line {_line_of(text, '<!DOCTYPE')}: a document type is not allowed")
    reader = _CubeReader()
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda name, attributes: reader.start(
        parser.CurrentLineNumber, name, attributes
    )
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as broken:
        raise BadRates(f"line {broken.lineno}: not XML: {expat.ErrorString(broken.code)}") from None
    return _some(reader.days)


class _CubeReader:
    """Collects the cubes of one XML file."""

    def __init__(self) -> None:
        self.days: list[DayRates] = []
        self._seen: set[date] = set()

    def start(self, line: int, name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] != "Cube":
            return
        if "time" in attributes:
            self.days.append(DayRates(_parse_day(line, attributes["time"], self._seen), {}))
        if "currency" in attributes:
            currency = _parse_code(line, attributes["currency"])
            if not self.days:
                raise BadRates(f"line {line}: {currency}: stands outside a day")
            if "rate" not in attributes:
                raise BadRates(f"line {line}: {currency}: has no rate")
            _keep(self.days[-1], line, currency, attributes["rate"])


def parse_csv(content: bytes) -> list[DayRates]:
    """The days in the bank's CSV: a header of currencies, then one row a day."""
    lines = _filled_lines(_decode(content))
    line, header = next(lines, (1, [""]))
    if header[0] != "Date":
        raise BadRates(f"line {line}: not a file of the ECB: it must start with Date or be XML")
    currencies = [_parse_code(line, name) for name in header[1:]]
    if len(set(currencies)) != len(currencies):
        raise BadRates(f"line {line}: a currency is named twice")
    days: list[DayRates] = []
    seen: set[date] = set()
    for line, row in lines:
        if len(row) != len(header):
            raise BadRates(f"line {line}: has {len(row)} fields, the header {len(header)}")
        rates = DayRates(_parse_day(line, row[0], seen), {})
        for currency, text in zip(currencies, row[1:], strict=True):
            if text != "N/A":
                _keep(rates, line, currency, text)
        days.append(rates)
    return _some(days)


def _filled_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every line that is not blank, with its number and its fields; the bank ends each with a comma."""
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            row = [field.strip() for field in content.split(",")]
            yield line, row[:-1] if row[-1] == "" else row


def _keep(rates: DayRates, line: int, currency: str, text: str) -> None:
    """Adds the rate to its day. Currencies that are no more (HRK, LTL …) are left out."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise BadRates(f"line {line}: {currency}: {_short(text)} is not a rate")
    if currency in rates.eur_e8:
        raise BadRates(f"line {line}: {currency}: is there twice")
    if currency not in DIGITS:
        return
    fraction = match[2] or ""
    per_eur = int(match[1] + fraction)
    try:
        eur_e8 = divide_half_up(RATE_ONE * 10 ** len(fraction), per_eur) if per_eur else 0
        rates.eur_e8[currency] = _believable(eur_e8, text)
    except BadRates as refused:
        raise BadRates(f"line {line}: {currency}: {refused}") from None


def _believable(eur_e8: int, text: str) -> int:
    if not 0 < eur_e8 <= EUR_E8_MAX:
        raise BadRates(f"{_short(text)} is out of bounds")
    return eur_e8


def _parse_code(line: int, text: str) -> str:
    if not _CODE.fullmatch(text):
        raise BadRates(f"line {line}: {_short(text)} is not a currency code")
    if text == BASE:
        raise BadRates(f"line {line}: {BASE}: is the base and has no rate")
    return text


def _parse_day(line: int, text: str, seen: set[date]) -> date:
    """The day from 2026-11-13 or 13 November 2026, refused when the file had it before."""
    try:
        if iso := _ISO_DAY.fullmatch(text):
            day = date(int(iso[1]), int(iso[2]), int(iso[3]))
        elif written := _WRITTEN_DAY.fullmatch(text):
            day = date(int(written[3]), _MONTHS[written[2]], int(written[1]))
        else:
            raise ValueError
    except (KeyError, ValueError):
        raise BadRates(f"line {line}: {_short(text)} is not a date") from None
    if day in seen:
        raise BadRates(f"line {line}: {day} is there twice")
    seen.add(day)
    return day


def _some(days: list[DayRates]) -> list[DayRates]:
    if not any(day.eur_e8 for day in days):
        raise BadRates("the file holds no rates")
    return days


def _decode(content: bytes) -> str:
    """The text of a file that is not too large. Only UTF-8: elsewhere a document type could hide."""
    if len(content) > FILE_BYTES_MAX:
        raise BadRates(f"the file is larger than {FILE_BYTES_MAX // 1024 // 1024} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        line = content.count(b"\n", 0, broken.start) + 1
        raise BadRates(f"line {line}: not UTF-8 text") from None


def _line_of(text: str, part: str) -> int:
    return text.count("\n", 0, text.index(part)) + 1


def _short(text: str) -> str:
    """The text for an error message: quoted, on one line, cut off."""
    return ascii(text[:40])
