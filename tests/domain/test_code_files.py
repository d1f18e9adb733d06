"""Files of codes: lines that are read all at once give what they give one by one."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd.vault import lines, sources
from voucherd.vault.lines import CodeFile
from voucherd.vault.sources import CsvSource, FileRefused

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HEADERS = (
    "",
    "code\n",
    "code,serial,expires\n",
    "expires,code\r\n",
    "code;serial\n",
    "sep=;\n",
    "A0,S,2090-01-01\n",
)
CODES = (
    "A",
    "B",
    "C",
    " D ",
    "A 1",
    "A+1",
    "1.2E+15",
    "",
    '"A"',
    '"A',
    "é",
    "\x07",
    "a\rb",
    "\t",
    "x" * 200,
    "x" * 201,
)
SERIALS = ("", "S1", " S2 ", "s" * 201, "ß", "a\x00b")
EXPIRIES = ("", "2090-01-01", " 2091-01-01 ", "2092-01-01T10:00", "2020-01-01", "never", "2090-01-01\r")
ENDS = ("\n", "\r\n", "\r\r\n", "\n\n", " \n")

Read: TypeAlias = tuple[
    list[tuple[bytes, bytes, bytes, datetime | None]], str, int, list[lines.BadLine], int, int
]


def read(data: bytes, chunk_lines: int, *, at_once: bool) -> tuple[Read, int]:
    """Everything that comes out of a file, and how many of its lines were read at once."""
    columns_read = 0

    class Counted(CodeFile):
        def _plain(self, source: sources.Source) -> lines._Columns | None:
            nonlocal columns_read
            columns = super()._plain(source) if at_once else None
            columns_read += 0 if columns is None else len(columns[0])
            return columns

    file = Counted(io.BytesIO(data), bytes, NOW)
    entries, refusal = [], ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_LINES", chunk_lines)
        try:
            while (chunk := file.chunk()) is not None:
                entries += [
                    (blind, *entry) for blind, entry in zip(chunk.blinds, chunk.entries(), strict=True)
                ]
        except FileRefused as refused:
            refusal = str(refused)
    return (entries, refusal, file.repeated, file.bad, file.bad_count, file.line), columns_read


def both(data: bytes, chunk_lines: int) -> tuple[Read, int]:
    """The same, read in both ways."""
    once, columns_read = read(data, chunk_lines, at_once=True)
    assert once == read(data, chunk_lines, at_once=False)[0]
    return once, columns_read


_cells = st.one_of(
    st.tuples(st.sampled_from(CODES)),
    st.tuples(st.sampled_from(CODES), st.sampled_from(SERIALS)),
    st.tuples(st.sampled_from(CODES), st.sampled_from(SERIALS), st.sampled_from(EXPIRIES)),
    st.tuples(st.sampled_from(EXPIRIES), st.sampled_from(CODES)),
    st.lists(st.sampled_from(CODES), min_size=4, max_size=4).map(tuple),
)
_lines = st.tuples(_cells, st.sampled_from(ENDS)).map(lambda line: ",".join(line[0]) + line[1])


@given(
    header=st.sampled_from(HEADERS),
    same=st.lists(_lines, max_size=3),
    lines_=st.lists(_lines, max_size=8),
    separator=st.sampled_from(",;"),
    chunk_lines=st.integers(1, 4),
    cut=st.integers(0, 2),
)
def test_lines_read_at_once_are_the_lines_read_one_by_one(
    header: str, same: list[str], lines_: list[str], separator: str, chunk_lines: int, cut: int
) -> None:
    """`stock import`: whichever way a line is read, it is taken or refused by the same rules."""
    text = "".join(same * 3 + lines_).replace(",", separator)
    data = (header + text).encode()
    both(data[: len(data) - cut], chunk_lines)


@given(data=st.binary(max_size=60), chunk_lines=st.integers(1, 3))
def test_any_bytes_are_read_alike(data: bytes, chunk_lines: int) -> None:
    """`stock import`: the same for bytes that nobody meant as codes."""
    both(b"code\nA\n" + data, chunk_lines)


@pytest.mark.parametrize(
    ("rows", "count"),
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
def test_simple_lines_are_read_at_once(rows: bytes, count: int) -> None:
    """Decision 3: a million plain lines go in within seconds; only those that need a look get one."""
    data = b"code,serial,expires\n" + b"".join(rows % (number, number) for number in range(99))
    (entries, *_), columns_read = both(data, 10)
    assert (len(entries), columns_read) == (99, count)


def test_a_line_that_is_too_long_is_never_read_in_pieces() -> None:
    """`stock import`: spaces don't hide how long a line is, and its tail is no line of its own."""
    long = b"B" + b" " * 9000 + b"C"
    (entries, _, _, bad, _, line), _ = both(b"code\nA\n" + long + b"\nD\n" + long + b"\nE\n", 2)
    assert [code for code, *_ in entries] == [b"A", b"D", b"E"]
    assert [number for number, _ in bad] == [3, 5]
    assert line == 6
    source = CsvSource(io.BytesIO(long), b"A\n")
    assert source.plain_columns(3) is None


def test_the_expiry_that_is_one_too_many_is_told_by_its_line() -> None:
    """`stock import`: a file with too many expiries is refused where it has them, in whatever chunk that is."""
    data = b"".join(b"C%d,,2090-01-01T00:%02d:%02d\n" % (n, n // 60, n % 60) for n in range(1005))
    (_, refusal, *_), columns_read = both(data, 100)
    assert refusal == "line 1001: more than 1000 different expiries in one file"
    assert columns_read == 900
