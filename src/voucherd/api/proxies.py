"""Whose request it is, behind the operator's own proxies."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from voucherd.settings import Network


def client_behind(proxies: Sequence[Network], peer: str, forwarded_for: bytes) -> str:
    """The nearest address that is no proxy of ours: what stands further left anyone may have written."""
    address = peer
    for hop in reversed([hop.strip() for hop in forwarded_for.decode("latin-1").split(",")]):
        if not _is_trusted(proxies, address) or _parsed(hop) is None:
            return address
        address = hop
    return address


def _is_trusted(proxies: Sequence[Network], text: str) -> bool:
    address = _parsed(text)
    if address is None:
        return False
    return any(address.version == network.version and address in network for network in proxies)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
