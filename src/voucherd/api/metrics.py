"""What Prometheus reads at /metrics."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.orders.service import OrderService
from voucherd.purchasing import metrics as purchase_metrics
from voucherd.purchasing.calls import SECONDS, CallCounts
from voucherd.purchasing.metrics import Pulse
from voucherd.trail import chain
from voucherd.trail.chain import Head
from voucherd.webhooks import metrics as webhook_metrics
from voucherd.webhooks.metrics import WebhookFigures

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_METHODS: Final = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT"})


class _Answers:
    """The answers of one method and status: how many, and how long they took."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.seconds = 0.0


class Metrics:
    """Counts requests. Plain numbers, read when Prometheus asks: the library's own counters lock at every step."""

    def __init__(
        self,
        order_service: OrderService,
        pool: Pool | None = None,
        calls: CallCounts | None = None,
        streams: Streams | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self._taker = None if pool is None else PulseTaker(pool)
        self._answers: dict[tuple[str, int], _Answers] = {}
        self.registry.register(_BatcherCollector(order_service, streams))
        self.registry.register(_AnswerCollector(self._answers))
        self.registry.register(PulseCollector(self._taker))
        self.registry.register(CallCollector(calls or CallCounts()))

    async def page(self) -> bytes:
        """All figures as Prometheus reads them."""
        if self._taker is not None:
            await self._taker.refresh()
        return generate_latest(self.registry)

    def observe(self, method: str, status: int, seconds: float) -> None:
        """Count one answer."""
        found = self._answers.get((method, status))
        if found is None:
            # A method is whatever a client writes: only the usual ones get a name of their own.
            word = method if method in _METHODS else "other"
            found = self._answers.setdefault((word, status), _Answers())
        found.buckets[bisect_left(_SECONDS, seconds)] += 1
        found.seconds += seconds


class _AnswerCollector(Collector):
    """Shows the answers as a histogram."""

    def __init__(self, answers: dict[tuple[str, int], _Answers]) -> None:
        self._answers = answers

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The answers so far."""
        family = HistogramMetricFamily(
            "voucherd_http_seconds", "Time to answer, by method and status.", labels=["method", "status"]
        )
        for (method, status), answers in list(self._answers.items()):
            upto = [*map(str, _SECONDS), "+Inf"]
            counts = accumulate(answers.buckets)
            buckets = [(edge, float(count)) for edge, count in zip(upto, counts, strict=True)]
            family.add_metric([method, str(status)], buckets, answers.seconds)
        yield family


class _BatcherCollector(Collector):
    """Reads the batchers and the watch when Prometheus asks."""

    def __init__(self, order_service: OrderService, streams: Streams | None) -> None:
        self._orders = order_service
        self._streams = streams

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """The present state of the order service."""
        waiting = GaugeMetricFamily("voucherd_gate_waiting", "Calls that wait for a batch.", labels=["gate"])
        in_flight = GaugeMetricFamily("voucherd_gate_in_flight", "Batches in flight.", labels=["gate"])
        batches = CounterMetricFamily("voucherd_gate_batches", "Batches served.", labels=["gate"])
        calls = CounterMetricFamily("voucherd_gate_calls", "Calls served in batches.", labels=["gate"])
        for name, batcher in self._orders.batchers.items():
            waiting.add_metric([name], batcher.waiting)
            in_flight.add_metric([name], batcher.in_flight)
            batches.add_metric([name], batcher.batches)
            calls.add_metric([name], batcher.calls)
        yield from (waiting, in_flight, batches, calls)
        yield CounterMetricFamily(
            "voucherd_losses_refused",
            "Orders refused because they would sell below cost.",
            value=self._orders.losses.refused,
        )
        yield GaugeMetricFamily(
            "voucherd_calls_parked", "Calls that wait for a slow order.", value=self._orders.watch.parked
        )
        yield GaugeMetricFamily(
            "voucherd_streams_open",
            "Clients that listen to events.",
            value=0 if self._streams is None else self._streams.open,
        )


AGE_S_MAX: Final = 15.0
"""How old the figures may be before the database is asked again."""
TAKE_S_MAX: Final = 5.0
KEPT_S_MAX: Final = 60.0
"""Figures that are older say nothing about now, and are left out."""

logger = structlog.get_logger(__name__)

Family: TypeAlias = GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily


class PulseTaker:
    """Keeps the figures fresh: asked by many at once, it asks the database once."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lock = asyncio.Lock()
        self._taken: tuple[float, Pulse] | None = None
        self.webhooks = WebhookFigures()
        self.heads: list[Head] = []
        self._tried_at = -AGE_S_MAX

    async def refresh(self) -> None:
        """Ask the database, unless somebody has done so lately; a database that is away changes nothing."""
        async with self._lock:
            if time.monotonic() - self._tried_at < AGE_S_MAX:
                return
            self._tried_at = time.monotonic()
            try:
                async with asyncio.timeout(TAKE_S_MAX), self._pool.acquire() as conn:
                    self._taken = (time.monotonic(), await purchase_metrics.take(conn))
                    self.webhooks = await webhook_metrics.take(conn)
                    self.heads = await chain.heads(conn)
            except Exception as error:  # noqa: BLE001 - Whatever it is, the other figures are shown.
                logger.warning("no_figures", error=repr(error))

    def latest(self) -> tuple[float, Pulse] | None:
        """The figures and their age in seconds; None if there are none that are young enough."""
        if self._taken is None:
            return None
        age_s = time.monotonic() - self._taken[0]
        return (age_s, self._taken[1]) if age_s <= KEPT_S_MAX else None


class PulseCollector(Collector):
    """Shows the figures of the database; without any, their names alone."""

    def __init__(self, taker: PulseTaker | None) -> None:
        self._taker = taker

    def collect(self) -> Iterator[Family]:
        """The latest figures."""
        latest = None if self._taker is None else self._taker.latest()
        found = Pulse() if latest is None else latest[1]
        age = GaugeMetricFamily("voucherd_figures_age_seconds", "Age of the figures from the database.")
        if latest is not None:
            age.add_metric([], latest[0])
        yield age
        yield from _waiting(found)
        yield from _suppliers(found)
        yield from _attempts(found)
        shown = None if latest is None or self._taker is None else self._taker.webhooks
        yield from _webhooks(shown)
        yield from _trail([] if latest is None or self._taker is None else self._taker.heads)


def _trail(heads: Sequence[Head]) -> Iterator[Family]:
    block = GaugeMetricFamily("voucherd_trail_block", "The newest block of the audit trail.", labels=["book"])
    start = GaugeMetricFamily(
        "voucherd_trail_hash", "The first 48 bits of its hash, as a number.", labels=["book"]
    )
    for head in heads:
        block.add_metric([head.book], head.block)
        start.add_metric([head.book], int.from_bytes(head.hash[:6], "big"))
    yield from (block, start)


def _webhooks(found: WebhookFigures | None) -> Iterator[Family]:
    late = GaugeMetricFamily(
        "voucherd_webhook_late_seconds", "How long an endpoint in order waits to be sent to."
    )
    troubled = GaugeMetricFamily("voucherd_webhook_endpoints", "Endpoints that fail.", labels=["standing"])
    if found is not None:
        late.add_metric([], found.late_s)
        troubled.add_metric(["failing"], found.failing)
        troubled.add_metric(["disabled"], found.disabled)
    yield from (late, troubled)


def _waiting(found: Pulse) -> Iterator[Family]:
    lines = GaugeMetricFamily(
        "voucherd_waiting_lines", "Paid lines that wait, at least.", labels=["state", "company", "place"]
    )
    for labels, count in found.waiting.items():
        lines.add_metric(labels, count)
    yield lines
    oldest = GaugeMetricFamily(
        "voucherd_waiting_oldest_seconds", "How long the oldest of them waits.", labels=["state", "company"]
    )
    for who, age_s in found.oldest_wait_s.items():
        oldest.add_metric(who, age_s)
    yield oldest


def _suppliers(found: Pulse) -> Iterator[Family]:
    breaker = GaugeMetricFamily(
        "voucherd_supplier_breaker", "0 closed, 1 half-open, 2 open.", labels=["supplier"]
    )
    purchases = GaugeMetricFamily(
        "voucherd_supplier_purchases", "Of the last five minutes.", labels=["supplier", "status"]
    )
    took = GaugeMetricFamily(
        "voucherd_supplier_recent_seconds", "How long they took.", labels=["supplier", "quantile"]
    )
    errors = GaugeMetricFamily(
        "voucherd_supplier_error_ratio", "The part of them that failed or is unknown.", labels=["supplier"]
    )
    for name, one in found.suppliers.items():
        breaker.add_metric([name], one.breaker)
        for status, count in one.purchases.items():
            purchases.add_metric([name, status], count)
        for quantile, seconds in (("0.5", one.p50_s), ("0.95", one.p95_s)):
            if seconds is not None:
                took.add_metric([name, quantile], seconds)
        if one.error_ratio is not None:
            errors.add_metric([name], one.error_ratio)
    yield from (breaker, purchases, took, errors)


def _attempts(found: Pulse) -> Iterator[Family]:
    labels = ["supplier", "status"]
    still = GaugeMetricFamily("voucherd_attempts_open", "Purchases without an end yet.", labels=labels)
    for where, count in found.open.items():
        still.add_metric(where, count)
    oldest = GaugeMetricFamily("voucherd_attempts_oldest_seconds", "The age of the oldest.", labels=labels)
    for where, age_s in found.oldest_open_s.items():
        oldest.add_metric(where, age_s)
    problems = GaugeMetricFamily(
        "voucherd_attempt_problems", "Purchases of the last day.", labels=["supplier", "problem"]
    )
    for where, count in found.problems.items():
        problems.add_metric(where, count)
    yield from (still, oldest, problems)


class CallCollector(Collector):
    """Shows the calls that this process has made to suppliers."""

    def __init__(self, calls: CallCounts) -> None:
        self._calls = calls

    def collect(self) -> Iterator[Family]:
        """The calls so far."""
        answers = CounterMetricFamily(
            "voucherd_supplier_calls", "Calls to suppliers.", labels=["supplier", "verb", "answer"]
        )
        for labels, count in list(self._calls.answers.items()):
            answers.add_metric(labels, count)
        took = HistogramMetricFamily(
            "voucherd_supplier_call_seconds", "How long they took.", labels=["supplier", "verb"]
        )
        edges = [*map(str, SECONDS), "+Inf"]
        for who, durations in list(self._calls.durations.items()):
            counts = zip(edges, accumulate(durations.buckets), strict=True)
            took.add_metric(who, [(edge, float(count)) for edge, count in counts], durations.seconds)
        yield from (answers, took)
