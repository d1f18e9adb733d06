"""The shapes of API keys: everything about one but the key."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api.wire.numbers import Number
from voucherd.api.wire.shapes import WalkMetadata
from voucherd.clock import written
from voucherd.ids import Identifiers
from voucherd.keys.store import Key
from voucherd.money import digits, plain


class ApiKey(Struct, kw_only=True):
    """An API key, as its owner may see it."""

    id: str
    state: str
    prefix: str
    standing: str
    isCaller: bool
    description: str
    scopes: list[str]
    allowIps: list[str]
    rateLimit: int
    spendOrderEur: Number | None
    spendDayEur: Number | None
    dateCreated: str
    dateLastUsed: str | None
    dateExpires: str | None
    dateRevoked: str | None
    replacedBy: str | None
    key: str | UnsetType = UNSET


class ApiKeyPage(Struct):
    """A page of keys."""

    data: list[ApiKey]
    metadata: WalkMetadata


DOCUMENTED: Final = (ApiKey, ApiKeyPage)


def api_key(ids: Identifiers, key: Key, now: datetime, caller_id: int, text: str | None = None) -> ApiKey:
    """A key as clients see it; its text only in the moment in which it is made."""
    return ApiKey(
        id=ids.key(key.id),
        state=key.state.word,
        prefix=key.prefix,
        standing=key.standing(now),
        isCaller=key.id == caller_id,
        description=key.description,
        scopes=sorted(key.scopes),
        allowIps=[str(network) for network in key.allow_ips],
        rateLimit=key.rate_limit,
        spendOrderEur=_eur(key.spend_order_eur_minor),
        spendDayEur=_eur(key.spend_day_eur_minor),
        dateCreated=written(key.created_at),
        dateLastUsed=_moment(key.last_used_at),
        dateExpires=_moment(key.expires_at),
        dateRevoked=_moment(key.revoked_at),
        replacedBy=None if key.replaced_by is None else ids.key(key.replaced_by),
        key=UNSET if text is None else text,
    )


def _eur(minor: int | None) -> Number | None:
    return None if minor is None else Raw(plain(minor, digits("EUR")).encode())


def _moment(at: datetime | None) -> str | None:
    return None if at is None else written(at)
