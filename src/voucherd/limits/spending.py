"""What a company or one of its keys may spend on an order and in a day. Pure."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from voucherd.ids import State

SpendKey: TypeAlias = tuple[int, int, int]
"""A company, one of its keys (0: the company as a whole), and a state."""


class SpendLimit(Struct, frozen=True):
    """A limit of a key (0: of its company as a whole), in euro cents."""

    key_id: int
    order_max: int | None
    day_max: int | None


def limits_of(*rows: tuple[int, int | None, int | None]) -> tuple[SpendLimit, ...]:
    """Those of these (key, order, day) that limit anything."""
    return tuple(SpendLimit(*row) for row in rows if row[1] is not None or row[2] is not None)


def spend_key(company_id: int, limit: SpendLimit, state: State) -> SpendKey:
    """Whose spending the limit counts."""
    return company_id, limit.key_id, int(state)
