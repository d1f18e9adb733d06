"""Files of codes: lines that are read all at once give what they give one by one."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from voucherd.vault import lines, sources
from voucherd.vault.lines import BadLine, CodeFile
from voucherd.vault.sources import LINE_BYTES_MAX, FileRefused

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HEADERS = ("", "code\n", "code,serial,expires\n", "expires,code\r\n", "code;serial\n", "sep=;\n", "A0,S,\n")
PLAIN = ("A", "B", "C", " D ", "A 1", "x" * 200)
ODD = ("A+1", "1.2E+15", "", '"A"', '"A', "é", "\x07", "\x7f", "a\rb", "\t", "x" * 201)
SERIALS = ("", "S1", " S2 ", "s" * 200, "s" * 201, "ß", "a\x00b")
EXPIRIES = ("", "2090-01-01", " 2091-01-01 ", "2092-01-01T10:00", "2020-01-01", "never", "2090-01-01\r")
ENDS = ("\n", "\r\n", "\r\r\n", "\n\n", " \n")


class Outcome(Struct):
    """Everything that comes out of a file."""

    entries: list[tuple[bytes, bytes, bytes, datetime | None]]
    refusal: str
    repeated: int
    bad: list[BadLine]
    bad_count: int
    line: int
    bytes_read: int


def read(data: bytes, chunk_lines: int, *, at_once: bool) -> tuple[Outcome, int]:
    """What comes out, and how many lines were read at once."""
    read_at_once = 0

    class Counted(CodeFile):
        def _plain(self, source: sources.Source) -> lines._Columns | None:
            nonlocal read_at_once
            columns = super()._plain(source) if at_once else None
            read_at_once += 0 if columns is None else len(columns[0])
            return columns

    file = Counted(io.BytesIO(data), bytes, NOW)
    entries: list[tuple[bytes, bytes, bytes, datetime | None]] = []
    refusal = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_LINES", chunk_lines)
        try:
            while (chunk := file.chunk()) is not None:
                entries += zip(chunk.blinds, chunk.codes, chunk.serials, chunk.expiries, strict=True)
        except FileRefused as refused:
            refusal = str(refused)
    outcome = Outcome(entries, refusal, file.repeated, file.bad, file.bad_count, file.line, file.bytes_read)
    return outcome, read_at_once


def both(data: bytes, chunk_lines: int) -> tuple[Outcome, int]:
    """The same, read in both ways."""
    outcome, read_at_once = read(data, chunk_lines, at_once=True)
    assert outcome == read(data, chunk_lines, at_once=False)[0]
    return outcome, read_at_once


_codes = st.sampled_from(PLAIN) | st.sampled_from(PLAIN + ODD)
_cells = st.one_of(
    st.tuples(_codes),
    st.tuples(_codes, st.sampled_from(SERIALS)),
    st.tuples(_codes, st.sampled_from(SERIALS), st.sampled_from(EXPIRIES)),
    st.tuples(st.sampled_from(EXPIRIES), _codes),
    st.tuples(_codes, _codes, _codes, _codes),
)
_lines = st.tuples(_cells, st.just("\n") | st.sampled_from(ENDS)).map(
    lambda line: ",".join(line[0]) + line[1]
)


@given(
    header=st.sampled_from(HEADERS),
    alike=st.lists(_lines, max_size=3),
    others=st.lists(_lines, max_size=8),
    separator=st.sampled_from(",;"),
    chunk_lines=st.integers(1, 4),
    cut=st.integers(0, 2),
)
def test_lines_read_at_once_are_the_lines_read_one_by_one(
    header: str, alike: list[str], others: list[str], separator: str, chunk_lines: int, cut: int
) -> None:
    """`stock import`: whichever way a line is read, it is taken or refused by the same rules."""
    data = (header + "".join(alike * 3 + others).replace(",", separator)).encode()
    both(data[: len(data) - cut], chunk_lines)


@given(data=st.binary(max_size=60), chunk_lines=st.integers(1, 3))
def test_any_bytes_are_read_alike(data: bytes, chunk_lines: int) -> None:
    """`stock import`: the same for bytes that nobody meant as codes."""
    both(b"code\nA\n" + data, chunk_lines)


@pytest.mark.parametrize(
    ("line", "read_at_once"),
    [
        (b"A%d,S%d,\n", 90),
        (b"A %d,S%d,2090-01-01\r\n", 90),
        (b" A-%d , S%d , \n", 90),
        (b"A%d,S%d\n", 90),
        (b"A+%d,S%d,\n", 0),
        ("é%d,S%d,\n".encode(), 0),
        (b'"A%d","S%d",\n', 0),
    ],
)
def test_simple_lines_are_read_at_once(line: bytes, read_at_once: int) -> None:
    """Decision 3: a million simple lines go in within seconds; lines that need a look get it."""
    outcome, count = both(b"code,serial,expires\n" + b"".join(line % (at, at) for at in range(99)), 10)
    assert (len(outcome.entries), outcome.bad_count, count) == (99, 0, read_at_once)


@pytest.mark.parametrize(
    ("odd", "taken", "bad"),
    [
        (b"A,S\nB\nC,S,\n", [b"A", b"B", b"C"], []),
        (b"A,S,\nB\nC\n", [b"A", b"B", b"C"], []),
        (b"A,S,\nB\n\n", [b"A", b"B"], []),
        (b"A,,\n\x7f,,\nC,,\n", [b"A", b"C"], [(3, "code: has characters that can't be printed")]),
        (b"A,%b,\nB,,\n" % (b"s" * 201), [b"B"], [(2, "serial: longer than 200 characters")]),
        (b"A%b\nB\n" % (b" " * (LINE_BYTES_MAX - 1)), [b"B"], [(2, "longer than 4096 bytes")]),
        (b"A%b\nB\n" % (b" " * 9000), [b"B"], [(2, "longer than 4096 bytes")]),
        (b"A,1,\nA,2,\nB,,\n", [b"A", b"B"], []),
    ],
)
def test_one_odd_line_sends_its_chunk_line_by_line(
    odd: bytes, taken: list[bytes], bad: list[tuple[int, str]]
) -> None:
    """`stock import`: lines of several lengths, and such as spaces hide, are told apart among simple ones."""
    outcome, _ = both(b"FIRST\n" + odd, 3)
    # The first line is a chunk of its own, so that the others come to the quick way at all.
    shifted, _ = both(b"FIRST\n\n\n" + odd, 3)
    for one in (outcome, shifted):
        assert [code for _, code, _, _ in one.entries] == [b"FIRST", *taken]
    assert (outcome.bad, shifted.bad) == (bad, [(line + 2, reason) for line, reason in bad])


def test_of_a_code_that_is_there_twice_the_first_line_counts() -> None:
    """`stock import`: a code twice in a file is taken once, with the serial of its first line."""
    outcome, read_at_once = both(b"FIRST,0\nA,1\nB,2\nA,3\n", 1)
    assert (read_at_once, outcome.repeated) == (3, 0)
    outcome, read_at_once = both(b"FIRST,0\n\n\nA,1\nB,2\nA,3\n", 3)
    assert (read_at_once, outcome.repeated) == (3, 1)
    assert [entry[1:3] for entry in outcome.entries] == [(b"FIRST", b"0"), (b"A", b"1"), (b"B", b"2")]


@pytest.mark.parametrize(("chunk_lines", "read_at_once"), [(100, 900), (300, 600)])
def test_the_expiry_that_is_one_too_many_is_told_by_its_line(chunk_lines: int, read_at_once: int) -> None:
    """`stock import`: a file with too many expiries is refused at the first of them, in whatever chunk it is."""
    data = b"".join(b"C%d,,2090-01-01T00:%02d:%02d\n" % (n, n // 60, n % 60) for n in range(1100))
    outcome, count = both(data, chunk_lines)
    assert outcome.refusal == "line 1001: more than 1000 different expiries in one file"
    assert count == read_at_once
