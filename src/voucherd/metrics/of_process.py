"""Figures of one process: batches, sales, connections, rounds of the worker, calls to suppliers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from voucherd import batcher
from voucherd.batcher import Batcher
from voucherd.db import Pool
from voucherd.events.streams import Streams
from voucherd.ids import State
from voucherd.metrics.families import MetricFamily, buckets
from voucherd.money import digits
from voucherd.orders.counts import WAIT_SECONDS, SalesCounts
from voucherd.orders.service import OrderService
from voucherd.purchasing.calls import SECONDS, CallCounts
from voucherd.request_log.collector import RequestLog
from voucherd.server.access_log import AccessLog
from voucherd.worker import RoundStanding


class ProcessParts(Struct):
    """What a process has to tell of; what it does not do is not there."""

    orders: OrderService | None = None
    pool: Pool | None = None
    streams: Streams | None = None
    access_log: AccessLog | None = None
    request_log: RequestLog | None = None
    rounds: Mapping[str, RoundStanding] = {}
    calls: CallCounts | None = None


def families(parts: ProcessParts) -> Iterator[MetricFamily]:
    """The figures of now; every name is there, with nothing behind it where there is nothing to tell."""
    orders = parts.orders
    yield from _batches({} if orders is None else orders.batchers)
    yield from _sales(SalesCounts() if orders is None else orders.counts)
    yield CounterMetricFamily(
        "voucherd_losses_refused",
        "Orders refused because they would sell below cost.",
        value=0 if orders is None else orders.losses.refused,
    )
    yield GaugeMetricFamily(
        "voucherd_calls_parked",
        "Calls that wait for a slow order.",
        value=0 if orders is None else orders.watch.parked,
    )
    yield GaugeMetricFamily(
        "voucherd_streams_open",
        "Clients that listen to events.",
        value=0 if parts.streams is None else parts.streams.open,
    )
    yield CounterMetricFamily(
        "voucherd_access_log_dropped",
        "Lines of the access log that were not written.",
        value=0 if parts.access_log is None else parts.access_log.dropped,
    )
    yield CounterMetricFamily(
        "voucherd_request_log_dropped",
        "Calls that are not in the request log because there were too many.",
        value=0 if parts.request_log is None else parts.request_log.dropped,
    )
    yield from _connections(parts.pool)
    yield from _rounds(parts.rounds)
    yield from _calls(parts.calls or CallCounts())


def _batches(batchers: Mapping[str, Batcher[Any, Any]]) -> Iterator[MetricFamily]:
    waiting = GaugeMetricFamily("voucherd_gate_waiting", "Calls that wait for a batch.", labels=["gate"])
    in_flight = GaugeMetricFamily("voucherd_gate_in_flight", "Batches in flight.", labels=["gate"])
    batches = CounterMetricFamily("voucherd_gate_batches", "Batches served.", labels=["gate"])
    calls = CounterMetricFamily("voucherd_gate_calls", "Calls served in batches.", labels=["gate"])
    sizes = HistogramMetricFamily("voucherd_gate_batch_size", "Calls of a batch.", labels=["gate"])
    took = HistogramMetricFamily("voucherd_gate_seconds", "How long a batch took.", labels=["gate"])
    for name, one in batchers.items():
        waiting.add_metric([name], one.waiting)
        in_flight.add_metric([name], one.in_flight)
        batches.add_metric([name], one.batches)
        calls.add_metric([name], one.calls)
        sizes.add_metric([name], buckets(batcher.SIZES, one.sizes), one.calls)
        took.add_metric([name], buckets(batcher.SECONDS, one.took), one.seconds)
    yield from (waiting, in_flight, batches, calls, sizes, took)


def _sales(counts: SalesCounts) -> Iterator[MetricFamily]:
    orders = CounterMetricFamily(
        "voucherd_orders", "Orders that an operation changed.", labels=["operation", "state"]
    )
    for (operation, state), count in list(counts.orders.items()):
        orders.add_metric([operation, State(state).word], count)
    revenue = CounterMetricFamily(
        "voucherd_revenue", "What was charged, in units of the currency.", labels=["currency", "state"]
    )
    for (currency, state), minor in list(counts.charged_minor.items()):
        # A figure to look at. The books have it to the cent.
        revenue.add_metric([currency, State(state).word], minor / 10 ** digits(currency))
    refusals = CounterMetricFamily(
        "voucherd_refusals", "Calls refused by a rule.", labels=["operation", "reason"]
    )
    for labels, count in list(counts.refusals.items()):
        refusals.add_metric(labels, count)
    waits = HistogramMetricFamily("voucherd_pool_wait_seconds", "How long a batch waited for a connection.")
    waits.add_metric([], buckets(WAIT_SECONDS, counts.waits), counts.waited_s)
    yield from (orders, revenue, refusals, waits)


def _connections(pool: Pool | None) -> Iterator[MetricFamily]:
    found = GaugeMetricFamily("voucherd_pool_connections", "Connections to the database.", labels=["use"])
    if pool is not None:
        idle = pool.get_idle_size()
        found.add_metric(["idle"], idle)
        found.add_metric(["busy"], pool.get_size() - idle)
    yield found


def _rounds(rounds: Mapping[str, RoundStanding]) -> Iterator[MetricFamily]:
    lag = GaugeMetricFamily(
        "voucherd_round_lag_seconds", "How much later than planned a round is done.", labels=["round"]
    )
    ended = CounterMetricFamily("voucherd_rounds", "Rounds of the worker.", labels=["round", "outcome"])
    took = CounterMetricFamily("voucherd_round_seconds", "How long they took in all.", labels=["round"])
    for name, one in rounds.items():
        lag.add_metric([name], one.lag_s())
        ended.add_metric([name, "done"], one.rounds)
        ended.add_metric([name, "failed"], one.failures)
        took.add_metric([name], one.seconds)
    yield from (lag, ended, took)


def _calls(calls: CallCounts) -> Iterator[MetricFamily]:
    answers = CounterMetricFamily(
        "voucherd_supplier_calls", "Calls to suppliers.", labels=["supplier", "verb", "answer"]
    )
    for labels, count in list(calls.answers.items()):
        answers.add_metric(labels, count)
    took = HistogramMetricFamily(
        "voucherd_supplier_call_seconds", "How long they took.", labels=["supplier", "verb"]
    )
    for who, durations in list(calls.durations.items()):
        took.add_metric(who, buckets(SECONDS, durations.buckets), durations.seconds)
    yield from (answers, took)
