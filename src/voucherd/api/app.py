"""The way of a request: path, key, limit, scope, body, handler; and whatever goes wrong becomes a clear answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import monotonic
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from voucherd.api import errors, handlers, outcomes, query, routes
from voucherd.api.errors import Op
from voucherd.api.failures import failed
from voucherd.api.handlers import Call, ShownOrder
from voucherd.api.idempotent import HEADER, IdempotentCalls
from voucherd.api.operations import OPERATIONS
from voucherd.api.requests import refuse_other_types
from voucherd.api.routes import Route
from voucherd.api.wire.templates import TemplateBook
from voucherd.http import HttpError, Request, Response
from voucherd.keys.authenticator import Authenticator
from voucherd.keys.callers import Caller, Forbidden, Unauthorized
from voucherd.keys.key_text import Scope
from voucherd.limits import rate_limits
from voucherd.orders.rules.refusals import BadInput, Refusal
from voucherd.services import Services

JUDGED_S_MAX: Final = 0.25
"""A call that takes longer, or a piece of an answer that comes later, is for a key that is looked at again."""

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
        settings = services.settings
        waiting_s = settings.confirm_wait_s + settings.answer_limit_s
        self._limits_s = {
            Op.CONFIRM: waiting_s,
            Op.CANCEL: waiting_s,
            Op.RESOLVE: settings.resolve_limit_s,
        }

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
        request.route = found.path
        target = found.methods.get(request.method)
        if target is None:
            allow = ", ".join(sorted(found.methods)).encode()
            return errors.error(
                request, 405, "method_not_allowed", "method not allowed", headers=[(b"allow", allow)]
            )
        route, version = target
        request.limit_s = self._limits_s.get(route.op, 0.0)
        limiter = self._authenticator.limiter
        rate_headers: Headers = []
        try:
            request.caller = caller = self._known(request) or await self._look_up(request)
            # The call is counted once, here.
            taken = limiter.take(caller) or await limiter.borrow(caller)
            rate_headers = [
                (b"ratelimit-policy", rate_limits.policy(caller.rate_limit)),
                (b"ratelimit", rate_limits.standing(taken)),
            ]
            if not taken.allowed:
                raise _too_many(taken.reset_s, rate_headers)
            _require(caller, route)
        except Forbidden as reason:
            return _told(errors.turned_away(request, reason), rate_headers)
        except Exception as error:  # noqa: BLE001 - Every failure has an answer.
            return failed(request, error)
        call = Call(request, caller, version, found.values, op=route.op, templates=self._templates)
        return _Admission(route, call, rate_headers)

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

    def _known(self, request: Request) -> Caller | None:
        """Who calls, if the key is remembered: the usual one needs no look-up."""
        authorization = request.headers.get(b"authorization")
        return None if authorization is None else self._authenticator.known(authorization)

    async def _look_up(self, request: Request) -> Caller:
        return await self._authenticator.admit(request.headers.get(b"authorization"), request.client_ip)

    async def _caller(self, request: Request) -> Caller:
        """Who calls, as the key is now."""
        return self._known(request) or await self._look_up(request)

    async def _serve(self, route: Route, call: Call, rate_headers: Headers) -> Response:
        judged_at = monotonic()
        try:
            if outcomes.HEADER in call.request.headers:
                outcomes.refuse_by_wish(call.request, call.caller.state)
            key = call.request.headers.get(HEADER)
            if key is None or not route.writes:
                response = await self._respond(route, call)
            else:
                call.request.goes_on = True
                response = await self._idempotent.answer(
                    route.op, call, key, lambda: self._respond(route, call)
                )
            if monotonic() - judged_at >= JUDGED_S_MAX:
                response = await self._judged_again(route, call, response)
            if not isinstance(response.body, bytes):
                response = replace(response, body=self._while_allowed(route, call, response))
        except Forbidden as reason:
            response = errors.turned_away(call.request, reason)
        except BadInput as refusal:
            response = errors.refused(route.op, refusal, call.request)
        except HttpError as problem:
            response = errors.http_error(call.request, problem)
        return _told(response, rate_headers)

    async def _respond(self, route: Route, call: Call) -> Response:
        """The handler's answer; a refusal is one too."""
        try:
            if call.request.query:
                query.refuse_unknown(call.request, OPERATIONS[route.op].parameters)
            return await route.handler(self._services, call)
        except Refusal as refusal:
            return errors.refused(route.op, refusal, call.request)
        except HttpError as problem:
            return errors.http_error(call.request, problem)

    async def _judged_again(self, route: Route, call: Call, response: Response) -> Response:
        """The answer to a call that took long, as its key may see it now; refused if it may not (OP-100)."""
        before = call.caller
        call.caller = now = await self._caller(call.request)
        _require(now, route)
        if now.sees_codes or not before.sees_codes:
            return response
        # What was written shows codes to a key that may not see them any more.
        await response.close()
        shown = response.shown
        if isinstance(shown, ShownOrder):
            answer = await self._services.orders.show(shown.order)
            return await handlers.shown(
                self._services, call, answer, response.status, response.headers, bare=shown.bare
            )
        return response if route.writes else await self._respond(route, call)

    async def _while_allowed(
        self, route: Route, call: Call, response: Response
    ) -> AsyncGenerator[bytes, None]:
        """A long answer, piece by piece, for as long as its key may see it; then it breaks off (OP-100)."""
        body, judged_at = response.body, monotonic()
        assert not isinstance(body, bytes), "an answer in one piece is judged as a whole"
        try:
            async for part in body:
                if monotonic() - judged_at >= JUDGED_S_MAX:
                    now = await self._caller(call.request)
                    _require(now, route)
                    if call.caller.sees_codes and not now.sees_codes:
                        raise Forbidden(Scope.CODES_READ.value)
                    judged_at = monotonic()
                yield part
        except (Forbidden, Unauthorized):
            if not response.endless:
                raise
        finally:
            await response.close()


def _require(caller: Caller, route: Route) -> None:
    """Refuse a key without the scopes of the route."""
    caller.require(route.scope)
    if route.also is not None:
        caller.require(route.also)


def _too_many(reset_s: int, rate_headers: Headers) -> HttpError:
    retry_after = (b"retry-after", str(reset_s).encode())
    return HttpError(
        429,
        "rate_limit_exceeded",
        "rate limit exceeded",
        headers=[*rate_headers, retry_after],
        retryable=True,
    )


def _told(response: Response, rate_headers: Headers) -> Response:
    """The answer, with what it says about the limit."""
    response.headers += rate_headers
    return response
