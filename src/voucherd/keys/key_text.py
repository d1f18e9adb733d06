"""API keys: how they look, what they may do, how they are remembered (OP-29). Pure.

A key is `vk_live_` or `vk_test_`, 32 random characters and a checksum of 6. The checksum proves nothing about
the key's owner: it lets a typo, or a key that someone made up, be refused without asking the database.

The database stores a plain SHA-256. A slow hash protects passwords of people; 190 random bits can't be guessed
at any speed, and a slow hash would cost milliseconds on every first call.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, Any, Final, TypeAlias, TypedDict, get_type_hints

from msgspec import Meta

from voucherd.ids import State

Network: TypeAlias = IPv4Network | IPv6Network

RANDOM_CHARACTERS: Final = 32  # 190 bits.
CHECK_CHARACTERS: Final = 6
SHOWN_CHARACTERS: Final = 6
RATE_LIMIT_DEFAULT: Final = 600
"""Requests a minute (OP-27)."""
RATE_LIMIT_MAX: Final = 1_000_000

ALLOW_IPS_MAX: Final = 100
DESCRIPTION_CHARACTERS_MAX: Final = 200

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEADS: Final = {State.LIVE: "vk_live_", State.SANDBOX: "vk_test_"}
_SHAPE: Final = re.compile(
    rf"vk_(?:live|test)_[0-9A-Za-z]{{{RANDOM_CHARACTERS + CHECK_CHARACTERS}}}", re.ASCII
)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


class Scope(StrEnum):
    """One thing a key may do."""

    ORDERS_READ = "orders:read"
    ORDERS_WRITE = "orders:write"
    CODES_READ = "codes:read"
    CATALOGUE_READ = "catalogue:read"
    WALLET_READ = "wallet:read"
    EVENTS_READ = "events:read"
    WEBHOOKS_WRITE = "webhooks:write"
    KEYS_WRITE = "keys:write"


SCOPES_DEFAULT: Final = frozenset(Scope) - {Scope.KEYS_WRITE}
"""Everything but making more keys: a leaked key must not be able to outlive its revocation."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: the only moment its text is known."""

    text: str = field(repr=False)
    prefix: str
    hash: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyTerms:
    """What a key may do: the one list of its fields. Columns, trail and hints are made from it."""

    description: Annotated[str, Meta(description="What it is for.")] = ""
    scopes: Annotated[frozenset[Scope], Meta(description="What it may do.")] = SCOPES_DEFAULT
    allow_ips: Annotated[tuple[Network, ...], Meta(description="Where it may be used from.")] = ()
    rate_limit: Annotated[int, Meta(description="Requests a minute.")] = RATE_LIMIT_DEFAULT
    expires_at: Annotated[datetime | None, Meta(description="The last day it is valid.")] = None
    spend_order_eur_minor: Annotated[int | None, Meta(description="The most that one order may cost.")] = None
    spend_day_eur_minor: Annotated[
        int | None, Meta(description="The most that the orders of one day (UTC) may cost.")
    ] = None
    confirms_alone: Annotated[
        bool, Meta(description="Whether it confirms orders for which the company asks for a second person.")
    ] = False

    @property
    def anywhere(self) -> bool:
        """Whether it may be used from any address."""
        return not self.allow_ips

    def permits(self, client_ip: str) -> bool:
        """Whether it may be used from this address."""
        return self.anywhere or permits(self.allow_ips, client_ip)


TERMS: Final = tuple(one.name for one in fields(KeyTerms))
HINTS: Final = {
    name: kind.__metadata__[0].description
    for name, kind in get_type_hints(KeyTerms, include_extras=True).items()
}
"""What each field is, for people."""


@dataclass(frozen=True, slots=True)
class KeyDraft(KeyTerms):
    """The fields of a key before it is stored; refuses bad values in words, before the database does."""

    def __post_init__(self) -> None:
        if len(self.description) > DESCRIPTION_CHARACTERS_MAX:
            raise ValueError(f"a description has at most {DESCRIPTION_CHARACTERS_MAX} characters")
        if not self.scopes:
            raise ValueError("a key needs at least one scope")
        if len(self.allow_ips) > ALLOW_IPS_MAX:
            raise ValueError(f"a key has at most {ALLOW_IPS_MAX} allowed networks")
        if not 1 <= self.rate_limit <= RATE_LIMIT_MAX:
            raise ValueError(f"a rate limit is between 1 and {RATE_LIMIT_MAX} requests a minute")
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise ValueError("an expiry needs a time zone")


