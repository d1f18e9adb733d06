"""Listening: uvicorn on one address, with our protocol, until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final

import structlog
import uvicorn

from voucherd import logs
from voucherd.server.asgi import AsgiApp
from voucherd.server.connections import room_for
from voucherd.server.guarded import GuardedProtocol
from voucherd.server.protocol import ApiProtocol
from voucherd.settings import Settings

BACKLOG: Final = 2_048
KEEP_ALIVE_S: Final = 75
STOP_S_MAX: Final = 35
TICKS_A_LOOK: Final = 10
GC_THRESHOLD: Final = 20_000
"""Objects between two young collections: a call makes many, and nearly all of them die with it."""


logger = structlog.get_logger(__name__)


class CannotListen(Exception):
    """The address is taken or not ours."""


class _Server(uvicorn.Server):
    """A server that says when it answers calls, and lets no call wait while it stops."""

    def __init__(
        self, config: uvicorn.Config, *, on_ready: Callable[[], None], on_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; once a second connections that keep us waiting are looked at."""
        if counter % TICKS_A_LOOK == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, GuardedProtocol):
                    connection.look(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the calls under way, then close."""
        self._on_stop()
        await super().shutdown(sockets)

    async def serve_until_cancelled(self, listener: socket.socket) -> None:
        """Serve; being cancelled is a reason to stop, not to leave calls unanswered."""
        serving = asyncio.create_task(self.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            await serving
            raise


def listen(settings: Settings) -> socket.socket:
    """A socket on the settings' address; refused with one clear line if it can't be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise CannotListen(f"can't listen on {settings.host}:{settings.port}: {error.strerror}") from None
    return listener


def settle_memory() -> None:
    """Let the collector pass over what is in memory now and stays, and not look after every few calls."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)


async def run(
    settings: Settings,
    program: Callable[[Settings], AbstractAsyncContextManager[AsgiApp]],
    *,
    on_ready: Callable[[str], None],
    listener: socket.socket | None = None,
) -> None:
    """Serve the program until SIGINT, SIGTERM or cancelled; `on_ready` gets the base address."""
    logs.configure(settings.log_level, settings.log_format)
    listener = listen(settings) if listener is None else listener
    listener.listen(BACKLOG)
    try:
        settings = settings.listening_on(listener.getsockname()[1])
        settings = replace(settings, connections_max=room_for(settings.connections_max))
        async with program(settings) as app:
            config = uvicorn.Config(
                app,
                http=ApiProtocol,
                loop="none",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=True,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=STOP_S_MAX,
                h11_max_incomplete_event_size=None,
            )
            settle_memory()
            server = _Server(
                config,
                on_ready=lambda: on_ready(settings.public_url),
                on_stop=app.service.release_waiting_calls,
            )
            await server.serve_until_cancelled(listener)
    finally:
        listener.close()
