"""Reading what clients say about webhooks. Bad input gets one line that names the field and the rule (OP-25)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from voucherd import clock
from voucherd.api import query
from voucherd.api.requests import TargetUrl, decode
from voucherd.api.wire.fields import doc
from voucherd.api.wire.webhooks import FORMATS, TYPES, OwnText, Secret
from voucherd.http import Request
from voucherd.orders.rules.refusals import BadInput
from voucherd.webhooks import history, signing
from voucherd.webhooks.addresses import Network
from voucherd.webhooks.endpoints import DESCRIPTION_CHARS_MAX, OVERLAP, OVERLAP_MAX, Changes, Draft
from voucherd.webhooks.headers import HEADERS_MAX, VALUE_CHARS_MAX, read_headers
from voucherd.webhooks.messages import MessageFormat
from voucherd.webhooks.targets import PORTS, BadTarget, read_target

OVERLAP_S_MAX: Final = int(OVERLAP_MAX.total_seconds())
_ADDRESS: Final = (
    "Where events are sent: an https address of the public internet, at port "
    f"{', '.join(map(str, PORTS[:-1]))} or {PORTS[-1]}, without a user, password or fragment."
)
_HEADERS: Final = (
    f"Headers of your own that every delivery carries, at most {HEADERS_MAX}; values have up to {VALUE_CHARS_MAX:,} "
    "characters and are never shown again."
)
_FORMAT: Final = doc(
    "How events are written to it. `standard`: as Find event shows them. `classic`: `event` in capitals, `state`, "
    "`apiKeyDescription` (the description of the endpoint) and, of an order, its `trx` and `reference` in `data`.",
    enum=FORMATS,
)
_EVENT_TYPES: Final = doc("The types of events to send; null or none for all.")
_OwnSecret: TypeAlias = Annotated[Secret | None, doc("A secret of your own; one is made if you send none.")]


class WebhookBody(Struct):
    """A new endpoint."""

    url: Annotated[TargetUrl | None, doc(f"{_ADDRESS} Required unless `perOrder` is true.")] = None
    perOrder: Annotated[
        bool, doc("Make the endpoint for the addresses that orders name with `webhookUrl`. One a state.")
    ] = False
    format: Annotated[str, _FORMAT] = MessageFormat.STANDARD.value
    eventTypes: Annotated[list[str] | None, _EVENT_TYPES] = None
    description: OwnText = ""
    enabled: Annotated[bool, doc("Whether to send anything; true unless it is sent.")] = True
    headers: Annotated[dict[str, str], doc(_HEADERS, maxProperties=HEADERS_MAX)] = {}
    secret: _OwnSecret = None


class WebhookChanges(Struct):
    """What is to change about an endpoint; a field that is not sent stays as it is."""

    url: Annotated[TargetUrl | UnsetType, doc(_ADDRESS)] = UNSET
    format: Annotated[str | UnsetType, _FORMAT] = UNSET
    eventTypes: Annotated[list[str] | UnsetType | None, _EVENT_TYPES] = UNSET
    description: OwnText | UnsetType = UNSET
    enabled: Annotated[
        bool | UnsetType, doc("Whether to send anything. What waits goes on when it is true again.")
    ] = UNSET
    headers: Annotated[
        dict[str, str] | UnsetType,
        doc(f"{_HEADERS} They replace all that were there.", maxProperties=HEADERS_MAX),
    ] = UNSET


class RotateBody(Struct):
    """How an endpoint gets a new secret. The body may be left out."""

    overlapSeconds: Annotated[
        int,
        doc(
            "How long the old secret signs beside the new one. One day unless it is sent.",
            minimum=0,
            maximum=OVERLAP_S_MAX,
        ),
    ] = int(OVERLAP.total_seconds())
    secret: _OwnSecret = None


class ReplayBody(Struct):
    """Where an event is sent once more. The body may be left out: to every endpoint that is enabled."""

    webhookId: Annotated[str | None, doc("The one endpoint to send to.")] = None


class DeliveryQuery(Struct, frozen=True):
    """Which deliveries are asked for."""

    size: int
    cursor: str | None
    status: str | None
    type: str | None


_decode_new: Final = msgspec.json.Decoder(WebhookBody).decode
_decode_changes: Final = msgspec.json.Decoder(WebhookChanges).decode
_decode_rotate: Final = msgspec.json.Decoder(RotateBody).decode
_decode_replay: Final = msgspec.json.Decoder(ReplayBody).decode


def add(request: Request, own: Sequence[Network]) -> Draft:
    """The endpoint that a request asks for."""
    body: WebhookBody = decode(request, _decode_new)
    if body.perOrder and body.url is not None:
        raise BadInput("url", "must be left out where each order names its own")
    if not body.perOrder and body.url is None:
        raise BadInput("url", "is required")
    return Draft(
        None if body.url is None else _url("url", body.url, own),
        _types(body.eventTypes),
        _description(body.description),
        body.enabled,
        _headers(body.headers),
        _secret(body.secret),
        _format(body.format),
    )


def change(request: Request, own: Sequence[Network]) -> Changes:
    """The changes that a request asks for."""
    body: WebhookChanges = decode(request, _decode_changes)
    return Changes(
        UNSET if body.url is UNSET else _url("url", body.url, own),
        UNSET if body.eventTypes is UNSET else _types(body.eventTypes),
        UNSET if body.description is UNSET else _description(body.description),
        body.enabled,
        UNSET if body.headers is UNSET else _headers(body.headers),
        UNSET if body.format is UNSET else _format(body.format),
    )


def rotate(request: Request) -> tuple[timedelta, str | None]:
    """How long both secrets sign, and the integrator's own secret if he has one."""
    body: RotateBody = decode(request, _decode_rotate) if request.body else RotateBody()
    if not 0 <= body.overlapSeconds <= OVERLAP_S_MAX:
        raise BadInput("overlapSeconds", f"must be between 0 and {OVERLAP_S_MAX}")
    return timedelta(seconds=body.overlapSeconds), _secret(body.secret)


