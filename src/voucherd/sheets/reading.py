"""Reads a file for what it is, whatever its name says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from voucherd.sheets import csv_text, workbook
from voucherd.sheets.archive import OLD_START, XLSX_START
from voucherd.sheets.model import FILE_BYTES_MAX, SheetRefused, SheetRow


def rows(stream: BinaryIO) -> Iterator[SheetRow]:
    """The rows of a CSV or XLSX file that are not empty; refused as it goes along."""
    # One byte more than allowed is enough to know.
    content = stream.read(FILE_BYTES_MAX + 1)
    if content.startswith(OLD_START):
        raise SheetRefused("the file is an old XLS, or has a password: save it as XLSX without one")
    yield from workbook.rows(content) if content.startswith(XLSX_START) else csv_text.rows(content)


def streamed(stream: BinaryIO) -> Iterator[SheetRow]:
    """The same for a CSV file of any length, in constant memory; a workbook has its usual limits."""
    first = stream.readline(csv_text.LINE_BYTES_MAX + 1)
    if first.startswith(OLD_START):
        raise SheetRefused("the file is an old XLS, or has a password: save it as XLSX without one")
    if first.startswith(XLSX_START):
        yield from workbook.rows(first + stream.read(FILE_BYTES_MAX + 1 - len(first)))
    else:
        yield from csv_text.streamed(stream, first)
