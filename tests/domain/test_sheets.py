"""Tables in files: what a cell is taken for, which files are refused, and that no text becomes a formula."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workbooks import SHEET, repacked, with_sheet, workbook
from voucherd.sheets import archive, csv_text, reading
from voucherd.sheets.model import ROWS_MAX, Cell, CellKind, SheetRefused, SheetRow
from voucherd.sheets.writing import Format, Value, write


def read(content: bytes) -> list[SheetRow]:
    """Every row of a file."""
    return list(reading.rows(io.BytesIO(content)))


def test_a_cell_of_a_workbook_is_what_the_file_says_and_a_number_keeps_the_digits_that_were_typed() -> None:
    """OP-07: never a binary float on the way; the command line: formulas are not evaluated."""
    cells = [
        *("00123", " x ", 48.1, 1.23e15, 7, 1e-9, True, "=1+1", None),
        *(datetime(2027, 12, 31), datetime(2027, 12, 31, 9, 30), "#N/A", "last"),  # noqa: DTZ001 - As files have them.
    ]
    (row,) = read(workbook([], cells))
    assert row.number == 2
    assert row.cells == [
        Cell("00123"),
        Cell("x"),
        Cell("48.1", CellKind.NUMBER),
        Cell("1230000000000000", CellKind.NUMBER),
        Cell("7", CellKind.NUMBER),
        Cell("0.000000001", CellKind.NUMBER),
        Cell("yes", CellKind.FLAG),
        Cell("", CellKind.FORMULA),
        Cell(""),
        Cell("2027-12-31", CellKind.MOMENT),
        Cell("2027-12-31T09:30:00", CellKind.MOMENT),
        Cell("", CellKind.ERROR),
        Cell("last"),
    ]
    typed = "<row><c><v>0.30000000000000004</v></c><c><v>48.100000000000001</v></c><c><v>1E999</v></c></row>"
    (row,) = read(with_sheet(typed))
    assert row.cells == [
        Cell("0.30000000000000004", CellKind.NUMBER),
        Cell("48.1", CellKind.NUMBER),
        Cell("", CellKind.ERROR),
    ]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (lambda: b"PK\x03\x04 and no more", "not a whole XLSX file"),
        (lambda: workbook(["a"])[:-300], "not a whole XLSX file"),
        (lambda: b"\xd0\xcf\x11\xe0 an old one", "old XLS, or has a password"),
        (
            lambda: repacked(workbook(), {"bomb.xml": b"\0" * (257 * 1024 * 1024)}),
            "unpacks to more than 256 MiB",
        ),
        (lambda: repacked(workbook(), {f"{n}.xml": b"" for n in range(1_001)}), "more than 1,000 parts"),
        (lambda: repacked(workbook(), {}, zipfile.ZIP_LZMA), "packed in a way"),
        (lambda: with_sheet("", "<!DOCTYPE x [<!ENTITY a 'b'>]>"), "document type"),
        (
            lambda: repacked(workbook(), {SHEET: b'<?xml version="1.0" encoding="x"?><a/>'}),
            "not a whole XLSX file",
        ),
        (lambda: with_sheet('<row r="2"/><row r="1"/>'), "rows are not in order"),
        (lambda: with_sheet(f'<row r="{ROWS_MAX + 1}"/>'), "more than 250,000 rows"),
        (lambda: with_sheet('<row r="1"><c r="A1"><f/></c></row>' + "<f/>" * 10_000), "formulas"),
        (
            lambda: with_sheet(f'<row><c t="inlineStr"><is><t>{"x" * 32_768}</t></is></c></row>'),
            "32,767 characters",
        ),
        (lambda: with_sheet('<row r="1"><c r="A1" t="s"><v>9</v></c></row>'), "can’t be read as XLSX"),
        (lambda: with_sheet("<row><c><v>nine</v></c></row>"), "can’t be read as XLSX"),
        (lambda: repacked(workbook(), {"[Content_Types].xml": b"<x/>"}), "can’t be read as XLSX"),
        (lambda: with_sheet('<row r="1"><c r="XFD1"><v>1</v></c></row>'), "row 1: has more than 64 columns"),
        (lambda: workbook(["a"], other=[["b"]]), "2 sheets with something on them"),
        (lambda: b"a,b\n\xff\xfe\n", "row 2: is not UTF-8"),
        (lambda: "a,b\n".encode("utf-16"), "is UTF-16"),
        (lambda: b'a,b\n"c,d\n', "row 2: its quotes don’t match"),
        (lambda: b"sep=|\na|b\n", "sep= must name"),
        (lambda: b"," * 64 + b"x\n", "more than 64 columns"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_file_that_is_broken_or_hostile_is_refused_in_one_line(
    content: Callable[[], bytes], rule: str
) -> None:
    """Bounds on everything, on what people send as well."""
    # Made here, and not when tests are collected: 257 MiB of nothing take a while to pack.
    with pytest.raises(SheetRefused, match=rule) as refused:
        read(content())
    assert "\n" not in str(refused.value)


def test_elements_are_counted_before_anything_is_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four bytes of XML are a hundred of memory, so a small file can still be too large."""
    monkeypatch.setattr(archive, "ELEMENTS_MAX", 1_000)
    assert read(workbook(["a"])) == [SheetRow(1, [Cell("a")])]
    with pytest.raises(SheetRefused, match="more than a sheet can"):
        read(with_sheet("<c/>" * 1_000))


