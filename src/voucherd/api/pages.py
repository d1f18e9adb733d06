"""What is not the API itself: health, metrics, the OpenAPI document and its page."""

from __future__ import annotations

import asyncio
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from voucherd import migrate
from voucherd.api.errors import HttpError
from voucherd.api.http import TEXT, Request, Response
from voucherd.db import Pool

READY_S_MAX: Final = 2.0


class Pages:
    """Paths outside /api/."""

    def __init__(self, pool: Pool, registry: CollectorRegistry) -> None:
        self._pool = pool
        self._registry = registry
        self._answers = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }

    async def answer(self, request: Request) -> Response:
        """The page, or 404."""
        page = self._answers.get(request.path)
        if page is None:
            raise HttpError(404, "no_such_path", "not found")
        if request.method not in ("GET", "HEAD"):
            raise HttpError(
                405, "method_not_allowed", "method not allowed", headers=[(b"allow", b"GET, HEAD")]
            )
        return await page()

    async def _healthz(self) -> Response:
        """Alive."""
        return Response(200, b"ok", TEXT)

    async def _readyz(self) -> Response:
        """Ready: the database answers and its migrations are current."""
        try:
            async with asyncio.timeout(READY_S_MAX), self._pool.acquire() as conn:
                waiting = await migrate.pending(conn)
        except Exception as error:  # noqa: BLE001 - Whatever is wrong, the answer is "not ready".
            return Response(503, f"database: {type(error).__name__}".encode(), TEXT)
        if waiting:
            return Response(503, f"migrations: {len(waiting)} to run".encode(), TEXT)
        return Response(200, b"ready", TEXT)

    async def _metrics(self) -> Response:
        return Response(200, generate_latest(self._registry), CONTENT_TYPE_LATEST.encode())
