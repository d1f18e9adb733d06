"""What a key may hand on: never more than it has itself (OP-29). Pure.

Whoever holds a key that may make keys can do with them what that key can, as long and from where it can, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from voucherd.keys.key_text import RATE_LIMIT_DEFAULT, KeyDraft, Network, Scope

KEYS_MAX: Final = 100
"""Keys of a company in one state that can be used."""


class BeyondOwn(Exception):
    """The key would hand on more than it has; `field` says of what."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a key is to be; what is not said is as with the key that says it."""

    description: str | UnsetType = UNSET
    scopes: frozenset[Scope] | UnsetType = UNSET
    allow_ips: tuple[Network, ...] | UnsetType = UNSET
    rate_limit: int | UnsetType = UNSET
    expires_at: datetime | UnsetType | None = UNSET
    spend_order_eur_minor: int | UnsetType | None = UNSET
    spend_day_eur_minor: int | UnsetType | None = UNSET

    def said(self) -> dict[str, object]:
        """What is said, by name."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not UNSET}


def new_draft(own: KeyDraft, wishes: Wishes) -> KeyDraft:
    """The key that is asked for; it makes no keys itself unless it is said to."""
    plain = replace(
        own,
        description="",
        scopes=own.scopes - {Scope.KEYS_WRITE},
        rate_limit=min(own.rate_limit, RATE_LIMIT_DEFAULT),
    )
    draft = replace(plain, **wishes.said())  # type: ignore[arg-type]
    require_within(own, draft)
    return draft


def changed_draft(own: KeyDraft, before: KeyDraft, wishes: Wishes) -> KeyDraft:
    """The other key as it is to be; what is said must not go beyond one's own, what is not said stays."""
    require_within(own, replace(own, **wishes.said()))  # type: ignore[arg-type]
    return replace(before, **wishes.said())  # type: ignore[arg-type]


def require_within(own: KeyDraft, asked: KeyDraft) -> None:
    """Refuse what goes beyond the key's own."""
    if not asked.scopes <= own.scopes:
        more = ", ".join(sorted(asked.scopes - own.scopes))
        raise BeyondOwn("scopes", f"must be scopes of the calling key, which has not {more}")
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
