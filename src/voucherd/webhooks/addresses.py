"""Which addresses are of the public internet. Pure.

An allow-list, not a deny-list: IPv6 is public only in 2000::/3, less what lies in there for other ends. Whatever
carries an IPv4 address inside (mapped, NAT64, 6to4, Teredo …) is refused as a whole: no receiver needs to be named
that way, and what it leads to depends on the network's own translators.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # This network.
        "10.0.0.0/8",
        "100.64.0.0/10",  # Behind a provider's translator; clouds keep services of their own there.
        "127.0.0.0/8",
        "169.254.0.0/16",  # Link-local, and the metadata of clouds.
        "172.16.0.0/12",
        "192.0.0.0/24",  # Protocol assignments.
        "192.0.2.0/24",  # Documentation.
        "192.31.196.0/24",  # AS112.
        "192.52.193.0/24",  # AMT.
        "192.88.99.0/24",  # Relays of 6to4.
        "192.168.0.0/16",
        "192.175.48.0/24",  # AS112.
        "198.18.0.0/15",  # Benchmarks.
        "198.51.100.0/24",  # Documentation.
        "203.0.113.0/24",  # Documentation.
        "224.0.0.0/4",  # Multicast.
        "240.0.0.0/4",  # Reserved, and broadcast.
        "168.63.129.16/32",  # A public number at which a cloud answers its own guests.
    )
)
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Protocol assignments: Teredo, ORCHID, benchmarks …
        "2001:db8::/32",  # Documentation.
        "2002::/16",  # 6to4.
        "2620:4f:8000::/48",  # AS112.
        "3fff::/20",  # Documentation.
        "3ffe::/16",  # The 6bone, long gone.
    )
)


def read_address(text: str) -> Address | None:
    """The address that the text is, in its one proper spelling; None for a name, or for any other spelling."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return None if isinstance(found, IPv6Address) and found.scope_id is not None else found


def is_public(address: Address) -> bool:
    """Whether the address is one of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id is not None or address not in _PUBLIC_6:
        return False
    return not any(address in network for network in _NOT_PUBLIC_6)


def is_allowed(address: Address, own: Iterable[Network]) -> bool:
    """Whether the operator named the address as one of his own networks. Mapped IPv4 is not unwrapped for it."""
    return any(address in network for network in own)
