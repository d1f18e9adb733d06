"""API keys as they are known once they are stored: everything but the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, cast

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.key_text import TERMS, KeyDraft, KeyTerms, KeyWish


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(KeyTerms):
    """A key as its owner may see it: everything but the key."""

    id: int
    company_id: int
    state: State
    prefix: str
    revoked_at: datetime | None = None
    replaced_by: int | None = None
    created_at: datetime
    last_used_at: datetime | None = None

    @property
    def wish(self) -> KeyWish:
        """What it may do, as it would be said of a new one."""
        return cast("KeyWish", {name: getattr(self, name) for name in TERMS})

    @property
    def draft(self) -> KeyDraft:
        """A new key that may do the same."""
        return KeyDraft(**self.wish)

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
