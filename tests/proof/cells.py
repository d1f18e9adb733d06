"""The fault matrix: what is done to whom, what the rest of the shop owes its clients meanwhile, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.patience import until
from tests.proof.installation import APIS, Installation

ELSEWHERE_S: Final = 5.0
"""A sale somewhere else comes within this time of a fault, and after one has ended."""
FAILOVER_S: Final = 25.0
"""The same where the database itself has to start anew."""
SLOW_S: Final = 0.05
MOMENTS_MAX: Final = 200
"""Tries to catch a host in the middle of a sale."""
HOURS: Final = 2
CLOCK_S_MAX: Final = 600.0
BALLAST: Final = "ballast"


@dataclass(frozen=True)
class Cell:
    """One fault of one part."""

    fault: str
    target: str
    elsewhere: tuple[str, ...] = APIS
    """The hosts that go on selling while it lasts."""
    lasts_s: float = 0.0
    """How long it lasts at least; where somebody goes on selling that is seen first."""
    again_s: float = ELSEWHERE_S
    """How soon both hosts sell again when it is over."""
    not_ready: tuple[str, ...] = ()
    """The hosts that must tell their load balancer so."""
    silent: tuple[str, ...] = ()
    """The hosts that can't answer while it lasts."""
    disk: bool = False
    """Whether it needs a disk of its own, which only root can make."""
    clocks: bool = False

    @property
    def name(self) -> str:
        """How it is called in tests and in the page of results."""
        return f"{self.fault} / {self.target}"


ONE, OTHER = APIS
_ROLE: Final = {"api-1": "api_1", "worker": "worker"}

CELLS: Final = (
    Cell("kill -9", ONE, (OTHER,), silent=(ONE,)),
    Cell("SIGSTOP", ONE, (OTHER,), silent=(ONE,)),
    Cell("black hole", ONE, (OTHER,), again_s=FAILOVER_S),
    Cell("slow link", ONE, (OTHER,)),
    Cell("read-only", ONE, (OTHER,), not_ready=(ONE,)),
    Cell("disk full", ONE, APIS, disk=True),
    Cell("clock +2 h", ONE, APIS, lasts_s=2.0, clocks=True),
    Cell("clock -2 h", ONE, APIS, lasts_s=2.0, clocks=True),
    Cell("connection limit", ONE, (OTHER,)),
    Cell("kill -9", "worker"),
    Cell("SIGSTOP", "worker"),
    Cell("black hole", "worker"),
    Cell("slow link", "worker"),
    Cell("read-only", "worker"),
    Cell("disk full", "worker", disk=True),
    Cell("clock +2 h", "worker", lasts_s=2.0, clocks=True),
    Cell("clock -2 h", "worker", lasts_s=2.0, clocks=True),
    Cell("connection limit", "worker"),
    Cell("kill -9", "database", (), again_s=FAILOVER_S),
    Cell("SIGSTOP", "database", (), lasts_s=6.0),
    Cell("black hole", "database", (), lasts_s=6.0),
    Cell("slow link", "database", APIS, lasts_s=2.0),
    Cell("read-only", "database", (), lasts_s=3.0, not_ready=APIS),
    Cell("disk full", "database", (), lasts_s=6.0, again_s=FAILOVER_S, disk=True),
    Cell("clock +2 h", "database", APIS, lasts_s=2.0, clocks=True),
    Cell("clock -2 h", "database", APIS, lasts_s=2.0, clocks=True),
    Cell("connection limit", "database", (), lasts_s=3.0),
    Cell("kill -9", "supplier"),
    Cell("SIGSTOP", "supplier"),
    Cell("black hole", "supplier"),
    Cell("slow link", "supplier"),
    Cell("read-only", "supplier"),
    Cell("disk full", "supplier", disk=True),
    Cell("connection limit", "supplier"),
    Cell("kill -9", "receiver"),
    Cell("SIGSTOP", "receiver"),
    Cell("black hole", "receiver"),
    Cell("slow link", "receiver"),
    Cell("disk full", "receiver", disk=True),
    Cell("connection limit", "receiver"),
)
BY_NAME: Final = {cell.name: cell for cell in CELLS}


@asynccontextmanager
async def fault(shop: Installation, cell: Cell) -> AsyncIterator[None]:
    """The fault, for as long as the block lasts."""
    begin, end = _FAULTS[cell.fault]
    await begin(shop, cell.target)
    try:
        yield
    finally:
        await end(shop, cell.target)


# ── kill -9 and SIGSTOP ───────────────────────────────────────────────────────────────────────────────


async def _kill(shop: Installation, target: str) -> None:
    if target == "database":
        os.kill(shop.database_pids()[0], signal.SIGKILL)
    elif target == "supplier":
        await shop.wholesaler.kill()
    else:
        await shop.process(target).kill()


async def _start(shop: Installation, target: str) -> None:
    if target == "supplier":
        await shop.wholesaler.start()
    elif target != "database":  # Its supervisor starts that one.
        await shop.process(target).start()


async def _freeze(shop: Installation, target: str) -> None:
    if target == "database":
        shop.signal_database(signal.SIGSTOP)
    elif target == "supplier":
        assert shop.wholesaler._process is not None
        shop.wholesaler._process.send_signal(signal.SIGSTOP)
    elif target == ONE:
        process = shop.process(target)
        await _in_a_sale(shop, process.freeze, process.thaw)
    else:
        shop.process(target).freeze()


