"""The handlers of orders: read the request, ask the order service, show the answer. No rule lives here."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from msgspec import UNSET, Struct, field

from voucherd import traces
from voucherd.actors import Actor, ActorKind
from voucherd.api import outcomes, requests
from voucherd.api.errors import Op
from voucherd.api.wire.order import Shape, is_large, render, stream
from voucherd.api.wire.quote import quoted
from voucherd.api.wire.shapes import place_of
from voucherd.api.wire.templates import TemplateBook, encode
from voucherd.api.wire.versions import SHAPES
from voucherd.api.wire.view import View
from voucherd.clock import iso
from voucherd.http import JSON, Request, Response
from voucherd.idempotency.model import Ticket
from voucherd.ids import State
from voucherd.keys.callers import Caller
from voucherd.orders.answers import Answer
from voucherd.orders.model import Order
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import BadInput
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Status
from voucherd.services import Services
from voucherd.vault.model import Reveal, Via, Viewer
from voucherd.webhooks.service import Owner

PAGE_LINES_INLINE_MAX: Final = 1_000
"""Lines of a page of orders that is written in one piece; a longer one is streamed."""

SANDBOX_DECLINES: Final = 0.5
"""Contract 8: the chance that a sandbox Confirm or Resolve is cancelled at once."""

VIA: Final[dict[Op | None, Via]] = {
    Op.CONFIRM: Via.CONFIRM,
    Op.RESOLVE: Via.RESOLVE,
    Op.CANCEL: Via.CANCEL,
    Op.FIND_ALL: Via.FIND_ALL,
}

_coin: Final = random.SystemRandom().random


class Call(Struct):
    """A request that was let in."""

    request: Request
    caller: Caller
    version: str
    parameters: tuple[str, ...] = ()
    """What stands in the path's places for parameters, from left to right."""
    ticket: Ticket | None = None
    """With an Idempotency-Key: what it does is named in the transaction that does it."""
    op: Op | None = None
    templates: TemplateBook = field(default_factory=TemplateBook)
    """Pieces of answers that were encoded before."""

    @property
    def parameter(self) -> str:
        """The first of them, for the many paths that have one."""
        return self.parameters[0]

    @property
    def actor(self) -> Actor:
        """The calling key, as the trail names it."""
        caller = self.caller
        name = f"key {caller.key_id} of {caller.company.name}"
        return Actor(
            *(ActorKind.KEY, name, caller.key_id),
            company_id=caller.company_id,
            state=caller.state,
            address=self.request.client_ip,
            request_id=self.request.id,
        )

    @property
    def viewer(self) -> Viewer | None:
        """Who is shown codes; None for a key that may not see any (OP-59)."""
        caller = self.caller
        return Viewer(ActorKind.KEY, caller.key_id, self.request.client_ip) if caller.sees_codes else None


class ShownOrder(Struct, frozen=True):
    """The order that an answer shows, and how."""

    order: Order
    bare: bool


Handler: TypeAlias = Callable[[Services, Call], Awaitable[Response]]


async def create(services: Services, call: Call) -> Response:
    """Create order."""
    caller = call.caller
    asked = outcomes.of_call(call.request, caller.state, Op.CREATE)
    command = requests.create(
        call.request, caller.company_id, caller.state, services.webhooks.own, call.ticket, asked
    )
    if command.webhook_url is not None:
        await _require_per_order(services, caller)
    return await _created(services, call, await services.orders.create(command))


async def _require_per_order(services: Services, caller: Caller) -> None:
    """An order may name an address only where the company has a secret that its events are signed with."""
    if not await services.webhooks.has_per_order(Owner(caller.company_id, caller.state)):
        raise BadInput("webhookUrl", "needs a webhook with perOrder first")


async def _created(services: Services, call: Call, answer: Answer) -> Response:
    location = f"/api/{call.version}/order/{services.ids.trx(answer.order.id)}".encode()
    return await shown(services, call, answer, 201, [(b"location", location)])


async def quote(services: Services, call: Call) -> Response:
    """Quote order."""
    caller = call.caller
    asked = outcomes.of_call(call.request, caller.state, Op.QUOTE)
    command = requests.create(
        call.request, caller.company_id, caller.state, services.webhooks.own, asked=asked
    )
    return Response(200, encode(quoted(await services.orders.quote(command))), JSON)


async def confirm(services: Services, call: Call) -> Response:
    """Confirm order."""
    answer = await services.orders.confirm(_finalise(services, call, resolve=False))
    return await shown(services, call, answer, bare=True)


async def resolve(services: Services, call: Call) -> Response:
    """Resolve order."""
    answer = await services.orders.resolve(
        _finalise(services, call, resolve=True), arrived_at=call.request.started
    )
    return await shown(services, call, answer, bare=True)


async def cancel(services: Services, call: Call) -> Response:
    """Cancel order."""
    order_id = services.ids.order_id(call.parameter)
    command = Cancel(
        order_id, call.caller.company_id, call.caller.state, ticket=call.ticket, viewer=call.viewer
    )
    answer = await services.orders.cancel(command)
    if answer.order.status is Status.DELETED:
        return Response(204)
    return await shown(services, call, answer)