def replay(request: Request) -> str | None:
    """The one endpoint that an event is sent to once more, if it is one."""
    body: ReplayBody = decode(request, _decode_replay) if request.body else ReplayBody()
    return body.webhookId


SINCE: Final = query.moment(
    "since",
    "A date or date-time of ISO 8601 within the last 30 days, in UTC unless it names a zone.",
    "2026-01-31T09:00:00Z",
    required=True,
)


def recover(request: Request) -> datetime:
    """From when on an endpoint is to get what it missed."""
    since = SINCE.read(query.read(request))
    if since is None:
        raise BadInput("since", "is required")
    now = clock.now()
    if not now - history.KEPT <= since <= now:
        raise BadInput("since", f"must be within the last {history.KEPT.days} days")
    return since


_LOGGED: Final = (*TYPES, "ping")
_CURSOR: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page.", "evt_033J10V76MA9JTDJ5AHVP77Y62"
)
_LIMIT: Final = query.limit("deliveries")
_STATUS: Final = query.choice("status", "Only deliveries that stand so.", history.STATUSES)
_TYPE: Final = query.text("eventType", "Only deliveries of events of this type.", enum=_LOGGED)
DELIVERIES: Final = (_CURSOR, _LIMIT, _STATUS, _TYPE)


def deliveries(request: Request) -> DeliveryQuery:
    """Which deliveries are asked for."""
    given = query.read(request)
    type_ = _TYPE.read(given)
    if type_ is not None and type_ not in _LOGGED:
        raise BadInput(_TYPE.name, "must be a type of event")
    return DeliveryQuery(_LIMIT.read(given), _CURSOR.read(given) or None, _STATUS.read(given), type_)


def _url(field: str, url: str, own: Sequence[Network]) -> str:
    try:
        read_target(url, own)
    except BadTarget as rule:
        raise BadInput(field, str(rule)) from None
    return url


def _format(word: str) -> MessageFormat:
    if word not in FORMATS:
        raise BadInput("format", query.either(FORMATS))
    return MessageFormat(word)


def _types(given: list[str] | None) -> tuple[str, ...]:
    for at, word in enumerate(given or ()):
        if word not in TYPES:
            raise BadInput(f"eventTypes[{at}]", f"must be one of {', '.join(TYPES)}")
    return tuple(sorted(set(given or ())))


def _description(text: str) -> str:
    if len(text) > DESCRIPTION_CHARS_MAX or not all(c.isprintable() for c in text):
        raise BadInput("description", f"must be at most {DESCRIPTION_CHARS_MAX} printable characters")
    return text


def _headers(given: dict[str, str]) -> dict[str, str]:
    try:
        return read_headers(given)
    except ValueError as rule:
        raise BadInput("headers", str(rule)) from None


def _secret(text: str | None) -> str | None:
    try:
        return None if text is None else signing.check_secret(text)
    except ValueError as rule:
        raise BadInput("secret", str(rule)) from None
