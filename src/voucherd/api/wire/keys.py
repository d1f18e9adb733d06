"""The shapes of API keys: everything about one but the key."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from voucherd.api.wire.fields import DateMade, Environment, KeyId, Moment, doc, rule
from voucherd.api.wire.numbers import Number
from voucherd.api.wire.shapes import WalkedPage
from voucherd.clock import written
from voucherd.ids import Identifiers
from voucherd.keys.key_text import ALLOW_IPS_MAX, DESCRIPTION_CHARACTERS_MAX, RATE_LIMIT_MAX, Scope
from voucherd.keys.store import STANDINGS, Key
from voucherd.money import digits, plain

_TEXT: Final = "^vk_(live|test)_[0-9A-Za-z]{%d}$"
Spend: TypeAlias = Annotated[Number | None, rule(exclusiveMinimum=0)]


class ApiKey(Struct, kw_only=True):
    """An API key, as its owner may see it."""

    id: Annotated[KeyId, doc("Name of the key; it opens nothing.")]
    state: Annotated[Environment, doc("What the key works on.")]
    prefix: Annotated[str, doc("How the key begins, to recognise it by.", pattern=_TEXT % 6)]
    standing: Annotated[
        str,
        doc(
            "Whether the key can be used: `valid` and `replaced` can, the latter for the rest of its overlap; "
            "`expired` and `revoked` can not.",
            enum=STANDINGS,
        ),
    ]
    isCaller: Annotated[bool, doc("Whether it is the key that makes this call.")]
    description: Annotated[str, doc("Your own text.", maxLength=DESCRIPTION_CHARACTERS_MAX)]
    scopes: Annotated[list[Annotated[str, rule(enum=list(Scope))]], doc("What the key may do.")]
    allowIps: Annotated[
        list[str], doc("The networks that the key may be used from; none for any.", maxItems=ALLOW_IPS_MAX)
    ]
    rateLimit: Annotated[int, doc("Requests a minute.", minimum=1, maximum=RATE_LIMIT_MAX)]
    spendOrderEur: Annotated[Spend, doc("The most that an order may cost, in EUR. Null for no limit.")]
    spendDayEur: Annotated[
        Spend, doc("The most that the key may spend in a day (UTC), in EUR. Null for no limit.")
    ]
    dateCreated: DateMade
    dateLastUsed: Annotated[
        Moment | None, doc("When it was last used, to a few seconds. Null if it never was.")
    ]
    dateExpires: Annotated[Moment | None, doc("From when on it can not be used. Null if it does not expire.")]
    dateRevoked: Annotated[Moment | None, doc("When it was revoked. Null if it was not.")]
    replacedBy: Annotated[KeyId | None, doc("The id of the key that a rotation replaced it by.")]
    madeWith: Annotated[
        KeyId | None,
        doc(
            "The id of the key that it was made with, and ends with. Null if people or the operator made it."
        ),
    ]
    confirmsAlone: Annotated[
        bool,
        doc(
            "Whether it confirms orders for which your company asks for a second person. Only an owner of your "
            "company, or the operator, can change it."
        ),
    ]
    withheldScopes: Annotated[
        list[Annotated[str, rule(enum=list(Scope))]],
        doc(
            "Scopes that it was given and lost, because the person who made it has lost the right to it. They wait "
            "for an owner of your company, who may keep the key."
        ),
    ]
    key: Annotated[
        str | UnsetType, doc("The key itself. Only in the answer that makes it.", pattern=_TEXT % 38)
    ] = UNSET


class ApiKeyPage(Struct):
    """A page of keys."""

    data: Annotated[list[ApiKey], doc("The keys of the page.")]
    metadata: WalkedPage


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
        madeWith=None if key.parent_id is None else ids.key(key.parent_id),
        confirmsAlone=key.confirms_alone,
        withheldScopes=sorted(key.withheld),
        key=UNSET if text is None else text,
    )


def _eur(minor: int | None) -> Number | None:
    return None if minor is None else Raw(plain(minor, digits("EUR")).encode())


def _moment(at: datetime | None) -> str | None:
    return None if at is None else written(at)
