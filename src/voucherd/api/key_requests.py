"""Reading what clients say about keys. Bad input gets one line that names the field and the rule (OP-25)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api import query
from voucherd.api.requests import MaybeNumber, decimal, decode
from voucherd.api.wire.fields import doc
from voucherd.http import Request
from voucherd.ids import Identifiers
from voucherd.keys.key_text import (
    ALLOW_IPS_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    RATE_LIMIT_MAX,
    KeyWish,
    Network,
    Scope,
    plain_network,
)
from voucherd.keys.store import OVERLAP_MAX
from voucherd.money import BadAmount, to_minor
from voucherd.orders.rules.refusals import BadInput

OVERLAP_S: Final = 86_400
OVERLAP_S_MAX: Final = int(OVERLAP_MAX.total_seconds())
NETWORK_CHARS_MAX: Final = 50


class KeyBody(Struct):
    """What a key is to be. A field that is not sent is as with the calling key, or stays as it is."""

    description: Annotated[str | UnsetType, doc("Your own text.", maxLength=DESCRIPTION_CHARACTERS_MAX)] = (
        UNSET
    )
    scopes: Annotated[
        list[str] | UnsetType,
        doc(
            "What the key may do; each must be a scope of the calling key. If it is not sent, a new key has all of "
            "those but `keys:write`.",
            minItems=1,
        ),
    ] = UNSET
    allowIps: Annotated[
        list[str] | UnsetType,
        doc(
            "The networks that it may be used from, such as `192.0.2.0/24` or `2001:db8::1`; none for any. They "
            "must lie within those of the calling key, if it has any.",
            maxItems=ALLOW_IPS_MAX,
        ),
    ] = UNSET
    rateLimit: Annotated[
        int | UnsetType,
        doc("Requests a minute, at most those of the calling key.", minimum=1, maximum=RATE_LIMIT_MAX),
    ] = UNSET
    dateExpires: Annotated[
        str | UnsetType | None,
        doc(
            "From when on it can not be used: a date (its first moment) or date-time of ISO 8601, in UTC unless it "
            "names a zone, and not after that of the calling key. Null for never."
        ),
    ] = UNSET
    spendOrderEur: Annotated[
        MaybeNumber | UnsetType,
        doc(
            "The most that an order may cost, in EUR, and not above that of the calling key. Null for no limit.",
            exclusiveMinimum=0,
        ),
    ] = UNSET
    spendDayEur: Annotated[
        MaybeNumber | UnsetType,
        doc(
            "The most that it may spend in a day (UTC), in EUR, and not above that of the calling key. Null for no "
            "limit.",
            exclusiveMinimum=0,
        ),
    ] = UNSET


class KeyRotation(Struct):
    """How a key is replaced. The body may be left out."""

    overlapSeconds: Annotated[
        int,
        doc(
            "How long the old key can still be used. One day unless it is sent.",
            minimum=0,
            maximum=OVERLAP_S_MAX,
        ),
    ] = OVERLAP_S


_decode_key: Final = msgspec.json.Decoder(KeyBody).decode
_decode_rotation: Final = msgspec.json.Decoder(KeyRotation).decode


def wishes(request: Request) -> KeyWish:
    """What a request wants a key to be."""
    body: KeyBody = decode(request, _decode_key)
    asked = KeyWish()
    if body.description is not UNSET:
        asked["description"] = _description(body.description)
    if body.scopes is not UNSET:
        asked["scopes"] = _scopes(body.scopes)
    if body.allowIps is not UNSET:
        asked["allow_ips"] = _networks(body.allowIps)
    if body.rateLimit is not UNSET:
        asked["rate_limit"] = _rate_limit(body.rateLimit)
    if body.dateExpires is not UNSET:
        asked["expires_at"] = _moment(body.dateExpires)
    if body.spendOrderEur is not UNSET:
        asked["spend_order_eur_minor"] = _spend("spendOrderEur", body.spendOrderEur)
    if body.spendDayEur is not UNSET:
        asked["spend_day_eur_minor"] = _spend("spendDayEur", body.spendDayEur)
    return asked


def rotation(request: Request) -> timedelta:
    """How long both keys can be used."""
    body: KeyRotation = decode(request, _decode_rotation) if request.body else KeyRotation()
    if not 0 <= body.overlapSeconds <= OVERLAP_S_MAX:
        raise BadInput("overlapSeconds", f"must be between 0 and {OVERLAP_S_MAX}")
    return timedelta(seconds=body.overlapSeconds)


_CURSOR: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page.", "key_1RSS3386B3HAXYN8K6K04TY0GY"
)
_LIMIT: Final = query.limit("keys")
PAGE: Final = (_CURSOR, _LIMIT)


_CHILDREN: Final = query.choice(
    "children",
    "What becomes of the keys that were made with it, directly or not: they are revoked, too (`revoke`), or they stay "
    "(`keep`) and belong to the key that it was made with itself.",
    ("revoke", "keep"),
    "revoke",
)
REVOCATION: Final = (_CHILDREN,)


def children_stay(request: Request) -> bool:
    """Whether the keys that were made with a revoked key stay."""
    return _CHILDREN.read(query.read(request)) == "keep"


def page(request: Request, ids: Identifiers) -> tuple[int, int | None]:
    """How many keys are asked for, and behind which one."""
    given = query.read(request)
    size, cursor = _LIMIT.read(given), _CURSOR.read(given)
    before = ids.key_number(cursor) if cursor else None
    if cursor and before is None:
        raise BadInput("cursor", "is not one of ours")
    return size, before


def _description(text: str) -> str:
    if len(text) > DESCRIPTION_CHARACTERS_MAX or not text.isprintable():
        raise BadInput("description", f"must be at most {DESCRIPTION_CHARACTERS_MAX} printable characters")
    return text


def _scopes(words: list[str]) -> frozenset[Scope]:
    if not words:
        raise BadInput("scopes", "must hold at least one scope")
    for at, word in enumerate(words):
        if word not in Scope.__members__.values():
            raise BadInput(f"scopes[{at}]", f"must be one of {', '.join(Scope)}")
    return frozenset(Scope(word) for word in words)


def _networks(words: list[str]) -> tuple[Network, ...]:
    if len(words) > ALLOW_IPS_MAX:
        raise BadInput("allowIps", f"must hold at most {ALLOW_IPS_MAX} networks")
    return tuple(_network(f"allowIps[{at}]", word) for at, word in enumerate(words))


def _network(field: str, word: str) -> Network:
    try:
        if len(word) <= NETWORK_CHARS_MAX and "%" not in word:
            return plain_network(ip_network(word))
    except ValueError:
        pass
    raise BadInput(field, "must be an address or a network, such as 192.0.2.0/24 or 2001:db8::/32")


def _rate_limit(number: int) -> int:
    if not 1 <= number <= RATE_LIMIT_MAX:
        raise BadInput("rateLimit", f"must be between 1 and {RATE_LIMIT_MAX}")
    return number


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput("dateExpires", "must be an ISO 8601 date or date-time") from None


def _spend(field: str, raw: Raw) -> int | None:
    """Euro cents, or null for no limit."""
    amount = decimal(field, raw)
    if amount is None:
        return None
    try:
        minor = to_minor(amount, "EUR")
    except BadAmount:
        minor = 0
    if minor <= 0:
        raise BadInput(field, "must be an amount in EUR above 0, with at most 2 digits after the point")
    return minor
