"""API keys: their words, parameters and examples."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from ipaddress import IPv4Network
from typing import Final

from msgspec import Raw

from voucherd.api import query
from voucherd.api.errors import Op
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import query_parameter
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Body, Part, Success, Words
from voucherd.api.wire import keys as wire
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.ids import State
from voucherd.keys.grants import KEYS_MAX
from voucherd.keys.key_text import RATE_LIMIT_DEFAULT, Scope
from voucherd.keys.store import Key

KEYS: Final = "Keys"

_TEXT: Final = "vk_live_Zt4Qn1h7Xc9Lw2Rk8Bv6Ys3Mf5Jd0PgAT00000"
_KEY: Final = Key(
    id=12,
    company_id=17,
    state=State.LIVE,
    prefix=_TEXT[:14],
    description="the till in Utrecht",
    scopes=frozenset({Scope.ORDERS_READ, Scope.ORDERS_WRITE, Scope.CODES_READ}),
    allow_ips=(IPv4Network("192.0.2.0/24"),),
    rate_limit=RATE_LIMIT_DEFAULT,
    expires_at=examples.CREATED_AT + timedelta(days=365),
    revoked_at=None,
    replaced_by=None,
    created_at=examples.CREATED_AT,
    last_used_at=examples.CONFIRMED_AT,
    spend_order_eur_minor=50_000,
    spend_day_eur_minor=None,
)
_CALLER_ID: Final = 11
_ID: Final[Part] = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The id of the key.",
    "schema": {"type": "string"},
    "example": examples.IDS.key(_KEY.id),
}


def _one(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.api_key(examples.IDS, _KEY, examples.CONFIRMED_AT, _CALLER_ID)))


def _made(_version: str, _public_url: str) -> Raw:
    fresh = replace(_KEY, last_used_at=None)
    return Raw(encode(wire.api_key(examples.IDS, fresh, examples.CREATED_AT, _CALLER_ID, _TEXT)))


def _page(_version: str, _public_url: str) -> Raw:
    data = [wire.api_key(examples.IDS, _KEY, examples.CONFIRMED_AT, _CALLER_ID)]
    return Raw(encode(wire.ApiKeyPage(data, WalkMetadata(query.PAGE_SIZE, None))))


def _new_body() -> Raw:
    return Raw(
        b'{"description":"the till in Utrecht","scopes":["orders:read","orders:write","codes:read"],'
        b'"allowIps":["192.0.2.0/24"],"spendOrderEur":500.00}'
    )


_AS_KEY: Final[Part] = {"$ref": REF + "ApiKey"}
_SHOWN: Final = (Success(200, "The key.", {"key": ("A key", _one)}, schema=_AS_KEY),)

WORDS: Final[dict[Op, Words]] = {
    Op.KEYS: Words(
        "findKeys",
        "Find all keys",
        KEYS,
        "The keys of your company in the calling key's own state, newest first, those that can no longer be used "
        "included. Keys themselves are never shown again.",
        (Success(200, "A page of keys.", {"page": ("One key", _page)}, schema={"$ref": REF + "ApiKeyPage"}),),
        (
            query_parameter(
                "cursor",
                "Where to go on: the `nextCursor` of the last page.",
                {"type": "string"},
                allowEmptyValue=True,
                example=examples.IDS.key(_KEY.id),
            ),
            query_parameter(
                "limit",
                "The most keys that a page holds.",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": query.PAGE_SIZE_MAX,
                    "default": query.PAGE_SIZE,
                },
            ),
        ),
    ),
    Op.ADD_KEY: Words(
        "addKey",
        "Add key",
        KEYS,
        "Makes a key of your company in the calling key's own state. The key is in the answer, this once. What you do "
        "not send is as with the calling key, except that the new one may make no keys; and it can not be given more "
        "than the calling key has itself: scopes, networks, rate limit, limits of spending, expiry. Limits of spending "
        f"count for each key by itself. A company has at most {KEYS_MAX} keys in each state that can be used.",
        (Success(201, "The key.", {"made": ("With the key itself", _made)}, schema=_AS_KEY),),
        body=Body("KeyBody", "A key for a till", _new_body),
    ),
    Op.KEY: Words("findKey", "Find key", KEYS, "One key, without the key itself.", _SHOWN, (_ID,)),
    Op.CHANGE_KEY: Words(
        "changeKey",
        "Change key",
        KEYS,
        "Changes what is sent and leaves the rest; nothing can be set beyond what the calling key has itself. It holds "
        "everywhere within a second. A key that can no longer be used, or was replaced, stays as it is.",
        _SHOWN,
        (_ID,),
        Body("KeyBody", "Only from the office", lambda: Raw(b'{"allowIps":["192.0.2.0/24"]}')),
    ),
    Op.REVOKE_KEY: Words(
        "revokeKey",
        "Revoke key",
        KEYS,
        "Ends a key's life, for good and everywhere within a second. The calling key may end its own.",
        (Success(204, "It is revoked."),),
        (_ID,),
    ),
    Op.ROTATE_KEY: Words(
        "rotateKey",
        "Rotate key",
        KEYS,
        "Makes a key like this one, which is in the answer, this once, and lets the old one expire after the overlap "
        "of your choice. Both can be used until then. The event `key.rotated` tells it. A key that may do more than "
        "the calling one can not be rotated by it.",
        (Success(201, "The new key.", {"rotated": ("With the key itself", _made)}, schema=_AS_KEY),),
        (_ID,),
        Body("KeyRotation", "One hour for both", lambda: Raw(b'{"overlapSeconds":3600}'), required=False),
    ),
}
