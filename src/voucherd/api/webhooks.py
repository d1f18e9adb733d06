"""The handlers of webhooks: endpoints, their secrets, the log of deliveries, replays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from voucherd.api import webhook_requests as requests
from voucherd.api.errors import EventNotFound, TooManyWebhooks, WebhookNotFound
from voucherd.api.handlers import Call
from voucherd.api.idempotent import Write, write
from voucherd.api.wire import webhooks as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.http import JSON, Response
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services
from voucherd.webhooks import deeds
from voucherd.webhooks.deeds import EndpointDisabled, NoOwnAddress
from voucherd.webhooks.endpoints import Endpoint, EndpointNotFound, PerOrderTaken, TooManyEndpoints
from voucherd.webhooks.service import Owner

_DISABLED: Final = "must be an endpoint that is enabled"


async def find_all(services: Services, call: Call) -> Response:
    """Find all endpoints."""
    found = await services.webhooks.list_all(owner(call))
    data = [wire.webhook(services.ids, endpoint) for endpoint in found]
    return Response(200, encode(wire.WebhookList(data, wire.WebhookListMetadata(len(data)))), JSON)


async def add(services: Services, call: Call) -> Response:
    """Add an endpoint. The only answer but that of a rotation that holds a secret."""
    draft = requests.add(call.request, services.webhooks.own)
    async with _write(services, call) as work:
        endpoint, secret = await deeds.add(
            work.tx, call.actor, services.sealer, call.caller.company_id, call.caller.state, draft
        )
        shown = wire.webhook(services.ids, endpoint, secret)
        location = f"/api/{call.version}/webhook/{shown.id}".encode()
        return await work.answered(Response(201, encode(shown), JSON, [(b"location", location)]))


async def find(services: Services, call: Call) -> Response:
    """Find one endpoint."""
    return Response(200, encode(wire.webhook(services.ids, await _endpoint(services, call))), JSON)


async def change(services: Services, call: Call) -> Response:
    """Change an endpoint."""
    changes = requests.change(call.request, services.webhooks.own)
    async with _write(services, call, no_address="must be left out where each order names its own") as work:
        changed = await deeds.change(work.tx, call.actor, services.sealer, _number(services, call), changes)
        return await work.answered(Response(200, encode(wire.webhook(services.ids, changed)), JSON))


async def remove(services: Services, call: Call) -> Response:
    """Remove an endpoint."""
    async with _write(services, call) as work:
        await deeds.remove(work.tx, call.actor, _number(services, call))
        return await work.answered(Response(204))


async def rotate(services: Services, call: Call) -> Response:
    """Give an endpoint a new secret."""
    overlap, secret = requests.rotate(call.request)
    async with _write(services, call) as work:
        changed, fresh = await deeds.rotate(
            work.tx, call.actor, services.sealer, _number(services, call), overlap, secret
        )
        return await work.answered(Response(200, encode(wire.webhook(services.ids, changed, fresh)), JSON))


async def find_deliveries(services: Services, call: Call) -> Response:
    """The log of an endpoint's deliveries."""
    asked = requests.deliveries(call.request)
    endpoint = await _endpoint(services, call)
    before = None
    if asked.cursor is not None:
        before = services.ids.event_number(asked.cursor)
        if before is None:
            raise BadInput("cursor", "is not one of ours")
    log = await services.webhooks.log(
        endpoint, size=asked.size, before=before, status=asked.status, type_=asked.type
    )
    data = [
        wire.delivery(services.ids, one, log.events.get(one.event_id), endpoint) for one in log.deliveries
    ]
    cursor = None if log.before is None else services.ids.event(log.before)
    page = wire.WebhookDeliveryPage(data, WalkMetadata(asked.size, cursor))
    return Response(200, encode(page), JSON)


async def test(services: Services, call: Call) -> Response:
    """Send a ping."""
    async with _write(services, call) as work:
        event_id = await deeds.test(work.tx, call.actor, _number(services, call))
        queued = wire.QueuedEvent(services.ids.event(event_id))
        return await work.answered(Response(202, encode(queued), JSON))


async def recover(services: Services, call: Call) -> Response:
    """Send what an endpoint did not get."""
    since = requests.recover(call.request)
    with _refusals():
        found = await deeds.recover(services.pool, call.actor, _number(services, call), since)
    return Response(202, encode(wire.recovered(found)), JSON)


async def replay(services: Services, call: Call) -> Response:
    """Send an event once more: to one endpoint, or to all that are enabled and want its type."""
    name = requests.replay(call.request)
    number = services.ids.event_number(call.parameter)
    event = None if number is None else await services.webhooks.event(owner(call), number)
    if event is None:
        raise EventNotFound
    chosen = None if name is None else services.ids.webhook_number(name)
    try:
        if name is not None and chosen is None:
            raise EndpointNotFound
        async with write(services, call) as work:
            queued = await deeds.replay(work.tx, call.actor, event, chosen)
            return await work.answered(Response(202, encode(wire.QueuedEvents(queued)), JSON))
    except EndpointNotFound:
        raise BadInput("webhookId", "must be an endpoint of yours") from None
    except EndpointDisabled:
        raise BadInput("webhookId", _DISABLED) from None


def owner(call: Call) -> Owner:
    """Whose endpoints a call is about."""
    return Owner(call.caller.company_id, call.caller.state)


@asynccontextmanager
async def _write(services: Services, call: Call, *, no_address: str | None = None) -> AsyncIterator[Write]:
    """A change of an endpoint; what is refused in it has not happened."""
    with _refusals(no_address):
        async with write(services, call) as work:
            yield work


@contextmanager
def _refusals(no_address: str | None = None) -> Iterator[None]:
    """What is refused in here, as clients are told it."""
    try:
        yield
    except EndpointNotFound:
        raise WebhookNotFound from None
    except TooManyEndpoints:
        raise TooManyWebhooks from None
    except PerOrderTaken:
        raise BadInput("perOrder", "there is an endpoint for orders' own addresses already") from None
    except NoOwnAddress:
        if no_address is not None:
            raise BadInput("url", no_address) from None
        raise BadInput("id", "must be an endpoint with an address of its own") from None
    except EndpointDisabled:
        raise BadInput("id", _DISABLED) from None


def _number(services: Services, call: Call) -> int:
    number = services.ids.webhook_number(call.parameter)
    if number is None:
        raise WebhookNotFound
    return number


async def _endpoint(services: Services, call: Call) -> Endpoint:
    try:
        return await services.webhooks.find(owner(call), _number(services, call))
    except EndpointNotFound:
        raise WebhookNotFound from None
