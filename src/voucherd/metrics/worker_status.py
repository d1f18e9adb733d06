"""What a worker without an API tells of itself: health, readiness and figures, on a listener of its own."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from voucherd.metrics.of_process import ProcessParts
from voucherd.metrics.page import Metrics
from voucherd.metrics.siblings import Siblings
from voucherd.networks import listen_address
from voucherd.server.status_listener import NOT_FOUND, StatusAnswer, listening
from voucherd.settings import Settings
from voucherd.worker import Worker

LATE_S_MAX: Final = 60.0
"""A worker with a round that is later than this is not ready: the database is away, or something hangs."""


def shown(worker: Worker, settings: Settings) -> AbstractAsyncContextManager[None]:
    """Answer about this worker meanwhile, at the address of the settings."""
    parts = ProcessParts(pool=worker.pool, rounds=worker.rounds, calls=worker.dispatcher.calls)
    metrics = Metrics(parts, Siblings(name="worker"), settings.data)

    async def healthz(_trusted: bool) -> StatusAnswer:
        return StatusAnswer(200, b"ok")

    async def readyz(trusted: bool) -> StatusAnswer:
        # Rounds fail while the database is away, so one that is done in time says that it is there.
        late = [name for name, one in worker.rounds.items() if one.lag_s() > LATE_S_MAX]
        if not late:
            return StatusAnswer(200, b"ready")
        return StatusAnswer(503, f"late: {', '.join(late)}".encode() if trusted else b"not ready")

    async def figures(trusted: bool) -> StatusAnswer:
        # They name customers and suppliers; without the token there is no such path (OP-98).
        return StatusAnswer(200, await metrics.page(), CONTENT_TYPE_LATEST.encode()) if trusted else NOT_FOUND

    pages = {"/healthz": healthz, "/readyz": readyz, "/metrics": figures}
    return listening(listen_address(settings.worker_listen), settings.metrics_token, pages)
