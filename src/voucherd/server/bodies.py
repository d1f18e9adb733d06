"""How many bytes of bodies a process holds, and how many of them one address may have it hold."""

from __future__ import annotations

from typing import Final

from voucherd.http import HttpError
from voucherd.networks import network_of

_RETRY_SOON: Final = [(b"retry-after", b"5")]


class BodyBytes:
    """Lets bodies in as long as there is room for them, so that one address can't take all of it."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self._most = most
        self._most_of_address = most_of_address
        self._of_network: dict[str, int] = {}
        self.held = 0

    def take(self, address: str, size: int) -> HttpError | None:
        """Hold so many bytes more, which must be given back; or why there is no room for them."""
        network = network_of(address)
        held = self._of_network.get(network, 0)
        if self.held + size > self._most:
            text = "too much is being sent at once"
            return HttpError(503, "busy", text, headers=_RETRY_SOON, retryable=True)
        if held + size > self._most_of_address:
            text = "too much is being sent at once from this address"
            return HttpError(429, "too_much_at_once", text, headers=_RETRY_SOON, retryable=True)
        self._of_network[network] = held + size
        self.held += size
        return None

    def give_back(self, address: str, size: int) -> None:
        """So many bytes that were taken are not held any more."""
        if not size:
            return
        network = network_of(address)
        held = self._of_network.pop(network) - size
        if held:
            self._of_network[network] = held
        self.held -= size
