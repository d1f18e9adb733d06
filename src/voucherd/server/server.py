"""The HTTP server: builds the service from its settings and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog
import uvicorn

from voucherd import logs
from voucherd.api.app import Api
from voucherd.api.idempotent import IdempotentCalls
from voucherd.api.metrics import Metrics
from voucherd.api.pages import Pages, guide
from voucherd.db import TENANTS_NOT_LOCKED, open_pool, tenants_locked
from voucherd.events.streams import Streams
from voucherd.ids import derive
from voucherd.keys.authenticator import Authenticator
from voucherd.limits.allowances import Devices
from voucherd.orders.service import OrderService
from voucherd.pages.site import Site
from voucherd.people.passkeys import site_of
from voucherd.people.sign_in import SignIn
from voucherd.recipients.service import Recipients
from voucherd.server.asgi import AsgiApp
from voucherd.server.connections import room_for
from voucherd.server.front import Front
from voucherd.server.guarded import GuardedProtocol
from voucherd.server.protocol import ApiProtocol
from voucherd.services import Services
from voucherd.settings import Settings
from voucherd.storefront.service import Storefront
from voucherd.vault.key_ring import open_key_ring
from voucherd.wallet.statement import Statements
from voucherd.webhooks.service import Webhooks
from voucherd.worker import Worker

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
        """Answer what is under way, then close."""
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


@asynccontextmanager
async def service(settings: Settings, database_url: str, *, with_worker: bool) -> AsyncIterator[AsgiApp]:
    """The whole service behind one ASGI app, started and stopped in the right order."""
    pool = await open_pool(database_url, size_max=settings.pool_size, size_min=2, look_ups=True)
    try:
        async with pool.acquire() as conn:
            key_ring = await open_key_ring(conn, settings)
            if not await tenants_locked(conn):
                logger.warning("tenants_not_locked", reason=TENANTS_NOT_LOCKED)
        sealer = key_ring.sealer
        order_service = OrderService(pool, sealer, settings)
        authenticator = Authenticator(pool, strangers_a_minute=settings.strangers_per_minute_max)
        await authenticator.start()
        ids = key_ring.identifiers()
        worker = Worker(pool, sealer, settings, order_service.watch.wake, ids)
        if with_worker:
            worker.start()
        webhooks = Webhooks(pool, settings.webhook_networks)
        streams = Streams(pool, ids, authenticator.reader)
        recipients = Recipients(pool, sealer, ids, key_ring.root)
        devices = Devices(derive(key_ring.root, "access/device"))
        services = Services(
            pool=pool,
            settings=settings,
            sealer=sealer,
            ids=ids,
            orders=order_service,
            storefront=Storefront(pool, settings.operator_country, timedelta(seconds=settings.fx_age_s_max)),
            statements=Statements(pool),
            webhooks=webhooks,
            streams=streams,
            recipients=recipients,
            sign_in=SignIn(pool, sealer, devices, site_of(settings.public_url)),
            guide=guide(settings.public_url, settings.body_bytes_max),
        )
        once = IdempotentCalls(pool, sealer, services)
        metrics = Metrics(order_service, pool, worker.dispatcher.calls, streams)

        def let_go() -> None:
            order_service.watch.let_go()
            streams.let_go()

        api = Api(services, authenticator, Pages(pool, metrics, settings), once, Site(services))
        key_ring.start(pool)
        try:
            yield AsgiApp(Front(api, settings, metrics, let_go))
        finally:
            await services.jobs.stop()
            await worker.stop()
            await streams.stop()
            await order_service.stop()
            await once.stop()
            await authenticator.stop()
            await key_ring.stop()
    finally:
        await pool.close()


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


async def run(
    settings: Settings,
    database_url: str,
    *,
    with_worker: bool,
    on_ready: Callable[[str], None],
    listener: socket.socket | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM or cancelled; `on_ready` gets the base address once calls are answered."""
    logs.configure(settings.log_level, settings.log_format)
    listener = listen(settings) if listener is None else listener
    listener.listen(BACKLOG)
    try:
        settings = settings.listening_on(listener.getsockname()[1])
        settings = replace(settings, connections_max=room_for(settings.connections_max))
        async with service(settings, database_url, with_worker=with_worker) as app:
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
            # What is in memory now stays; the collector need not look at it again, nor after every few calls.
            gc.collect()
            gc.freeze()
            gc.set_threshold(GC_THRESHOLD, 20, 50)
            server = _Server(config, on_ready=lambda: on_ready(settings.public_url), on_stop=app.front.let_go)
            await server.serve_until_cancelled(listener)
    finally:
        listener.close()
