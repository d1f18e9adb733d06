"""A limit on redemption links that lead nowhere, by address. Pure, but for its clock."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

WINDOW_S: Final = 600.0
UNKNOWN_MAX: Final = 60
"""Links without a voucher that one address may open in a window."""
ADDRESSES_MAX: Final = 100_000


class UnknownLinks:
    """Counts links that lead nowhere, by address: nobody tries many by mistake."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def spent(self, address: str) -> bool:
        """Whether this address has tried too many."""
        began, count = self._counts.get(address, (0.0, 0))
        return count >= UNKNOWN_MAX and self._clock() - began < WINDOW_S

    def note(self, address: str) -> None:
        """One more link of this address led nowhere."""
        now = self._clock()
        began, count = self._counts.pop(address, (now, 0))
        if now - began >= WINDOW_S:
            began, count = now, 0
        if len(self._counts) >= ADDRESSES_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[address] = (began, count + 1)
