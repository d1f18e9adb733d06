"""The process's clock, for everything that does not decide about money (the database's clock does that)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def written(moment: datetime) -> str:
    """The wire's form of a moment: UTC, milliseconds, Z (OP-08)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@lru_cache(maxsize=4_096)
def iso(moment: datetime) -> str:
    """The same, kept, because a batch shares its moments. Long lists use `written`: they would push those out."""
    return written(moment)
