"""The lines of a file of codes, CSV or XLSX, as texts; what can't be read as texts is refused line by line."""

from __future__ import annotations

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO, Final, TypeAlias

from voucherd.sheets import workbook
from voucherd.sheets.archive import OLD_START, XLSX_START
from voucherd.sheets.model import FILE_BYTES_MAX, Cell, CellKind, SheetRefused, SheetRow

LINE_BYTES_MAX: Final = 4096
COLUMNS: Final = ("code", "serial", "expires")

# What a spreadsheet program makes of a long number, and what XLSX makes of a control character.
_SHORTENED: Final = re.compile(r"[0-9](?:[.,][0-9]+)?E\+[0-9]+", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"_x[0-9A-Fa-f]{4}_")
_PLAIN: Final = bytes(set(range(0x20, 0x7F)) - set(b'"+')) + b"\n"
"""The characters of lines that need no look at each: they can be printed, and none quotes or shortens a number."""


class FileRefused(Exception):
    """The whole file is not what it should be; the one line of text says why."""


class LineRefused(Exception):
    """This line can't be taken; the text is the rule that it breaks."""


class CsvSource:
    """Lines of CSV, read in constant memory."""

    def __init__(self, stream: BinaryIO, first: bytes) -> None:
        self.line = 0
        self.bytes_read = 0
        self._readline = partial(stream.readline, LINE_BYTES_MAX + 1)
        self._ahead = deque([first])
        """What was read of the stream and not looked at yet: lines, and pieces of lines that are too long."""
        self._begun = False
        self._separator = ","

    def cells(self) -> list[str] | None:
        """The cells of the next line, none of an empty one; None at the end."""
        raw = self._read_line()
        if not raw:
            return None
        self.line += 1
        if len(raw) > LINE_BYTES_MAX:
            raise LineRefused(f"longer than {LINE_BYTES_MAX} bytes")
        try:
            text = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise LineRefused("not UTF-8") from None
        if not self._begun:
            text = self._begin(text)
        if '"' not in text:
            return text.split(self._separator) if text and not text.isspace() else []
        try:
            # A quote that is never closed must not swallow the lines behind it: no cell spans two lines.
            return next(csv.reader([text], delimiter=self._separator, strict=True))
        except csv.Error:
            raise LineRefused("quotes don't match") from None

    def plain_columns(self, lines_max: int) -> list[list[bytes]] | None:
        """The stripped cells of the next lines, column by column, if all lines are alike and simple; none is passed."""
        self._ahead.extend(islice(iter(self._readline, b""), lines_max))
        raw = b"".join(self._ahead)
        if not raw or len(max(self._ahead, key=len)) > LINE_BYTES_MAX:
            return None
        text = raw.replace(b"\r\n", b"\n")
        text = text if text.endswith(b"\n") else text + b"\n"
        if text.translate(None, _PLAIN):
            return None
        separator = self._separator.encode()
        # The end of a line becomes a cell of its own: if each is where the first line has it, all have as many cells.
        cells = text.replace(b"\n", separator + b"\n" + separator).split(separator)
        width = cells.index(b"\n")
        ends = cells[width :: width + 1]
        if len(ends) != len(self._ahead) or ends.count(b"\n") != len(ends):
            return None
        if b" " in text:
            cells = list(map(bytes.strip, cells))
        return [cells[at : -1 : width + 1] for at in range(width)]

    def pass_columns(self) -> None:
        """Be behind the lines that were read as columns."""
        self.line += len(self._ahead)
        self.bytes_read += sum(map(len, self._ahead))
        self._ahead.clear()

    def _read_line(self) -> bytes:
        raw = rest = self._next()
        # The tail of an endless line is read over, so that the line after it is seen as one.
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = self._next()
        return raw

    def _next(self) -> bytes:
        raw = self._ahead.popleft() if self._ahead else self._readline()
        self.bytes_read += len(raw)
        return raw

    def _begin(self, text: str) -> str:
        """The first line with text: it may say what stands between cells, by name or as a header."""
        text = text.removeprefix("\ufeff") if self.line == 1 else text
        if text.lower().strip() in ("sep=,", "sep=;"):
            self._separator = text.strip()[-1]
            return ""
        self._begun = bool(text.strip())
        names = [name.strip(' "').lower() for name in text.split(";")]
        # Only a header can say so: a code may well hold a semicolon.
        if len(names) > 1 and set(names) <= set(COLUMNS):
            self._separator = ";"
        return text


class SheetSource:
    """Rows of a workbook. Codes and serials have to be texts: a number has lost its zeros, or its last digits."""

    def __init__(self, content: bytes) -> None:
        self.line = 0
        self.bytes_read = len(content)
        self._rows = _told(workbook.rows(content))
        self._names: tuple[str, ...] = COLUMNS
        self._begun = False

    def cells(self) -> list[str] | None:
        """The cells of the next row that is not empty; None at the end."""
        row = next(self._rows, None)
        if row is None:
            return None
        self.line = row.number
        if not self._begun:
            self._begun = True
            names = [cell.text.lower() for cell in row.cells]
            if set(names) & set(COLUMNS):
                self._names = tuple(names)
                return names
        return [self._text(at, cell) for at, cell in enumerate(row.cells)]

    def _text(self, at: int, cell: Cell) -> str:
        column = self._names[at] if at < len(self._names) else f"column {at + 1}"
        if cell.kind is CellKind.TEXT:
            if _ESCAPED.search(cell.text):
                raise LineRefused(f"{column}: has a control character")
            return cell.text
        if cell.kind is CellKind.MOMENT and column == "expires":
            return cell.text
        if cell.kind is CellKind.NUMBER:
            raise LineRefused(
                f"{column}: is a number, so digits may be lost: make the column text, fill it anew"
            )
        raise LineRefused(f"{column}: is {cell.kind.value}")


Source: TypeAlias = CsvSource | SheetSource


def begin(stream: BinaryIO) -> Source:
    """The lines of the file, which is judged by how it starts and not by its name."""
    first = stream.readline(LINE_BYTES_MAX + 1)
    if first.startswith(OLD_START):
        raise FileRefused("the file is an old XLS, or has a password: save it as XLSX without one")
    if first.startswith(XLSX_START):
        return SheetSource(first + stream.read(FILE_BYTES_MAX + 1 - len(first)))
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileRefused("the file is UTF-16: save it as CSV UTF-8")
    return CsvSource(stream, first)


def refuse_shortened(code: str) -> None:
    """Refuse what a spreadsheet program has made of a code of many digits."""
    if _SHORTENED.fullmatch(code):
        raise LineRefused(
            "code: looks like a number that a spreadsheet has shortened, so its digits are lost"
        )


def _told(rows: Iterator[SheetRow]) -> Iterator[SheetRow]:
    try:
        yield from rows
    except SheetRefused as refused:
        raise FileRefused(str(refused)) from None
