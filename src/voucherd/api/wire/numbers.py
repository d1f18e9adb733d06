"""Numbers on the wire: JSON numbers with exact digits, never strings, never binary floats (OP-07)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, TypeAlias

from msgspec import Meta, Raw

from voucherd.money import RATE_DIGITS, digits, plain

Number: TypeAlias = Annotated[Raw, Meta(extra_json_schema={"type": "number"})]
"""A JSON number that is written out already."""


@lru_cache(maxsize=65_536)
def money(minor: int, currency: str) -> Raw:
    """An amount with its currency's own number of digits."""
    return Raw(plain(minor, digits(currency)).encode())


@lru_cache(maxsize=4_096)
def rate(e8: int) -> Raw:
    """A multiplier with eight digits."""
    return Raw(plain(e8, RATE_DIGITS).encode())
