"""API keys as they are known once they are stored: everything but the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, cast

from voucherd.companies.model import Company
from voucherd.ids import State
from voucherd.keys.key_text import TERMS, KeyDraft, KeyTerms, KeyWish, Scope


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
    made_by: int | None = None
    """The person who answers for it."""
    parent_id: int | None = None
    """The key that it was made with."""
    first_id: int | None = None
    """The first of the keys that rotations made of one another; None for that one itself."""
    withheld: frozenset[Scope] = frozenset()
    """Scopes that it was given and lost with the person who answers for it: they wait for an owner (OP-99)."""
    withheld_alone: bool = False
    """The same of its right to confirm alone."""

    @property
    def counter_id(self) -> int:
        """The key by whose number its spending is counted and its requests are known again."""
        return self.id if self.first_id is None else self.first_id

    @property
    def waits(self) -> bool:
        """Whether an owner has to say that it stays as it was."""
        return bool(self.withheld) or self.withheld_alone

    @property
    def wish(self) -> KeyWish:
        """What it was given, as it would be said of a new one."""
        given = {name: getattr(self, name) for name in TERMS}
        given |= {
            "scopes": self.scopes | self.withheld,
            "confirms_alone": self.confirms_alone or self.withheld_alone,
        }
        return cast("KeyWish", given)

    @property
    def given(self) -> KeyTerms:
        """What it was given, whatever is withheld of it now."""
        return KeyTerms(**self.wish)

    @property
    def draft(self) -> KeyDraft:
        """A new key that is given the same."""
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
    limits_above: list[tuple[int, int | None, int | None]]
    """The (key, order, day) limits of the keys that it was made with, directly or not."""
    epoch: int
