"""`make bench-quick`: whether sales are as fast as they were, in a minute and a half.

It prints the rate of whole orders as a multiple of pgbench's TPC-B, and the processor time of one order as a multiple
of a fixed loop of Python, both measured in the same run: figures of two machines, and of two days, can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bench.jobs import Tally
from bench.pgbench import Pgbench
from bench.plan import Plan
from bench.seed import Seeder
from bench.session import SLUG, Session, sound
from bench.stage import stage
from voucherd.embedded import shutdown_signals

CROWD: Final = 256
CALIBRATION_ROUNDS: Final = 5
CALIBRATION_STEPS: Final = 20_000
PLAN: Final = Plan(wallets=1_000, stock=150_000, history=2_000, load_s=5.0, pgbench_s=4, pgbench_scale=20)


def calibration_us() -> float:
    """What a fixed piece of work of this kind costs here: dicts, tuples, formatting and calls; the best of a few."""
    best_s = float("inf")
    for _ in range(CALIBRATION_ROUNDS):
        began_s = time.process_time()
        kept: dict[tuple[int, str], bytes] = {}
        for at in range(CALIBRATION_STEPS):
            key = (at % 1_000, "order")
            kept[key] = b'{"id":%d,"status":"%b"}' % (at, kept.get(key, b"none")[:8])
        best_s = min(best_s, time.process_time() - began_s)
    return 1e6 * best_s / CALIBRATION_STEPS


async def run(plan: Plan) -> None:
    """Measure and print."""
    async with stage() as on:
        session = Session(on, await Seeder.open(on), plan, (CROWD,))
        await session.prepare()
        pgbench = Pgbench(on, plan)
        await pgbench.prepare()
        unit_us, yard = calibration_us(), await pgbench.measure()
        tallies: dict[str, Tally] = {}
        how = {"operation": "confirm", "slug": SLUG, "warm_s": plan.warm_s, "load_s": plan.load_s}
        async with on.server(processes=plan.processes) as server:
            for name, keys in session.wallets.items():
                tallies[name] = sound(await server.load(keys=keys, connections=CROWD, **how))
            alone = sound(await server.load(keys=list(session.hot_keys), connections=1, **how))
        yard = yard.averaged(await pgbench.measure())
        unit_us = min(unit_us, calibration_us())
    print(
        f"pgbench: TPC-B {yard.tpcb:,.0f}/s, one -N transaction {yard.single_ms:.2f} ms; loop {unit_us:.2f} µs"
    )
    for name, tally in tallies.items():
        server_us, database_us = (1e6 * s / tally.rounds for s in (tally.server_cpu_s, tally.database_cpu_s))
        print(
            f"{name}: {tally.rate:,.0f}/s, {tally.rate / yard.tpcb:.2f} × TPC-B; CPU a lifecycle: "
            f"server {server_us:.0f} µs ({server_us / unit_us:.0f} loops), "
            f"database {database_us:.0f} µs ({database_us / unit_us:.0f} loops)"
        )
    database_ms = 1e3 * alone.database_cpu_s / alone.rounds
    print(
        f"alone: create {alone.first.p50_ms:.2f} ms ({alone.first.p50_ms / yard.single_ms:.1f} × -N), "
        f"confirm {alone.second.p50_ms:.2f} ms ({alone.second.p50_ms / yard.single_ms:.1f} × -N), "
        f"database {database_ms:.2f} ms of processor time a lifecycle"
    )


def main(arguments: Sequence[str]) -> None:
    """Read the flags and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.quick", description=__doc__)
    parser.add_argument("--processes", type=int, default=PLAN.processes)
    given = parser.parse_args(arguments)
    began = time.monotonic()
    with shutdown_signals():
        asyncio.run(run(replace(PLAN, processes=given.processes)))
    sys.stderr.write(f"{time.monotonic() - began:.0f} s in all\n")


if __name__ == "__main__":
    main(sys.argv[1:])
