"""The rule for keys that make keys: a key hands on no more than it has itself (OP-29). Pure.

The new key reaches no further than the calling one: in scopes, networks, requests a minute, time and money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from voucherd.keys.key_text import RATE_LIMIT_DEFAULT, TERMS, KeyDraft, KeyTerms, KeyWish, Network, Scope

KEYS_MAX: Final = 100
"""Keys of a company in one state that can be used."""


class BeyondOwn(Exception):
    """The key would hand on more than it has; `field` says of what."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def new_draft(own: KeyTerms | None, wish: KeyWish) -> KeyDraft:
    """The key that is asked for; one that a key makes can make no keys itself unless the wish says so."""
    if own is None:
        return KeyDraft(**wish)
    plain = KeyDraft(**{name: getattr(own, name) for name in TERMS})
    plain = replace(
        plain,
        description="",
        scopes=own.scopes - {Scope.KEYS_WRITE},
        rate_limit=min(own.rate_limit, RATE_LIMIT_DEFAULT),
    )
    draft = replace(plain, **wish)
    require_within(own, draft)
    return draft


def changed_draft(own: KeyTerms | None, before: KeyDraft, wish: KeyWish) -> KeyDraft:
    """The other key after the change; wished fields stay within the caller's own, the others stay as they are."""
    if own is not None:
        require_within(own, replace(own, **wish))
    return replace(before, **wish)


def require_within(own: KeyTerms, asked: KeyTerms) -> None:
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
