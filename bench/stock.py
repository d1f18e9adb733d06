"""One import in a process of its own, so that its memory can be measured: a job on stdin, a report on stdout."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec
import uvloop
from msgspec import Struct

from bench import machine
from voucherd.db import open_pool
from voucherd.money import RATE_ONE, Money
from voucherd.settings import Settings
from voucherd.vault.imports import StockTarget, import_codes
from voucherd.vault.master_key import load_or_create_master
from voucherd.vault.seal import Sealer


class Import(Struct):
    """Which file holds the codes of which product."""

    path: str
    product_id: int
    brand_id: int


class Imported(Struct):
    """What an import took."""

    codes: int
    codes_per_second: int
    rss_before_mb: float
    rss_peak_mb: float
    cpu_s: float
    """Processor time of the process, its start left out."""


async def _run(order: Import) -> Imported:
    settings = Settings.load()
    assert settings.database_url is not None
    pool = await open_pool(settings.database_url, size_max=2)
    before_mb, before_cpu_s = machine.rss_mb(os.getpid()), time.process_time()
    try:
        with Path(order.path).open("rb") as file:  # noqa: ASYNC230 - There is nothing else to do meanwhile.
            report = await import_codes(
                pool,
                Sealer(load_or_create_master(settings.master_key_file)),
                file,
                target=StockTarget(order.product_id, order.brand_id, 1000),
                supplier="wholesale",
                purchase=Money.read("9.00 EUR"),
                purchase_fx_e8=RATE_ONE,
            )
    finally:
        await pool.close()
    peak_mb, cpu_s = machine.peak_rss_mb(os.getpid()), time.process_time() - before_cpu_s
    return Imported(report.taken, report.codes_per_second, before_mb, peak_mb, cpu_s)


def main() -> None:
    """Do the one import that stdin describes."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Import)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.stdout.buffer.write(msgspec.json.encode(runner.run(_run(order))))


if __name__ == "__main__":
    main()
