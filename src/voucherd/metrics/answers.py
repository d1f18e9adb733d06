"""Counts of answers by route: plain numbers, because the library's own counters lock at every step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import HistogramMetricFamily

from voucherd.http import Request, Response, method_word
from voucherd.metrics.families import buckets

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
NO_ROUTE: Final = "none"
"""The route of a path that does not exist: a stranger's words never become a label."""


class _Answers:
    """The answers of one route, method and status: how many, and how long they took."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0

    def add(self, other: _Answers) -> None:
        """Count those of another, too."""
        self.buckets = [one + more for one, more in zip(self.buckets, other.buckets, strict=True)]
        self.seconds += other.seconds


class AnswerCounts:
    """Counts answers."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, int], _Answers] = {}

    def observe(self, request: Request, response: Response, seconds: float) -> None:
        """Count one answer."""
        route, method, status = request.route, request.method, response.status
        found = self._answers.get((route, method, status))
        if found is None:
            found = self._answers.setdefault((route, method_word(method), status), _Answers())
        found.buckets[bisect_left(SECONDS, seconds)] += 1
        found.seconds += seconds

    def families(self) -> Iterator[HistogramMetricFamily]:
        """The answers so far: by method and status, and by route and outcome."""
        by_status: dict[tuple[str, str], _Answers] = {}
        by_route: dict[tuple[str, str, str], _Answers] = {}
        for (route, method, status), answers in list(self._answers.items()):
            by_status.setdefault((method, str(status)), _Answers()).add(answers)
            where = (method, route or NO_ROUTE, outcome_of(status))
            by_route.setdefault(where, _Answers()).add(answers)
        http = HistogramMetricFamily(
            "voucherd_http_seconds", "Time to answer, by method and status.", labels=["method", "status"]
        )
        routes = HistogramMetricFamily(
            "voucherd_route_seconds", "Time to answer, by route.", labels=["method", "route", "outcome"]
        )
        for labels, answers in by_status.items():
            http.add_metric(labels, buckets(SECONDS, answers.buckets), answers.seconds)
        for where, answers in by_route.items():
            routes.add_metric(where, buckets(SECONDS, answers.buckets), answers.seconds)
        yield from (http, routes)


def outcome_of(status: int) -> str:
    """What came of a call: it went well, was refused or limited, or failed here."""
    if status < 400:
        return "ok"
    if status == 429:
        return "limited"
    return "refused" if status < 500 else "failed"
