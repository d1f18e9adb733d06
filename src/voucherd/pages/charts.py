"""Charts as shapes: where the bars of some figures stand, and what their scale says. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

HEIGHT: Final = 100
"""The scale's height; a bar and the pause behind it are 12 wide."""
STEP: Final = 12


class Bar(Struct, frozen=True):
    """One bar: where it begins and how high it is, from the top, and what it says."""

    x: int
    y: float
    height: float
    said: str
    below: bool
    """It stands for less than nothing."""


class Chart(Struct, frozen=True):
    """Bars on a scale from `lowest` to `highest`, with the height of nothing."""

    width: int
    bars: list[Bar]
    highest: int
    lowest: int
    zero: float
    first: str
    last: str

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self.highest == self.lowest == 0


def bars(points: Sequence[tuple[str, int, str]]) -> Chart:
    """A bar for each (label, figure, what it says), in order; the scale holds nothing and all of them."""
    figures = [figure for _, figure, _ in points]
    highest, lowest = _round(max([0, *figures])), -_round(-min([0, *figures]))
    span = highest - lowest or 1
    zero = _at(highest, span)
    drawn = []
    for at, (label, figure, said) in enumerate(points):
        height = round(abs(figure) * HEIGHT / span, 2)
        y = zero if figure < 0 else round(zero - height, 2)
        drawn.append(Bar(at * STEP, y, height, f"{label}: {said}", figure < 0))
    ends = (points[0][0], points[-1][0]) if points else ("", "")
    return Chart(len(points) * STEP, drawn, highest, lowest, zero, *ends)


def _at(figure: int, span: int) -> float:
    return round(figure * HEIGHT / span, 2)


def _round(figure: int) -> int:
    """The next number that is easy to read: 1, 2 or 5 with zeros behind it."""
    if figure <= 0:
        return 0
    power: int = 10 ** (len(str(figure)) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= figure)
