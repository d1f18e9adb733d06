"""How many connections a process has open, and how many of them one address may have."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from voucherd.networks import network_of
from voucherd.setting_values import Network

FILES_KEPT: Final = 256
"""Files that a process needs beside its clients' connections: the database's, suppliers', receivers' of webhooks."""


class ConnectionCount:
    """Lets connections in as long as there is room, so that one address can't take all of it."""

    def __init__(self, most: int, most_of_address: int, proxies: Sequence[Network] = ()) -> None:
        self._most = most
        self._most_of_address = most_of_address
        self._proxies = proxies
        self._of_network: dict[str, int] = {}
        self.open = 0

    def enter(self, address: str) -> bool:
        """Whether a connection from this address may stay; it must `leave` once."""
        network = network_of(address)
        held = self._of_network.get(network, 0)
        if self.open >= self._most or (held >= self._most_of_address and not self._is_proxy(address)):
            return False
        self._of_network[network] = held + 1
        self.open += 1
        return True

    def leave(self, address: str) -> None:
        """A connection that was let in is gone."""
        network = network_of(address)
        held = self._of_network.pop(network) - 1
        if held:
            self._of_network[network] = held
        self.open -= 1

    def _is_proxy(self, address: str) -> bool:
        """Everybody comes from there."""
        if not self._proxies:
            return False
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(known.version == proxy.version and known in proxy for proxy in self._proxies)


def room_for(connections: int) -> int:
    """As many connections as the system lets us have, up to so many; asks it for as much as it gives."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + FILES_KEPT
    if soft not in (resource.RLIM_INFINITY,) and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else min(connections, max(1, soft - FILES_KEPT))
