"""The whole program without its database: every request is read, and ends where the first row would be asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from math import inf
from typing import Any, Final, NoReturn, TypeVar

import uvicorn
from structlog.testing import capture_logs
from uvicorn.server import ServerState

from voucherd.api.app import Api
from voucherd.api.idempotent import IdempotentCalls
from voucherd.api.system import SystemEndpoints
from voucherd.app import App, build_services
from voucherd.companies.model import Company
from voucherd.heartbeat import Heartbeat
from voucherd.http import Request, Response
from voucherd.ids import State
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller
from voucherd.keys.key_text import Scope
from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.page import Metrics
from voucherd.pages.site import Site
from voucherd.server.asgi import AsgiApp
from voucherd.server.http_service import HttpService
from voucherd.server.protocol import ApiProtocol
from voucherd.settings import Settings
from voucherd.vault.key_ring import KeyRing

T = TypeVar("T")

KEY: Final = b"Bearer known"
"""Good for everything, so that a call gets as far as its own reader."""
MASTER: Final = bytes(range(32))
UNREACHED: Final = ("database_unavailable", "page_unavailable")
"""What is logged when the database is asked, which is not there; the answer is 503."""
TURNS_MAX: Final = 100
"""So often the loop goes round before the client hangs up."""
RATE_LIMIT: Final = 1 << 30
ANSWER_S_MAX: Final = 60.0


class NoDatabase(OSError):
    """The request was read to its end, and wants a row."""


class NoPool:
    """Stands where the pool of connections would be."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        return _ask


def _ask(*_given: Any, **_named: Any) -> NoReturn:
    raise NoDatabase


class Wire(asyncio.Transport):
    """The client's end of a connection: keeps what was written, and closes when it is told to."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5000), "sockname": ("192.0.2.2", 80)})
        self.heard = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep it."""
        self.heard += data

    def write_eof(self) -> None:
        """Nothing more is written."""

    def close(self) -> None:
        """The server is done with it."""
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        """Whether it is."""
        return self.closed

    def pause_reading(self) -> None:
        """All of it was sent already."""

    resume_reading = pause_reading


class World:
    """The program, on a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        pool: Any = NoPool()
        # No wait of ours is to be waited for.
        settings = replace(Settings.load({"strangers_per_minute_max": 1_000_000_000}, {}), confirm_wait_s=0)
        authenticator = Authenticator(pool, strangers_a_minute=settings.strangers_per_minute_max)
        self.authenticator = authenticator
        services = build_services(pool, settings, KeyRing(settings, MASTER, MASTER), authenticator)
        self.services = services
        metrics = Metrics(ProcessParts(orders=services.orders))
        self.idempotent = IdempotentCalls(pool, services.sealer, services, Heartbeat(pool, works=False))
        self.app = App(
            api=Api(services, authenticator, self.idempotent),
            site=Site(services),
            system=SystemEndpoints(pool, metrics, settings),
            services=services,
            authenticator=authenticator,
        )
        authenticator._callers[KEY] = self._caller()
        authenticator._fresh_until = inf
        self.config = uvicorn.Config(
            AsgiApp(HttpService(self.app, settings, metrics.observe)), http=ApiProtocol, lifespan="off", ws="none",
            log_config=None, access_log=False, proxy_headers=False,
        )  # fmt: skip
        self.config.load()

    def _caller(self) -> Caller:
        company = Company(1, "Acme", "NL", None, True, True, True)
        window = self.authenticator.limiter.window(1)
        return Caller(1, 1, State.SANDBOX, frozenset(Scope), company, RATE_LIMIT, window)

    def send(self, pieces: list[bytes]) -> bytes:
        """What the server says to these bytes, which come in these pieces on a connection of their own."""
        return self._without_failure(self._send(pieces))

    def answer(self, request: Request) -> Response:
        """The answer to a request that is whole."""
        return self._without_failure(self._answer(request))

    def _without_failure(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of it; nothing may be logged as a failure but that the database is not there."""
        with capture_logs() as logged:
            done = self.loop.run_until_complete(work)
        failures = [
            entry for entry in logged if entry["log_level"] == "error" and entry["event"] not in UNREACHED
        ]
        for failure in failures:
            cause = failure.get("exc_info")
            raise AssertionError(failure) from (cause if isinstance(cause, Exception) else None)
        return done

    async def _answer(self, request: Request) -> Response:
        async with asyncio.timeout(ANSWER_S_MAX):
            response = await self.app.answer(request)
            await response.close()
        return response

    async def _send(self, pieces: list[bytes]) -> bytes:
        wire, state = Wire(), ServerState()
        unhandled: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _loop, context: unhandled.append(context))
        connection = ApiProtocol(self.config, state, {}, self.loop)
        connection.connection_made(wire)
        for piece in pieces:
            if not wire.closed:
                connection.data_received(piece)
                await asyncio.sleep(0)
        for _ in range(TURNS_MAX):
            if not state.tasks:
                break
            await asyncio.sleep(0)
        # Calls that are still to come whole learn that they never will.
        connection.connection_lost(None)
        async with asyncio.timeout(ANSWER_S_MAX):
            while state.tasks:
                await asyncio.gather(*state.tasks)
        assert not unhandled, unhandled
        return bytes(wire.heard)

    def close(self) -> None:
        """Stop all that runs beside."""
        self.loop.run_until_complete(self._stop())
        self.loop.close()

    async def _stop(self) -> None:
        await self.services.orders.stop()
        await self.services.streams.stop()
        await self.idempotent.stop()
        await self.authenticator.stop()
