"""Requests about the service itself: health, metrics, the OpenAPI document, and static files."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined, Template
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from voucherd.api import errors
from voucherd.api.failures import failed
from voucherd.api.openapi import document, reference
from voucherd.api.openapi.examples import EXAMPLE_URL
from voucherd.api.openapi.paths import MAIN_VERSION
from voucherd.api.operations.orders import SLUG, TRX
from voucherd.api.outcomes import OUTCOMES
from voucherd.api.readiness import Readiness
from voucherd.db import Pool
from voucherd.http import HTML, JSON, NO_SNIFFING, TEXT, HttpError, Request, Response, Still
from voucherd.metrics.page import Metrics
from voucherd.pages.assets import static_files, static_paths, templates
from voucherd.settings import Settings

BODY_BYTES_MAX: Final = 64 * 1024
STILL_PAGES_KEPT_MAX: Final = 4


class SystemEndpoints:
    """Paths outside /api/ that are the same for everybody."""

    def __init__(self, pool: Pool, metrics: Metrics, settings: Settings | None = None) -> None:
        self._readiness = Readiness(pool)
        self._figures = metrics
        self._answers: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }
        chosen = Settings() if settings is None else settings
        self._token = chosen.metrics_token
        self._still = _still_pages(None if settings is None else chosen.public_url, chosen.body_bytes_max)

    def knows(self, path: str) -> bool:
        """Whether the path is one of these."""
        return path in self._still or path in self._answers

    async def admit(self, request: Request) -> Response | None:
        """Refuse what nobody does here before its body is read."""
        request.route = "/static/{file}" if request.path.startswith("/static/") else request.path
        if request.method in ("GET", "HEAD"):
            return None
        problem = HttpError(
            405, "method_not_allowed", "method not allowed", headers=[(b"allow", b"GET, HEAD")]
        )
        return self.refuse(request, problem)

    async def answer(self, request: Request) -> Response:
        """The answer to a request at one of these paths."""
        refusal = await self.admit(request)
        if refusal is not None:
            return refusal
        still = self._still.get(request.path)
        if still is not None:
            return still.answer(request)
        try:
            return await self._answers[request.path](request)
        except Exception as error:  # noqa: BLE001 - Every failure has an answer.
            return failed(request, error)

    def body_bytes_max(self, _request: Request) -> int:
        """How large the body of a request may be: nobody sends one here."""
        return BODY_BYTES_MAX

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The answer to a request that is refused."""
        return errors.http_error(request, problem)

    def _is_trusted(self, request: Request) -> bool:
        """Whether the request brings the operator's token: only then is it told more than the world."""
        given = request.headers.get(b"authorization", b"")
        return self._token is not None and hmac.compare_digest(given, b"Bearer " + self._token.encode())

    async def _healthz(self, _request: Request) -> Response:
        """Alive."""
        return Response(200, b"ok", TEXT)

    async def _readyz(self, request: Request) -> Response:
        """Ready: a sale could be stored, in the schema of this program; the world is not told what is missing."""
        missing = await self._readiness.missing()
        if not missing:
            return Response(200, b"ready", TEXT)
        return Response(503, missing.encode() if self._is_trusted(request) else b"not ready", TEXT)

    async def _metrics(self, request: Request) -> Response:
        """Figures that name customers and suppliers; without the token there is no such path."""
        if not self._is_trusted(request):
            raise HttpError(404, "no_such_path", "not found")
        return Response(200, await self._figures.page(), CONTENT_TYPE_LATEST.encode())


@lru_cache(maxsize=STILL_PAGES_KEPT_MAX)
def _still_pages(public_url: str | None, body_bytes_max: int) -> Mapping[str, Still]:
    """The pages that never change while a service runs, made once for all services of this process that are alike."""
    described = document(public_url, body_bytes_max)
    openapi = Response(200, msgspec.json.encode(described), JSON, [NO_SNIFFING], BRIEFLY)
    pages = {"/openapi.json": openapi, **static_files()}
    return {path: Still(page) for path, page in pages.items()}


@lru_cache(maxsize=STILL_PAGES_KEPT_MAX)
def guide(public_url: str | None, body_bytes_max: int) -> Still:
    """The guide, for the site to show."""
    return Still(page(document(public_url, body_bytes_max), public_url))


BRIEFLY: Final = b"public, max-age=300"


@cache
def _template() -> Template:
    """The page's template, compiled."""
    environment = Environment(
        loader=DictLoader(dict(templates())),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = reference.prose
    return environment.get_template("docs.html")


def page(document: dict[str, Any], public_url: str | None) -> Response:
    """The whole page, made from the document."""
    html = _template().render(
        info=document["info"],
        url=public_url or EXAMPLE_URL,
        static=static_paths(),
        operations=reference.operations(document),
        objects=reference.objects(document),
        any_failures=reference.any_failures(document),
        outcomes=[(one.form, one.told) for one in OUTCOMES.values()],
        main_version=MAIN_VERSION,
        trx=TRX.example,
        slug=SLUG,
    )
    return Response(200, html.encode(), HTML, [], BRIEFLY)
