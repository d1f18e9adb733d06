"""The way of a request: path, key, limit, scope, handler; and whatever goes wrong becomes a clear answer."""

from __future__ import annotations

import itertools
import secrets
from typing import Final

import structlog

from voucherd.api import errors, routes
from voucherd.api.handlers import Call
from voucherd.api.idempotent import HEADER, IN_USE, IdempotentCalls
from voucherd.api.pages import Pages
from voucherd.api.routes import Route
from voucherd.api.wire.templates import TemplateBook
from voucherd.batcher import BatcherFull
from voucherd.db import UNAVAILABLE
from voucherd.http import HttpError, Request, Response
from voucherd.idempotency.model import TicketTaken
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller, Forbidden, Unauthorized
from voucherd.limits import rate_limits
from voucherd.limits.strangers import TooManyStrangers
from voucherd.orders.answers import StoredUnseen
from voucherd.orders.rules.refusals import Refusal
from voucherd.pages.site import Site
from voucherd.services import Services

logger = structlog.get_logger(__name__)

_RETRY_SOON: Final = [(b"retry-after", b"1")]


class RequestIds:
    """Ids that no other process gives out: a random start and a count."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def next(self) -> str:
        """The id of the next request."""
        return f"req_{self._prefix}{next(self._count):08x}"


class Api:
    """Answers every request."""

    def __init__(
        self,
        services: Services,
        authenticator: Authenticator,
        pages: Pages,
        once: IdempotentCalls,
        site: Site,
    ) -> None:
        self._services = services
        self._once = once
        self._templates = TemplateBook()
        self._authenticator = authenticator
        self._pages = pages
        self.site = site

    async def answer(self, request: Request) -> Response:
        """The answer to a request; it never raises."""
        if not request.path.startswith("/api/"):
            if self._pages.knows(request.path):
                return await self._guarded(request, None)
            return await self.site.answer(request)
        found = routes.match(request.path)
        if found is None:
            return errors.error(request, 404, "no_such_path", "not found")
        methods, version, parameters = found
        route = methods.get(request.method)
        if route is None:
            allow = ", ".join(sorted(methods)).encode()
            return errors.error(
                request, 405, "method_not_allowed", "method not allowed", headers=[(b"allow", allow)]
            )
        return await self._guarded(request, (route, version, parameters))

    async def _guarded(  # noqa: PLR0911 - One line for each thing that can go wrong.
        self, request: Request, target: tuple[Route, str, tuple[str, ...]] | None
    ) -> Response:
        try:
            if target is None:
                return await self._pages.answer(request)
            return await self._serve(request, *target)
        except HttpError as problem:
            return errors.http_error(request, problem)
        except (Unauthorized, Forbidden) as reason:
            return errors.turned_away(request, reason)
        except TicketTaken:
            return errors.error(request, 409, *IN_USE, headers=_RETRY_SOON, retryable=True)
        except TooManyStrangers as reason:
            return errors.http_error(request, _too_many_strangers(reason))
        except BatcherFull:
            return errors.error(
                request, 503, "busy", "too many requests are waiting", headers=_RETRY_SOON, retryable=True
            )
        except StoredUnseen:
            # Not retryable: it is done, and a second Confirm would be refused. Find tells what became of it.
            return errors.error(
                request, 503, "done_but_unseen", "done, but it can not be shown now: find the order"
            )
        except UNAVAILABLE as error:
            logger.error("database_unavailable", request_id=request.id, error=repr(error))
            return errors.error(
                request, 503, "unavailable", "service unavailable", headers=_RETRY_SOON, retryable=True
            )
        except Exception:
            logger.exception(
                "request_failed", request_id=request.id, method=request.method, path=request.path
            )
            return errors.error(request, 500, "internal_error", "internal error", retryable=True)

    async def _serve(
        self, request: Request, route: Route, version: str, parameters: tuple[str, ...]
    ) -> Response:
        caller = await self._admitted(request)
        limiter = self._authenticator.limiter
        taken = limiter.take(caller) or await limiter.borrow(caller)
        rate_headers = [
            (b"ratelimit-policy", rate_limits.policy(caller.rate_limit)),
            (b"ratelimit", rate_limits.standing(taken)),
        ]
        if not taken.allowed:
            retry_after = (b"retry-after", str(taken.reset_s).encode())
            raise HttpError(
                429,
                "rate_limit_exceeded",
                "rate limit exceeded",
                headers=[*rate_headers, retry_after],
                retryable=True,
            )
        call = Call(request, caller, version, parameters, op=route.op, templates=self._templates)
        try:
            caller.require(route.scope)
            if route.also is not None:
                caller.require(route.also)
            key = request.headers.get(HEADER)
            if key is None or not route.writes:
                response = await self._respond(route, call)
            else:
                response = await self._once.answer(route.op, call, key, lambda: self._respond(route, call))
        except Forbidden as reason:
            response = errors.turned_away(request, reason)
        except HttpError as problem:
            response = errors.http_error(request, problem)
        response.headers += rate_headers
        return response

    async def _respond(self, route: Route, call: Call) -> Response:
        """The handler's answer; a refusal is one too."""
        try:
            return await route.handler(self._services, call)
        except Refusal as refusal:
            return errors.refused(route.op, refusal, call.request)
        except HttpError as problem:
            return errors.http_error(call.request, problem)

    async def _admitted(self, request: Request) -> Caller:
        """Who calls. The usual key is recognised without waiting for anything."""
        authorization = request.headers.get(b"authorization")
        caller = None if authorization is None else self._authenticator.known(authorization)
        return caller or await self._authenticator.admit(authorization, request.client_ip)


def _too_many_strangers(reason: TooManyStrangers) -> HttpError:
    retry_after = (b"retry-after", b"%d" % reason.wait_s)
    return HttpError(
        429,
        "too_many_failures",
        "too many requests without a valid key",
        headers=[retry_after],
        retryable=True,
    )
