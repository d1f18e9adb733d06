"""Templates: most of an order is the same for every order of a product, so it is encoded once and filled in.

A template is made from the very struct that defines the shape, with a hole in the place of each value that differs,
so it can't drift from it. Filling one costs a tenth of building and encoding the struct.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

TEMPLATES_MAX: Final = 20_000

encode: Final = msgspec.json.Encoder().encode
HOLE: Final[Any] = Raw(b"\x00")
"""Stands for a value that is filled in later: a byte that JSON can't contain."""
TEXT_HOLE: Final[Any] = Raw(b'"\x00"')
"""The same for a text that needs no escapes, such as a date: its quotes stand around it."""


def template(struct: Struct) -> bytes:
    """The struct's JSON with `%b` for each hole (`%d` for those of nested JSON), in the order of its fields."""
    return encode(struct).replace(b"%", b"%%").replace(b"\x00", b"%b").replace(b"\x01", b"%d")


def nested(struct: Struct) -> Any:
    """The struct's JSON as a JSON string for a field of a template; its holes are whole numbers."""
    # Cut at the holes first: a text that itself holds "\\u0000" must not be taken for one.
    parts = [encode(part)[1:-1] for part in encode(struct).decode().split("\x00")]
    return Raw(b'"%b"' % b"\x01".join(parts))


class TemplateBook(dict[Hashable, bytes]):
    """The templates of one service, kept when they are first made."""

    def keep(self, key: Hashable, made: bytes) -> bytes:
        """Keep the template, and give it back."""
        if len(self) >= TEMPLATES_MAX:
            self.clear()  # Simpler than an order of use, and as rare as twenty thousand new prices.
        self[key] = made
        return made
