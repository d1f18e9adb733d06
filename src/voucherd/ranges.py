"""Half-open ranges of whole numbers: what two share, what some leave open, and pieces of one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def overlap(one: range, other: range) -> range:
    """The numbers that both have; an empty range where they share none."""
    return range(max(one.start, other.start), min(one.stop, other.stop))


def gaps(whole: range, covered: Iterable[range]) -> Iterator[range]:
    """The parts of a range that none of these covers, in order."""
    at = whole.start
    for part in sorted((overlap(whole, one) for one in covered), key=lambda one: one.start):
        if part:
            if part.start > at:
                yield range(at, part.start)
            at = max(at, part.stop)
    if at < whole.stop:
        yield range(at, whole.stop)


def pieces(whole: range, size: int) -> Iterator[range]:
    """The range in parts of this size; the last one may be smaller."""
    for start in range(whole.start, whole.stop, size):
        yield range(start, min(start + size, whole.stop))
