"""pgbench on the same server, in the same run: the yardstick that makes figures of different machines comparable."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from bench.plan import Plan
from bench.stage import ChildFailed, Stage
from voucherd.embedded import binaries

DATABASE: Final = "pgbench"
CLIENTS: Final = 8


class Yardstick(Struct, frozen=True):
    """Transactions a second."""

    tpcb: float
    """TPC-B-like, 8 clients."""
    simple: float
    """-N (no tellers, no branches), 8 clients."""
    single: float
    """-N, one client."""

    @property
    def single_ms(self) -> float:
        """How long one transaction takes on an idle server."""
        return 1000 / self.single

    def averaged(self, other: Yardstick) -> Yardstick:
        """The mean of two measurements."""
        return Yardstick(
            (self.tpcb + other.tpcb) / 2, (self.simple + other.simple) / 2, (self.single + other.single) / 2
        )


class Pgbench:
    """pgbench in a database of its own beside voucherd's."""

    def __init__(self, stage: Stage, plan: Plan) -> None:
        self._stage = stage
        self._plan = plan
        parts = urlsplit(stage.database_url)
        self._url = urlunsplit(parts._replace(path=f"/{DATABASE}"))

    async def prepare(self) -> None:
        """Make its tables."""
        await self._stage.pool.execute(f"CREATE DATABASE {DATABASE}")
        await self._run("--initialize", f"--scale={self._plan.pgbench_scale}", "--quiet")

    async def measure(self) -> Yardstick:
        """All three loads, one after another."""
        await self._stage.pool.execute("CHECKPOINT")
        return Yardstick(
            await self._tps(CLIENTS),
            await self._tps(CLIENTS, "--skip-some-updates"),
            await self._tps(1, "-N"),
        )

    async def _tps(self, clients: int, *options: str) -> float:
        said = await self._run(
            f"--client={clients}",
            f"--jobs={min(clients, 2)}",
            f"--time={self._plan.pgbench_s}",
            "--no-vacuum",
            *options,
        )
        found = re.search(r"tps = ([0-9.]+) \(without initial", said)
        if found is None:
            raise ChildFailed(f"pgbench said nothing of its speed: {said[-500:]}")
        return float(found[1])

    async def _run(self, *options: str) -> str:
        program = str(binaries() / "pgbench")
        return (await self._stage.child([program, *options, self._url])).decode()
