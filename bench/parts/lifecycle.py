"""Create and Confirm (or Resolve) of one code, over and over, from one connection and from many."""

from __future__ import annotations

from typing import Final

from bench.figures import Goal, Row, at_least_tpcb, below_single
from bench.session import SLUG, Session, sound

CROWD: Final = 256
"""The connections that the goal for the rate is set for."""


async def confirm(session: Session) -> None:
    """Confirm goes through the gate: calls that arrive together share a transaction."""
    await _measure(session, "confirm")


async def resolve(session: Session) -> None:
    """Resolve waits behind nobody: every call is a transaction of its own."""
    await _measure(session, "resolve")


async def _measure(session: Session, operation: str) -> None:
    plan = session.plan
    async with session.stage.server(processes=plan.processes) as server:
        for name, keys in session.wallets.items():
            for connections in session.connections:
                await session.fill_shelf()
                tally = sound(
                    await server.load(
                        keys=keys,
                        connections=connections,
                        operation=operation,
                        slug=SLUG,
                        warm_s=plan.warm_s,
                        load_s=plan.load_s,
                    )
                )
                where = f"{name}, {connections} conn."
                rate_goal, time_goal = _goals(operation, connections)
                share = tally.generator_cpu_s / tally.seconds
                session.add(
                    Row(
                        what=f"create+{operation}, {where}",
                        rate=tally.rate,
                        tally=tally,
                        more=f"generator {share:.0%} of a core",
                        goal=rate_goal,
                    )
                )
                session.add(Row(what=f"· create, {where}", times=tally.first))
                session.add(Row(what=f"· {operation}, {where}", times=tally.second, goal=time_goal))


def _goals(operation: str, connections: int) -> tuple[Goal | None, Goal | None]:
    if operation != "confirm":
        return None, None
    rate = at_least_tpcb(1.5) if connections == CROWD else None
    return rate, below_single(4) if connections == 1 else None
