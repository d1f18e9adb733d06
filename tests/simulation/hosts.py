"""Two hosts on one database: each can be stopped before or after any statement of a call, for a while or for good."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import asyncpg

from tests.faults.stumbling import StumblingConnection
from tests.simulation.world import World
from voucherd import heartbeat
from voucherd.api import routes
from voucherd.api.app import Api, _Admission
from voucherd.api.handlers import Call
from voucherd.api.idempotent import IdempotentCalls
from voucherd.app import build_services
from voucherd.companies.model import Company
from voucherd.db import Pool
from voucherd.heartbeat import Heartbeat
from voucherd.http import Request, Response
from voucherd.ids import State
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller
from voucherd.keys.key_text import Scope
from voucherd.vault.key_ring import KeyRing

T = TypeVar("T")
AUTHORIZATION = b"Bearer known"
CONNECTIONS_MAX = 6
RESOLVE_LIMIT_S = 0.4


class Point(Enum):
    """Where a call can be stopped: before or after a statement with these words."""

    BEFORE_CLAIM = ("INSERT INTO idempotency", False)
    AFTER_CLAIM = ("INSERT INTO idempotency", True)
    BEFORE_NAMING = ("SET order_id = e.order_id", False)
    BEFORE_COMMIT = ("COMMIT", False)
    AFTER_COMMIT = ("COMMIT", True)
    BEFORE_KEEPING = ("SET answer = a.answer", False)
    AFTER_KEEPING = ("SET answer = a.answer", True)


class Way(Enum):
    """What happens there."""

    CRASH = "the process is gone"
    FREEZE = "the whole process stands still, its heartbeat too"
    HANG = "the statement takes for ever, and everything else goes on"


class Sent(NamedTuple):
    """A request, as often as it may be sent."""

    method: str
    path: str
    body: bytes = b""


class Gate:
    """What all statements of a host pass through."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self.clock_s = clock_s
        self.plan: tuple[Point, Way] | None = None
        self.stopped: tuple[Point, Way] | None = None
        self.dead = False
        self.frozen_s = 0.0
        """Since when it stands still, by the clock of the test."""
        self._thawed = asyncio.Event()
        self._resumed = asyncio.Event()
        self._thawed.set()

    @property
    def frozen(self) -> bool:
        """Whether nothing goes through."""
        return not self._thawed.is_set()

    @property
    def in_transaction(self) -> bool:
        """Whether the host stands still with a transaction open, and all its locks."""
        return self.stopped is not None and self.stopped[0] in {Point.BEFORE_NAMING, Point.BEFORE_COMMIT}

    async def walk(self, query: str, statement: Coroutine[Any, Any, T]) -> T:
        """What the statement gives, once the host has come so far."""
        try:
            await self._pass()
            await self._stop_at(query, after=False)
        except BaseException:
            statement.close()
            raise
        answer = await statement
        await self._stop_at(query, after=True)
        await self._pass()
        return answer

    async def _pass(self) -> None:
        await self._thawed.wait()
        if self.dead:
            raise asyncpg.ConnectionDoesNotExistError("the process is gone")

    async def _stop_at(self, query: str, *, after: bool) -> None:
        if self.plan is None or self.plan[0].value[1] is not after or self.plan[0].value[0] not in query:
            return
        self.stopped, self.plan = self.plan, None
        way = self.stopped[1]
        if way is Way.CRASH:
            self.dead = True
        elif way is Way.FREEZE:
            self.frozen_s = self.clock_s()
            self._thawed.clear()
        else:
            self._resumed.clear()
            await self._resumed.wait()
        await self._pass()

    def go_on(self) -> None:
        """Let everything through again."""
        self.plan = self.stopped = None
        self._thawed.set()
        self._resumed.set()

    def die(self) -> None:
        """Let nothing through for ever."""
        self.dead = True
        self.go_on()


class Host:
    """The API of one process, from the idempotency key to the order and back, with its real services."""

    def __init__(self, world: World, pool: Pool, gate: Gate, caller: Caller, name: str) -> None:
        self.gate, self.pool, self.name, self._caller = gate, pool, name, caller
        key_ring = KeyRing(world.settings, world.master, world.master)
        authenticator = Authenticator(pool, strangers_a_minute=1)
        authenticator._callers[AUTHORIZATION] = caller
        authenticator._fresh_until = math.inf
        settings = replace(world.settings, resolve_limit_s=RESOLVE_LIMIT_S)
        services = build_services(pool, settings, key_ring, authenticator)
        self.services = services
        self.heartbeat = Heartbeat(pool, works=False)
        self.idempotent = IdempotentCalls(pool, services.sealer, services, self.heartbeat)
        self._api = Api(services, authenticator, self.idempotent)
        self.call: asyncio.Task[Response] | None = None
        self.key = ""
        self.excused = False
        """Whether the call may be told that another one with its key is still running."""

    async def send(self, key: str, sent: Sent) -> Response:
        """The answer to a request under this key."""
        headers = {b"authorization": AUTHORIZATION, b"content-type": b"application/json"}
        headers |= {b"idempotency-key": key.encode(), b"content-length": str(len(sent.body)).encode()}
        request = Request(
            sent.method, sent.path, b"", headers, sent.body, "127.0.0.1", "request", started=math.inf
        )
        found = routes.match(sent.path)
        assert found is not None
        route, version = found.methods[sent.method]
        call = Call(request, self._caller, version, found.values, op=route.op)
        request.admission = _Admission(route, call, [])
        return await self._api.answer(request)

    async def beat(self) -> None:
        """What a process does every second."""
        await self.heartbeat.beat()
        await self.idempotent.renew()

    async def end(self) -> None:
        """The process is gone without a word."""
        self.gate.die()
        self.pool.terminate()
        heartbeat._running_here.discard(self.heartbeat.id)
        if self.call is not None:
            await asyncio.wait([self.call])
        await self.services.orders.stop()
        await self.idempotent.stop()


async def open_host(world: World, company_id: int, name: str, clock_s: Callable[[], float]) -> Host:
    """A process that has just been started."""
    gate = Gate(clock_s)

    class GatedConnection(StumblingConnection):
        """A connection of this host."""

        async def _walk(self, query: str, statement: Coroutine[Any, Any, T]) -> T:
            return await gate.walk(query, statement)

    pool = await asyncpg.create_pool(
        world.url,
        min_size=0,
        max_size=CONNECTIONS_MAX,
        connection_class=GatedConnection,
        reset=_keep,
        server_settings={"application_name": name, "timezone": "UTC", "jit": "off"},
    )
    company = Company(company_id, "Acme", "NL", None, True, True, True)
    authenticator = Authenticator(pool, strangers_a_minute=1)
    caller = Caller(
        1, company_id, State.LIVE, frozenset(Scope), company, 1 << 30, authenticator.limiter.window(1), counter_id=1
    )  # fmt: skip
    host = Host(world, pool, gate, caller, name)
    await host.heartbeat.beat()
    return host


async def _keep(_connection: Any) -> None:
    """As the service's own pool: nothing to reset."""
