"""The ticket of a request that may be sent again, and what a claim of it is told (OP-28). Pure data."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

KEPT_DAYS: Final = 30
KEY_CHARS_MAX: Final = 255


class TicketTaken(Exception):
    """The ticket is another call's by now: what this one has done is undone, and what it would say is not said."""


class Ticket(Struct, frozen=True):
    """The right to do what a key asks for, once."""

    company_id: int
    state: int
    key: bytes
    """The hash of the key: it may hold anything, and is nobody's business."""
    fence: int = 0
    """Which claim of it this is; a later claim takes the right away."""


class Claim(Struct, frozen=True):
    """A request that asks for its ticket."""

    ticket: Ticket
    request: bytes
    """The hash of the request."""
    asked_by: int
    """The API key, or the first of those that rotations made of one another."""


class ClaimResult(Enum):
    """What a claim was told."""

    GO = "go"  # It is the first, or the first one came to nothing.
    WAIT = "wait"  # The first one is still running.
    OTHER = "other"  # The key was used for another request.
    FOREIGN = "foreign"  # Another API key of the company has used it: this one needs a ticket of its own.
    ANSWERED = "answered"  # The first one has its answer.
    DONE = "done"  # The first one changed its order, and never got to answer.


class KnownRequest(Struct, frozen=True):
    """What a claim was told, and what goes with it."""

    turn: ClaimResult
    order_id: int | None = None
    answer: bytes | None = None
    fence: int = 0
    """Of a claim that may go, or whose work is done."""
