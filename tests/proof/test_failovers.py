"""The leader of a Patroni trio fails under load, again and again: what was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.faults.processes import SERVICE, WALLET_IS_ENDLESS, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import HANG_S, until_true
from tests.proof.buyers import Buyer
from tests.proof.cells import ELSEWHERE_S, FAILOVER_S, SLOW_S, fill
from tests.proof.installation import LIMITS
from tests.proof.promises import Promises
from tests.proof.trial import PATIENCE
from tests.proof.trio import IS_HERE, Node, Trio, tell, trio
from tests.shop import Shop
from voucherd.db import open_pool
from voucherd.migrate import migrate

FAILOVERS: Final = int(os.environ.get("VOUCHERD_SOAK_FAILOVERS", "6"))
"""The proof of a release: 50."""
BETWEEN: Final = int(os.environ.get("VOUCHERD_SOAK_ORDERS_BETWEEN", "1000"))
"""So many orders are acknowledged from one failover to the next, and after the last."""
BUYERS: Final = 24
LOT: Final = 5_000
SHELF_MIN: Final = 2 * LOT
SALES_MIN: Final = 20
HOSTS: Final = ("api-1", "api-2")
HINDRANCES: Final = ("slow link", "read-only", "disk full")
HINDERED_S: Final = 6.0
SHOWN_MAX: Final = 5

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(6 * 3600),
    pytest.mark.skipif(not IS_HERE, reason="needs Patroni, etcd and PostgreSQL of the system, and root"),
]


async def _kill(node: Node) -> None:
    node.send(signal.SIGKILL)
    # Nobody listens where a server was killed; a wire that took the call would hide that.
    node.clients.refuse()


async def _start(node: Node) -> None:
    await node.clients.start()
    await _restart(node)


async def _restart(node: Node) -> None:
    # Its Patroni may have started the server without anybody to follow, and then waits for it for ever.
    await node.kill()
    await node.program.start()


async def _kill_server(node: Node) -> None:
    tell(node.server(), signal.SIGKILL)


async def _hand_over(node: Node) -> None:
    await node.hand_over()


async def _nothing(_node: Node) -> None:
    """Patroni itself makes a standby of it."""


async def _freeze(node: Node) -> None:
    node.send(signal.SIGSTOP)


async def _thaw(node: Node) -> None:
    node.send(signal.SIGCONT)


async def _cut(node: Node) -> None:
    node.clients.silence()
    node.locks.silence()


async def _mend(node: Node) -> None:
    node.clients.heal()
    node.locks.heal()


_Step = Callable[[Node], Awaitable[None]]
WAYS: Final[dict[str, tuple[_Step, _Step]]] = {
    "kill -9": (_kill, _start),
    "kill -9 of the server": (_kill_server, _restart),
    "switchover": (_hand_over, _nothing),
    "SIGSTOP": (_freeze, _thaw),
    "black hole": (_cut, _mend),
}
QUICK: Final = ("kill -9 of the server", "switchover")
"""Patroni knows of these at once, and need not wait for a lock to run out."""
TURNS: Final = ("kill -9", *QUICK, "SIGSTOP", *QUICK, "black hole", *QUICK)


@dataclass
class Market:
    """A shop on a trio, and the buyers in it."""

    cluster: Trio
    shop: Shop
    servers: dict[str, Server]
    promises: Promises = field(default_factory=Promises)
    outages_s: list[tuple[str, float]] = field(default_factory=list)
    calm_gap_s: float = 0.0
    """The longest that a host sold nothing while all was well: what the machine itself needs."""

    async def fail_over(self, way: str) -> None:
        """Let the leader fail, and see how long nobody sells."""
        await self.cluster.whole()
        leader = await self.cluster.leader()
        calm = time.monotonic()
        await self.sells(calm)
        self.calm_gap_s = max(self.calm_gap_s, self.gap_s(calm, time.monotonic()))
        begin, end = WAYS[way]
        began = time.monotonic()
        await begin(leader)
        try:
            await self.sells(time.monotonic())
            sold = time.monotonic()
            assert await self.cluster.leader() is not leader, f"{way}: the same one leads"
        finally:
            await end(leader)
        outage_s = self.gap_s(began, sold)
        self.outages_s.append((way, outage_s))
        sys.stdout.write(f"\n{way}: {outage_s:.1f} s, {len(self.promises.codes)} acknowledged\n")

    async def sells(self, since: float) -> None:
        """Returns once both hosts have sold something since then."""
        await until_true(
            lambda: all(self.promises.since(host, since) >= SALES_MIN for host in HOSTS),
            "nobody sells any more",
        )

    def gap_s(self, begin: float, end: float) -> float:
        """The longest time within these bounds in which one of the hosts sold nothing."""
        return max(self.promises.gap_s(host, begin, end) for host in HOSTS)

    async def keep_stocked(self, stop: asyncio.Event) -> None:
        """Put codes on the shelf as they are sold; a database that is away is asked again."""
        while not stop.is_set():
            try:
                if await self.shop.left("now") < SHELF_MIN:
                    await self.shop.stock("now", LOT)
                    continue
            except Exception:  # noqa: BLE001 - Whatever it is, the next try tells.
                await asyncio.sleep(0.5)
            await asyncio.sleep(0.2)


@asynccontextmanager
async def hindered(leader: Node, fault: str) -> AsyncIterator[None]:
    """A leader that still leads, but is slow, may not write, or has no room to."""
    ballast = leader.folder / "ballast"
    if fault == "slow link":
        leader.clients.slow_s = SLOW_S
    elif fault == "read-only":
        await leader.order("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    else:
        await asyncio.to_thread(fill, ballast)
    try:
        yield
    finally:
        if fault == "slow link":
            leader.clients.heal()
        elif fault == "read-only":
            await leader.order("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
        else:
            await asyncio.to_thread(ballast.unlink)


def _tell_failures(folder: Path) -> None:
    """Show what nobody foresaw before the logs are cleared away."""
    for log in folder.glob("api-*.log"):
        failed = [line for line in log.read_text().splitlines() if "request_failed" in line]
        sys.stdout.write("".join(f"\n{line}\n" for line in failed[:SHOWN_MAX]))


@asynccontextmanager
async def market(*, disks: bool = False) -> AsyncIterator[Market]:
    """A trio with a shop on it and two API hosts that know all three addresses."""
    folder = Path(tempfile.mkdtemp(prefix="voucherd-trio-", dir="/tmp"))
    try:
        async with trio(folder, disks=disks) as cluster:
            await migrate(cluster.url)
            pool = await open_pool(cluster.url, size_max=4)
            surroundings = environment(cluster.url, folder, **LIMITS)
            servers = {name: Server(SERVICE, surroundings, folder / f"{name}.log") for name in HOSTS}
            async with shop_of(pool, folder) as shop, running(*servers.values()):
                await shop.product("now", price="9.50 EUR")
                yield Market(cluster, shop, servers)
            await pool.close()
    finally:
        _tell_failures(folder)
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def buying(here: Market) -> AsyncIterator[None]:
    """Buyers at work for as long as the block lasts."""
    stop = asyncio.Event()
    companies = [await here.shop.company(balance=WALLET_IS_ENDLESS) for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        group.create_task(here.keep_stocked(stop))
        for at in range(BUYERS):
            home = HOSTS[at % len(HOSTS)]
            buyer = Buyer(here.servers, home, companies[at % 4], here.promises, at, ("now",), 0.1)
            group.create_task(buyer.buy_until(stop))
        try:
            yield
        finally:
            stop.set()


async def test_no_failover_loses_an_acknowledged_order() -> None:
    """Invariants 1 to 4: every order that a client was told of is there with its codes, whichever server leads."""
    async with market() as here:
        async with buying(here):
            for number in range(FAILOVERS):
                await _sold(here, BETWEEN * (number + 1))
                await here.fail_over(TURNS[number % len(TURNS)])
            await _sold(here, BETWEEN * (FAILOVERS + 1))
        await here.cluster.whole()
        await here.promises.assert_kept(here.shop, [server.url for server in here.servers.values()])
    longest = max(outage_s for _, outage_s in here.outages_s)
    figures = {
        "acknowledged": len(here.promises.codes),
        "failovers": len(here.outages_s),
        "calm gap": round(here.calm_gap_s, 2),
        "outages": [(way, round(outage_s, 1)) for way, outage_s in here.outages_s],
        "answers": dict(here.promises.answers),
    }
    sys.stdout.write(f"\n{json.dumps(figures)}\n")
    assert not here.promises.strange, here.promises.strange
    assert longest <= FAILOVER_S + PATIENCE * here.calm_gap_s, figures


@pytest.mark.parametrize("fault", HINDRANCES)
async def test_a_leader_that_is_hindered_breaks_no_promise(fault: str) -> None:
    """Invariants 1 to 4, OP-46: a leader that is slow, read-only or full costs sales for a while, and no order."""
    async with market(disks=fault == "disk full") as here:
        leader = await here.cluster.leader()
        async with buying(here):
            await _sold(here, SALES_MIN)
            calm = time.monotonic()
            await here.sells(calm)
            slack_s = PATIENCE * here.gap_s(calm, time.monotonic())
            async with hindered(leader, fault):
                await asyncio.sleep(HINDERED_S)
            over = time.monotonic()
            await here.sells(over)
            again_s = here.gap_s(over, time.monotonic())
        await here.cluster.whole()
        await here.promises.assert_kept(here.shop, [server.url for server in here.servers.values()])
    assert not here.promises.strange, here.promises.strange
    assert again_s <= slack_s + (FAILOVER_S if fault == "disk full" else ELSEWHERE_S)


async def _sold(here: Market, count: int) -> None:
    """Returns once so many orders are acknowledged, however long that takes while some are."""
    seen, since = 0, time.monotonic()
    while (sold := len(here.promises.codes)) < count:
        if sold > seen:
            seen, since = sold, time.monotonic()
        assert time.monotonic() - since < HANG_S, f"nothing is sold any more: {here.promises.answers}"
        await asyncio.sleep(0.2)
