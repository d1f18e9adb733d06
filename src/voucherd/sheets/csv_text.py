"""CSV: read in UTF-8 with commas, semicolons or tabs; written as RFC 4180 has it, guarded against formulas."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from typing import BinaryIO, Final

from voucherd.sheets.model import (
    CELL_CHARACTERS_MAX,
    COLUMNS_MAX,
    FILE_BYTES_MAX,
    Cell,
    SheetRefused,
    SheetRow,
)

SEPARATORS: Final = (",", ";", "\t")
LINE_BYTES_MAX: Final = 65_536
"""Of a file that is read line by line."""
_ANNOUNCED: Final = "sep="

ACTIVE: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A spreadsheet program may take a text that starts with one of these for a formula, and run it."""
GUARD: Final = "'"


def rows(content: bytes) -> Iterator[SheetRow]:
    """The rows of a CSV file that are not empty; a row's number is its line's."""
    lines = _text(content).split("\n")
    separator, first = _separator(lines)
    for number, line in enumerate(lines[first:], start=first + 1):
        found = _row(number, line, separator)
        if found is not None:
            yield found


def streamed(stream: BinaryIO, first_line: bytes) -> Iterator[SheetRow]:
    """The rows of a CSV file of any length, of which one line was read already, in constant memory."""
    separator: str | None = None
    number, raw = 1, first_line
    while raw:
        if len(raw) > LINE_BYTES_MAX:
            raise SheetRefused("row {row}: is longer than {most} bytes", row=str(number), most=LINE_BYTES_MAX)
        line = _line(number, raw)
        if separator is None and line.strip():
            separator, announced = _separator([line])
            line = "" if announced else line
        found = None if separator is None else _row(number, line, separator)
        if found is not None:
            yield found
        number, raw = number + 1, stream.readline(LINE_BYTES_MAX + 1)


def _line(number: int, raw: bytes) -> str:
    if number == 1:
        return _text(raw).rstrip("\n")
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise SheetRefused("row {row}: is not UTF-8: save the file as CSV UTF-8", row=str(number)) from None


def _row(number: int, line: str, separator: str) -> SheetRow | None:
    cells = [Cell(unguarded(text.strip())) for text in _split(number, line, separator)]
    while cells and not cells[-1].text:
        cells.pop()
    if len(cells) > COLUMNS_MAX:
        raise SheetRefused("row {row}: has more than {most} columns", row=str(number), most=COLUMNS_MAX)
    return SheetRow(number, cells) if cells else None


def guarded(text: str) -> str:
    """The text for a CSV cell: one that a spreadsheet program would take for a formula gets a quote before it."""
    return GUARD + text if text.lstrip(GUARD).startswith(ACTIVE) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given."""
    return text[1:] if text.startswith(GUARD) and text.lstrip(GUARD).startswith(ACTIVE) else text


def _text(content: bytes) -> str:
    if len(content) > FILE_BYTES_MAX:
        raise SheetRefused("the file is larger than {most} MiB", most=FILE_BYTES_MAX // 1024 // 1024)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SheetRefused("the file is UTF-16: save it as CSV UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        number = content.count(b"\n", 0, broken.start) + 1
        raise SheetRefused("row {row}: is not UTF-8: save the file as CSV UTF-8", row=str(number)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _separator(lines: list[str]) -> tuple[str, int]:
    """What stands between cells, and how many lines come before the table."""
    if lines[0].lower().startswith(_ANNOUNCED):
        announced = lines[0][len(_ANNOUNCED) :].strip(" ") or ","
        if announced not in SEPARATORS:
            raise SheetRefused("row 1: sep= must name a comma, a semicolon or a tab")
        return announced, 1
    header = next((line for line in lines if line.strip()), "")
    return max(SEPARATORS, key=header.count), 0


def _split(number: int, line: str, separator: str) -> list[str]:
    if len(line) > COLUMNS_MAX * CELL_CHARACTERS_MAX:
        raise SheetRefused("row {row}: is too long", row=str(number))
    try:
        # A quote that is never closed must not swallow the lines behind it: no cell spans two lines.
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        raise SheetRefused(
            "row {row}: its quotes don’t match, or a cell is too long", row=str(number)
        ) from None


CSV: Final = b"text/csv; charset=utf-8; header=present"


def quoted(text: str) -> str:
    """The text, letter for letter, in quotes: what a program reads back is exactly what was put in."""
    return '"' + text.replace('"', '""') + '"'


def safe(text: str | None) -> str:
    """Somebody's text in quotes, guarded; empty for none."""
    if text is None:
        return ""
    return quoted(guarded(text))


def headers(file_name: str) -> list[tuple[bytes, bytes]]:
    """What makes a browser keep the answer as a file of this name, and never show it as a page."""
    return [
        (b"content-disposition", f'attachment; filename="{file_name}"'.encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
    ]
