"""How pages and letters speak to their reader: the language, and the time zone.

The catalogues are `languages/*.po`, with `languages/en.pot` as the list of all texts (`make texts` writes it). They are
read once, when a page needs them first, so there is nothing to compile and nothing that could be out of date. English
is in the templates and in the code themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache, lru_cache
from gettext import c2py
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale
from babel.dates import DateTimePattern, format_date, format_timedelta, parse_pattern
from babel.messages.pofile import read_po
from babel.numbers import format_currency
from msgspec import Struct

from voucherd.money import Money, digits

SOURCE: Final = "en"
LANGUAGES: Final[dict[str, str]] = {
    SOURCE: "English",
    "nl": "Nederlands",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
}
"""Each language by its tag, in its own words."""
EVERYWHERE: Final = "ww"
THIN: Final = "\u202f"
"""Groups digits, and never breaks a line."""
DAYS_MAX: Final = 5_000
ZONE: Final = "UTC"
"""Of whoever has said nothing."""

_RANGE: Final = re.compile(
    r"\s*([A-Za-z]{1,8}|\*)(?:-[A-Za-z0-9-]{1,60})?\s*(?:;\s*q=\s*([01](?:\.[0-9]{1,3})?))?\s*"
)
_HEADER_CHARS_MAX: Final = 1_000
_LETTERS_AT_NUMBER: Final = re.compile(r"([A-Z])(?=[0-9])")


def phrase(english: str) -> str:
    """The same words. It marks those that are translated later, when it is known to whom they are said."""
    return english


def pick(asked: str, accepted: str) -> str:
    """The language that was asked for, else the one of ours that the browser likes best, else English."""
    if asked in LANGUAGES:
        return asked
    liked: dict[str, float] = {}
    for part in accepted[:_HEADER_CHARS_MAX].split(","):
        found = _RANGE.fullmatch(part)
        if found is not None:
            tag, weight = found[1].lower(), float(found[2] or 1)
            liked[tag] = max(liked.get(tag, 0.0), weight)
    ours = [tag for tag in liked if tag in LANGUAGES and liked[tag] > 0]
    # The first of those that are liked equally: browsers write them in order.
    return max(ours, key=lambda tag: liked[tag], default=SOURCE)


@cache
def zones() -> frozenset[str]:
    """The time zones that this machine knows."""
    return frozenset(available_timezones()) | {ZONE}


def zone_names() -> list[str]:
    """The time zones that a person can choose: those that are named for a place, and UTC."""
    return [
        ZONE,
        *sorted(name for name in zones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))),
    ]


class Catalogue(Struct, frozen=True):
    """The translations of a language, by the English words; of a count by the words for one."""

    texts: dict[str, tuple[str, ...]]
    form: Callable[[int], int]
    """Which of the words belong to a count."""


@cache
def catalogue(language: str) -> Catalogue:
    """What a language has for our words."""
    with (files("voucherd") / "languages" / f"{language}.po").open("rb") as lines:
        read = read_po(lines)
    texts: dict[str, tuple[str, ...]] = {}
    for message in read:
        english = message.id if isinstance(message.id, str) else message.id[0]
        said = message.string or ""
        if english:
            texts[english] = (said,) if isinstance(said, str) else tuple(said)
    return Catalogue(texts, c2py(read.plural_expr))


class Words(Struct, frozen=True):
    """One reader: the words, and how dates, numbers and money are written."""

    language: str = SOURCE
    zone: str = ZONE

    @property
    def locale(self) -> Locale:
        """What Babel knows of the language; English as most of the world writes it, with the day before the month."""
        return Locale.parse("en_001" if self.language == SOURCE else self.language)

    @property
    def tzinfo(self) -> tzinfo:
        """The time zone."""
        return UTC if self.zone == ZONE else ZoneInfo(self.zone)

    def find(self, english: str) -> str:
        """The words in this language, with the places of their values."""
        if self.language == SOURCE:
            return english
        return catalogue(self.language).texts.get(english, (english,))[0] or english

    def find_plural(self, one: str, many: str, count: int) -> str:
        """The words for a count in this language, with the places of their values."""
        if self.language != SOURCE:
            known = catalogue(self.language)
            forms = known.texts.get(one, ())
            place = known.form(count)
            if place < len(forms) and forms[place]:
                return forms[place]
        return one if count == 1 else many

    def text(self, english: str, **values: object) -> str:
        """The words in this language, with the values in their places."""
        return self.find(english).format(**values)

    def plural(self, one: str, many: str, count: int, **values: object) -> str:
        """The words for a count, which is in the place `{count}`."""
        return self.find_plural(one, many, count).format(count=self.number(count), **values)

    def number(self, count: int) -> str:
        """A whole number with its digits in groups of three."""
        return f"{'−' if count < 0 else ''}{abs(count):,}".replace(",", _signs(self.language)[0])

    def figure(self, amount: Money) -> str:
        """The number of an amount with its digits in groups of three."""
        places = digits(amount.currency)
        whole, part = divmod(abs(amount.minor), 10**places)
        text = ("−" if amount.minor < 0 else "") + self.number(whole)
        return f"{text}{_signs(self.language)[1]}{part:0{places}d}" if places else text

    def decimal(self, plain: str) -> str:
        """A rate or a percentage such as 0.0058, with the language's sign before the parts of one."""
        return plain.replace(".", _signs(self.language)[1])

    def amount(self, amount: Money) -> str:
        """An amount with its currency's letters, in one piece."""
        return f"{self.figure(amount)}\u00a0{amount.currency}"

    def money(self, amount: Money) -> str:
        """An amount with its currency's sign; whole amounts without the zeros after the point."""
        number = amount.decimal()
        if number == number.to_integral_value():
            pattern = re.sub(r"\.0+", "", self.locale.currency_formats["standard"].pattern)
            written = format_currency(number, amount.currency, pattern, self.locale, currency_digits=False)
        else:
            written = format_currency(number, amount.currency, locale=self.locale)
        # A sign stands at its number, but the letters of a currency without one do not.
        return _LETTERS_AT_NUMBER.sub("\\1\u00a0", written)

    def long_day(self, at: datetime) -> str:
        """The day of a moment with its month in full, such as 3 November 2027."""
        return str(format_date(at.astimezone(self.tzinfo), "long", locale=self.locale))

    def day(self, at: datetime | date) -> str:
        """The day of a moment, such as 3 Nov 2027; a date is the same day everywhere."""
        return _day(self.language, at.astimezone(self.tzinfo).date() if isinstance(at, datetime) else at)

    def moment(self, at: datetime) -> str:
        """A moment to the minute, such as 3 May 2027, 14:05."""
        here = at.astimezone(self.tzinfo)
        return f"{self.day(at)}, {here:%H:%M}"

    def moment_and_zone(self, at: datetime) -> str:
        """A moment with the zone beside it, for a text that stands alone."""
        return f"{self.moment(at)} ({self.zone})"

    def midnight(self, day: date) -> datetime:
        """The first moment of a day here, in UTC."""
        return datetime.combine(day, time(), self.tzinfo).astimezone(UTC)

    def today(self, now: datetime) -> date:
        """Which day it is here."""
        return now.astimezone(self.tzinfo).date()

    def until(self, moment: datetime, now: datetime) -> str:
        """How long it is until then, such as "in 15 minutes"."""
        left = max(moment - now, timedelta(minutes=1))
        # Rounded up: who comes back when he was told to must not be too early.
        minutes = timedelta(minutes=-(-left // timedelta(minutes=1)))
        return str(
            format_timedelta(
                minutes, granularity="minute", threshold=2, add_direction=True, locale=self.locale
            )
        )

    def place(self, region: str) -> str:
        """Where a code can be used; what is no place that Babel knows stays as it is."""
        if region == EVERYWHERE:
            return ""
        named = self.locale.territories.get(region.upper())
        return str(named or region.upper())


ENGLISH: Final = Words()


@cache
def _signs(language: str) -> tuple[str, str]:
    """What a language groups digits with, and what it puts before the parts of one."""
    if language == SOURCE:
        return THIN, "."
    symbols = Locale.parse(language).number_symbols["latn"]
    return str(symbols["group"]), str(symbols["decimal"])


@lru_cache(maxsize=DAYS_MAX)
def _day(language: str, day: date) -> str:
    """A day as a language writes it. A list says the same one in row after row."""
    pattern, locale = _day_pattern(language)
    return str(pattern.apply(day, locale))


@cache
def _day_pattern(language: str) -> tuple[DateTimePattern, Locale]:
    """How a language writes a day with a short month."""
    locale = Locale.parse(language)
    pattern = "d MMM y" if language == SOURCE else locale.datetime_skeletons["yMMMd"].pattern
    return parse_pattern(pattern), locale
