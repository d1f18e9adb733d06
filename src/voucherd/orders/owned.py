"""Whose orders calls are about: what is not the caller's own is not looked at, like what is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from voucherd.ids import State

NOWHERE: Final = -1
"""The number of no order: whoever asks for something that is no trx has to wait as long as for one that is not his."""


class OrderCommand(Protocol):
    """A call about an order, if it is one."""

    @property
    def order_id(self) -> int | None:
        """The order."""

    @property
    def company_id(self) -> int:
        """Whose it has to be."""

    @property
    def state(self) -> State:
        """Where it has to be."""


def owned(asked: Iterable[OrderCommand]) -> tuple[list[int], list[int]]:
    """The orders that are asked for, each once, and the companies that must own them."""
    pairs = {
        (
            NOWHERE if one.order_id is None or one.order_id & 1 != one.state else one.order_id,
            one.company_id,
        )
        for one in asked
    }
    return [order_id for order_id, _ in pairs], [company_id for _, company_id in pairs]
