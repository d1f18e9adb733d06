"""Strangers: requests without a valid key have an allowance by address, so that guessing keys is cheap to refuse."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import monotonic
from typing import Final

from voucherd.networks import network_of

STRANGERS_A_MINUTE: Final = 300
MINUTE_S: Final = 60.0
ADDRESSES_MAX: Final = 20_000
"""Addresses that are counted at once; beyond it the one that was seen first starts anew."""


class TooManyStrangers(Exception):
    """The address has used up what it may try without a valid key."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"again in {wait_s} s")
        self.wait_s = wait_s


class Strangers:
    """Counts by address, in this process and in memory alone: the database hears nothing of it."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._a_minute = a_minute
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def check(self, address: str) -> None:
        """Refuse an address that has used up its minute."""
        ends_at, count = self._counts.get(network_of(address), (0.0, 0))
        left_s = ends_at - self._clock()
        if count >= self._a_minute and left_s > 0:
            raise TooManyStrangers(ceil(left_s))

    def count(self, address: str) -> None:
        """One more request without a valid key."""
        network = network_of(address)
        now = self._clock()
        ends_at, count = self._counts.get(network, (0.0, 0))
        if now >= ends_at:
            # Begun anew at the end of the line, so that those who began first are the first to be forgotten.
            self._counts.pop(network, None)
            if len(self._counts) >= ADDRESSES_MAX:
                del self._counts[next(iter(self._counts))]
            ends_at, count = now + MINUTE_S, 0
        self._counts[network] = ends_at, count + 1
