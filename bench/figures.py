"""The table: every rate beside TPC-B, every time beside one pgbench transaction, every goal beside what was reached."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from bench.jobs import Spread, Tally
from bench.pgbench import Yardstick

HEADS: Final = (
    "what",
    "a second (× TPC-B)",
    "p50 ms (× -N)",
    "p99 ms (× -N)",
    "CPU µs s+d+g",
    "more",
    "goal",
)
PACKAGES: Final = ("voucherd", "asyncpg", "uvicorn", "uvloop", "httptools", "msgspec", "cryptography")

Judge: TypeAlias = Callable[["Row", Yardstick], bool]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached, in words and as a question."""

    text: str
    reached: Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    rate: float | None = None
    times: Spread | None = None
    tally: Tally | None = None
    """Where the processor time of the load is taken from."""
    more: str = ""
    goal: Goal | None = None


def at_least_tpcb(factor: float) -> Goal:
    """A rate that is so many times TPC-B's."""
    return Goal(f"≥ {factor:g} × TPC-B", lambda row, yard: (row.rate or 0) >= factor * yard.tpcb)


def below_single(factor: float) -> Goal:
    """A median below so many of pgbench's transactions."""
    return Goal(
        f"p50 < {factor:g} × -N",
        lambda row, yard: row.times is not None and row.times.p50_ms < factor * yard.single_ms,
    )


def judged(text: str, reached: bool) -> Goal:
    """A goal that does not depend on pgbench."""
    return Goal(text, lambda _row, _yard: reached)


def table(rows: Sequence[Row], yard: Yardstick) -> str:
    """The table as Markdown, aligned so that it reads well on a terminal too."""
    cells = [HEADS, *(_cells(row, yard) for row in [*_yard_rows(yard), *rows])]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADS))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _yard_rows(yard: Yardstick) -> list[Row]:
    return [
        Row(what="pgbench TPC-B, 8 clients", rate=yard.tpcb),
        Row(what="pgbench -N, 8 clients", rate=yard.simple),
        Row(what="pgbench -N, 1 client", rate=yard.single, more=f"{yard.single_ms:.2f} ms a transaction"),
    ]


def _cells(row: Row, yard: Yardstick) -> tuple[str, ...]:
    rate = "" if row.rate is None else f"{row.rate:,.0f} ({row.rate / yard.tpcb:.2f})"
    times = row.times if row.times is not None and row.times.calls else None
    p50, p99 = ("", "") if times is None else (_time(times.p50_ms, yard), _time(times.p99_ms, yard))
    goal = ""
    if row.goal is not None:
        goal = f"{row.goal.text}: {'yes' if row.goal.reached(row, yard) else 'NO'}"
    return row.what, rate, p50, p99, _cpu(row.tally), row.more, goal


def _time(milliseconds: float, yard: Yardstick) -> str:
    return f"{milliseconds:.2f} ({milliseconds / yard.single_ms:.1f})"


def _cpu(tally: Tally | None) -> str:
    if tally is None:
        return ""
    parts = (tally.server_cpu_s, tally.database_cpu_s, tally.generator_cpu_s)
    return " + ".join(f"{tally.cpu_us(part):.0f}" for part in parts)


def with_part(before: str, parts: Sequence[str], rows: Sequence[Row], yard: Yardstick, took_s: float) -> str:
    """The file with the table of a run of some parts at its end; an older one of the same parts goes."""
    title = f"## Measured alone: {', '.join(parts)}\n"
    kept = [section for section in re.split("(?m)^(?=## )", before) if not section.startswith(title)]
    alone = f"""{title}
{datetime.now(UTC):%Y-%m-%d} · {os.cpu_count()} CPUs · {took_s:.0f} s in all · with a pgbench of its own, read as above

{table(rows, yard)}
"""
    return "\n".join(section.rstrip() + "\n" for section in [*kept, alone] if section.strip())


def report(rows: Sequence[Row], yard: Yardstick, database: str, took_s: float) -> str:
    """The file with the table in it: when, with what, and how to read it."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    return f"""# Results

{datetime.now(UTC):%Y-%m-%d} · {system} · Python {platform.python_version()} · {database} · {took_s:.0f} s in all

{versions}

How it was measured, by `make bench`:

- PostgreSQL (fsync and synchronous_commit on), the server (two processes for the lifecycles, one for the rest) and the
  load generator share the machine.
- A lifecycle is two requests. `× TPC-B` is a rate divided by that of pgbench's TPC-B with 8 clients on the same server,
  measured right before and right after the first part and averaged.
- `× -N` is a time divided by that of one `pgbench -N` transaction of a single client.
- `CPU µs s+d+g` is processor time a request: of the server, the database and the generator.
- `goal` is a bound that was set before, and whether this run kept to it.

{table(rows, yard)}
"""