class KeyWish(TypedDict, total=False):
    """The fields wished for a key; a missing one is as with the calling key, or stays as it is."""

    description: str
    scopes: frozenset[Scope]
    allow_ips: tuple[Network, ...]
    rate_limit: int
    expires_at: datetime | None
    spend_order_eur_minor: int | None
    spend_day_eur_minor: int | None
    confirms_alone: bool


def plain_terms(terms: KeyTerms) -> list[Any]:
    """The fields in their order, as columns take them."""
    values = (getattr(terms, name) for name in TERMS)
    return [sorted(one) if isinstance(one, frozenset) else one for one in values]


def told(wish: KeyWish) -> dict[str, Any]:
    """The fields of a wish, as the trail's JSON has them."""
    return {name: _told(value) for name, value in wish.items()}


def _told(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return [str(one) for one in value] if isinstance(value, tuple) else value


def new_key(state: State) -> NewKey:
    """A key that nobody has seen yet."""
    body = _HEADS[state] + "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_CHARACTERS))
    text = body + _checksum(body)
    return NewKey(text, body[: len(_HEADS[state]) + SHOWN_CHARACTERS], key_hash(text))


def state_of(prefix: str) -> State:
    """The state of a key that begins like this."""
    return State.LIVE if prefix.startswith(_HEADS[State.LIVE]) else State.SANDBOX


def well_formed(text: str) -> bool:
    """Whether the text could be a key of ours: its shape and checksum are right."""
    return (
        _SHAPE.fullmatch(text) is not None and _checksum(text[:-CHECK_CHARACTERS]) == text[-CHECK_CHARACTERS:]
    )


def key_hash(text: str) -> bytes:
    """The hash of a key, which is stored in its place."""
    return hashlib.sha256(text.encode("ascii")).digest()


def tidied(authorization: bytes) -> bytes:
    """An Authorization header with one space before its key and none behind, whatever the client sent (OP-24)."""
    scheme, _, token = authorization.partition(b" ")
    return b"%b %b" % (scheme, token.strip(b" \t"))


def bearer_key(authorization: bytes) -> str | None:
    """The well-formed key in an Authorization header, or None for anything else."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    try:
        text = token.decode("ascii")
    except UnicodeDecodeError:
        return None
    return text if well_formed(text) else None


def read_scopes(words: Iterable[str]) -> frozenset[Scope]:
    """The scopes of these names; refuses one that does not exist."""
    try:
        return frozenset(Scope(word) for word in words)
    except ValueError as unknown:
        raise ValueError(f"{unknown}; the scopes are {', '.join(Scope)}") from None


def read_networks(words: Iterable[str]) -> tuple[Network, ...]:
    """The networks of these texts (an address is a network of one); refuses what is neither."""
    return tuple(plain_network(ip_network(word.strip())) for word in words)


def plain_network(network: Network) -> Network:
    """The network, as IPv4 where it is IPv4 written in IPv6."""
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        mapped = network.network_address.ipv4_mapped
        assert mapped is not None, "every address of ::ffff:0:0/96 is mapped"
        return IPv4Network((mapped, network.prefixlen - 96))
    return network


def permits(networks: tuple[Network, ...], client_ip: str) -> bool:
    """Whether the address is on the list; what is no address is on none."""
    try:
        address = ip_address(client_ip)
    except ValueError:
        return False
    if not isinstance(address, IPv4Address) and address.ipv4_mapped is not None:
        # A socket that listens on both families shows IPv4 clients this way.
        address = address.ipv4_mapped
    return any(address in network for network in networks)


def _checksum(body: str) -> str:
    """The CRC-32 of everything before it in base 62; the head is part of it, so test never passes as live."""
    number = zlib.crc32(body.encode("ascii"))
    digits = []
    for _ in range(CHECK_CHARACTERS):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