async def _thaw(shop: Installation, target: str) -> None:
    if target == "database":
        shop.signal_database(signal.SIGCONT)
    elif target == "supplier":
        assert shop.wholesaler._process is not None
        shop.wholesaler._process.send_signal(signal.SIGCONT)
    else:
        shop.process(target).thaw()


async def _in_a_sale(shop: Installation, begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Let the fault begin while its host is in the middle of a transaction, with a wallet locked."""
    for _ in range(MOMENTS_MAX):
        begin()
        await asyncio.sleep(0.3)
        if await shop.in_transaction(_ROLE[ONE]):
            return
        end()
        await asyncio.sleep(0.02)
    raise AssertionError("the host was never caught in the middle of a sale")


# ── the network ───────────────────────────────────────────────────────────────────────────────────────


def _links(target: str) -> tuple[str, ...]:
    return (*APIS, "worker") if target == "database" else (target,)


async def _cut(shop: Installation, target: str) -> None:
    def cut() -> None:
        for name in _links(target):
            shop.links[name].silence()

    def heal() -> None:
        for name in _links(target):
            shop.links[name].heal()

    if target == ONE:
        await _in_a_sale(shop, cut, heal)
    else:
        cut()


async def _slow(shop: Installation, target: str) -> None:
    for name in _links(target):
        shop.links[name].slow_s = SLOW_S


async def _mend(shop: Installation, target: str) -> None:
    for name in _links(target):
        shop.links[name].heal()


# ── what the database allows ──────────────────────────────────────────────────────────────────────────


async def _read_only(shop: Installation, target: str) -> None:
    if target == "supplier":
        await shop.wholesaler.behave("*", "error-before")
    elif target == "database":
        await shop.order("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    else:
        await shop.order(f"ALTER ROLE {_ROLE[target]} SET default_transaction_read_only = on")
        await shop.end_sessions(_ROLE[target])


async def _writable(shop: Installation, target: str) -> None:
    if target == "supplier":
        await shop.wholesaler.be_honest()
    elif target == "database":
        await shop.order("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    else:
        await shop.order(f"ALTER ROLE {_ROLE[target]} RESET default_transaction_read_only")
        await shop.end_sessions(_ROLE[target])


async def _limit(shop: Installation, target: str) -> None:
    if target in {"supplier", "receiver"}:
        shop.links[target].connections_max = 1
    elif target == "database":
        await shop.order("ALTER DATABASE voucherd CONNECTION LIMIT 1")
        await shop.end_sessions()
    else:
        await shop.order(f"ALTER ROLE {_ROLE[target]} CONNECTION LIMIT 1")
        await shop.end_sessions(_ROLE[target])


async def _no_limit(shop: Installation, target: str) -> None:
    if target in {"supplier", "receiver"}:
        shop.links[target].heal()
    elif target == "database":
        await shop.order("ALTER DATABASE voucherd CONNECTION LIMIT -1")
    else:
        await shop.order(f"ALTER ROLE {_ROLE[target]} CONNECTION LIMIT -1")


# ── disks and clocks ──────────────────────────────────────────────────────────────────────────────────


async def _fill(shop: Installation, target: str) -> None:
    await asyncio.to_thread(fill, shop.disk(target) / BALLAST)


def fill(ballast: Path) -> None:
    """Take all that is left on the disk of this file."""
    piece = 1 << 20
    with ballast.open("wb", buffering=0) as file:
        while piece:
            try:
                file.write(bytes(piece))
            except OSError:
                piece //= 2


async def _make_room(shop: Installation, target: str) -> None:
    (shop.disk(target) / BALLAST).unlink()


def _jump(hours: int) -> Callable[[Installation, str], Awaitable[None]]:
    async def jump(shop: Installation, target: str) -> None:
        shop.clocks[target].set(hours)
        if target == "database":
            offset_s = await shop.pool.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
            assert abs(offset_s - time.time() - 3600 * hours) < CLOCK_S_MAX, "its clock did not jump"

    return jump


async def everything_told(shop: Installation) -> None:
    """Wait until every event has reached the receiver of webhooks."""

    async def told() -> bool:
        await shop.pool.execute(
            """
            UPDATE webhook_delivery d SET next_at = now() FROM
                (SELECT webhook_id, event_id FROM webhook_delivery WHERE status = 0 FOR UPDATE SKIP LOCKED) w
            WHERE d.webhook_id = w.webhook_id AND d.event_id = w.event_id
            """
        )
        await shop.pool.execute(
            """
            UPDATE webhook_queue SET next_at = now() WHERE webhook_id IN (
                SELECT webhook_id FROM webhook_queue q WHERE NOT leased AND EXISTS (
                    SELECT FROM webhook_delivery d WHERE d.webhook_id = q.webhook_id AND d.status = 0)
                FOR UPDATE SKIP LOCKED)
            """
        )
        return not await shop.pool.fetchval("SELECT EXISTS (SELECT FROM webhook_delivery WHERE status = 0)")

    await until(told, "events are not told")


_Step = Callable[[Installation, str], Awaitable[None]]
_FAULTS: Final[dict[str, tuple[_Step, _Step]]] = {
    "kill -9": (_kill, _start),
    "SIGSTOP": (_freeze, _thaw),
    "black hole": (_cut, _mend),
    "slow link": (_slow, _mend),
    "read-only": (_read_only, _writable),
    "disk full": (_fill, _make_room),
    "clock +2 h": (_jump(HOURS), _jump(0)),
    "clock -2 h": (_jump(-HOURS), _jump(0)),
    "connection limit": (_limit, _no_limit),
}
