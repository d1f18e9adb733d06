"""Whose request it is: whatever a client writes into its headers, it does not get on a key's list of addresses."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from voucherd.keys.key_text import permits, read_networks
from voucherd.server.proxies import UNKNOWN, client_behind

OURS = tuple(ip_network(one) for one in ("10.0.0.0/8", "2001:db8:5::/48"))
LISTED = "198.51.100.7"
"""On the key's list; the client is not there, and says that it is."""
ALLOWED = read_networks([LISTED, "10.0.0.0/8", "2001:db8:5::/48", "2001:db8:1::1"])

# The peer, the lines of X-Forwarded-For, and whose request it is.
CASES: dict[str, tuple[str, list[str], str]] = {
    "no proxy at all": ("203.0.113.9", [], "203.0.113.9"),
    "no proxy, spoofed": ("203.0.113.9", [LISTED], "203.0.113.9"),
    "no proxy, spoofed twice": ("203.0.113.9", [LISTED, LISTED], "203.0.113.9"),
    "one proxy": ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
    "one proxy, spoofed": ("10.0.0.1", [f"{LISTED}, 203.0.113.9"], "203.0.113.9"),
    "one proxy, spoofed as a proxy": ("10.0.0.1", ["10.0.0.9, 203.0.113.9"], "203.0.113.9"),
    "one proxy with a line of its own": ("10.0.0.1", [LISTED, "203.0.113.9"], "203.0.113.9"),
    "two proxies": ("10.0.0.2", [f"{LISTED}, 203.0.113.9, 10.0.0.1"], "203.0.113.9"),
    "two proxies, a line each": ("10.0.0.2", [f"{LISTED}, 203.0.113.9", "10.0.0.1"], "203.0.113.9"),
    "three, without blanks": ("10.0.0.3", ["203.0.113.9,10.0.0.1,10.0.0.2"], "203.0.113.9"),
    "IPv6 client": ("10.0.0.1", [f"{LISTED}, 2001:db8:9::9"], "2001:db8:9::9"),
    "IPv6 proxy": ("2001:db8:5::1", ["203.0.113.9"], "203.0.113.9"),
    "IPv6 proxy, not ours": ("2001:db8:6::1", [LISTED], "2001:db8:6::1"),
    "a peer in mapped form": ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
    "a mapped peer, not ours": ("::ffff:203.0.113.9", [LISTED], "::ffff:203.0.113.9"),
    "a hop in mapped form": ("10.0.0.2", [f"{LISTED}, 203.0.113.9, ::ffff:10.0.0.1"], "203.0.113.9"),
    "a mapped client": ("10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
    "with ports": ("10.0.0.2", [f"{LISTED}:80, 203.0.113.9:50123, 10.0.0.1:443"], "203.0.113.9"),
    "IPv6 with a port": ("10.0.0.1", [f"{LISTED}, [2001:db8:9::9]:50123"], "2001:db8:9::9"),
    "garbage further left": ("10.0.0.1", ["<script>, 203.0.113.9"], "203.0.113.9"),
    "garbage of our own proxy": ("10.0.0.1", [f"{LISTED}, unknown"], UNKNOWN),
    "a name": ("10.0.0.1", ["localhost"], UNKNOWN),
    "half an address": ("10.0.0.1", [f"{LISTED}, 10.0.0"], UNKNOWN),
    "a number": ("10.0.0.1", ["167772161"], UNKNOWN),
    "octal": ("10.0.0.1", ["012.0.0.1"], UNKNOWN),
    "a network": ("10.0.0.1", ["10.0.0.0/8"], UNKNOWN),
    "bytes": ("10.0.0.1", ["\xff\xfe"], UNKNOWN),
    "empty items": ("10.0.0.1", [f"{LISTED}, 203.0.113.9, ,"], "203.0.113.9"),
    "a zone": ("10.0.0.1", [f"{LISTED}, fe80::1%10.0.0.1"], "fe80::1%10.0.0.1"),
    "a socket without an address": ("", [LISTED], ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_spoofed_address_gets_nowhere(case: str) -> None:
    """OP-24, OP-29: the nearest address that is no proxy of ours, and no other; only that one is looked up."""
    peer, lines, expected = CASES[case]
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in lines]
    noise = [(b"forwarded", f"for={LISTED}".encode()), (b"x-real-ip", LISTED.encode())]
    found = client_behind(OURS, peer, [*noise, *headers, (b"x-client-ip", LISTED.encode())])
    assert found == expected
    assert not permits(ALLOWED, found)


@pytest.mark.parametrize(
    ("peer", "lines"),
    [
        (LISTED, []),
        ("10.0.0.1", [LISTED]),
        ("10.0.0.2", [f"203.0.113.9, {LISTED}", "10.0.0.1"]),
        ("::ffff:10.0.0.1", [f"[::ffff:{LISTED}]:9"]),
        ("10.0.0.1", ["2001:DB8:1:0:0:0:0:1"]),
        ("10.0.0.1", [""]),  # The proxy itself, such as its look whether we are there.
    ],
)
def test_whoever_is_on_the_list_gets_in(peer: str, lines: list[str]) -> None:
    """OP-24: in every spelling, behind one proxy and behind two."""
    headers = [(b"x-forwarded-for", line.encode()) for line in lines]
    assert permits(ALLOWED, client_behind(OURS, peer, headers))
