"""A request that one person makes and another one allows, and who may decide about it (OP-93). Pure."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum

from msgspec import Struct

from voucherd.ids import State
from voucherd.money import Money


class ApprovalKind(IntEnum):
    """The kind of request."""

    ORDER = 1
    TOP_UP = 2
    CORRECTION = 3

    @property
    def word(self) -> str:
        """The kind for people."""
        return self.name.lower().replace("_", "-")


class ApprovalStatus(IntEnum):
    """What became of it."""

    OPEN = 0
    APPROVED = 1
    REJECTED = 2
    ENDED = 3

    @property
    def word(self) -> str:
        """The status for people."""
        return self.name.lower()


class ApprovalNotFound(LookupError):
    """There is no such request here."""


class ApprovalClosed(ValueError):
    """It was decided before, or its time is over."""


class SamePerson(ValueError):
    """Nobody allows what he asked for himself."""


class AlreadyProposed(ValueError):
    """The same payment waits for approval already."""


class Approval(Struct, frozen=True):
    """A request, and what became of it."""

    id: int
    kind: ApprovalKind
    company_id: int
    state: State
    order_id: int | None
    amount_minor: int
    currency: str
    reference: str | None
    note: str
    requested_by: int
    requested_at: datetime
    ends_at: datetime
    status: ApprovalStatus
    decided_at: datetime | None
    over: bool
    """Its time has passed without a decision."""
    company: str
    requester: str
    """The address of who asked."""
    decider: str | None
    requester_name: str
    """Empty for who has told none."""
    decider_name: str | None

    @property
    def money(self) -> Money:
        """What it is about."""
        return Money(self.amount_minor, self.currency)

    @property
    def open(self) -> bool:
        """Whether it can be decided."""
        return self.status is ApprovalStatus.OPEN and not self.over

    @property
    def word(self) -> str:
        """Its status for people."""
        return ApprovalStatus.ENDED.word if self.over else self.status.word


class Consent(Struct, frozen=True):
    """A second person's yes to a request, to be written down with what it allows."""

    number: int
    by: int


def needed(approve_from_eur_minor: int | None, eur_minor: int) -> bool:
    """Whether an order that costs this much needs a second person."""
    return approve_from_eur_minor is not None and eur_minor >= approve_from_eur_minor


def refuse(approval: Approval | None, decided_by: int) -> Approval:
    """The request, if this person may decide about it; refused otherwise."""
    if approval is None:
        raise ApprovalNotFound
    if not approval.open:
        raise ApprovalClosed
    if approval.requested_by == decided_by:
        raise SamePerson
    return approval
