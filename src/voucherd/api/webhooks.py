"""What an integrator does with webhooks: endpoints, their secrets, what was sent and what is to be sent again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from voucherd.api import webhook_requests as requests
from voucherd.api.effects import Effect, effect
from voucherd.api.errors import EventNotFound, TooManyWebhooks, WebhookNotFound
from voucherd.api.handlers import Call
from voucherd.api.wire import webhooks as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.http import JSON, Response
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services
from voucherd.webhooks.endpoints import Endpoint, EndpointNotFound, PerOrderTaken, TooManyEndpoints
from voucherd.webhooks.service import Owner


async def find_all(services: Services, call: Call) -> Response:
    """Find all endpoints."""
    found = await services.webhooks.list_all(owner(call))
    data = [wire.webhook(services.ids, endpoint) for endpoint in found]
    return Response(200, encode(wire.WebhookList(data, wire.WebhookListMetadata(len(data)))), JSON)


async def add(services: Services, call: Call) -> Response:
    """Add an endpoint. The only answer but that of a rotation that holds a secret."""
    draft = requests.add(call.request, services.webhooks.own)
    async with effect(services, call) as work:
        try:
            endpoint, secret = await services.webhooks.add(work.tx, owner(call), draft)
        except TooManyEndpoints:
            raise TooManyWebhooks from None
        except PerOrderTaken:
            raise BadInput("perOrder", "there is an endpoint for orders' own addresses already") from None
        await work.record("webhook.add", f"webhook {endpoint.id}", host=_host(endpoint))
        shown = wire.webhook(services.ids, endpoint, secret)
        location = f"/api/{call.version}/webhook/{shown.id}".encode()
        return await work.answered(Response(201, encode(shown), JSON, [(b"location", location)]))


async def find(services: Services, call: Call) -> Response:
    """Find one endpoint."""
    return Response(200, encode(wire.webhook(services.ids, await _endpoint(services, call))), JSON)


async def change(services: Services, call: Call) -> Response:
    """Change an endpoint."""
    changes = requests.change(call.request, services.webhooks.own)
    endpoint = await _endpoint(services, call)
    if endpoint.url is None and isinstance(changes.url, str):
        raise BadInput("url", "must be left out where each order names its own")
    async with _effect(services, call) as work:
        changed = await services.webhooks.change(work.tx, owner(call), endpoint.id, changes)
        await work.record(
            "webhook.set", f"webhook {endpoint.id}", host=_host(changed), enabled=changed.enabled
        )
        return await work.answered(Response(200, encode(wire.webhook(services.ids, changed)), JSON))


async def remove(services: Services, call: Call) -> Response:
    """Remove an endpoint."""
    endpoint = await _endpoint(services, call)
    async with _effect(services, call) as work:
        await services.webhooks.remove(work.tx, owner(call), endpoint.id)
        await work.record("webhook.remove", f"webhook {endpoint.id}")
        return await work.answered(Response(204))


async def rotate(services: Services, call: Call) -> Response:
    """Give an endpoint a new secret."""
    overlap, secret = requests.rotate(call.request)
    endpoint = await _endpoint(services, call)
    async with _effect(services, call) as work:
        changed, fresh = await services.webhooks.rotate(work.tx, owner(call), endpoint.id, overlap, secret)
        await work.record("webhook.rotate", f"webhook {endpoint.id}")
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
    data = [wire.delivery(services.ids, one, log.events.get(one.event_id)) for one in log.deliveries]
    cursor = data[-1].eventId if log.more else None
    page = wire.WebhookDeliveryPage(data, WalkMetadata(asked.size, cursor))
    return Response(200, encode(page), JSON)


async def test(services: Services, call: Call) -> Response:
    """Send a ping."""
    endpoint = await _endpoint(services, call)
    if endpoint.url is None:
        raise BadInput("id", "must be an endpoint with an address of its own")
    if not endpoint.enabled:
        raise BadInput("id", "must be an endpoint that is enabled")
    async with _effect(services, call) as work:
        event_id = await services.webhooks.ping(work.tx, endpoint)
        queued = wire.QueuedEvent(services.ids.event(event_id))
        return await work.answered(Response(202, encode(queued), JSON))


async def recover(services: Services, call: Call) -> Response:
    """Send what an endpoint did not get."""
    since = requests.recover(call.request)
    endpoint = await _endpoint(services, call)
    if not endpoint.enabled:
        raise BadInput("id", "must be an endpoint that is enabled")
    try:
        found = await services.webhooks.recover(endpoint, since)
    except EndpointNotFound:
        raise WebhookNotFound from None
    return Response(202, encode(wire.recovered(found)), JSON)


async def replay(services: Services, call: Call) -> Response:
    """Send an event once more: to one endpoint, or to all that are enabled and want its type."""
    name = requests.replay(call.request)
    number = services.ids.event_number(call.parameter)
    event = None if number is None else await services.webhooks.event(owner(call), number)
    if event is None:
        raise EventNotFound
    chosen = await services.webhooks.list_all(owner(call))
    if name is None:
        chosen = [one for one in chosen if not one.types or event.type in one.types]
    else:
        chosen = [one for one in chosen if one.id == services.ids.webhook_number(name)]
        if not chosen:
            raise BadInput("webhookId", "must be an endpoint of yours")
        if not chosen[0].enabled:
            raise BadInput("webhookId", "must be an endpoint that is enabled")
    async with _effect(services, call) as work:
        queued = await services.webhooks.replay(work.tx, event, chosen)
        return await work.answered(Response(202, encode(wire.QueuedEvents(queued)), JSON))


def owner(call: Call) -> Owner:
    """Whose endpoints a call is about."""
    return Owner(call.caller.company_id, call.caller.state)


def _host(endpoint: Endpoint) -> str | None:
    """Where events go, for the trail: the rest of an address may be somebody's secret."""
    return None if endpoint.url is None else urlsplit(endpoint.url).hostname


@asynccontextmanager
async def _effect(services: Services, call: Call) -> AsyncIterator[Effect]:
    """A change of an endpoint that may be gone by now."""
    try:
        async with effect(services, call) as work:
            yield work
    except EndpointNotFound:
        raise WebhookNotFound from None


async def _endpoint(services: Services, call: Call) -> Endpoint:
    number = services.ids.webhook_number(call.parameter)
    if number is None:
        raise WebhookNotFound
    try:
        return await services.webhooks.find(owner(call), number)
    except EndpointNotFound:
        raise WebhookNotFound from None
