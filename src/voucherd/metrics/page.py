"""The page at /metrics: this process, its siblings, and the shop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily

from voucherd.http import Request, Response
from voucherd.metrics import of_process
from voucherd.metrics.answers import AnswerCounts
from voucherd.metrics.families import PROCESS, MetricFamily, packed, rows_of, text_of
from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.of_shop import ShopWatch
from voucherd.metrics.siblings import Siblings


class Metrics:
    """Counts what this process does, and shows it together with what the others count."""

    def __init__(
        self, parts: ProcessParts, siblings: Siblings | None = None, folder: Path | None = None
    ) -> None:
        self._parts = parts
        self.siblings = siblings or Siblings()
        self._shop = ShopWatch(parts.pool, folder)
        self._answers = AnswerCounts()

    def observe(self, request: Request, response: Response, seconds: float) -> None:
        """Count one answer."""
        self._answers.observe(request, response, seconds)
        if self._parts.access_log is not None:
            self._parts.access_log.note(request, response, seconds)
        if self._parts.request_log is not None:
            self._parts.request_log.note(request, response, seconds)

    async def page(self) -> bytes:
        """All figures as Prometheus reads them."""
        await self._shop.refresh()
        others = await self.siblings.gathered()
        up = GaugeMetricFamily("voucherd_process_up", "1 if the process answers, else 0.", labels=[PROCESS])
        up.add_metric([self.siblings.name], 1)
        for name, rows in others.items():
            up.add_metric([name], rows is not None)
        return text_of(
            [
                rows_of([up]),
                rows_of(self._of_process(), self.siblings.name),
                *(rows for rows in others.values() if rows is not None),
                rows_of(self._shop.families()),
            ]
        )

    def packed(self) -> bytes:
        """The figures of this process alone, for a sibling that was asked."""
        return packed(self._of_process(), self.siblings.name)

    def _of_process(self) -> Iterator[MetricFamily]:
        return chain(self._answers.families(), of_process.families(self._parts))
