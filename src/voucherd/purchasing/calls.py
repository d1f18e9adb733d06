"""Counts of calls to suppliers in this process: plain numbers, for the metrics."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from voucherd.suppliers.protocol import Bought, Finding, NotFound, SupplierRefused, UnderWay

SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0)
"""The upper ends of the buckets; one more is open."""

_WORDS: Final = {Bought: "bought", UnderWay: "under_way", SupplierRefused: "refused", NotFound: "not_found"}


class Durations:
    """How long calls took, in buckets."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0


class CallCounts:
    """Calls by supplier and verb: how long they took, and what was answered."""

    def __init__(self) -> None:
        self.durations: dict[tuple[str, str], Durations] = {}
        self.answers: dict[tuple[str, str, str], int] = {}

    def observe(self, supplier: str, verb: str, answer: Finding, seconds: float) -> None:
        """Count one call."""
        took = self.durations.setdefault((supplier, verb), Durations())
        took.buckets[bisect_left(SECONDS, seconds)] += 1
        took.seconds += seconds
        key = (supplier, verb, _WORDS.get(type(answer), "unclear"))
        self.answers[key] = self.answers.get(key, 0) + 1
