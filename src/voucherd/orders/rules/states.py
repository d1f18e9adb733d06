"""The states of an order as data. A status is assigned by `move` and nowhere else. Pure."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final


class Status(IntEnum):
    """An order's status; the number is what the database keeps."""

    CREATED = 0
    PENDING = 1
    FINISHED = 2
    CANCELLED = 3
    DELETED = 4


class Payment(IntEnum):
    """How far an order is paid (OP-11)."""

    UNPAID = 0
    PAID = 1
    PARTIALLY_REFUNDED = 2
    REFUNDED = 3


class Move(IntEnum):
    """What can happen to an order."""

    PAID = auto()
    HELD = auto()
    DECLINED = auto()
    WITHDRAWN = auto()
    DELIVERED = auto()
    CANCELLED = auto()


MOVES: Final[dict[tuple[Status, Move], Status]] = {
    (Status.CREATED, Move.PAID): Status.PENDING,  # Confirm, or Resolve from stock: the balance is debited.
    (Status.CREATED, Move.HELD): Status.PENDING,  # Resolve that must wait: the money is held, not taken.
    (Status.CREATED, Move.DECLINED): Status.CANCELLED,  # Sandbox only, by chance or by choice (OP-49).
    (Status.CREATED, Move.WITHDRAWN): Status.DELETED,  # Cancel before confirmation.
    (Status.PENDING, Move.DELIVERED): Status.FINISHED,  # The last line got its code.
    (
        Status.PENDING,
        Move.CANCELLED,
    ): Status.CANCELLED,  # Cancel, Resolve's limit, or the delivery window's end.
}
"""Contract 3. "Within 20-30 seconds" is no transition of its own: Confirm merely watches."""


class IllegalMove(AssertionError):
    """A programmer's error: the refusals before it should have stopped this."""


def move(status: Status, event: Move) -> Status:
    """The status after the event."""
    try:
        return MOVES[status, event]
    except KeyError:
        raise IllegalMove(f"{event.name.lower()} on an order that is {status.name.lower()}") from None
