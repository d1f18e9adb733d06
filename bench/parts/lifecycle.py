"""Create and Confirm (or Resolve) of one code, over and over, from one connection and from many."""

from __future__ import annotations

from typing import Final

from bench.figures import Goal, Row, at_least_tpcb, below_single, judged
from bench.jobs import Tally
from bench.session import SLUG, Session, sound
from bench.stage import Server

CROWD: Final = 256
"""The connections that the goals for rates are set for."""
ALONE_DATABASE_US_MAX: Final = 1_000
RESOLVE_SHARE_MIN: Final = 0.8
TWO_PROCESSES_MIN: Final = 1.6


async def confirm(session: Session) -> None:
    """Confirm goes through the batcher: calls that arrive together share a transaction."""
    await _measure(session, "confirm")
    await _measure_one_process(session)


async def resolve(session: Session) -> None:
    """Resolve has batches of its own, so that it never waits behind Confirms."""
    await _measure(session, "resolve")


async def _measure(session: Session, operation: str) -> None:
    async with session.stage.server(processes=session.plan.processes) as server:
        for name, keys in session.wallets.items():
            for connections in session.connections:
                tally = await _load(session, server, keys, connections, operation)
                where = f"{name}, {connections} conn."
                alone = connections == 1 and operation == "confirm"
                session.add(
                    Row(
                        what=f"create+{operation}, {where}",
                        rate=tally.rate,
                        tally=tally,
                        more=f"generator {tally.generator_cpu_s / tally.seconds:.0%} of a core",
                        goal=_goal(session, operation, where, connections, tally),
                    )
                )
                session.add(
                    Row(what=f"· create, {where}", times=tally.first, goal=below_single(3) if alone else None)
                )
                session.add(
                    Row(
                        what=f"· {operation}, {where}",
                        times=tally.second,
                        goal=below_single(4) if alone else None,
                    )
                )


async def _measure_one_process(session: Session) -> None:
    """The same crowd at a single process: what the second one adds where all share the machine."""
    if session.plan.processes < 2 or CROWD not in session.connections:
        return
    async with session.stage.server(processes=1) as server:
        for name, keys in session.wallets.items():
            tally = await _load(session, server, keys, CROWD, "confirm")
            where = f"{name}, {CROWD} conn."
            factor = session.rate(f"create+confirm, {where}") / tally.rate
            session.add(
                Row(
                    what=f"create+confirm, {where}, one process",
                    rate=tally.rate,
                    tally=tally,
                    more=f"{session.plan.processes} processes: {factor:.2f} ×",
                    goal=judged(f"{TWO_PROCESSES_MIN:g} × with cores to spare", factor >= TWO_PROCESSES_MIN),
                )
            )


async def _load(session: Session, server: Server, keys: list[str], connections: int, operation: str) -> Tally:
    await session.fill_shelf()
    plan = session.plan
    return sound(
        await server.load(
            keys=keys,
            connections=connections,
            operation=operation,
            slug=SLUG,
            warm_s=plan.warm_s,
            load_s=plan.load_s,
        )
    )


def _goal(session: Session, operation: str, where: str, connections: int, tally: Tally) -> Goal | None:
    if connections == 1 and operation == "confirm":
        database_us = 1e6 * tally.database_cpu_s / tally.rounds
        text = f"database ≤ {ALONE_DATABASE_US_MAX:,} µs a lifecycle"
        return judged(text, database_us <= ALONE_DATABASE_US_MAX)
    if connections != CROWD:
        return None
    if operation == "confirm":
        return at_least_tpcb(1.5)
    confirms = session.rate(f"create+confirm, {where}")
    if not confirms:
        return None
    share = tally.rate / confirms
    return judged(f"≥ {RESOLVE_SHARE_MIN:g} × Confirm ({share:.2f})", share >= RESOLVE_SHARE_MIN)
