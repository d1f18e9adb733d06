"""The shapes of webhooks: endpoints, and what was sent to them."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, cast

from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api.wire.fields import (
    Count,
    DateMade,
    Environment,
    EventId,
    Link,
    Moment,
    TotalItems,
    doc,
    rule,
)
from voucherd.api.wire.shapes import WalkedPage
from voucherd.clock import written
from voucherd.events.feed import Event
from voucherd.ids import Identifiers
from voucherd.webhooks import fanout
from voucherd.webhooks.endpoints import DESCRIPTION_CHARS_MAX, Endpoint
from voucherd.webhooks.history import STATUSES, Logged, Recovered, SendAttempt
from voucherd.webhooks.messages import MessageFormat, message
from voucherd.webhooks.post import KEPT_BODY_CHARS, KEPT_HEAD_CHARS

OwnText: TypeAlias = Annotated[str, doc("Your own text.", maxLength=DESCRIPTION_CHARS_MAX)]
Secret: TypeAlias = Annotated[str, rule(pattern="^whsec_[A-Za-z0-9+/]{32,86}={0,2}$")]
FORMATS: Final = tuple(one.value for one in MessageFormat)
TYPES: Final = tuple(sorted(fanout.TYPES))
"""What an endpoint can ask for."""


class Webhook(Struct, kw_only=True):
    """An endpoint: where events are sent."""

    id: Annotated[str, doc("Name of the endpoint.", pattern="^wh_[0-9A-Z]{26}$")]
    state: Annotated[Environment, doc("Whose events it gets: those of the key that made it.")]
    url: Annotated[Link | None, doc("Where events are sent. Null where each order names its own address.")]
    perOrder: Annotated[bool, doc("Whether it is for the addresses that orders name with `webhookUrl`.")]
    format: Annotated[str, doc("How events are written to it.", enum=FORMATS)]
    eventTypes: Annotated[
        list[Annotated[str, rule(enum=TYPES)]], doc("The types of events that are sent; none for all.")
    ]
    description: OwnText
    enabled: Annotated[bool, doc("Whether anything is sent.")]
    disabledReason: Annotated[
        str | None,
        doc(
            "Why we disabled it: it answered 410, or failed for five days. Null otherwise.",
            enum=["gone", "failing"],
        ),
    ]
    headerNames: Annotated[list[str], doc("The names of your own headers, in lower case.")]
    failures: Annotated[Count, doc("Attempts that failed since the last one that did not.")]
    dateFailingSince: Annotated[Moment | None, doc("Since when it fails.")]
    dateOldSecretExpires: Annotated[Moment | None, doc("Until when the secret before this one signs too.")]
    dateCreated: DateMade
    dateUpdated: Annotated[Moment, doc("When it was last changed.")]
    secret: Annotated[
        Secret | UnsetType, doc("What deliveries are signed with. Only in the answer that makes it.")
    ] = UNSET


class WebhookListMetadata(Struct):
    """How many endpoints there are."""

    totalItems: TotalItems


class WebhookList(Struct):
    """All endpoints of the key's company and state."""

    data: Annotated[list[Webhook], doc("The endpoints, oldest first.")]
    metadata: Annotated[WebhookListMetadata, doc("How many.")]


class WebhookAttempt(Struct):
    """One time that a delivery was tried."""

    number: Annotated[int, doc("Number of the attempt.", minimum=1)]
    dateSent: Annotated[Moment, doc("When it was sent; `webhook-timestamp` said the same in seconds.")]
    url: Annotated[str, doc("Where it was sent.")]
    durationMs: Annotated[Count, doc("Milliseconds until the answer, or until it was given up.")]
    httpStatus: Annotated[
        int | None, doc("Status of the answer. Null if there was none.", minimum=100, maximum=999)
    ]
    error: Annotated[str | None, doc("Why there was no answer.")]
    responseHead: Annotated[str, doc("The headers of the answer, cut off.", maxLength=KEPT_HEAD_CHARS)]
    responseBody: Annotated[str, doc("The beginning of the answer's body.", maxLength=KEPT_BODY_CHARS)]


class WebhookDelivery(Struct):
    """One event on its way to one endpoint."""

    eventId: Annotated[EventId, doc("Name of the event: `webhook-id` of every attempt.")]
    type: Annotated[str, doc("Type of the event.")]
    status: Annotated[
        str,
        doc("`waiting` for its next attempt, `delivered`, or `failed` after the last one.", enum=STATUSES),
    ]
    dateCreated: Annotated[Moment, doc("When it was queued.")]
    dateNextAttempt: Annotated[Moment | None, doc("When it is tried next.")]
    attempts: Annotated[list[WebhookAttempt], doc("What was tried so far, oldest first.")]
    message: Annotated[
        dict[str, Any] | None,
        doc("The event in the endpoint's format: the very text that is sent and signed."),
    ]


class WebhookDeliveryPage(Struct):
    """A page of deliveries."""

    data: Annotated[list[WebhookDelivery], doc("The deliveries of the page.")]
    metadata: WalkedPage


class QueuedEvent(Struct):
    """A message that will be sent in a moment."""

    eventId: Annotated[EventId, doc("Name of the event.")]


class QueuedEvents(Struct):
    """How much will be sent in a moment."""

    queued: Annotated[Count, doc("How many deliveries were queued.")]
    dateNext: Annotated[
        Moment | UnsetType | None,
        doc("Only of a recovery: from when to ask again, because it looked at as many events as it may."),
    ] = UNSET


def webhook(ids: Identifiers, endpoint: Endpoint, secret: str | None = None) -> Webhook:
    """An endpoint as clients see it; the secret only in the moment in which it is made."""
    return Webhook(
        id=ids.webhook(endpoint.id),
        state=endpoint.state.word,
        url=endpoint.url,
        perOrder=endpoint.url is None,
        format=endpoint.format.value,
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


def delivery(ids: Identifiers, logged: Logged, event: Event | None, endpoint: Endpoint) -> WebhookDelivery:
    """A delivery with its attempts, and what was sent."""
    return WebhookDelivery(
        ids.event(logged.event_id),
        logged.type,
        logged.status,
        written(logged.created_at),
        None if logged.next_at is None else written(logged.next_at),
        [attempt(one) for one in logged.attempts],
        # Not read and written anew: these are the very bytes that are signed.
        cast(Any, Raw(b"null" if event is None else message(ids, event, endpoint).body)),
    )


def attempt(one: SendAttempt) -> WebhookAttempt:
    """One attempt as clients see it."""
    return WebhookAttempt(
        one.number, written(one.sent_at), one.url, one.ms, one.http, one.error, one.head, one.body
    )


def recovered(found: Recovered) -> QueuedEvents:
    """What a recovery queued, and from when to ask again if that was not all."""
    return QueuedEvents(found.queued, None if found.next_since is None else written(found.next_since))
