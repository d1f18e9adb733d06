"""The languages of the recipient's page: catalogues of gettext, read as they are, and Babel for dates and money.

The catalogues are `languages/*.po`. They are small and are read once, when a page needs them first, so there is nothing
to compile and nothing that could be out of date. English is in the templates themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final

from babel import Locale
from babel.dates import format_date, format_timedelta
from babel.messages.pofile import read_po
from babel.numbers import format_currency
from msgspec import Struct

from voucherd.money import Money

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

_RANGE: Final = re.compile(
    r"\s*([A-Za-z]{1,8}|\*)(?:-[A-Za-z0-9-]{1,60})?\s*(?:;\s*q=\s*([01](?:\.[0-9]{1,3})?))?\s*"
)
_HEADER_CHARS_MAX: Final = 1_000
_LETTERS_AT_NUMBER: Final = re.compile(r"([A-Z])(?=[0-9])")


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
def catalogue(language: str) -> Mapping[str, str]:
    """The translations of a language, by the English words."""
    if language == SOURCE:
        return {}
    file = files("voucherd.pages.recipient") / "languages" / f"{language}.po"
    with file.open("rb") as lines:
        return {str(message.id): str(message.string) for message in read_po(lines) if message.id}


class PageWords(Struct, frozen=True):
    """One language: its words, and how it writes dates and money."""

    language: str

    @property
    def locale(self) -> Locale:
        """What Babel knows of the language; English as most of the world writes it, with the day before the month."""
        return Locale.parse("en_001" if self.language == SOURCE else self.language)

    def text(self, english: str, **values: object) -> str:
        """The words in this language, with the values in their places."""
        return (catalogue(self.language).get(english) or english).format(**values)

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

    def day(self, moment: datetime) -> str:
        """A day in full, such as 3 May 2027."""
        return str(format_date(moment, "long", locale=self.locale))

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
