"""Whose request it is, behind the operator's own proxies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from voucherd.setting_values import Network

HEADER: Final = b"x-forwarded-for"
UNKNOWN: Final = ""
"""An address that is on no list."""

# Some proxies write the port, too: 192.0.2.7:50123, [2001:db8::7]:50123.
_WITH_PORT: Final = re.compile(r"(?:\[([^\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?")


def client_behind(proxies: Sequence[Network], peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The nearest address that is no proxy of ours: what stands further left anyone may have written.

    A proxy of ours that names nothing we can read leaves us without an address: its own is not the client's.
    """
    if not _is_trusted(proxies, _parsed(peer)):
        return peer
    # A proxy may add a line of its own instead of writing on: all lines are one list, in their order.
    hops = b",".join([value for name, value in headers if name == HEADER]).decode("latin-1").split(",")
    address = peer
    for hop in reversed([hop.strip() for hop in hops]):
        if not hop:
            continue
        found = _parsed(hop)
        if found is None:
            return UNKNOWN
        address = str(found)
        if not _is_trusted(proxies, found):
            break
    return address


def _is_trusted(proxies: Sequence[Network], address: IPv4Address | IPv6Address | None) -> bool:
    if address is None:
        return False
    return any(address.version == network.version and address in network for network in proxies)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    written = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address(text if written is None else written[1] or written[2])
    except (ValueError, TypeError):
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
