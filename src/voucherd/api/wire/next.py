"""Version Next: short lines, like 1.00 so far."""

from __future__ import annotations

from typing import Final

from voucherd.api.wire.lines import short_lines
from voucherd.api.wire.order import Shape
from voucherd.api.wire.shapes import ShortItem, ShortOrder

SHAPE: Final = Shape(name="Next", order=ShortOrder, item=ShortItem, lines=short_lines, face_value_range=False)
