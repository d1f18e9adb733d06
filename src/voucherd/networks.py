"""Addresses: the network of one, which limits count as one customer, and where to listen. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import Final

IPV6_PREFIX: Final = 56
"""Providers give a household at least a /64 and usually a /56: every address in it is the same customer's."""
UNKNOWN: Final = "unknown"
"""The network of a text that is no address."""


@lru_cache(maxsize=8_192)
def network_of(address: str) -> str:
    """The address itself for IPv4, also where it is mapped into IPv6; the customer's network for IPv6."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return UNKNOWN
    if not isinstance(found, IPv4Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if isinstance(found, IPv4Address):
        return str(found)
    kept = int(found) >> (128 - IPV6_PREFIX) << (128 - IPV6_PREFIX)
    return f"{type(found)(kept)}/{IPV6_PREFIX}"


def listen_address(text: str) -> tuple[str, int] | None:
    """The host and port in a text such as 127.0.0.1:8081; None for `off`."""
    if text.lower() == "off":
        return None
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError("an address and a port such as 127.0.0.1:8081, or off")
    return host.strip("[]"), int(port)
