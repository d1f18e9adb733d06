"""Version 1.03: extended lines, and the range of a product's face value."""

from __future__ import annotations

from typing import Final

from voucherd.api.wire.lines import extended_lines
from voucherd.api.wire.order import Shape
from voucherd.api.wire.shapes import ExtendedItem, ExtendedOrder

SHAPE: Final = Shape(
    name="1.03", order=ExtendedOrder, item=ExtendedItem, lines=extended_lines, face_value_range=True
)
