"""Words of the service that a program decides by. A word that is new here is kept as it came."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word of a list that may grow: one that this version does not know compares as the text that it is."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        made = str.__new__(cls, value)
        made._name_ = "UNKNOWN"
        made._value_ = value
        return made


class OrderStatus(Word):
    """Where an order stands."""

    CREATED = "created"
    PENDING = "pending"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class LineStatus(Word):
    """Where a line stands."""

    PENDING = "pending"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class State(Word):
    """What a key works on."""

    LIVE = "live"
    SANDBOX = "sandbox"
