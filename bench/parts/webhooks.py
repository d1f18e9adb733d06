"""Webhooks: deliveries a second to one endpoint, to a thousand of which one is dead, and how soon an event arrives."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_network
from typing import ClassVar, Final

from bench.figures import Row, judged
from bench.jobs import spread
from bench.session import Session
from voucherd.db import Pool, open_pool, transaction
from voucherd.ids import Identifiers, State
from voucherd.vault.seal import Sealer
from voucherd.webhooks import endpoints, fanout
from voucherd.webhooks.endpoints import ENDPOINTS_MAX, Draft
from voucherd.webhooks.messages import message
from voucherd.webhooks.sender import Sender

OWN: Final = (ip_network("127.0.0.0/8"),)
MASTER: Final = secrets.token_bytes(32)
DONE_S_MAX: Final = 120.0
FIRST_TRY_S_MAX: Final = 2.0
STEADY_EVENTS: Final = 300
STEADY_S: Final = 0.02
_LENGTH: Final = re.compile(rb"content-length: (\d+)")
_SEQ: Final = re.compile(rb'"seq":(\d+)')


class Receiver(asyncio.Protocol):
    """Takes requests as fast as they come; one that is dead takes them and says nothing."""

    arrived: int = 0
    times: ClassVar[dict[int, float]] = {}

    def __init__(self, *, dead: bool = False) -> None:
        self._dead = dead
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._rest += data
        while not self._dead:
            head, found, body = self._rest.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if not found or length is None or len(body) < int(length[1]):
                return
            seq = _SEQ.search(body)
            Receiver.times.setdefault(int(seq[1]) if seq else 0, time.monotonic())
            Receiver.arrived += 1
            self._rest = body[int(length[1]) :]
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def measure(session: Session) -> None:
    """One endpoint, then a thousand with one that hangs, then a quiet day."""
    plan = session.plan
    pool = await open_pool(session.stage.database_url, size_max=4, look_ups=True)
    try:
        companies = sorted(session.keys_by_company)[: -(-plan.webhook_endpoints // ENDPOINTS_MAX)]
        await _send(session, pool, companies[:1], 1, dead=0)
        await _send(session, pool, companies, plan.webhook_endpoints, dead=1)
        await _steady(session, pool, companies[0])
    finally:
        await pool.close()


@asynccontextmanager
async def _sending(pool: Pool) -> AsyncIterator[Sender]:
    sender = Sender(pool, Sealer(MASTER), partial(message, Identifiers(MASTER)), OWN)
    yield sender
    await sender.stop()


@asynccontextmanager
async def _receivers(pool: Pool, companies: list[int], count: int, dead: int) -> AsyncIterator[None]:
    """So many endpoints, of which some are dead; gone afterwards."""
    loop = asyncio.get_running_loop()
    quick = await loop.create_server(Receiver, "127.0.0.1", 0)
    hanging = await loop.create_server(partial(Receiver, dead=True), "127.0.0.1", 0)
    ports = [server.sockets[0].getsockname()[1] for server in (quick, hanging)]
    for at in range(count):
        url = f"http://127.0.0.1:{ports[at < dead]}/{at}"
        async with transaction(pool) as tx:
            owner = companies[at // ENDPOINTS_MAX]
            await endpoints.add(tx, Sealer(MASTER), owner, State.LIVE, Draft(url))
    try:
        yield
    finally:
        await pool.execute("DELETE FROM webhook")
        quick.close()
        hanging.close()


async def _send(session: Session, pool: Pool, companies: list[int], count: int, *, dead: int) -> None:
    """Work off a heap of events; how fast, the dead ones left out."""
    plan = session.plan
    each = min(count, ENDPOINTS_MAX)
    events = plan.webhook_events // each
    async with _receivers(pool, companies, count, dead):
        await _fan_out(pool)
        await _happen(pool, companies, events)
        began = time.monotonic()
        await _fan_out(pool)
        fanned_s = time.monotonic() - began
        made = await pool.fetchval("SELECT count(*) FROM webhook_delivery")
        expected = made - await pool.fetchval(
            "SELECT count(*) FROM webhook_delivery WHERE webhook_id IN (SELECT id FROM webhook ORDER BY id LIMIT $1)",
            dead,
        )
        Receiver.arrived = 0
        async with _sending(pool) as sender:
            began = time.monotonic()
            sender.start()
            async with asyncio.timeout(DONE_S_MAX):
                while Receiver.arrived < expected:  # noqa: ASYNC110 - The receiver has no time to tell.
                    await asyncio.sleep(0.01)
            took_s = time.monotonic() - began
    what = "one endpoint" if count == 1 else f"{count:,} endpoints, one of them dead"
    session.add(
        Row(
            what=f"deliveries to {what}",
            rate=expected / took_s,
            more=f"{expected:,} in {took_s:.1f} s; fanned out {made / fanned_s:,.0f} a second before",
        )
    )


async def _steady(session: Session, pool: Pool, company_id: int) -> None:
    """From the commit of an event to its arrival, while events come one by one."""
    Receiver.times.clear()
    async with _receivers(pool, [company_id], 1, 0), _sending(pool) as sender:
        await _fan_out(pool)
        sender.start()
        fanning = asyncio.create_task(_fan_out_for_ever(pool, sender))
        committed: dict[int, float] = {}
        for seq in range(1, STEADY_EVENTS + 1):
            await _happen(pool, [company_id], 1, seq=seq)
            committed[seq] = time.monotonic()
            await asyncio.sleep(STEADY_S)
        async with asyncio.timeout(DONE_S_MAX):
            while len(Receiver.times) < STEADY_EVENTS:  # noqa: ASYNC110 - The receiver has no time to tell.
                await asyncio.sleep(0.01)
        fanning.cancel()
        await asyncio.gather(fanning, return_exceptions=True)
    times = spread([max(0.0, Receiver.times[seq] - at) for seq, at in committed.items()])
    goal = judged(f"p99 < {FIRST_TRY_S_MAX:g} s", times.p99_ms < FIRST_TRY_S_MAX * 1000)
    session.add(Row(what="from the event to the receiver", times=times, goal=goal))


async def _happen(pool: Pool, companies: list[int], count: int, *, seq: int = 1) -> None:
    await pool.execute(
        """
        INSERT INTO event (at, company_id, state, type, order_id, seq)
        SELECT now(), ($1::int[])[1 + at % cardinality($1::int[])], 0, 'order.finished', 2 * at, $3
        FROM generate_series(1, $2::int) at
        """,
        companies,
        count,
        seq,
    )


async def _fan_out(pool: Pool) -> None:
    while await fanout.fan_out(pool):
        pass


async def _fan_out_for_ever(pool: Pool, sender: Sender) -> None:
    while True:
        if await fanout.fan_out(pool):
            sender.wake()
        else:
            await asyncio.sleep(0.1)
