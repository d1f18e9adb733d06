"""The way out: a name is looked up once, all its addresses are checked, and the connection goes to one of those.

The connection pool asks for a name and gets a stream to a checked address. So there is no second look-up between the
check and the connection, TLS still proves the name, and a connection that is kept is kept for its name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import httpcore

from voucherd.events.webhooks.addresses import Address, Network, read_address
from voucherd.events.webhooks.targets import BadTarget, Target, check_address

ADDRESSES_MAX: Final = 16
"""A name with more addresses than this is not one receiver."""
TRIED_MAX: Final = 2
CONNECT_S_MAX: Final = 5.0
LOOK_UPS_MAX: Final = 32
"""Look-ups at once. They run in threads of their own: names that nobody answers for must hold up nothing else."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]


class Refused(Exception):
    """The guard does not let a delivery go there; the text says why."""


class Resolver:
    """Looks names up as this machine does."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOK_UPS_MAX, "webhook-names")

    async def __call__(self, host: str, port: int) -> list[str]:
        """The addresses of a name."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def checked(target: Target, texts: Sequence[str], own: Sequence[Network]) -> list[Address]:
    """The addresses to try. One that is not public spoils them all: an honest name has none."""
    if not 1 <= len(texts) <= ADDRESSES_MAX:
        raise Refused("the name has too many addresses" if texts else "the name has no address")
    addresses = []
    for text in texts:
        address = read_address(text)
        if address is None:
            raise Refused("the name leads to something that is no address")
        try:
            check_address(target, address, own)
        except BadTarget as rule:
            raise Refused(f"the address {rule}") from None
        addresses.append(address)
    return addresses[:TRIED_MAX]


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections for a pool of one scheme, to checked addresses and nowhere else."""

    def __init__(self, scheme: str, own: Sequence[Network], resolve: Resolve) -> None:
        self._scheme = scheme
        self._own = tuple(own)
        self._resolve = resolve
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - The pool's own interface.
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A stream to the host, at an address that was just checked."""
        assert local_address is None, "nobody asks for one"
        try:
            texts = [host] if read_address(host) is not None else await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise Refused("the name could not be looked up") from None
        failure: Exception | None = None
        for address in checked(Target(self._scheme, host, port, "/"), texts, self._own):
            try:
                return await self._network.connect_tcp(
                    str(address), port, timeout=timeout or CONNECT_S_MAX, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        assert failure is not None, "there was an address to try"
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - The pool's own interface.
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never: there is no receiver on a path of this machine."""
        raise Refused("not an address of a network")

    async def sleep(self, seconds: float) -> None:
        """The pool's pause between its own tries."""
        await asyncio.sleep(seconds)