async def done_before(services: Services, call: Call, op: Op, order_id: int) -> Response:
    """The answer to a request that did its work, and whose process died before it could say so."""
    caller, order_service = call.caller, services.orders
    answer = await order_service.look_again(
        *(order_id, caller.company_id, caller.state),
        resolve=op is Op.RESOLVE,
        arrived_at=call.request.started,
    )
    if op is Op.CREATE:
        return await _created(services, call, answer)
    if answer.order.status is Status.DELETED:
        return Response(204)
    return await shown(services, call, answer, bare=op is not Op.CANCEL)


async def find(services: Services, call: Call) -> Response:
    """Find order."""
    wait_s = requests.wait_s(call.request) if call.request.query else 0
    if wait_s:
        call.request.limit_s = services.settings.answer_limit_s + wait_s
    order_id = services.ids.order_id(call.parameter)
    caller = call.caller
    answer = await services.orders.find_moved(order_id, caller.company_id, caller.state, wait_s=wait_s)
    return await shown(services, call, answer)


async def find_all(services: Services, call: Call) -> Response:
    """Find all orders."""
    filters, page = requests.find_all(call.request, services.ids)
    after = requests.read_cursor(services.ids, page.cursor) if page.cursor else None
    found = await services.orders.find_all(
        call.caller.company_id, call.caller.state, filters, size=page.size, skip=page.skip, after=after
    )
    cursor = None if found.after is None else requests.cursor_of(services.ids, *found.after)
    total = None if found.total is None else found.total.count
    metadata, pagination = place_of(page.size, page.skip, cursor, total)
    if found.total is not None and found.total.more:
        metadata.moreItems = True
    if found.archived_before is not None:
        metadata.archivedBefore = iso(found.archived_before)
    await note_reveals(services, call, found.answers)
    end = b'],"metadata":' + encode(metadata)
    end += b"}" if pagination is UNSET else b',"pagination":' + encode(pagination) + b"}"
    shape, views = SHAPES[call.version], [view_of(services, call, one, bare=False) for one in found.answers]
    if any(map(is_large, views)) or sum(view.order.lines for view in views) > PAGE_LINES_INLINE_MAX:
        return Response(200, _streamed(services, shape, views, end), JSON)
    orders = b",".join([render(shape, view) for view in views])
    return Response(200, b'{"data":[%b%b' % (orders, end), JSON)


def _finalise(services: Services, call: Call, *, resolve: bool) -> Finalise:
    caller = call.caller
    asked = outcomes.of_call(call.request, caller.state, call.op)
    if asked is not None:
        sandbox_outcome, slow_s = asked.outcome, asked.seconds
    elif caller.state is State.SANDBOX and _coin() < SANDBOX_DECLINES:
        sandbox_outcome, slow_s = SandboxOutcome.CANCELLED, 0
    else:
        sandbox_outcome, slow_s = SandboxOutcome.FINISHED, 0
    order_id = services.ids.order_id(call.parameter)
    return Finalise(
        order_id,
        caller.company_id,
        caller.state,
        resolve,
        sandbox_outcome,
        slow_s,
        caller.limits,
        call.ticket,
        approve_from_eur_minor=caller.approve_from_eur_minor,
        viewer=call.viewer,
    )


def view_of(services: Services, call: Call, answer: Answer, *, bare: bool) -> View:
    """The order as this caller may see it."""
    return View(
        answer,
        services.ids,
        call.templates,
        services.settings.public_url,
        call.caller.company.expose_costs,
        bare,
        call.caller.sees_codes,
        services.orders.reader.views_of,
    )


async def note_reveals(services: Services, call: Call, answers: Sequence[Answer]) -> None:
    """Write down whose codes are shown, before any of them leaves (OP-94)."""
    viewer = call.viewer
    if viewer is not None:
        via = VIA.get(call.op, Via.FIND)
        await services.orders.reveals.record(
            [
                Reveal(one.order.id, one.order.company_id, one.order.lines_finished, via, viewer)
                for one in answers
                if one.order.lines_finished and not one.noted
            ]
        )


async def shown(
    services: Services,
    call: Call,
    answer: Answer,
    status: int = 200,
    headers: list[tuple[bytes, bytes]] | None = None,
    *,
    bare: bool = False,
) -> Response:
    """The order in the shape of the call's version, in one piece or as a stream."""
    if answer.order.lines_finished and not answer.noted:
        await note_reveals(services, call, [answer])
    shape = SHAPES[call.version]
    view = view_of(services, call, answer, bare=bare)
    if traces.active is None:
        body = _body(services, shape, view)
    else:
        with traces.step("render"):
            body = _body(services, shape, view)
    return Response(status, body, JSON, headers or [], shown=ShownOrder(answer.order, bare))


def _body(services: Services, shape: Shape, view: View) -> bytes | AsyncIterator[bytes]:
    return stream(shape, view, services.orders.reader.codes_of) if is_large(view) else render(shape, view)


async def _streamed(services: Services, shape: Shape, views: list[View], end: bytes) -> AsyncIterator[bytes]:
    """A page of orders, one after another, so that a page of large orders is never in memory as a whole."""
    yield b'{"data":['
    for at, view in enumerate(views):
        comma = b"," if at else b""
        if is_large(view):
            yield comma
            async for part in stream(shape, view, services.orders.reader.codes_of):
                yield part
        else:
            yield comma + render(shape, view)
    yield end
