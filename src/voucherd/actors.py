"""Who does something, and what the audit trail is to say of it. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, TypeAlias

from msgspec import Struct

from voucherd.ids import State

Address: TypeAlias = IPv4Address | IPv6Address | str


class ActorKind(IntEnum):
    """What sort of somebody did it."""

    OPERATOR = 0  # A person of the operator's own.
    PERSON = 1  # A person of a company.
    KEY = 2  # An API key.
    COMMAND = 3  # Somebody at the command line.
    SYSTEM = 4  # The service itself.
    RECIPIENT = 5  # The holder of a redemption link.

    @property
    def word(self) -> str:
        """The kind in lower case."""
        return self.name.lower()


class Actor(Struct, frozen=True):
    """Who does something, and from where; the name says it for people, even when the row of the id is gone."""

    kind: ActorKind
    name: str
    id: int | None = None
    company_id: int | None = None
    """The company of this person or key; None for the operator, the system and the command line."""
    state: State | None = None
    """Live or sandbox, where the actor is at work in one of them."""
    address: Address | None = None
    request_id: str | None = None


SYSTEM: Final = Actor(ActorKind.SYSTEM, "voucherd")


class TrailEntry(Struct, frozen=True):
    """One deed. The action is a word such as `key.revoke`, the subject what it was done to, such as `key 17`."""

    actor: Actor
    action: str
    subject: str
    company_id: int | None = None
    state: State | None = None
    address: Address | None = None
    request_id: str | None = None
    detail: Mapping[str, Any] | None = None
    """What else there is to know, as JSON. Never a secret."""
