"""Ranges of lines: what two share, what some leave open, and pieces of one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from voucherd.ranges import gaps, overlap, pieces

RANGES = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: range(*ends))


@given(RANGES, RANGES)
def test_an_overlap_is_what_both_have(one: range, other: range) -> None:
    """Decision 5: lines are ranges, and their arithmetic is that of the numbers in them."""
    assert set(overlap(one, other)) == set(one) & set(other)


@given(RANGES, st.lists(RANGES, max_size=5))
def test_gaps_and_what_covers_them_make_the_whole(whole: range, covered: list[range]) -> None:
    """Decision 5: no line is in two gaps, none is missed, and gaps come in order and never touch."""
    found = list(gaps(whole, covered))
    numbers = [number for gap in found for number in gap]
    assert numbers == sorted(set(whole) - {number for one in covered for number in one})
    assert all(gap for gap in found)
    assert all(one.stop < other.start for one, other in pairwise(found))


@given(RANGES, st.integers(1, 7))
def test_pieces_are_the_whole_in_parts_of_a_size(whole: range, size: int) -> None:
    """OP-14: a large order is written in parts, each line once."""
    found = list(pieces(whole, size))
    assert [number for piece in found for number in piece] == list(whole)
    assert all(len(piece) == size for piece in found[:-1])
    assert all(0 < len(piece) <= size for piece in found)