def test_an_empty_second_sheet_and_a_claim_of_size_change_nothing() -> None:
    """The command line: a table is the one sheet that has something on it."""
    assert read(workbook(["a"], blank=[])) == [SheetRow(1, [Cell("a")])]
    claims = workbook(["a"])
    with zipfile.ZipFile(io.BytesIO(claims)) as packed:
        xml = packed.read(SHEET).replace(b'ref="A1"', b'ref="A1:XFD1048576"')
    assert read(repacked(claims, {SHEET: xml})) == [SheetRow(1, [Cell("a")])]


@pytest.mark.parametrize(
    "content",
    [
        b"slug,price\n\na,48.10\n",
        b"\xef\xbb\xbfslug;price\r\n\r\na;48.10\r\n",
        b"slug\tprice\r\ra\t48.10\r",
        b'"slug","price"\n , \n"a",48.10 ,,\n',
    ],
)
def test_csv_is_read_whatever_stands_between_its_cells(content: bytes) -> None:
    """The command line: UTF-8 with or without a mark; comma, semicolon or tab."""
    assert read(content) == [
        SheetRow(1, [Cell("slug"), Cell("price")]),
        SheetRow(3, [Cell("a"), Cell("48.10")]),
    ]
    announced = b"sep=;\n" + b"a,b;c\n"
    assert read(announced) == [SheetRow(2, [Cell("a,b"), Cell("c")])]


@given(st.text(alphabet="=+-@'a1 \t", max_size=8))
def test_a_text_comes_back_from_a_cell_as_it_was(text: str) -> None:
    """The guard against formulas adds a quote that reading takes away, and no other."""
    shown = csv_text.guarded(text)
    assert csv_text.unguarded(shown) == text
    assert not shown.startswith(csv_text.ACTIVE)


@pytest.mark.parametrize("format_", Format)
def test_what_is_written_can_be_read_and_holds_no_formula(format_: Format) -> None:
    """Numbers stay numbers, moments are texts, and a name that looks like a formula is a name."""
    stream = io.BytesIO()
    moment = datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC)
    row: list[Value] = ["=SUM(A1)", Decimal("48.10"), -7, True, None, moment]
    count = write(stream, format_, "things", ["name", "price", "n", "on", "none", "at"], [row])
    assert count == 1
    header, read_back = read(stream.getvalue())
    assert [cell.text for cell in header.cells] == ["name", "price", "n", "on", "none", "at"]
    kinds = [cell.kind for cell in read_back.cells]
    texts = [cell.text for cell in read_back.cells]
    price = "48.1" if format_ is Format.XLSX else "48.10"
    assert texts == ["=SUM(A1)", price, "-7", "yes", "", "2027-12-31T23:59:59Z"]
    assert CellKind.FORMULA not in kinds
    if format_ is Format.XLSX:
        assert kinds[1:3] == [CellKind.NUMBER, CellKind.NUMBER]
        assert openpyxl.load_workbook(stream).active["B2"].number_format == "0.00"
    else:
        assert b"'=SUM(A1)" in stream.getvalue()
