"""What an operator writes down of a supplier, before it is stored: its name, its address, its description. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from voucherd.setting_values import Network
from voucherd.suppliers import registry
from voucherd.suppliers.registry import CONFIG_BYTES_MAX
from voucherd.webhooks.targets import BadTarget, read_target

NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
NAME_CHARS_MAX: Final = 60
URL_KEYS: Final = {"voucherd": "url", "http": "base_url"}
"""Under which name each kind keeps its address."""
ON_UNKNOWN: Final = ("wait", "rebuy")
"""What becomes of the lines of a purchase of which nobody can tell how it ended."""


class BadSupplier(ValueError):
    """Something about a supplier can't be right; `field` is the key of its config, or what else it is."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


def check_name(name: str) -> None:
    """Refuse what is no name of a supplier."""
    if not NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
        rule = f"must be lower-case letters, digits and single dashes, at most {NAME_CHARS_MAX}"
        raise BadSupplier("name", rule)


def check_config(kind: str, config: dict[str, Any]) -> None:
    """Refuse a config that no adapter could work with, by its key."""
    try:
        registry.check_config(kind, config)
    except ValueError as wrong:
        raise named(wrong) from None


def check_reach(kind: str, config: dict[str, Any], own: Sequence[Network]) -> None:
    """Refuse an address that no person may send the server to: one inside, unless the operator's networks have it."""
    key = URL_KEYS.get(kind)
    if key is None:
        return
    try:
        read_target(str(config.get(key, "")), own)
    except BadTarget as bad:
        raise BadSupplier(key, str(bad)) from None


def named(wrong: ValueError) -> BadSupplier:
    """The refusal of an adapter, which begins with a key, with that key apart."""
    key, colon, rule = str(wrong).partition(": ")
    return BadSupplier(key, rule) if colon else BadSupplier("description", str(wrong))


def read_description(content: bytes) -> dict[str, Any]:
    """The description in a file; refused if it is no TOML, or too large."""
    if len(content) > CONFIG_BYTES_MAX:
        raise BadSupplier("description", f"is larger than {CONFIG_BYTES_MAX} bytes")
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise BadSupplier("description", f"is not TOML: {wrong}") from None
    except RecursionError:
        raise BadSupplier("description", "has tables within tables without end") from None
