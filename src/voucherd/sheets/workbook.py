"""XLSX: the rows of the one sheet that has any. Nothing is computed: a formula is a formula, not its last value."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from typing import Any, Final

from voucherd.sheets import archive
from voucherd.sheets.model import COLUMNS_MAX, EMPTY, Cell, CellKind, SheetRefused, SheetRow

_SPEAKING: Final = ("f", "e")
"""Formulas and errors are no empty cells, whatever their value."""


def rows(content: bytes) -> Iterator[SheetRow]:
    """The rows of a workbook that are not empty."""
    archive.check(content)
    try:
        for number, cells in enumerate(_quietly(_only_sheet(content)), start=1):
            wide = len(cells)
            while wide and cells[wide - 1].value is None and cells[wide - 1].data_type not in _SPEAKING:
                wide -= 1
            if wide > COLUMNS_MAX:
                raise SheetRefused(
                    "row {row}: has more than {most} columns", row=str(number), most=COLUMNS_MAX
                )
            row = [_cell(cell) for cell in cells[:wide]]
            while row and row[-1] == EMPTY:
                row.pop()
            if row:
                yield SheetRow(number, row)
    except SheetRefused:
        raise
    except Exception as broken:  # noqa: BLE001 - A broken or hostile file makes the library raise anything.
        raise SheetRefused("the file can’t be read as XLSX ({why})", why=type(broken).__name__) from None


def _quietly(found: Iterator[Any]) -> Iterator[Any]:
    """The same, without what the library has to say of charts and rules that it does not keep: nor do we."""
    nothing = object()
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            item = next(found, nothing)
        if item is nothing:
            return
        yield item


def _only_sheet(content: bytes) -> Iterator[Any]:
    """The cells of the visible sheet that has some; two of them would leave open which is meant."""
    # Loaded when it is needed: a tenth of a second that every start of a server would wait for.
    book = import_module("openpyxl").load_workbook(io.BytesIO(content), read_only=True, keep_links=False)
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    filled = [sheet for sheet in shown if _has_cells(sheet)] if len(shown) > 1 else shown
    if len(filled) > 1:
        raise SheetRefused("the file has {count} sheets with something on them: keep one", count=len(filled))
    for sheet in filled:
        yield from _cells(sheet)


def _has_cells(sheet: Any) -> bool:
    return any(cell.value is not None for cells in _cells(sheet) for cell in cells)


def _cells(sheet: Any) -> Iterator[Any]:
    # What the sheet says of its own size is not believed.
    sheet.reset_dimensions()
    yield from sheet.iter_rows()


def _cell(cell: Any) -> Cell:
    match cell.data_type, cell.value:
        case "f", _:
            return Cell("", CellKind.FORMULA)
        case "e", _:
            return Cell("", CellKind.ERROR)
        case _, None:
            return EMPTY
        case _, str(text):
            return Cell(text.strip())
        case _, value:
            return _no_text(value)


def _no_text(value: object) -> Cell:
    match value:
        case bool(flag):
            return Cell("yes" if flag else "no", CellKind.FLAG)
        case int(number) | float(number):
            return _number(number)
        case datetime() as moment if moment.time() != time():
            return Cell(moment.isoformat(), CellKind.MOMENT)
        case date() as day:  # A day without a time is kept as its first moment.
            return Cell(f"{day:%Y-%m-%d}", CellKind.MOMENT)
        case _:  # A time of day or a span, which none of our columns holds.
            return Cell("", CellKind.ERROR)


def _number(value: int | float) -> Cell:
    """The number in plain digits: the shortest that means the same, which is what the person typed."""
    if isinstance(value, float) and not math.isfinite(value):
        return Cell("", CellKind.ERROR)
    exact = Decimal(repr(value))
    text = f"{exact:f}"
    return Cell(text.rstrip("0").rstrip(".") if "." in text else text, CellKind.NUMBER)
