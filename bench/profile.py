"""Where the time goes: `python -m bench.profile` loads the server with lifecycles and looks at it meanwhile.

The server is sampled by a timer on its own processor time; the database by looking, every few milliseconds, at what
its connections do (pg_stat_activity). `--cprofile` traces every call of the server instead: exact counts, but small
functions look dearer than they are, and everything is slower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pstats
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import asyncpg

from bench.jobs import Tally
from bench.plan import Plan
from bench.seed import Seeder
from bench.session import SLUG, Session, sound
from bench.stage import Stage, stage
from voucherd.embedded import shutdown_signals

WARM_S: Final = 2.0
LIFECYCLES_S_MAX: Final = 8_000
LOOK_EVERY_S: Final = 0.004
LINES_MAX: Final = 40
STATEMENT_CHARS: Final = 90


async def run(given: argparse.Namespace) -> None:
    """Load the server and print both views of it."""
    stock = 10_000 + round(LIFECYCLES_S_MAX * (given.seconds + WARM_S))
    plan = Plan(wallets=200, stock=stock, history=5_000)
    async with stage() as on:
        session = Session(on, await Seeder.open(on), plan, (given.connections,))
        await session.prepare()
        path = on.folder / "profile"
        async with on.server("--cprofile" if given.cprofile else "--sample", str(path)) as server:
            load = partial(
                server.load,
                keys=list(session.keys_by_company.values()),
                connections=given.connections,
                operation=given.operation,
                slug=SLUG,
            )
            sound(await load(load_s=WARM_S))
            # What starting and the first look at every key cost is no part of a lifecycle.
            os.kill(server.pid, signal.SIGUSR1)
            looks: Counter[tuple[str, str]] = Counter()
            looking = asyncio.create_task(_look(on, looks))
            tally = sound(await load(load_s=given.seconds))
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        _say_rates(tally)
        if given.cprofile:
            pstats.Stats(str(path)).strip_dirs().sort_stats("tottime").print_stats(LINES_MAX)
        else:
            _say_samples(path, tally)
        _say_looks(looks, tally)


async def _look(on: Stage, looks: Counter[tuple[str, str]]) -> None:
    """Count what the server's connections are seen doing, until cancelled."""
    conn = await asyncpg.connect(on.database_url, server_settings={"application_name": "look"})
    try:
        while True:
            rows = await conn.fetch(
                "SELECT state, coalesce(wait_event_type || ' ' || wait_event, 'running') AS doing, query"
                " FROM pg_stat_activity WHERE application_name = 'voucherd' AND state <> 'idle'"
            )
            looks["looks", ""] += 1
            for row in rows:
                statement = " ".join(row["query"].split())[:STATEMENT_CHARS]
                doing = row["doing"] if row["state"] == "active" else "open, waiting for the server"
                looks[doing, statement if row["state"] == "active" else f"after: {statement}"] += 1
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        await conn.close()


def _say_rates(tally: Tally) -> None:
    server, database, generator = (
        1e6 * cpu_s / tally.rounds
        for cpu_s in (tally.server_cpu_s, tally.database_cpu_s, tally.generator_cpu_s)
    )
    print(
        f"{tally.rate:,.0f} lifecycles a second; CPU µs a lifecycle: server {server:.0f}, database {database:.0f}, "
        f"generator {generator:.0f}; p50 {tally.first.p50_ms:.2f} + {tally.second.p50_ms:.2f} ms"
    )


def _say_samples(path: Path, tally: Tally) -> None:
    """Each function's own share, and the share of all that it calls, in µs of a lifecycle."""
    stacks: dict[str, int] = json.loads(path.read_text())
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = stack.split("\n")
        own[frames[0]] += count
        for frame in set(frames):
            whole[frame] += count
    scale = 1e6 * tally.server_cpu_s / tally.rounds / sum(stacks.values())
    for title, counted in (("by itself", own), ("with all that it calls", whole)):
        print(f"\nserver, µs of a lifecycle, {title}")
        for frame, count in counted.most_common(LINES_MAX):
            print(f"{scale * count:8.1f}  {frame}")


def _say_looks(looks: Counter[tuple[str, str]], tally: Tally) -> None:
    """How many connections do what at any moment, and what that is in µs of a lifecycle."""
    total = looks.pop(("looks", ""))
    print(f"\ndatabase, mean connections and µs of a lifecycle, from {total} looks")
    for (doing, statement), count in looks.most_common(LINES_MAX):
        mean = count / total
        print(f"{mean:6.2f} {1e6 * mean / tally.rate:8.1f}  {doing}: {statement}")


def main(arguments: Sequence[str]) -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--operation", choices=("confirm", "resolve"), default="confirm")
    parser.add_argument("--cprofile", action="store_true", help="trace every call instead of sampling")
    with shutdown_signals():
        asyncio.run(run(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
