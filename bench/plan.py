"""How much is measured and for how long: the full run, the quick one, and what a flag or a variable changes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

PREFIX: Final = "BENCH_"
PARTS: Final = (
    "lifecycle",
    "resolve",
    "find",
    "large",
    "fairness",
    "waiting",
    "import",
    "queue",
    "statement",
    "catalogue",
    "streams",
    "webhooks",
    "pages",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and durations; every loop of a run is bounded by one of them."""

    processes: int = 2
    load_s: float = 4.0
    warm_s: float = 1.0
    pgbench_s: int = 6
    pgbench_scale: int = 50
    wallets: int = 1_000
    hot_keys: int = 8
    stock: int = 400_000
    history: int = 20_000
    deep_orders: int = 100_000
    large_codes: int = 10_000
    large_orders: int = 5
    backlog_orders: int = 10
    fair_companies: int = 50
    waiting_calls: int = 5_000
    waiting_slow_s: int = 20
    import_codes: int = 1_000_000
    queued_lines: int = 1_000_000
    movements: int = 10_000_000
    movements_in_file: int = 500_000
    products: int = 1_000_000
    streams: int = 5_000
    streams_idle_s: float = 30.0
    webhook_events: int = 20_000
    webhook_endpoints: int = 1_000
    page_orders: int = 100_000
    page_products: int = 10_000


QUICK: Final = Plan(
    load_s=0.4,
    warm_s=0.1,
    pgbench_s=1,
    pgbench_scale=2,
    wallets=100,
    stock=30_000,
    history=500,
    deep_orders=5_000,
    large_orders=2,
    waiting_calls=500,
    waiting_slow_s=2,
    import_codes=30_000,
    queued_lines=10_000,
    movements=20_000,
    movements_in_file=5_000,
    products=20_000,
    streams=500,
    streams_idle_s=2.0,
    webhook_events=1_000,
    webhook_endpoints=60,
    page_orders=2_000,
    page_products=1_000,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    plan: Plan
    parts: tuple[str, ...]
    connections: tuple[int, ...]
    write: bool
    """Whether the run is the whole of the file of results."""
    add: bool
    """Whether its table goes below the one that is there."""


def read(arguments: Sequence[str]) -> Request:
    """The run that these arguments ask for; each number may also come from a variable such as BENCH_LOAD_S."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all if none")
    parser.add_argument("--quick", action="store_true", help="a smoke run: its figures mean nothing")
    parser.add_argument("--connections", default="1,8,64,256", help="of the lifecycles, with commas between")
    parser.add_argument("--add", action="store_true", help="put the table below the others in RESULTS.md")
    for number in fields(Plan):
        flag = "--" + number.name.replace("_", "-")
        default = getattr(Plan(), number.name)
        parser.add_argument(flag, type=type(default), metavar="N", help=f"default {default}")
    given = parser.parse_args(arguments)
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    try:
        connections = tuple(int(word) for word in given.connections.split(","))
    except ValueError:
        parser.error("--connections takes numbers with commas between")
    plan = QUICK if given.quick else Plan()
    for number in fields(Plan):
        value = getattr(given, number.name)
        if value is None:
            text = os.environ.get(PREFIX + number.name.upper())
            value = None if not text else type(getattr(plan, number.name))(text)
        if value is not None:
            plan = replace(plan, **{number.name: value})
    # The order of PARTS, whatever the order of the words: pgbench is measured around the first one.
    parts = tuple(part for part in PARTS if part in given.parts or not given.parts)
    # A part of the figures, or quick ones, must not replace the file that holds them all.
    write = parts == PARTS and not given.quick
    return Request(plan, parts, connections, write=write, add=given.add and not write and not given.quick)
