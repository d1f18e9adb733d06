"""Counts of what this process sold and refused, and of its waits for a connection: plain numbers, for the metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from voucherd.orders.model import Order
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Status

WAIT_SECONDS: Final = (0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""The upper ends of the buckets; one more is open."""

_PAYS: Final = frozenset({"confirm", "resolve"})


class SalesCounts:
    """Orders by operation and state, what was charged by currency, refusals by reason."""

    def __init__(self) -> None:
        self.orders: dict[tuple[str, int], int] = {}
        self.charged_minor: dict[tuple[str, int], int] = {}
        self.refusals: dict[tuple[str, str], int] = {}
        self.waits = [0] * (len(WAIT_SECONDS) + 1)
        self.waited_s = 0.0

    def waited(self, seconds: float) -> None:
        """A batch waited this long for a connection."""
        self.waits[bisect_left(WAIT_SECONDS, seconds)] += 1
        self.waited_s += seconds

    def note(self, operation: str, answers: Sequence[Order | Refusal]) -> None:
        """Count the answers of one batch that was stored."""
        charged, pays, made = self.charged_minor, operation in _PAYS, [0, 0]
        finished, pending = Status.FINISHED, Status.PENDING
        for answer in answers:
            if isinstance(answer, Order):
                state = answer.id & 1
                made[state] += 1
                if pays and (answer.status is finished or answer.status is pending):
                    money = (answer.payment_currency, state)
                    charged[money] = charged.get(money, 0) + answer.charged_minor
            else:
                refusal = (operation, type(answer).__name__)
                self.refusals[refusal] = self.refusals.get(refusal, 0) + 1
        for state, count in enumerate(made):
            if count:
                self.orders[operation, state] = self.orders.get((operation, state), 0) + count
