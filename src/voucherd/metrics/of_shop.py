"""Figures of the whole shop, from the database: the same whichever process is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct
from prometheus_client.core import GaugeMetricFamily

from voucherd import backups, clock, heartbeat
from voucherd.audit import noted
from voucherd.db import Connection, Pool
from voucherd.ids import State
from voucherd.metrics.families import MetricFamily
from voucherd.purchasing import metrics as purchase_metrics
from voucherd.purchasing.metrics import Pulse
from voucherd.storefront import metrics as stock_metrics
from voucherd.storefront.metrics import StockFigures
from voucherd.trail import chain
from voucherd.trail.chain import Head
from voucherd.wallet import low_balance
from voucherd.webhooks import metrics as webhook_metrics
from voucherd.webhooks.metrics import WebhookFigures

AGE_S_MAX: Final = 15.0
"""How old the figures may be before the database is asked again."""
TAKE_S_MAX: Final = 5.0
KEPT_S_MAX: Final = 60.0
"""Figures that are older say nothing about now, and are left out."""

logger = structlog.get_logger(__name__)


class ShopFigures(Struct):
    """All of them at one moment."""

    pulse: Pulse
    webhooks: WebhookFigures
    heads: list[Head]
    stock: StockFigures
    workers: int
    backup_age_s: float | None
    wallets_low: dict[str, int]


class ShopWatch:
    """Keeps the figures fresh: asked by many at once, it asks the database once."""

    def __init__(self, pool: Pool | None, folder: Path | None = None) -> None:
        self._pool = pool
        self._folder = folder
        self._lock = asyncio.Lock()
        self._taken: tuple[float, ShopFigures] | None = None
        self._tried_at = -AGE_S_MAX
        self._answered = False

    async def refresh(self) -> None:
        """Ask the database, unless somebody has done so lately; a database that is away changes nothing."""
        if self._pool is None:
            return
        async with self._lock:
            if time.monotonic() - self._tried_at < AGE_S_MAX:
                return
            self._tried_at = time.monotonic()
            self._answered = False
            try:
                async with asyncio.timeout(TAKE_S_MAX), self._pool.acquire() as conn:
                    self._taken = (time.monotonic(), await _take(conn))
                    self._answered = True
            except Exception as error:  # noqa: BLE001 - Whatever it is, the other figures are shown.
                logger.warning("no_figures", error=repr(error))

    def families(self) -> Iterator[MetricFamily]:
        """The latest figures; without any that are young enough, their names alone."""
        ready = GaugeMetricFamily("voucherd_database_ready", "1 if the database gave these figures, else 0.")
        if self._pool is not None:
            ready.add_metric([], self._answered)
        yield ready
        age = GaugeMetricFamily("voucherd_figures_age_seconds", "Age of the figures from the database.")
        latest = None
        if self._taken is not None and time.monotonic() - self._taken[0] <= KEPT_S_MAX:
            age.add_metric([], time.monotonic() - self._taken[0])
            latest = self._taken[1]
        yield age
        pulse = Pulse() if latest is None else latest.pulse
        yield from _waiting(pulse)
        yield from _suppliers(pulse)
        yield from _attempts(pulse)
        yield from _stock(latest)
        yield from _people(latest)
        yield from _trail([] if latest is None else latest.heads)
        yield from _webhooks(None if latest is None else latest.webhooks)
        yield from self._audit()

    def _audit(self) -> Iterator[MetricFamily]:
        age = GaugeMetricFamily(
            "voucherd_audit_age_seconds", "Age of the last audit run with this data folder."
        )
        broken = GaugeMetricFamily("voucherd_audit_broken", "Promises that it found broken.")
        last = None if self._folder is None else noted.read(self._folder)
        if last is not None:
            age.add_metric([], (clock.now() - last.at).total_seconds())
            broken.add_metric([], last.broken)
        yield from (age, broken)


async def _take(conn: Connection) -> ShopFigures:
    backup = await backups.last(conn)
    return ShopFigures(
        pulse=await purchase_metrics.take(conn),
        webhooks=await webhook_metrics.take(conn),
        heads=await chain.heads(conn),
        stock=await stock_metrics.take(conn),
        workers=sum(one.works and one.present for one in await heartbeat.seen(conn)),
        backup_age_s=None if backup is None else (clock.now() - backup.at).total_seconds(),
        wallets_low={state.word: len(await low_balance.low(conn, state)) for state in State},
    )


def _stock(found: ShopFigures | None) -> Iterator[MetricFamily]:
    codes = GaugeMetricFamily(
        "voucherd_stock_codes", "Codes left, at least, of what sold last.", labels=["product", "face"]
    )
    empty = GaugeMetricFamily("voucherd_products_out_of_stock", "Products for sale without stock, at least.")
    if found is not None:
        for labels, count in found.stock.codes.items():
            codes.add_metric(labels, count)
        empty.add_metric([], found.stock.out_of_stock)
    yield from (codes, empty)


def _people(found: ShopFigures | None) -> Iterator[MetricFamily]:
    workers = GaugeMetricFamily("voucherd_workers_present", "Workers at work.")
    backup = GaugeMetricFamily("voucherd_backup_age_seconds", "Age of the last backup by `voucherd backup`.")
    low = GaugeMetricFamily("voucherd_wallets_low", "Wallets below their alert, at least.", labels=["state"])
    if found is not None:
        workers.add_metric([], found.workers)
        if found.backup_age_s is not None:
            backup.add_metric([], found.backup_age_s)
        for word, count in found.wallets_low.items():
            low.add_metric([word], count)
    yield from (workers, backup, low)


def _trail(heads: Sequence[Head]) -> Iterator[MetricFamily]:
    block = GaugeMetricFamily("voucherd_trail_block", "The newest block of the audit trail.", labels=["book"])
    start = GaugeMetricFamily(
        "voucherd_trail_hash", "The first 48 bits of its hash, as a number.", labels=["book"]
    )
    for head in heads:
        block.add_metric([head.book], head.block)
        start.add_metric([head.book], int.from_bytes(head.hash[:6], "big"))
    yield from (block, start)


def _webhooks(found: WebhookFigures | None) -> Iterator[MetricFamily]:
    late = GaugeMetricFamily(
        "voucherd_webhook_late_seconds", "How long an endpoint in order waits to be sent to."
    )
    troubled = GaugeMetricFamily("voucherd_webhook_endpoints", "Endpoints that fail.", labels=["standing"])
    if found is not None:
        late.add_metric([], found.late_s)
        troubled.add_metric(["failing"], found.failing)
        troubled.add_metric(["disabled"], found.disabled)
    yield from (late, troubled)


def _waiting(found: Pulse) -> Iterator[MetricFamily]:
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


def _suppliers(found: Pulse) -> Iterator[MetricFamily]:
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


def _attempts(found: Pulse) -> Iterator[MetricFamily]:
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
