"""The way of a request: path, key, limit, scope, body, handler; and whatever goes wrong becomes a clear answer."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from voucherd.api import errors, routes
from voucherd.api.failures import failed
from voucherd.api.handlers import Call
from voucherd.api.idempotent import HEADER, IdempotentCalls
from voucherd.api.operations import OPERATIONS
from voucherd.api.requests import refuse_other_types
from voucherd.api.routes import Route
from voucherd.api.wire.templates import TemplateBook
from voucherd.http import HttpError, Request, Response
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller, Forbidden
from voucherd.limits import rate_limits
from voucherd.orders.rules.refusals import Refusal
from voucherd.services import Services

Headers: TypeAlias = list[tuple[bytes, bytes]]


class _Admission(NamedTuple):
    """A call that was let in, what serves it, and what its answer says about the limit."""

    route: Route
    call: Call
    rate_headers: Headers


class Api:
    """Answers every call below /api/."""

    def __init__(self, services: Services, authenticator: Authenticator, idempotent: IdempotentCalls) -> None:
        self._services = services
        self._idempotent = idempotent
        self._templates = TemplateBook()
        self._authenticator = authenticator

    async def admit(self, request: Request) -> Response | None:
        """The refusal of a call whose body is still to come; None if that may be read."""
        admission = await self._admit(request)
        if isinstance(admission, Response):
            return admission
        try:
            if request.has_body and OPERATIONS[admission.route.op].body is not None:
                refuse_other_types(request)
        except HttpError as problem:
            return _told(errors.http_error(request, problem), admission.rate_headers)
        request.admission = admission
        return None

    async def _admit(self, request: Request) -> _Admission | Response:
        """Judge path, method, key, limit and scopes: the call that may go on, or its refusal."""
        found = routes.match(request.path)
        if found is None:
            return errors.error(request, 404, "no_such_path", "not found")
        target = found.methods.get(request.method)
        if target is None:
            allow = ", ".join(sorted(found.methods)).encode()
            return errors.error(
                request, 405, "method_not_allowed", "method not allowed", headers=[(b"allow", allow)]
            )
        try:
            return await self._judge(request, *target, found.values)
        except Exception as error:  # noqa: BLE001 - Every failure has an answer.
            return failed(request, error)

    async def answer(self, request: Request) -> Response:
        """The answer to a call; it never raises."""
        early: _Admission | None = request.admission
        request.admission = None
        admission = early or await self._admit(request)
        if isinstance(admission, Response):
            return admission
        try:
            if early is not None and request.took_long:
                # A key that is no longer good has lost its turn.
                admission.call.caller = await self._caller(request)
                _require(admission.call.caller, admission.route)
            return await self._serve(*admission)
        except Exception as error:  # noqa: BLE001 - Every failure has an answer.
            return failed(request, error)

    def body_bytes_max(self, _request: Request) -> int:
        """How large the body of a call may be."""
        return self._services.settings.body_bytes_max

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The answer to a call that was refused before it was read."""
        return errors.http_error(request, problem)

    async def _judge(
        self, request: Request, route: Route, version: str, parameters: tuple[str, ...]
    ) -> _Admission | Response:
        """Count the call, once, and see what its key may do."""
        caller = await self._caller(request)
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
        try:
            _require(caller, route)
        except Forbidden as reason:
            return _told(errors.turned_away(request, reason), rate_headers)
        call = Call(request, caller, version, parameters, op=route.op, templates=self._templates)
        return _Admission(route, call, rate_headers)

    async def _caller(self, request: Request) -> Caller:
        """Who calls. The usual key is recognised without waiting for anything."""
        authorization = request.headers.get(b"authorization")
        caller = None if authorization is None else self._authenticator.known(authorization)
        return caller or await self._authenticator.admit(authorization, request.client_ip)

    async def _serve(self, route: Route, call: Call, rate_headers: Headers) -> Response:
        try:
            key = call.request.headers.get(HEADER)
            if key is None or not route.writes:
                response = await self._respond(route, call)
            else:
                response = await self._idempotent.answer(
                    route.op, call, key, lambda: self._respond(route, call)
                )
        except Forbidden as reason:
            response = errors.turned_away(call.request, reason)
        except HttpError as problem:
            response = errors.http_error(call.request, problem)
        return _told(response, rate_headers)

    async def _respond(self, route: Route, call: Call) -> Response:
        """The handler's answer; a refusal is one too."""
        try:
            return await route.handler(self._services, call)
        except Refusal as refusal:
            return errors.refused(route.op, refusal, call.request)
        except HttpError as problem:
            return errors.http_error(call.request, problem)


def _require(caller: Caller, route: Route) -> None:
    """Refuse a key that lacks a scope."""
    caller.require(route.scope)
    if route.also is not None:
        caller.require(route.also)


def _told(response: Response, rate_headers: Headers) -> Response:
    """The answer, with what it says about the limit."""
    response.headers += rate_headers
    return response
