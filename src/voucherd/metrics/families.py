"""Figures on their way from one process to another, and as the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

MetricFamily: TypeAlias = GaugeMetricFamily | CounterMetricFamily | HistogramMetricFamily
Rows: TypeAlias = list[tuple[str, str, str, list[tuple[str, dict[str, str], float]]]]
"""Families as they are sent: name, type, help, and samples of name, labels and value."""

PROCESS: Final = "process"
"""The label that tells the processes of one machine apart."""

_decoder: Final = msgspec.msgpack.Decoder(Rows)


def packed(families: Iterable[Metric], process: str) -> bytes:
    """The figures of one process, for another one to show."""
    return msgspec.msgpack.encode(rows_of(families, process))


def unpacked(sent: bytes) -> Rows:
    """The same, read."""
    return _decoder.decode(sent)


def rows_of(families: Iterable[Metric], process: str | None = None) -> Rows:
    """The families with the process on each sample; None for what is no single process's."""
    more = {} if process is None else {PROCESS: process}
    return [
        (
            family.name,
            family.type,
            family.documentation,
            [(sample.name, sample.labels | more, sample.value) for sample in family.samples],
        )
        for family in families
    ]


class _Shown:
    """Families of several processes as one, in the form that the library writes from."""

    def __init__(self, pages: Sequence[Rows]) -> None:
        self._families: dict[str, Metric] = {}
        for name, kind, text, samples in (family for rows in pages for family in rows):
            found = self._families.get(name)
            if found is None:
                found = self._families[name] = Metric(name, text, kind)
            for sample in samples:
                found.add_sample(*sample)

    def collect(self) -> Iterator[Metric]:
        """Every family once."""
        return iter(self._families.values())


def text_of(pages: Sequence[Rows]) -> bytes:
    """The page as Prometheus reads it."""
    shown: Any = _Shown(pages)
    return generate_latest(shown)


def buckets(edges: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Counts by the upper ends of their buckets, as a histogram has them: each with all that are smaller."""
    upto = [*map(str, edges), "+Inf"]
    return [(edge, float(count)) for edge, count in zip(upto, accumulate(counts), strict=True)]
