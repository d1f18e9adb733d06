"""API keys as they are known once they are stored: everything but the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.key_text import KeyDraft, Network, Scope


class KeyNotFound(LookupError):
    """There is no such key."""

    def __init__(self, key_id: int) -> None:
        super().__init__(f"there is no key {key_id}")
        self.key_id = key_id


class KeyNotUsable(ValueError):
    """The key is revoked, has expired or was replaced already, so it can't be rotated."""

    def __init__(self, key_id: int) -> None:
        super().__init__(f"key {key_id} is revoked, expired or replaced already")
        self.key_id = key_id


class Key(NamedTuple):
    """A key as its owner may see it: everything but the key."""

    id: int
    company_id: int
    state: State
    prefix: str
    description: str
    scopes: frozenset[Scope]
    allow_ips: tuple[Network, ...]
    rate_limit: int
    expires_at: datetime | None
    revoked_at: datetime | None
    replaced_by: int | None
    created_at: datetime
    last_used_at: datetime | None
    spend_order_eur_minor: int | None
    spend_day_eur_minor: int | None

    @property
    def draft(self) -> KeyDraft:
        """What it may do, as it would be said of a new one."""
        return KeyDraft(
            self.description,
            self.scopes,
            self.allow_ips,
            self.rate_limit,
            self.expires_at,
            self.spend_order_eur_minor,
            self.spend_day_eur_minor,
        )

    def standing(self, now: datetime) -> str:
        """Whether it can be used: `valid`, `replaced` (for the rest of the overlap), `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "valid" if self.replaced_by is None else "replaced"


STANDINGS: Final = ("valid", "replaced", "expired", "revoked")


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key that was just stored, and its text, to be shown this once."""

    id: int
    prefix: str
    text: str = field(repr=False)


class FoundKey(NamedTuple):
    """A key that may be used, its company, and the epoch in which both were read."""

    key: Key
    hash: bytes
    company: Company
    epoch: int
