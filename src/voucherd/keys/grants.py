"""The rule for whoever makes keys: nobody hands on more than he has himself (OP-29, OP-99). Pure.

A key reaches no further than the key or the person that made it: in scopes, networks, requests a minute, time and
money. What a person has is a matter of the role, and `RIGHT_FOR` is the one map from scopes to rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from voucherd.keys.key_text import (
    RATE_LIMIT_DEFAULT,
    RATE_LIMIT_MAX,
    TERMS,
    KeyDraft,
    KeyTerms,
    KeyWish,
    Network,
    Scope,
)
from voucherd.people.roles import Right, rights_of

KEYS_MAX: Final = 100
"""Keys of a company in one state that can be used."""

OWNER: Final = "owner"
"""The role that keeps keys of others, and lets a key confirm alone."""

RIGHT_FOR: Final[dict[Scope, Right]] = {
    Scope.ORDERS_READ: Right.ORDERS_VIEW,
    Scope.ORDERS_WRITE: Right.ORDERS_PLACE,
    Scope.CODES_READ: Right.CODES_VIEW,
    Scope.CATALOGUE_READ: Right.ORDERS_VIEW,
    Scope.WALLET_READ: Right.WALLET_VIEW,
    Scope.EVENTS_READ: Right.ORDERS_VIEW,
    Scope.WEBHOOKS_WRITE: Right.WEBHOOKS_MANAGE,
    Scope.KEYS_WRITE: Right.KEYS_MANAGE,
}
"""The right that a person needs for a key with this scope."""


class BeyondOwn(Exception):
    """The key would hand on more than it has; `field` says of what."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def reach_of(role: str) -> KeyTerms:
    """The strongest key that a company's person of this role could have; nobody's role is empty."""
    rights = rights_of(role, of_company=True)
    scopes = frozenset(scope for scope, right in RIGHT_FOR.items() if right in rights)
    return KeyTerms(scopes=scopes, rate_limit=RATE_LIMIT_MAX, confirms_alone=role == OWNER)


def bounded(given: KeyTerms, maker_role: str | None) -> KeyTerms:
    """What is left of a key's terms, with the person who answers for it in this role; None: no person does."""
    if maker_role is None:
        return given
    reach = reach_of(maker_role)
    return replace(
        given,
        scopes=given.scopes & reach.scopes,
        confirms_alone=given.confirms_alone and reach.confirms_alone,
    )


def new_draft(own: KeyTerms | None, wish: KeyWish) -> KeyDraft:
    """The key that is asked for; one that a key makes can make no keys itself unless the wish says so."""
    if own is None:
        return KeyDraft(**wish)
    scopes = own.scopes - {Scope.KEYS_WRITE}
    if not scopes and "scopes" not in wish:
        raise BeyondOwn("scopes", "must be sent, because nothing but keys:write can be handed on")
    fields: dict[str, Any] = {name: getattr(own, name) for name in TERMS}
    fields |= {
        "description": "",
        "scopes": scopes,
        "rate_limit": min(own.rate_limit, RATE_LIMIT_DEFAULT),
        "confirms_alone": False,
    }
    draft = KeyDraft(**{**fields, **wish})
    require_within(own, draft)
    return draft


def changed_draft(own: KeyTerms | None, before: KeyDraft, wish: KeyWish) -> KeyDraft:
    """The other key after the change; refused unless it lies within the caller's own, before and afterwards."""
    if own is not None:
        require_within(own, replace(own, **wish))
        require_within(own, before)
    return replace(before, **wish)


def require_within(own: KeyTerms, asked: KeyTerms) -> None:
    """Refuse what goes beyond the key's own, or the person's."""
    if not asked.scopes <= own.scopes:
        more = ", ".join(sorted(asked.scopes - own.scopes))
        raise BeyondOwn("scopes", f"must be scopes of the calling key, which has not {more}")
    if asked.confirms_alone and not own.confirms_alone:
        raise BeyondOwn("confirmsAlone", "must be a right of the calling key")
    if not _inside(asked.allow_ips, own.allow_ips):
        raise BeyondOwn("allowIps", "must lie within those of the calling key")
    if asked.rate_limit > own.rate_limit:
        raise BeyondOwn("rateLimit", f"must be at most that of the calling key, {own.rate_limit}")
    if own.expires_at is not None and (asked.expires_at is None or asked.expires_at > own.expires_at):
        raise BeyondOwn("dateExpires", "must not be later than that of the calling key")
    if _above(asked.spend_order_eur_minor, own.spend_order_eur_minor):
        raise BeyondOwn("spendOrderEur", "must be at most that of the calling key")
    if _above(asked.spend_day_eur_minor, own.spend_day_eur_minor):
        raise BeyondOwn("spendDayEur", "must be at most that of the calling key")


def _inside(asked: Sequence[Network], own: Sequence[Network]) -> bool:
    """Whether every address on the one list is on the other; an empty list has them all."""
    if not own:
        return True
    return bool(asked) and all(any(_is_part(one, other) for other in own) for one in asked)


def _is_part(one: Network, other: Network) -> bool:
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def _above(asked_minor: int | None, own_minor: int | None) -> bool:
    return own_minor is not None and (asked_minor is None or asked_minor > own_minor)
