"""What a check is."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """An invariant: its name, the promise in words, and the query that finds the rows which break it."""

    name: str
    promise: str
    sql: str
