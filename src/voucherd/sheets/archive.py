"""The outside of an XLSX file: a zip archive of XML, looked through before anything is built from it.

A few bytes of a zip can unpack to gigabytes, a few bytes of XML can become gigabytes of objects, and a document type
can hide either. All of that is counted here by a parser that keeps nothing.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Final
from xml.parsers import expat

from voucherd.sheets.model import CELL_CHARACTERS_MAX, FILE_BYTES_MAX, ROWS_MAX, SheetRefused

PARTS_MAX: Final = 1_000
UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
ELEMENTS_MAX: Final = 4_000_000
FORMULAS_MAX: Final = 10_000

XLSX_START: Final = b"PK\x03\x04"
OLD_START: Final = b"\xd0\xcf\x11\xe0"
"""How a workbook of before 2007 starts, and one that a password protects."""

_MIB: Final = 1024 * 1024
_PIECE_BYTES: Final = 1 << 16
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    ValueError,
    LookupError,  # A part names an encoding that nobody knows.
)


def check(content: bytes) -> None:
    """Refuse an archive that would unpack to more than a sheet of a sane size needs."""
    if len(content) > FILE_BYTES_MAX:
        raise SheetRefused(
            "the file is larger than {most} MiB: send large files as CSV", most=FILE_BYTES_MAX // _MIB
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            _check_parts(parts)
            counts = _Counts()
            for part in parts:
                with archive.open(part) as stream:
                    _scan(stream, counts)
    except SheetRefused:
        raise
    except _BROKEN:
        raise SheetRefused("the file is not a whole XLSX file") from None


def _check_parts(parts: list[zipfile.ZipInfo]) -> None:
    if len(parts) > PARTS_MAX:
        raise SheetRefused("the file has more than {most} parts", most=PARTS_MAX)
    # What is read of a part ends at the size that it claims, so the claims are a bound.
    if sum(part.file_size for part in parts) > UNPACKED_BYTES_MAX:
        raise SheetRefused("the file unpacks to more than {most} MiB", most=UNPACKED_BYTES_MAX // _MIB)
    for part in parts:
        if part.flag_bits & _ENCRYPTED:
            raise SheetRefused("the file is protected by a password")
        if part.compress_type not in _METHODS:
            raise SheetRefused("the file is packed in a way that XLSX files are not")


class _Counts:
    """What was seen in all parts together."""

    def __init__(self) -> None:
        self.elements = 0
        self.formulas = 0


class _Watcher:
    """Sees the elements of one part go by."""

    def __init__(self, counts: _Counts) -> None:
        self._counts = counts
        self._row = 0
        self._characters = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        counts = self._counts
        counts.elements += 1
        self._characters = 0
        if counts.elements > ELEMENTS_MAX:
            raise SheetRefused("the file holds more than a sheet can: send large files as CSV")
        local = name.rpartition(":")[2]
        if local == "f":
            counts.formulas += 1
            if counts.formulas > FORMULAS_MAX:
                raise SheetRefused(
                    "the file has more than {most} formulas: keep their values only", most=FORMULAS_MAX
                )
        elif local == "row":
            row = int(attributes.get("r", self._row + 1))
            # The library leaves out a row that comes too late, and nobody would notice.
            if row <= self._row:
                raise SheetRefused(
                    "the file’s rows are not in order: row {row} follows row {last}",
                    row=str(row),
                    last=str(self._row),
                )
            if row > ROWS_MAX:
                raise SheetRefused(
                    "the file has more than {most} rows: send large files as CSV", most=ROWS_MAX
                )
            self._row = row

    def text(self, piece: str) -> None:
        """Text of an element."""
        self._characters += len(piece)
        if self._characters > CELL_CHARACTERS_MAX:
            raise SheetRefused("a cell of the file has more than {most} characters", most=CELL_CHARACTERS_MAX)

    def refuse_document_type(self, *_about: object) -> None:
        """A document type declares entities, and no spreadsheet program writes one."""
        raise SheetRefused("the file has a document type, which is not allowed")


def _scan(stream: IO[bytes], counts: _Counts) -> None:
    """Count the elements of a part. A part that is no XML is nothing to us, and the library won't read it either."""
    parser, watcher = expat.ParserCreate(), _Watcher(counts)
    parser.StartElementHandler = watcher.start
    parser.CharacterDataHandler = watcher.text
    parser.StartDoctypeDeclHandler = watcher.refuse_document_type
    try:
        while piece := stream.read(_PIECE_BYTES):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        return
