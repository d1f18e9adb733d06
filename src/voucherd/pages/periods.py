"""Days that people choose in a form."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd.pages.forms import FormFields

_EARLIEST: Final = date(2000, 1, 1)
_LATEST: Final = date(2999, 12, 31)


class Period(Struct, frozen=True):
    """From the first moment of one day up to the last of another; either end may be open."""

    first: date | None = None
    last: date | None = None
    problem: str = ""

    @property
    def begins(self) -> datetime | None:
        """The first moment of it, in UTC."""
        return None if self.first is None else midnight(self.first)

    @property
    def ends(self) -> datetime | None:
        """The last moment of it, in UTC."""
        if self.last is None:
            return None
        return midnight(self.last) + timedelta(days=1) - timedelta(microseconds=1)


def read_day(text: str) -> date | None:
    """The day that a field of dates holds; None for an empty one, refused if it is none."""
    if not text:
        return None
    day = date.fromisoformat(text)
    if not _EARLIEST <= day <= _LATEST:
        raise ValueError(text)
    return day


def read_period(given: FormFields) -> Period:
    """The period of a filter; one that can't be read lets everything through and says so."""
    try:
        first, last = read_day(given.get("from")), read_day(given.get("to"))
    except ValueError:
        return Period(problem="A day looks like 2026-01-31.")
    if first is not None and last is not None and last < first:
        return Period(problem="The last day is before the first.")
    return Period(first, last)


def midnight(day: date) -> datetime:
    """The first moment of a day, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
