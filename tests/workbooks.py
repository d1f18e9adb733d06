"""Workbooks made by hand, sane and hostile: for tests of what reads them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import openpyxl

SHEET = "xl/worksheets/sheet1.xml"


def workbook(*rows: Sequence[Any], **more_sheets: Sequence[Sequence[Any]]) -> bytes:
    """A workbook with these rows, as a spreadsheet program would save it."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(list(row))
    for title, other in more_sheets.items():
        another = book.create_sheet(title)
        for row in other:
            another.append(list(row))
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def repacked(content: bytes, parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The workbook with some of its parts replaced or added."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as before,
        zipfile.ZipFile(stream, "w", method) as after,
    ):
        for name in before.namelist():
            if name not in parts:
                after.writestr(name, before.read(name))
        for name, part in parts.items():
            after.writestr(name, part)
    return stream.getvalue()


def with_sheet(inside: str, before: str = "") -> bytes:
    """A workbook whose only sheet is this XML."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    xml = (
        f'<?xml version="1.0"?>{before}<worksheet xmlns="{space}"><sheetData>{inside}</sheetData></worksheet>'
    )
    return repacked(workbook(), {SHEET: xml.encode()})
