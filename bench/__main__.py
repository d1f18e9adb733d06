"""`make bench`: measure, print the table, and write it to bench/RESULTS.md and, in short, to the README."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import plan
from bench.figures import report, table, with_part
from bench.parts import MEASURES
from bench.pgbench import Pgbench
from bench.plan import Request
from bench.readme import README, renewed
from bench.seed import Seeder
from bench.session import LoadFailed, Session
from bench.stage import ChildFailed, stage
from voucherd.embedded import shutdown_signals

RESULTS: Final = Path(__file__).parent / "RESULTS.md"


async def run(request: Request) -> bool:
    """Measure what is asked for, pgbench right before and right after the first part; whether all of it worked."""
    failed = []
    began = time.monotonic()
    async with stage() as on:
        session = Session(on, await Seeder.open(on), request.plan, request.connections)
        pgbench = Pgbench(on, request.plan)
        await session.prepare()
        await pgbench.prepare()
        yard = await pgbench.measure()
        for at, part in enumerate(request.parts):
            try:
                await MEASURES[part](session)
            except (LoadFailed, ChildFailed, TimeoutError) as failure:
                # The other parts' minutes are not to be lost with this one's.
                sys.stderr.write(f"{part} failed: {failure!r}\n")
                failed.append(part)
            if at == 0:
                yard = yard.averaged(await pgbench.measure())
        version: str = await on.pool.fetchval("SELECT split_part(version(), ' on ', 1)")
    print(table(session.rows, yard))
    if failed:
        print(f"Failed: {', '.join(failed)}.")
        return False
    took_s = time.monotonic() - began
    if request.write:
        results = report(session.rows, yard, version, took_s)
        RESULTS.write_text(results, "utf-8")
        README.write_text(renewed(README.read_text("utf-8"), results), "utf-8")
    elif request.add:
        before = RESULTS.read_text("utf-8") if RESULTS.exists() else ""
        RESULTS.write_text(with_part(before, request.parts, session.rows, yard, took_s), "utf-8")
    return True


def main(arguments: Sequence[str]) -> None:
    """Run, and leave nothing running behind."""
    with shutdown_signals():
        worked = asyncio.run(run(plan.read(arguments)))
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
