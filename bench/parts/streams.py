"""Thousands of clients that listen to events: what they cost when nothing happens, and when much does."""

from __future__ import annotations

import asyncio
import re
import resource
import time
from datetime import datetime
from typing import Final

from bench import machine
from bench.figures import Row, judged
from bench.jobs import Tally, spread
from bench.session import SLUG, Session, sound
from bench.stage import Server

OPENING_AT_ONCE: Final = 50
OPEN_S_MAX: Final = 120.0
SELLERS: Final = 8
KIB_EACH_MAX: Final = 40
IDLE_CPU_MAX: Final = 0.10
_TIMESTAMP: Final = re.compile(rb'"timestamp":"([^"]+)"')


class Ear(asyncio.Protocol):
    """A client that notes when it heard of what."""

    def __init__(self, request: bytes, delays_s: list[float], opened: asyncio.Future[None]) -> None:
        self._request = request
        self._delays_s = delays_s
        self.opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """The first word opens the stream; after that each timestamp is an event."""
        if not self.opened.done():
            if b"retry: " in data:
                self.opened.set_result(None)
            return
        now_s = time.time()
        self._delays_s += [
            now_s - datetime.fromisoformat(found.decode()).timestamp() for found in _TIMESTAMP.findall(data)
        ]

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is to hang up on us."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the server hung up"))


async def measure(session: Session) -> None:
    """Sales alone; then with every company listening: memory, idle cost, sales, and how late the news are."""
    plan = session.plan
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    await session.fill_shelf()
    async with session.stage.server() as server:
        alone = await _sales(session, server)
        session.add(Row(what="sales with nobody listening", rate=alone.rate, tally=alone))
        before_mb = machine.rss_mb(server.pid)
        delays_s: list[float] = []
        transports = await _listen(session, server, delays_s)
        try:
            await _idle(session, server, before_mb)
            delays_s.clear()
            beside = await _sales(session, server)
            await asyncio.sleep(1.0)
        finally:
            for transport in transports:
                transport.abort()
        each = plan.streams / len(session.keys_by_company)
        session.add(
            Row(
                what=f"· sales with {plan.streams:,} listening",
                rate=beside.rate,
                tally=beside,
                more=f"{beside.rate / alone.rate:.2f} × alone; an event goes to {each:.0f} streams",
            )
        )
        session.add(Row(what="· from the event to the client", times=spread(delays_s)))


async def _sales(session: Session, server: Server) -> Tally:
    keys = list(session.keys_by_company.values())
    return sound(
        await server.load(
            keys=keys,
            connections=SELLERS,
            operation="confirm",
            slug=SLUG,
            load_s=session.plan.load_s,
            warm_s=session.plan.warm_s,
        )
    )


async def _listen(session: Session, server: Server, delays_s: list[float]) -> list[asyncio.Transport]:
    """So many open streams, spread over all companies."""
    loop = asyncio.get_running_loop()
    keys = list(session.keys_by_company.values())
    places = asyncio.Semaphore(OPENING_AT_ONCE)

    async def open_one(number: int) -> asyncio.Transport:
        key = keys[number % len(keys)]
        request = f"GET /api/1.03/event/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
        async with places:
            opened = loop.create_future()
            transport, ear = await loop.create_connection(
                lambda: Ear(request.encode(), delays_s, opened), "127.0.0.1", server.port
            )
            await ear.opened
        return transport

    async with asyncio.timeout(OPEN_S_MAX):
        return await asyncio.gather(*[open_one(number) for number in range(session.plan.streams)])


async def _idle(session: Session, server: Server, before_mb: float) -> None:
    """What the open streams cost while nothing happens: memory, and processor time of heartbeats and the poll."""
    plan = session.plan
    open_mb = machine.rss_mb(server.pid)
    kib_each = (open_mb - before_mb) * 1e6 / 1024 / plan.streams
    server_s, database_s = machine.cpu_s(server.pid), machine.family_cpu_s(session.stage.database_pid)
    await asyncio.sleep(plan.streams_idle_s)
    server_share = (machine.cpu_s(server.pid) - server_s) / plan.streams_idle_s
    database_share = (machine.family_cpu_s(session.stage.database_pid) - database_s) / plan.streams_idle_s
    session.add(
        Row(
            what=f"{plan.streams:,} streams open",
            more=f"server {before_mb:.0f} → {open_mb:.0f} MB, {kib_each:.1f} KiB a stream",
            goal=judged(f"< {KIB_EACH_MAX} KiB each", kib_each < KIB_EACH_MAX),
        )
    )
    session.add(
        Row(
            what="· while nothing happens",
            more=f"server {server_share:.1%} of a core, database {database_share:.1%}, worker and heartbeats included",
            goal=judged("< 10% of a core", server_share < IDLE_CPU_MAX),
        )
    )
