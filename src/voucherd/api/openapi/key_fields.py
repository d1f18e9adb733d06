"""What every field of API keys means."""

from __future__ import annotations

from typing import Any, Final

from voucherd.api.key_requests import OVERLAP_S_MAX
from voucherd.keys.key_text import ALLOW_IPS_MAX, DESCRIPTION_CHARACTERS_MAX, RATE_LIMIT_MAX, Scope
from voucherd.keys.store import STANDINGS

_TIME: Final[dict[str, Any]] = {"format": "date-time"}
_ID: Final[dict[str, Any]] = {"pattern": "^key_[0-9A-Z]{26}$"}
_TEXT: Final[dict[str, Any]] = {"maxLength": DESCRIPTION_CHARACTERS_MAX}
_SCOPES: Final[dict[str, Any]] = {"items": {"type": "string", "enum": list(Scope)}}
_RATE: Final[dict[str, Any]] = {"minimum": 1, "maximum": RATE_LIMIT_MAX}
_EUR: Final[dict[str, Any]] = {"exclusiveMinimum": 0}
_NETWORKS: Final[dict[str, Any]] = {"maxItems": ALLOW_IPS_MAX}

Fields = dict[str, tuple[str, dict[str, Any]]]

API_KEY: Final[Fields] = {
    "id": ("Name of the key; it opens nothing.", _ID),
    "state": ("What the key works on.", {"enum": ["live", "sandbox"]}),
    "prefix": ("How the key begins, to recognise it by.", {"pattern": "^vk_(live|test)_[0-9A-Za-z]{6}$"}),
    "standing": (
        "Whether the key can be used: `valid` and `replaced` can, the latter for the rest of its overlap; `expired` "
        "and `revoked` can not.",
        {"enum": list(STANDINGS)},
    ),
    "isCaller": ("Whether it is the key that makes this call.", {}),
    "description": ("Your own text.", _TEXT),
    "scopes": ("What the key may do.", _SCOPES),
    "allowIps": ("The networks that the key may be used from; none for any.", _NETWORKS),
    "rateLimit": ("Requests a minute.", _RATE),
    "spendOrderEur": ("The most that an order may cost, in EUR. Null for no limit.", _EUR),
    "spendDayEur": ("The most that the key may spend in a day (UTC), in EUR. Null for no limit.", _EUR),
    "dateCreated": ("When it was made.", _TIME),
    "dateLastUsed": ("When it was last used, to a few seconds. Null if it never was.", _TIME),
    "dateExpires": ("From when on it can not be used. Null if it does not expire.", _TIME),
    "dateRevoked": ("When it was revoked. Null if it was not.", _TIME),
    "replacedBy": ("The id of the key that a rotation replaced it by.", _ID),
    "key": (
        "The key itself. Only in the answer that makes it.",
        {"pattern": "^vk_(live|test)_[0-9A-Za-z]{38}$"},
    ),
}
KEY_BODY: Final[Fields] = {
    "description": ("Your own text.", _TEXT),
    "scopes": (
        "What the key may do; each must be a scope of the calling key. If it is not sent, a new key has all of those "
        "but `keys:write`.",
        {"minItems": 1},
    ),
    "allowIps": (
        "The networks that it may be used from, such as `192.0.2.0/24` or `2001:db8::1`; none for any. They must lie "
        "within those of the calling key, if it has any.",
        _NETWORKS,
    ),
    "rateLimit": ("Requests a minute, at most those of the calling key.", _RATE),
    "dateExpires": (
        "From when on it can not be used: a date (its first moment) or date-time of ISO 8601, in UTC unless it names "
        "a zone, and not after that of the calling key. Null for never.",
        {},
    ),
    "spendOrderEur": (
        "The most that an order may cost, in EUR, and not above that of the calling key. Null for no limit.",
        _EUR,
    ),
    "spendDayEur": (
        "The most that it may spend in a day (UTC), in EUR, and not above that of the calling key. Null for no limit.",
        _EUR,
    ),
}

FIELDS: Final[dict[str, Fields]] = {
    "ApiKey": API_KEY,
    "ApiKeyPage": {"data": ("The keys of the page.", {}), "metadata": ("Where the page stands.", {})},
    "KeyBody": KEY_BODY,
    "KeyRotation": {
        "overlapSeconds": (
            "How long the old key can still be used. One day unless it is sent.",
            {"minimum": 0, "maximum": OVERLAP_S_MAX},
        )
    },
}
