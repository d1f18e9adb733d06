"""Templates: most of an order is the same for every order of a product, so it is encoded once and filled in.

A template is made from the very struct that defines the shape, with a hole in the place of each value that differs,
so it can't drift from it. Filling one costs a tenth of building and encoding the struct.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

TEMPLATES_MAX: Final = 20_000

encode: Final = msgspec.json.Encoder().encode
HOLE: Final[Any] = Raw(b"\x00")
"""Stands for a value that is filled in later: a byte that JSON can't contain."""


def template(struct: Struct) -> bytes:
    """The struct's JSON with `%b` for each hole, in the order of its fields."""
    return encode(struct).replace(b"%", b"%%").replace(b"\x00", b"%b")


def nested_template(struct: Struct) -> bytes:
    """The struct's JSON as a JSON string, with `%d` for each hole."""
    # Cut at the holes first: a text that itself holds "\\u0000" must not be taken for one.
    parts = [encode(part)[1:-1].replace(b"%", b"%%") for part in encode(struct).decode().split("\x00")]
    return b'"%b"' % b"%d".join(parts)


class TemplateBook:
    """The templates of one service, made when they are first needed."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, bytes] = {}

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """The template of this key."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= TEMPLATES_MAX:
                self._kept.clear()  # Simpler than an order of use, and as rare as twenty thousand new prices.
            found = self._kept[key] = make()
        return found
