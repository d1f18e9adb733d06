"""The whole program, put together: what `serve` runs, started and stopped in the right order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Final

import structlog
from msgspec import Struct

from voucherd import traces
from voucherd.api.app import Api
from voucherd.api.guide import guidebook
from voucherd.api.idempotent import IdempotentCalls
from voucherd.api.routes import PREFIX as API_PREFIX
from voucherd.api.system import SystemEndpoints
from voucherd.archive import store as archive_store
from voucherd.archive.files import trouble
from voucherd.connections import Limits
from voucherd.db import TABLES_OWNED, TENANTS_NOT_LOCKED, Pool, close, open_pool, owns_tables, tenants_locked
from voucherd.events.streams import Streams
from voucherd.heartbeat import Heartbeat
from voucherd.http import HttpError, Request, Response
from voucherd.ids import derive
from voucherd.keys.authenticator import Authenticator
from voucherd.limits.allowances import Devices
from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.page import Metrics
from voucherd.metrics.siblings import Siblings
from voucherd.orders.service import OrderService
from voucherd.pages.site import Site
from voucherd.people.passkeys import site_of
from voucherd.people.sign_in import SignIn
from voucherd.recipients.service import Recipients
from voucherd.replica import ReadPool
from voucherd.request_log.collector import RequestLog
from voucherd.server import listener
from voucherd.server.access_log import AccessLog
from voucherd.server.asgi import AsgiApp
from voucherd.server.http_service import HttpService
from voucherd.services import Services
from voucherd.settings import Settings
from voucherd.setup.running import RunningSettings
from voucherd.storefront.service import Storefront
from voucherd.vault.key_ring import KeyRing, open_key_ring
from voucherd.wallet.statement import Statements
from voucherd.webhooks.listening import ListenerSecrets
from voucherd.webhooks.service import Webhooks
from voucherd.worker import Worker

REPLICA_SIZE_MAX: Final = 4
"""Connections of one process to the standby that lists are read from."""

logger = structlog.get_logger(__name__)


class App(Struct):
    """Answers every request: the API's, the pages', and those about the service itself."""

    api: Api
    site: Site
    system: SystemEndpoints
    services: Services
    authenticator: Authenticator

    def _part(self, path: str) -> Api | Site | SystemEndpoints:
        if path.startswith(API_PREFIX) or not path:
            return self.api
        return self.system if self.system.knows(path) else self.site

    def admit(self, request: Request) -> Awaitable[Response | None]:
        """The refusal of a request whose body is still to come, None if that may be read; it never raises."""
        return self._part(request.path).admit(request)

    def answer(self, request: Request) -> Awaitable[Response]:
        """The answer to a whole request; it never raises."""
        return self._part(request.path).answer(request)

    def body_bytes_max(self, request: Request) -> int:
        """How large the body of this request may be: pages that take files take more than others."""
        return self._part(request.path).body_bytes_max(request)

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The answer to a request that is refused before it is read."""
        return self._part(request.path).refuse(request, problem)


def build_services(
    pool: Pool,
    settings: Settings,
    key_ring: KeyRing,
    authenticator: Authenticator,
    replica: Pool | None = None,
    running: RunningSettings | None = None,
) -> Services:
    """Everything that handlers work with."""
    lists = ReadPool(pool, replica, settings.replica_lag_s_max)
    sealer, ids = key_ring.sealer, key_ring.identifiers()
    devices = Devices(derive(key_ring.root, "access/device"))
    orders = OrderService(pool, sealer, settings, lists)
    return Services(
        pool=pool,
        lists=lists,
        settings=settings,
        running=running or RunningSettings(pool, settings),
        root=key_ring.root,
        sealer=sealer,
        ids=ids,
        orders=orders,
        storefront=Storefront(pool, settings.operator_country, timedelta(seconds=settings.fx_age_s_max)),
        statements=Statements(pool, lists),
        webhooks=Webhooks(pool, settings.webhook_networks),
        streams=Streams(pool, ids, authenticator.reader),
        listener_secrets=ListenerSecrets(key_ring.root),
        request_log=RequestLog(pool),
        recipients=Recipients(pool, sealer, ids, key_ring.root, orders.archive),
        sign_in=SignIn(pool, sealer, devices, site_of(settings.public_url)),
        guide=guidebook(settings.public_url, settings.body_bytes_max),
    )


