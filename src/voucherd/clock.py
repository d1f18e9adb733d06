"""The process's clock, for everything that does not decide about money (the database's clock does that)."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """The wire's form of a moment: UTC, milliseconds, Z (OP-08)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
