"""What every field of webhooks means."""

from __future__ import annotations

from typing import Any, Final

from voucherd.api.webhook_requests import OVERLAP_S_MAX, TYPES
from voucherd.webhooks.endpoints import DESCRIPTION_CHARS_MAX
from voucherd.webhooks.headers import HEADERS_MAX, VALUE_CHARS_MAX
from voucherd.webhooks.history import STATUSES
from voucherd.webhooks.post import KEPT_BODY_CHARS, KEPT_HEAD_CHARS
from voucherd.webhooks.targets import PORTS, URL_CHARS_MAX

_TIME: Final[dict[str, Any]] = {"format": "date-time"}
_COUNT: Final[dict[str, Any]] = {"minimum": 0}
_TEXT: Final[dict[str, Any]] = {"maxLength": DESCRIPTION_CHARS_MAX}
_URL: Final[dict[str, Any]] = {"format": "uri", "minLength": 1, "maxLength": URL_CHARS_MAX}
_SECRET: Final[dict[str, Any]] = {"pattern": "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$"}
_TYPES: Final[dict[str, Any]] = {"items": {"type": "string", "enum": list(TYPES)}}
_ADDRESS: Final = (
    "Where events are sent: an https address of the public internet, at port "
    + ", ".join(map(str, PORTS[:-1]))
    + f" or {PORTS[-1]}, without a user, password or fragment."
)
_HEADERS: Final = (
    f"Headers of your own that every delivery carries, at most {HEADERS_MAX}; values have up to {VALUE_CHARS_MAX:,} "
    "characters and are never shown again."
)

ORDER_URL: Final = (
    "Where the events of this order are sent, beside your endpoints: an address as an endpoint has it. It needs a "
    "webhook with `perOrder`, whose secret signs them.",
    _URL,
)

Fields = dict[str, tuple[str, dict[str, Any]]]

WEBHOOK: Final[Fields] = {
    "id": ("Name of the endpoint.", {"pattern": "^wh_[0-9A-Z]{26}$"}),
    "state": ("Whose events it gets: those of the key that made it.", {"enum": ["live", "sandbox"]}),
    "url": ("Where events are sent. Null where each order names its own address.", {"format": "uri"}),
    "perOrder": ("Whether it is for the addresses that orders name with `webhookUrl`.", {}),
    "eventTypes": ("The types of events that are sent; none for all.", _TYPES),
    "description": ("Your own text.", _TEXT),
    "enabled": ("Whether anything is sent.", {}),
    "disabledReason": (
        "Why we disabled it: it answered 410, or failed for five days. Null otherwise.",
        {"enum": ["gone", "failing"]},
    ),
    "headerNames": ("The names of your own headers, in lower case.", {}),
    "failures": ("Attempts that failed since the last one that did not.", _COUNT),
    "dateFailingSince": ("Since when it fails.", _TIME),
    "dateOldSecretExpires": ("Until when the secret before this one signs too.", _TIME),
    "dateCreated": ("When it was made.", _TIME),
    "dateUpdated": ("When it was last changed.", _TIME),
    "secret": ("What deliveries are signed with. Only in the answer that makes it.", _SECRET),
}
ATTEMPT: Final[Fields] = {
    "number": ("Number of the attempt.", {"minimum": 1}),
    "dateSent": ("When it was sent; `webhook-timestamp` said the same in seconds.", _TIME),
    "url": ("Where it was sent.", {}),
    "durationMs": ("Milliseconds until the answer, or until it was given up.", _COUNT),
    "httpStatus": ("Status of the answer. Null if there was none.", {"minimum": 100, "maximum": 999}),
    "error": ("Why there was no answer.", {}),
    "responseHead": ("The headers of the answer, cut off.", {"maxLength": KEPT_HEAD_CHARS}),
    "responseBody": ("The beginning of the answer's body.", {"maxLength": KEPT_BODY_CHARS}),
}
DELIVERY: Final[Fields] = {
    "eventId": (
        "Name of the event: `webhook-id` of every attempt.",
        {"pattern": "^evt_[0-9A-Z]{26}$"},
    ),
    "type": ("Type of the event.", {}),
    "status": (
        "`waiting` for its next attempt, `delivered`, or `failed` after the last one.",
        {"enum": list(STATUSES)},
    ),
    "dateCreated": ("When it was queued.", _TIME),
    "dateNextAttempt": ("When it is tried next.", _TIME),
    "attempts": ("What was tried so far, oldest first.", {}),
    "message": ("The event: the very text that is sent and signed.", {}),
}
BODY: Final[Fields] = {
    "url": (f"{_ADDRESS} Required unless `perOrder` is true.", _URL),
    "perOrder": ("Make the endpoint for the addresses that orders name with `webhookUrl`. One a state.", {}),
    "eventTypes": ("The types of events to send; null or none for all.", {}),
    "description": ("Your own text.", _TEXT),
    "enabled": ("Whether to send anything.", {}),
    "headers": (_HEADERS, {"maxProperties": HEADERS_MAX}),
    "secret": ("A secret of your own; one is made if you send none.", _SECRET),
}
CHANGES: Final[Fields] = {
    "url": (_ADDRESS, _URL),
    "eventTypes": ("The types of events to send; null or none for all.", {}),
    "description": ("Your own text.", _TEXT),
    "enabled": ("Whether to send anything. What waits goes on when it is true again.", {}),
    "headers": (f"{_HEADERS} They replace all that were there.", {"maxProperties": HEADERS_MAX}),
}

FIELDS: Final[dict[str, Fields]] = {
    "Webhook": WEBHOOK,
    "WebhookListMetadata": {"totalItems": ("How many there are.", _COUNT)},
    "WebhookList": {"data": ("The endpoints, oldest first.", {}), "metadata": ("How many.", {})},
    "WebhookAttempt": ATTEMPT,
    "WebhookDelivery": DELIVERY,
    "WebhookDeliveryPage": {
        "data": ("The deliveries of the page.", {}),
        "metadata": ("Where the page stands.", {}),
    },
    "QueuedEvent": {"eventId": ("Name of the event.", {"pattern": "^evt_[0-9A-Z]{26}$"})},
    "QueuedEvents": {
        "queued": ("How many deliveries were queued.", _COUNT),
        "dateNext": (
            "Only of a recovery: from when to ask again, because it looked at as many events as it may.",
            _TIME,
        ),
    },
    "WebhookBody": BODY,
    "WebhookChanges": CHANGES,
    "RotateBody": {
        "overlapSeconds": (
            "How long the old secret signs beside the new one.",
            {"minimum": 0, "maximum": OVERLAP_S_MAX},
        ),
        "secret": ("A secret of your own; one is made if you send none.", _SECRET),
    },
    "ReplayBody": {"webhookId": ("The one endpoint to send to.", {})},
}
