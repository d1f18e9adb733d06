"""The way out: a name is looked up once, all its addresses are checked, and the connection goes to one of those.

There is no second look-up between the check and the connection, so a name server that changes its mind gains nothing.
TLS proves the name, not the address.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias, TypeVar

from voucherd.webhooks.addresses import Address, Network, read_address
from voucherd.webhooks.targets import BadTarget, WebhookTarget, check_address

ADDRESSES_MAX: Final = 16
"""A name with more addresses than this is not one receiver."""
TRIED_MAX: Final = 2
CONNECT_S_MAX: Final = 5.0
"""For one address, TLS included."""
LOOK_UPS_MAX: Final = 32
"""Look-ups at once. They run in threads of their own: names that nobody answers for must hold up nothing else."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
P = TypeVar("P", bound=asyncio.Protocol)


class AddressRefused(Exception):
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


def checked(target: WebhookTarget, texts: Sequence[str], own: Sequence[Network]) -> list[Address]:
    """The addresses to try. One that is not public spoils them all: an honest name has none."""
    if not 1 <= len(texts) <= ADDRESSES_MAX:
        raise AddressRefused("the name has too many addresses" if texts else "the name has no address")
    addresses = []
    for text in texts:
        address = read_address(text)
        if address is None:
            raise AddressRefused("the name leads to something that is no address")
        try:
            check_address(target, address, own)
        except BadTarget as rule:
            raise AddressRefused(f"the address {rule}") from None
        addresses.append(address)
    return addresses[:TRIED_MAX]


async def connect(
    target: WebhookTarget,
    own: Sequence[Network],
    resolve: Resolve,
    trusted: ssl.SSLContext,
    protocol: Callable[[], P],
) -> P:
    """A connection to the target, at an address that was just checked; OSError if none of them answers."""
    try:
        literal = read_address(target.host)
        texts = [str(literal)] if literal is not None else await resolve(target.host, target.port)
    except (OSError, UnicodeError):
        raise AddressRefused("the name could not be looked up") from None
    failure: OSError | None = None
    for address in checked(target, texts, own):
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                return await _connected(target, address, trusted, protocol)
        except ssl.SSLCertVerificationError:
            raise
        except TimeoutError:
            failure = TimeoutError("no connection in time")
        except OSError as error:
            failure = error
    assert failure is not None, "there was an address to try"
    raise failure


async def _connected(
    target: WebhookTarget, address: Address, trusted: ssl.SSLContext, protocol: Callable[[], P]
) -> P:
    tls: dict[str, Any] = {}
    if target.scheme == "https":
        tls = {"ssl": trusted, "server_hostname": target.host}
    transport, made = await asyncio.get_running_loop().create_connection(
        protocol, str(address), target.port, **tls
    )
    reached = read_address(transport.get_extra_info("peername")[0])
    if reached != address:
        # It can't be: an address is not looked up. But should a loop ever do so, nothing was said to anybody yet.
        transport.abort()
        raise AddressRefused("the connection leads elsewhere")
    return made
