"""Where webhooks may go: the check of an address as it is written, before anything is looked up. Pure.

What a name leads to is checked when it is connected to (`reach.py`), and only that decides: a name may lead elsewhere
by then. This check keeps out what could never be right, and tells people so when they write it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from voucherd.webhooks.addresses import Address, Network, is_allowed, is_public, read_address

URL_CHARS_MAX: Final = 2_000
PORTS: Final = (443, 4443, 8443, 9443)
"""Where receivers on the public internet may listen: the ports that HTTPS is served at."""

_URL_CHARS: Final = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+", re.ASCII)
"""All that RFC 3986 lets an address hold: no space, no control character, no backslash, no letter beyond ASCII."""
_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_LIKE_A_NUMBER: Final = re.compile(r"([0-9]+|0x[0-9a-f]*)", re.ASCII)
"""A last label that resolvers may take for a part of an IPv4 address in one of its old spellings."""
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_NEVER: Final = (
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "invalid",
    "test",
    "example",
    "onion",
    "arpa",
)
"""Last labels that no public name has."""


class TargetRule(StrEnum):
    """What an address has to be like, as the API says it."""

    LENGTH = f"must be an address of at most {URL_CHARS_MAX} plain characters"
    FORM = "is not a valid address"
    SCHEME = "must start with https://"
    USER = "must have no user or password in it"
    FRAGMENT = "must have no fragment"
    HOST = "must name a host"
    NUMBER = "must write an IP address in its usual form"
    NAME = "must name a host of the public internet"
    PUBLIC = "must not lead to an address that is not public"
    PORT = f"must use one of the ports {', '.join(map(str, PORTS))}"


class BadTarget(ValueError):
    """Webhooks can't or mustn't go there; the text is the rule that the address breaks."""

    def __init__(self, rule: TargetRule) -> None:
        super().__init__(rule.value)
        self.rule = rule


class WebhookTarget(Struct, frozen=True):
    """An address that passed the check, taken apart once: nobody reads it a second time in another way."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str, own: Sequence[Network] = ()) -> WebhookTarget:
    """The address taken apart; refused if webhooks can't go there. `own`: networks that the operator allows."""
    if not 1 <= len(url) <= URL_CHARS_MAX or not _URL_CHARS.fullmatch(url):
        raise BadTarget(TargetRule.LENGTH)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadTarget(TargetRule.FORM) from None
    if parts.scheme != "https" and not (parts.scheme == "http" and own):
        raise BadTarget(TargetRule.SCHEME)
    if "@" in parts.netloc:
        raise BadTarget(TargetRule.USER)
    if "#" in url:
        raise BadTarget(TargetRule.FRAGMENT)
    host = _host(parts.netloc, parts.hostname or "")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.startswith("/"):
        raise BadTarget(TargetRule.FORM)
    target = WebhookTarget(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port, path)
    address = read_address(host)
    if address is not None:
        check_address(target, address, own)
    else:
        _check_name(host, own)
        if target.port not in PORTS and not own:
            raise BadTarget(TargetRule.PORT)
    return target


def check_address(target: WebhookTarget, address: Address, own: Sequence[Network]) -> None:
    """Refuse to go to the target at this address. Plain HTTP and other ports are for the operator's own networks."""
    if is_allowed(address, own):
        return
    if not is_public(address):
        raise BadTarget(TargetRule.PUBLIC)
    if target.scheme != "https":
        raise BadTarget(TargetRule.SCHEME)
    if target.port not in PORTS:
        raise BadTarget(TargetRule.PORT)


def _host(netloc: str, hostname: str) -> str:
    """The host in lower case, without brackets; refused if it is written in a way that others may read otherwise."""
    if netloc.startswith("["):
        bare = netloc[1:].partition("]")[0]
        address = read_address(bare)
        if not isinstance(address, IPv6Address):
            raise BadTarget(TargetRule.FORM)
        return str(address)
    if not re.fullmatch(r"[^:\[\]%]+(:[0-9]{1,5})?", netloc) or not hostname:
        raise BadTarget(TargetRule.HOST)
    return hostname.removesuffix(".")


def _check_name(host: str, own: Sequence[Network]) -> None:
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadTarget(TargetRule.HOST)
    if _LIKE_A_NUMBER.fullmatch(labels[-1]):
        raise BadTarget(TargetRule.NUMBER)
    if own:
        return
    if len(labels) < 2 or labels[-1] in _NEVER:
        raise BadTarget(TargetRule.NAME)
