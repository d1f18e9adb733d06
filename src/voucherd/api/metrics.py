"""What Prometheus reads at /metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from voucherd.api.purchase_metrics import CallCollector, PulseCollector, PulseTaker
from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.orders.service import OrderService
from voucherd.purchasing.calls import CallCounts

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
