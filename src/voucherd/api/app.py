"""The way of a request: path, key, limit, scope, handler; and whatever goes wrong becomes a clear answer."""

from __future__ import annotations

from voucherd.api import errors, routes
from voucherd.api.failures import failed
from voucherd.api.handlers import Call
from voucherd.api.idempotent import HEADER, IdempotentCalls
from voucherd.api.routes import Route
from voucherd.api.wire.templates import TemplateBook
from voucherd.http import HttpError, Request, Response
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller, Forbidden
from voucherd.limits import rate_limits
from voucherd.orders.rules.refusals import Refusal
from voucherd.services import Services


class Api:
    """Answers every call below /api/."""

    def __init__(self, services: Services, authenticator: Authenticator, idempotent: IdempotentCalls) -> None:
        self._services = services
        self._idempotent = idempotent
        self._templates = TemplateBook()
        self._authenticator = authenticator

    async def answer(self, request: Request) -> Response:
        """The answer to a call; it never raises."""
        found = routes.match(request.path)
        if found is None:
            return errors.error(request, 404, "no_such_path", "not found")
        target = found.methods.get(request.method)
        if target is None:
            allow = ", ".join(sorted(found.methods)).encode()
            return errors.error(
                request, 405, "method_not_allowed", "method not allowed", headers=[(b"allow", allow)]
            )
        route, version = target
        try:
            return await self._serve(request, route, version, found.values)
        except Exception as error:  # noqa: BLE001 - Every failure has an answer.
            return failed(request, error)

    def body_bytes_max(self, _request: Request) -> int:
        """How large the body of a call may be."""
        return self._services.settings.body_bytes_max

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The answer to a call that was refused before it was read."""
        return errors.http_error(request, problem)

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
                response = await self._idempotent.answer(
                    route.op, call, key, lambda: self._respond(route, call)
                )
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
