"""The shapes of webhooks: endpoints, and what was sent to them."""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api.wire.shapes import WalkMetadata
from voucherd.clock import written
from voucherd.events import wire
from voucherd.events.feed import Event
from voucherd.ids import Identifiers
from voucherd.webhooks.endpoints import Endpoint
from voucherd.webhooks.history import Attempt, Logged, Recovered


class Webhook(Struct, kw_only=True):
    """An endpoint: where events are sent."""

    id: str
    state: str
    url: str | None
    perOrder: bool
    eventTypes: list[str]
    description: str
    enabled: bool
    disabledReason: str | None
    headerNames: list[str]
    failures: int
    dateFailingSince: str | None
    dateOldSecretExpires: str | None
    dateCreated: str
    dateUpdated: str
    secret: str | UnsetType = UNSET


class WebhookListMetadata(Struct):
    """How many endpoints there are."""

    totalItems: int


class WebhookList(Struct):
    """All endpoints of the key's company and state."""

    data: list[Webhook]
    metadata: WebhookListMetadata


class WebhookAttempt(Struct):
    """One time that a delivery was tried."""

    number: int
    dateSent: str
    url: str
    durationMs: int
    httpStatus: int | None
    error: str | None
    responseHead: str
    responseBody: str


class WebhookDelivery(Struct):
    """One event on its way to one endpoint."""

    eventId: str
    type: str
    status: str
    dateCreated: str
    dateNextAttempt: str | None
    attempts: list[WebhookAttempt]
    message: dict[str, Any] | None


class WebhookDeliveryPage(Struct):
    """A page of deliveries."""

    data: list[WebhookDelivery]
    metadata: WalkMetadata


class QueuedEvent(Struct):
    """A message that will be sent in a moment."""

    eventId: str


class QueuedEvents(Struct):
    """How much will be sent in a moment."""

    queued: int
    dateNext: str | UnsetType | None = UNSET


DOCUMENTED: Final = (Webhook, WebhookList, WebhookDeliveryPage, QueuedEvent, QueuedEvents)


def webhook(ids: Identifiers, endpoint: Endpoint, secret: str | None = None) -> Webhook:
    """An endpoint as clients see it; the secret only in the moment in which it is made."""
    return Webhook(
        id=ids.webhook(endpoint.id),
        state=endpoint.state.word,
        url=endpoint.url,
        perOrder=endpoint.url is None,
        eventTypes=list(endpoint.types),
        description=endpoint.description,
        enabled=endpoint.enabled,
        disabledReason=endpoint.disabled_reason,
        headerNames=list(endpoint.header_names),
        failures=endpoint.failures,
        dateFailingSince=None if endpoint.failing_since is None else written(endpoint.failing_since),
        dateOldSecretExpires=None if endpoint.old_until is None else written(endpoint.old_until),
        dateCreated=written(endpoint.created_at),
        dateUpdated=written(endpoint.updated_at),
        secret=UNSET if secret is None else secret,
    )


def delivery(ids: Identifiers, logged: Logged, event: Event | None) -> WebhookDelivery:
    """A delivery with its attempts, and what was sent."""
    return WebhookDelivery(
        ids.event(logged.event_id),
        logged.type,
        logged.status,
        written(logged.created_at),
        None if logged.next_at is None else written(logged.next_at),
        [attempt(one) for one in logged.attempts],
        # Not read and written anew: these are the very bytes that are signed.
        cast(Any, Raw(b"null" if event is None else wire.written(event, ids))),
    )


def attempt(one: Attempt) -> WebhookAttempt:
    """One attempt as clients see it."""
    return WebhookAttempt(
        one.number, written(one.sent_at), one.url, one.ms, one.http, one.error, one.head, one.body
    )


def recovered(found: Recovered) -> QueuedEvents:
    """What a recovery queued, and from when to ask again if that was not all."""
    return QueuedEvents(found.queued, None if found.next_since is None else written(found.next_since))
