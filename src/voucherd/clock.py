"""The process's clock, for everything that does not decide about money (the database's clock does that)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

YEAR_MIN: Final = 1900
YEAR_MAX: Final = 2999
"""Years that anybody may ask about: a span before or after a day of theirs is still in the calendar."""
_EARLIEST: Final = datetime(YEAR_MIN, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(YEAR_MAX, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


def now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def in_reach(day: date) -> bool:
    """Whether anybody may ask about this day or moment."""
    return YEAR_MIN <= day.year <= YEAR_MAX


def brought_into_reach(moment: datetime) -> datetime:
    """The moment, or the nearest that anybody may ask about: nothing has happened beyond it."""
    return min(max(moment, _EARLIEST), _LATEST)


def written(moment: datetime) -> str:
    """The wire's form of a moment: UTC, milliseconds, Z (OP-08)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=4_096)
def iso(moment: datetime) -> str:
    """The same, kept, because a batch shares its moments. Long lists use `written`: they would push those out."""
    return written(moment)
