"""What Prometheus reads at /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from voucherd.orders.desk import Desk

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counts requests; a request costs two increments, not a look-up of labels."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        self._answers = Counter(
            "voucherd_http_answers",
            "Answers by method and status.",
            ["method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "voucherd_http_seconds", "Time to answer.", ["method"], registry=self.registry, buckets=_SECONDS
        )
        self._known: dict[tuple[str, int], tuple[Callable[[], None], Callable[[float], None]]] = {}
        self.registry.register(_GateCollector(desk))

    def observe(self, method: str, status: int, seconds: float) -> None:
        """Count one answer."""
        found = self._known.get((method, status))
        if found is None:
            # A method is whatever a client writes: only the usual ones get a name of their own.
            word = method if method in ("GET", "POST", "PATCH", "DELETE", "PUT") else "other"
            found = self._answers.labels(word, str(status)).inc, self._seconds.labels(word).observe
            if word != "other":
                self._known[method, status] = found
        found[0]()
        found[1](seconds)


class _GateCollector(Collector):
    """Reads the gates and the watch when Prometheus asks."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """The present state of the desk."""
        waiting = GaugeMetricFamily("voucherd_gate_waiting", "Calls that wait for a batch.", labels=["gate"])
        in_flight = GaugeMetricFamily("voucherd_gate_in_flight", "Batches in flight.", labels=["gate"])
        batches = CounterMetricFamily("voucherd_gate_batches", "Batches served.", labels=["gate"])
        calls = CounterMetricFamily("voucherd_gate_calls", "Calls served in batches.", labels=["gate"])
        for name, gate in self._desk.gates.items():
            waiting.add_metric([name], gate.waiting)
            in_flight.add_metric([name], gate.in_flight)
            batches.add_metric([name], gate.batches)
            calls.add_metric([name], gate.calls)
        yield from (waiting, in_flight, batches, calls)
        yield GaugeMetricFamily(
            "voucherd_calls_parked", "Calls that wait for a slow order.", value=self._desk.watch.parked
        )
