"""Lists in the order that is asked for: by a key such as `name`, or the other way round by `-name`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final, TypeVar

OLDEST: Final = "at"
"""Of lists that are sorted by their time alone: the oldest come first."""

T = TypeVar("T")


def chosen(wanted: str, keys: Container[str], usual: str) -> str:
    """What a list is sorted by: as wanted if it has such a key, else as usual."""
    return wanted if wanted.removeprefix("-") in keys else usual


def by_time(wanted: str) -> str:
    """What a list is sorted by that has its time alone: the newest come first, unless `OLDEST` is wanted."""
    return chosen(wanted, {OLDEST}, f"-{OLDEST}")


def in_order(rows: Iterable[T], keys: Mapping[str, Callable[[T], Any]], sort: str) -> list[T]:
    """The rows by the key that is chosen; those without a value come last. Without such a key they stay as they are."""
    key = keys.get(sort.removeprefix("-"))
    if key is None:
        return list(rows)
    valued = [(key(row), row) for row in rows]
    known = [pair for pair in valued if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=sort.startswith("-"))
    return [row for _, row in known] + [row for value, row in valued if value is None]


def order_by(keys: Mapping[str, str], sort: str) -> str:
    """The ORDER BY of the key that is chosen; `{0}` in its SQL is the direction."""
    return keys[sort.removeprefix("-")].format("DESC" if sort.startswith("-") else "ASC")
