"""The shape of an order in each version of the wire: short or extended lines, and a range of face values or not."""

from __future__ import annotations

from typing import Final

from voucherd.api.wire.lines import extended_lines, short_lines
from voucherd.api.wire.order import Shape
from voucherd.api.wire.shapes import ExtendedItem, ExtendedOrder, ShortItem, ShortOrder

_EXTENDED: Final = Shape("1.03", ExtendedOrder, ExtendedItem, extended_lines, face_value_range=True)
SHAPES: Final[dict[str, Shape]] = {
    "1.00": Shape("1.00", ShortOrder, ShortItem, short_lines, face_value_range=False),
    "1.02": _EXTENDED,  # The same version under another name (OP-04).
    "1.03": _EXTENDED,
    "Next": Shape("Next", ShortOrder, ShortItem, short_lines, face_value_range=False),
}
