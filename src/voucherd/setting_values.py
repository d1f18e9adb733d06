"""The values of settings: from what a flag, a variable or the file says; a ValueError completes "must be …"."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from email.utils import formataddr, getaddresses
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from voucherd import email_address
from voucherd.networks import listen_address

SMTP_PORTS: Final = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
Network: TypeAlias = IPv4Network | IPv6Network
Reader: TypeAlias = Callable[[Any], Any]


def whole(least: int, most: int) -> Reader:
    """A whole number in these bounds."""

    def read(raw: Any) -> int:
        rule = f"a whole number between {least} and {most}"
        if isinstance(raw, bool | float):
            raise ValueError(rule)
        try:
            value = int(raw)
        except (TypeError, ValueError):
            raise ValueError(rule) from None
        if not least <= value <= most:
            raise ValueError(rule)
        return value

    return read


def seconds(least: float, most: float) -> Reader:
    """Seconds in these bounds."""

    def read(raw: Any) -> float:
        rule = f"a number of seconds between {least:g} and {most:.12g}"
        if isinstance(raw, bool):
            raise ValueError(rule)
        try:
            value = float(raw)
        except (TypeError, ValueError):
            raise ValueError(rule) from None
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(rule)
        return value

    return read


def one_of(*words: str) -> Reader:
    """One of these words."""

    def read(raw: Any) -> str:
        value = str(raw).lower()
        if value not in words:
            raise ValueError("one of " + ", ".join(words))
        return value

    return read


def text(raw: Any) -> str:
    """A text that is not empty."""
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError("a text")
    return raw.strip()


def shop_name(raw: Any) -> str:
    """The name of a shop, which stands in the head of letters, too."""
    value = str(raw).strip()
    if not (1 <= len(value) <= 60 and value.isprintable()):
        raise ValueError("a name of 1 to 60 characters on one line")
    return value


def secret(raw: Any) -> str:
    """A secret."""
    # The place that uses it says why it is refused, without a word of it.
    return str(raw).strip()


def token(raw: Any) -> str:
    """A secret that travels in a header."""
    value = str(raw).strip()
    if not re.fullmatch(r"[\x21-\x7e]{16,200}", value):
        raise ValueError("a secret of 16 to 200 letters, digits and signs")
    return value


def command(raw: Any) -> tuple[str, ...]:
    """A program and its arguments."""
    rule = "a program and its arguments, as a shell would read them"
    try:
        words = tuple(shlex.split(raw)) if isinstance(raw, str) else tuple(map(str, raw))
    except (TypeError, ValueError):
        raise ValueError(rule) from None
    if not words:
        raise ValueError(rule)
    return words


def path(raw: Any) -> Path:
    """A place of a file or folder."""
    if not isinstance(raw, str | Path):
        raise ValueError("a path")
    return Path(raw).expanduser()


def country(raw: Any) -> str:
    """A country."""
    value = str(raw).upper()
    if not re.fullmatch("[A-Z]{2}", value):
        raise ValueError("a country of two letters, such as NL")
    return value


def database_url(raw: Any) -> str:
    """The address of a database."""
    value = str(raw)
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("a URL that starts with postgresql://")
    return value


def public_url(raw: Any) -> str:
    """An address that clients see."""
    rule = "an address such as https://shop.example.com, without a query"
    try:
        parts = urlsplit(str(raw))
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(rule) from None
    if not sound or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(rule)
    return str(raw).rstrip("/")


def listen(raw: Any) -> str:
    """Where to listen: a host and a port, or off."""
    value = str(raw).strip()
    listen_address(value)
    return value


def feed_url(raw: Any) -> str:
    """The address of a file of rates: over TLS, or on this machine."""
    rule = "an address such as https://bank.example/rates.xml, without a user or fragment"
    try:
        parts = urlsplit(str(raw))
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(rule) from None
    if not sound or parts.username is not None or parts.fragment or not str(raw).isascii():
        raise ValueError(rule)
    if parts.scheme == "http" and not _is_this_machine(parts.hostname or ""):
        raise ValueError("an address that starts with https:// (http is for this machine only)")
    return str(raw)


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def smtp_url(raw: Any) -> str:
    """The address of a mail server: over TLS, or on this machine."""
    rule = "an address such as smtp+starttls://user:password@mail.example.com:587"
    try:
        parts = urlsplit(str(raw))
        sound = parts.scheme in SMTP_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(rule) from None
    if not sound or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(rule)
    if parts.scheme == "smtp" and not _is_this_machine(parts.hostname or ""):
        raise ValueError("smtp+starttls:// or smtps:// (smtp is for this machine only)")
    return str(raw)


def sender(raw: Any) -> str:
    """Whose name is on letters."""
    found = getaddresses([str(raw)])
    try:
        ((name, address),) = found
        # A machine that mails itself has no other name.
        if not re.fullmatch(r"[a-z][a-z0-9.-]*@localhost", address):
            address = email_address.read(address)
    except ValueError:
        found = []
    if not found or not str(raw).isprintable():
        raise ValueError("a sender such as Shop <no-reply@shop.example.com>")
    return formataddr((name, address))


def yes_or_no(raw: Any) -> bool:
    """A switch."""
    words = {
        "true": True,
        "yes": True,
        "on": True,
        "1": True,
        "false": False,
        "no": False,
        "off": False,
        "0": False,
    }
    try:
        return words[str(raw).lower()]
    except KeyError:
        raise ValueError("true or false") from None


def networks(raw: Any) -> tuple[Network, ...]:
    """Addresses and networks."""
    words = raw.split(",") if isinstance(raw, str) else raw
    try:
        return tuple(ip_network(str(word).strip()) for word in words if str(word).strip())
    except (TypeError, ValueError):
        raise ValueError("addresses or networks such as 10.0.0.0/8, with commas between") from None
