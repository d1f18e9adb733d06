"""Webhooks: their words, parameters and examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from voucherd.api import query
from voucherd.api.errors import Op
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import query_parameter
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Body, Part, Success, Words
from voucherd.api.webhook_requests import TYPES
from voucherd.api.wire import webhooks as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.ids import State
from voucherd.webhooks.endpoints import Endpoint
from voucherd.webhooks.history import STATUSES, Attempt, Logged

WEBHOOKS: Final = "Webhooks"

_URL: Final = "https://shop.example.com/hooks/vouchers"
_SECRET: Final = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"  # noqa: S105 - It opens nothing.
_ENDPOINT: Final = Endpoint(
    id=3,
    company_id=17,
    state=State.LIVE,
    url=_URL,
    types=(kinds.ORDER_CANCELLED, kinds.ORDER_FINISHED),
    description="the webshop",
    enabled=True,
    disabled_reason=None,
    header_names=("x-tenant",),
    old_until=None,
    created_at=examples.CREATED_AT,
    updated_at=examples.CREATED_AT,
    failures=0,
    failing_since=None,
)
_EVENT: Final = Event(
    id=901,
    at=examples.CONFIRMED_AT,
    company_id=17,
    state=State.LIVE,
    type=kinds.ORDER_FINISHED,
    order_id=examples.sample(in_stock=2).id,
    seq=3,
    data=None,
)
_ID: Final[Part] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of the endpoint.",
    "schema": {"type": "string"},
    "example": examples.IDS.webhook(_ENDPOINT.id),
}
_EVENT_ID: Final[Part] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of the event: `webhook-id` of its deliveries.",
    "schema": {"type": "string"},
    "example": examples.IDS.event(_EVENT.id),
}


def _shown(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.webhook(examples.IDS, _ENDPOINT)))


def _with_secret(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.webhook(examples.IDS, _ENDPOINT, _SECRET)))


def _rotated(_version: str, _public_url: str) -> Raw:
    later = replace(_ENDPOINT, old_until=examples.CREATED_AT + timedelta(days=1))
    return Raw(encode(wire.webhook(examples.IDS, later, _SECRET)))


def _list(_version: str, _public_url: str) -> Raw:
    data = [wire.webhook(examples.IDS, _ENDPOINT)]
    return Raw(encode(wire.WebhookList(data, wire.WebhookListMetadata(1))))


def _log(_version: str, _public_url: str) -> Raw:
    attempt = Attempt(1, examples.CONFIRMED_AT, 84, _URL, 204, None, "Server: nginx", "")
    logged = Logged(
        _ENDPOINT.id, _EVENT.id, _EVENT.type, "delivered", None, examples.CONFIRMED_AT, (attempt,)
    )
    data = [wire.delivery(examples.IDS, logged, _EVENT)]
    return Raw(encode(wire.WebhookDeliveryPage(data, WalkMetadata(query.PAGE_SIZE, None))))


def _queued(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.QueuedEvent(examples.IDS.event(_EVENT.id))))


def _queued_many(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.QueuedEvents(12, None)))


def _replayed(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.QueuedEvents(1)))


def _new_body() -> Raw:
    body = {"url": _URL, "eventTypes": list(_ENDPOINT.types), "description": _ENDPOINT.description}
    return Raw(msgspec.json.encode(body))


def _as(schema: str) -> Part:
    return {"$ref": REF + schema}


WORDS: Final[dict[Op, Words]] = {
    Op.WEBHOOKS: Words(
        "findWebhooks",
        "Find all webhooks",
        WEBHOOKS,
        "The endpoints of your company in the key's own state, oldest first: 20 at most.",
        (Success(200, "The endpoints.", {"list": ("One endpoint", _list)}, schema=_as("WebhookList")),),
    ),
    Op.ADD_WEBHOOK: Words(
        "addWebhook",
        "Add webhook",
        WEBHOOKS,
        "Makes an endpoint. From now on its events are sent there, signed as Standard Webhooks describes, with the "
        "secret in the answer, which is shown this once. A delivery counts as made when it is answered with 2xx "
        "within 15 seconds; otherwise it is tried again for three days.\n\n"
        "With `perOrder` and without `url` it is the endpoint for addresses that single orders name in "
        "`webhookUrl` of Create.",
        (Success(201, "The endpoint.", {"made": ("With its secret", _with_secret)}, schema=_as("Webhook")),),
        body=Body("WebhookBody", "Two types of events", _new_body),
    ),
    Op.WEBHOOK: Words(
        "findWebhook",
        "Find webhook",
        WEBHOOKS,
        "One endpoint, without its secret.",
        (Success(200, "The endpoint.", {"endpoint": ("An endpoint", _shown)}, schema=_as("Webhook")),),
        (_ID,),
    ),
    Op.CHANGE_WEBHOOK: Words(
        "changeWebhook",
        "Change webhook",
        WEBHOOKS,
        "Changes what is sent and leaves the rest. An endpoint that is enabled again goes on with what still waits; "
        "recover it for what happened meanwhile.",
        (Success(200, "The endpoint.", {"endpoint": ("An endpoint", _shown)}, schema=_as("Webhook")),),
        (_ID,),
        Body("WebhookChanges", "Enable it again", lambda: Raw(b'{"enabled":true}')),
    ),
    Op.REMOVE_WEBHOOK: Words(
        "removeWebhook",
        "Remove webhook",
        WEBHOOKS,
        "Removes an endpoint, what waits for it, and its log.",
        (Success(204, "It is gone."),),
        (_ID,),
    ),
    Op.ROTATE_WEBHOOK: Words(
        "rotateWebhook",
        "Rotate webhook",
        WEBHOOKS,
        "Gives the endpoint a new secret, which is shown this once. For the overlap of your choice deliveries carry "
        "a signature with each of both, so that you can change over without missing any. Without an overlap "
        "(0 seconds) the old secret ends at once.",
        (
            Success(
                200, "With its new secret.", {"rotated": ("A new secret", _rotated)}, schema=_as("Webhook")
            ),
        ),
        (_ID,),
        Body("RotateBody", "One hour for both", lambda: Raw(b'{"overlapSeconds":3600}'), required=False),
    ),
    Op.DELIVERIES: Words(
        "findDeliveries",
        "Find deliveries",
        WEBHOOKS,
        "What was sent to an endpoint in the last 30 days, newest events first: the message, each attempt with its "
        "answer, and when it is tried next.",
        (
            Success(
                200,
                "A page of deliveries.",
                {"log": ("One delivery", _log)},
                schema=_as("WebhookDeliveryPage"),
            ),
        ),
        (
            _ID,
            query_parameter(
                "cursor",
                "Where to go on: the `nextCursor` of the last page.",
                {"type": "string"},
                allowEmptyValue=True,
                example=examples.IDS.event(_EVENT.id),
            ),
            query_parameter(
                "limit",
                "The most deliveries that a page holds.",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": query.PAGE_SIZE_MAX,
                    "default": query.PAGE_SIZE,
                },
            ),
            query_parameter(
                "status", "Only deliveries that stand so.", {"type": "string", "enum": list(STATUSES)}
            ),
            query_parameter(
                "eventType",
                "Only deliveries of events of this type.",
                {"type": "string", "enum": [*TYPES, "ping"]},
            ),
        ),
    ),
    Op.TEST_WEBHOOK: Words(
        "testWebhook",
        "Test webhook",
        WEBHOOKS,
        "Sends a `ping` to one endpoint, whatever types it asked for. The log tells what came of it.",
        (Success(202, "It is on its way.", {"ping": ("Its event", _queued)}, schema=_as("QueuedEvent")),),
        (_ID,),
    ),
    Op.RECOVER_WEBHOOK: Words(
        "recoverWebhook",
        "Recover webhook",
        WEBHOOKS,
        "Sends everything since a moment that the endpoint wants and did not get: what failed for good, and what "
        "happened while it was disabled. What was delivered is not sent again.",
        (
            Success(
                202,
                "It is on its way.",
                {"recovered": ("Twelve events", _queued_many)},
                schema=_as("QueuedEvents"),
            ),
        ),
        (
            _ID,
            query_parameter(
                "since",
                "A date or date-time of ISO 8601 within the last 30 days, in UTC unless it names a zone.",
                {"type": "string"},
                required=True,
                example="2026-01-31T09:00:00Z",
            ),
        ),
    ),
    Op.REPLAY_EVENT: Words(
        "replayEvent",
        "Replay event",
        WEBHOOKS,
        "Sends an event once more, with the same `webhook-id`: to one endpoint, or to all that are enabled and want "
        "its type.",
        (
            Success(
                202,
                "It is on its way.",
                {"replayed": ("To one endpoint", _replayed)},
                schema=_as("QueuedEvents"),
            ),
        ),
        (_EVENT_ID,),
        Body(
            "ReplayBody",
            "To one endpoint",
            lambda: Raw(msgspec.json.encode({"webhookId": examples.IDS.webhook(_ENDPOINT.id)})),
            required=False,
        ),
    ),
}
