"""The network of an address: what one customer of a network provider has, and limits count as one. Pure."""

from __future__ import annotations

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
