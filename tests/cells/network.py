"""A switch and machines on it, each a network namespace: what happens to one's cable is no news to the others."""

from __future__ import annotations

import os
import random
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

from tests.anywhere.programs import needed

TRIES_MAX: Final = 20


def _ip(*words: str) -> str:
    return subprocess.run([needed("ip"), *words], check=True, capture_output=True, text=True).stdout


class Network:
    """Machines by name; this process is on the switch, too."""

    def __init__(self, names: Sequence[str]) -> None:
        self._tag = secrets.token_hex(3)
        self._bridge = f"vb{self._tag}"
        self._prefix = _free_prefix()
        self._numbers = {name: at for at, name in enumerate(names, start=2)}

    def address(self, name: str) -> str:
        """Where a machine is found."""
        return self._address(self._numbers[name])

    def inside(self, name: str) -> tuple[str, ...]:
        """What a command begins with that runs on this machine."""
        return (needed("ip"), "netns", "exec", self._namespace(name))

    def plug_in(self) -> None:
        """Make the switch and all machines."""
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._address(1)}/28", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for name, number in self._numbers.items():
            space, cable = self._namespace(name), self._cable(name)
            _ip("netns", "add", space)
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", cable, "master", self._bridge, "up")
            _ip("-n", space, "addr", "add", f"{self._address(number)}/28", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def cut(self, name: str) -> None:
        """Take a machine's cable out of the switch: packets get lost, and nobody is told."""
        _ip("link", "set", self._cable(name), "nomaster")

    def heal(self, name: str) -> None:
        """Put it back."""
        _ip("link", "set", self._cable(name), "master", self._bridge)

    def take_down(self) -> None:
        """Remove all of it, as far as it is there."""
        spaces = [("netns", "del", self._namespace(name)) for name in self._numbers]
        for words in (*spaces, ("link", "del", self._bridge)):
            subprocess.run([needed("ip"), *words], check=False, capture_output=True)

    def _address(self, number: int) -> str:
        return f"198.18.{self._prefix >> 4}.{((self._prefix & 15) << 4) + number}"

    def _namespace(self, name: str) -> str:
        return f"voucherd-{self._tag}-{name}"

    def _cable(self, name: str) -> str:
        return f"vc{self._tag}{self._numbers[name]}"


def _free_prefix() -> int:
    """One of the small networks of the range for such tests (RFC 2544) that nobody here uses."""
    taken = _ip("-o", "-4", "addr", "show")
    for _ in range(TRIES_MAX):
        prefix = random.randrange(16 * 256)
        if f" 198.18.{prefix >> 4}.{((prefix & 15) << 4) + 1}/28 " not in taken:
            return prefix
    raise AssertionError(taken)


@contextmanager
def machines(*names: str) -> Iterator[Network]:
    """A network of these machines; nothing of it is left afterwards."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces: the cells were NOT tested")
    network = Network(names)
    try:
        network.plug_in()
        yield network
    finally:
        network.take_down()