@asynccontextmanager
async def running(
    settings: Settings, database_url: str, *, with_worker: bool, siblings: Siblings | None = None
) -> AsyncIterator[AsgiApp]:
    """The program behind one ASGI app; what was started first is stopped last."""
    traces.start(settings.traces_url)
    async with AsyncExitStack() as started:
        if settings.traces_url is not None:
            started.push_async_callback(asyncio.to_thread, traces.stop)
        limits = Limits.of_service(settings.transaction_s_max)
        pool = await open_pool(
            database_url, size_max=settings.pool_size, size_min=2, look_ups=True, limits=limits
        )
        started.push_async_callback(close, pool)
        key_ring = await _opened_key_ring(pool, settings)
        running = RunningSettings(pool, settings)
        await running.refresh()
        settings = running.now
        authenticator = Authenticator(pool, strangers_a_minute=settings.strangers_per_minute_max)
        replica = None
        if settings.replica_url is not None:
            # None is opened yet: a standby that is away at the start is asked later.
            replica = await open_pool(
                settings.replica_url, size_max=REPLICA_SIZE_MAX, size_min=0, look_ups=True, limits=limits
            )
            started.push_async_callback(close, replica)
        services = build_services(pool, settings, key_ring, authenticator, replica, running)
        heartbeat = Heartbeat(pool, works=with_worker)
        idempotent = IdempotentCalls(pool, services.sealer, services, heartbeat)
        worker = Worker(pool, services.sealer, settings, services.orders.watch.wake, services.ids)
        running.tell(services.use)
        running.tell(worker.use)
        metrics, access_log = _watching(services, worker, siblings)
        app = App(
            api=Api(services, authenticator, idempotent),
            site=Site(services),
            system=SystemEndpoints(pool, metrics, settings),
            services=services,
            authenticator=authenticator,
        )

        def release_waiting_calls() -> None:
            services.orders.watch.let_go()
            services.streams.let_go()

        await authenticator.start()
        key_ring.start(pool)
        await heartbeat.start(idempotent.renew, running.refresh)
        if with_worker:
            worker.start()
        if access_log is not None:
            access_log.start()
            started.push_async_callback(asyncio.to_thread, access_log.stop)
        services.request_log.start()
        parts = (key_ring, authenticator, heartbeat, idempotent, services.orders, services.streams, worker)
        for part in (*parts, services.jobs, services.request_log):
            started.push_async_callback(part.stop)
        async with metrics.siblings.shown(metrics.packed):
            yield AsgiApp(HttpService(app, settings, metrics.observe, release_waiting_calls))


async def _opened_key_ring(pool: Pool, settings: Settings) -> KeyRing:
    """The vault's keys, from a database that is looked at: what does not stand as it should is said."""
    async with pool.acquire() as conn:
        key_ring = await open_key_ring(conn, settings)
        if not await tenants_locked(conn):
            logger.warning("tenants_not_locked", reason=TENANTS_NOT_LOCKED)
        if await owns_tables(conn):
            logger.warning("tables_owned", reason=TABLES_OWNED)
        if await archive_store.is_there(conn):
            reason = trouble(settings.archive_folder)
            if reason is not None:
                logger.warning("archive_unreadable", reason=reason)
    return key_ring


def _watching(
    services: Services, worker: Worker, siblings: Siblings | None
) -> tuple[Metrics, AccessLog | None]:
    """What the operator sees of this process."""
    settings = services.settings
    access_log = None if settings.access_log == "off" else AccessLog(full=settings.access_log == "full")
    parts = ProcessParts(
        orders=services.orders,
        pool=services.pool,
        streams=services.streams,
        access_log=access_log,
        request_log=services.request_log,
        rounds=worker.rounds,
        calls=worker.dispatcher.calls,
    )
    return Metrics(parts, siblings, settings.data), access_log


async def serve(
    settings: Settings,
    database_url: str,
    *,
    with_worker: bool,
    on_ready: Callable[[str], None],
    listening: socket.socket | None = None,
    siblings: Siblings | None = None,
) -> None:
    """Serve until SIGINT, SIGTERM or cancelled; `on_ready` gets the base address once requests are answered."""

    def program(chosen: Settings) -> AbstractAsyncContextManager[AsgiApp]:
        return running(chosen, database_url, with_worker=with_worker, siblings=siblings)

    await listener.run(settings, program, on_ready=on_ready, listener=listening)
