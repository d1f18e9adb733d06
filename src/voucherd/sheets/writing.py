"""Writes tables: numbers as numbers, texts as texts that no spreadsheet program takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from importlib import import_module
from typing import Any, BinaryIO, Final, TypeAlias

from voucherd.sheets.csv_text import guarded

Value: TypeAlias = str | int | Decimal | bool | datetime | None
Row: TypeAlias = Sequence[Value]

_WIDTH_MAX: Final = 40
_TEXT_FORMAT: Final = "@"


class Format(StrEnum):
    """How a table is written."""

    CSV = "csv"
    XLSX = "xlsx"


def write(
    stream: BinaryIO, format_: Format, title: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]
) -> int:
    """Write a header and the rows, and say how many rows there were."""
    if format_ is Format.XLSX:
        return _write_workbook(stream, title, columns, rows)
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        count = 0
        for row in rows:
            writer.writerow([_text(value) for value in row])
            count += 1
        text.flush()
    finally:
        text.detach()
    return count


def csv_rows(rows: Iterable[Row]) -> bytes:
    """Some rows of a file that is written piece by piece."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([_text(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return guarded(value) if isinstance(value, str) else f"{value}"


def _write_workbook(
    stream: BinaryIO, title: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]
) -> int:
    # Loaded when it is needed: most commands never write a workbook.
    library, bold = import_module("openpyxl"), import_module("openpyxl.styles").Font(bold=True)
    book = library.Workbook(write_only=True)
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    kept = [tuple(row) for row in rows]
    for at, column in enumerate(columns):
        longest = max((len(_text(row[at])) for row in kept), default=0)
        letter = library.utils.get_column_letter(at + 1)
        sheet.column_dimensions[letter].width = min(max(longest, len(column)) + 2, _WIDTH_MAX)
    make = library.cell.WriteOnlyCell
    header = [_fill(make(sheet), column) for column in columns]
    for cell in header:
        cell.font = bold
    sheet.append(header)
    for row in kept:
        sheet.append([_fill(make(sheet), value) for value in row])
    book.save(stream)
    return len(kept)


def _fill(cell: Any, value: Value) -> Any:
    if isinstance(value, Decimal):
        cell.value = value
        places = -int(value.as_tuple().exponent)
        cell.number_format = "0." + "0" * places if places > 0 else "0"
    elif isinstance(value, int) and not isinstance(value, bool):
        cell.value = value
    elif value is not None:
        cell.value = value if isinstance(value, str) else _text(value)
        # Said out loud: the library takes a text that starts with = for a formula.
        cell.data_type = "s"
        cell.number_format = _TEXT_FORMAT
    return cell
