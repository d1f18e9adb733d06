"""Codes from a CSV file, a chunk at a time: what can be taken, and which lines can't and why.

A reason names the rule and never the text: codes are bearer secrets, and reasons end on screens and in logs.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import BinaryIO, Final, NamedTuple, TypeAlias

CHUNK_LINES: Final = 10_000
LINE_BYTES_MAX: Final = 4096
CODE_CHARACTERS_MAX: Final = 200
SERIAL_CHARACTERS_MAX: Final = 200
EXPIRIES_MAX: Final = 1000
"""Every expiry is a lot of its own; a file with more of them than this has something else in that column."""
BAD_LINES_KEPT_MAX: Final = 100

COLUMNS: Final = ("code", "serial", "expires")
_ABSENT: Final = len(COLUMNS)  # No accepted line has a cell with this index.
_LAST_SECOND: Final = time(23, 59, 59, tzinfo=UTC)


class BadLine(NamedTuple):
    """A line that can't be taken."""

    line: int
    reason: str


class FileRefused(Exception):
    """The whole file is not what it should be; the one line of text says why."""


class _LineRefused(Exception):
    """This line can't be taken; the text is the rule that it breaks."""


Entry: TypeAlias = tuple[str, str, datetime | None]
"""A code, its serial, and when it expires."""
Chunk: TypeAlias = dict[bytes, Entry]
"""Entries by their blinded code."""


class CodeFile:
    """Reads a stream of lines once, in constant memory, and counts what it could not use."""

    def __init__(self, stream: BinaryIO, blind: Callable[[str], bytes], now: datetime) -> None:
        self.bytes_read = 0
        self.line = 0
        self.repeated = 0
        self.bad: list[BadLine] = []
        self.bad_count = 0
        self._stream = stream
        self._blind = blind
        self._now = now
        self._begun = False
        self._places = (0, 1, 2)
        self._width = len(COLUMNS)
        self._expiries: dict[str, datetime | None] = {"": None}

    def chunk(self) -> Chunk | None:
        """The usable entries of the next lines; None at the end of the file."""
        entries: Chunk = {}
        blind, line_before = self._blind, self.line
        for _ in range(CHUNK_LINES):
            raw = self._read_line()
            if not raw:
                break
            try:
                entry = self._entry(raw)
            except _LineRefused as refusal:
                self._note(str(refusal))
                continue
            if entry is None:
                continue
            blinded = blind(entry[0])
            if blinded in entries:
                self.repeated += 1
            else:
                entries[blinded] = entry
        return entries if self.line > line_before else None

    def _read_line(self) -> bytes:
        raw = self._stream.readline(LINE_BYTES_MAX + 1)
        self.bytes_read += len(raw)
        if raw:
            self.line += 1
        rest = raw
        # The tail of an endless line is read over, so that the line after it is seen as one.
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = self._stream.readline(LINE_BYTES_MAX + 1)
            self.bytes_read += len(rest)
        return raw

    def _entry(self, raw: bytes) -> Entry | None:
        """What the line says; None for an empty one and for the header."""
        cells = _cells(raw if self.line > 1 else raw.removeprefix(codecs.BOM_UTF8))
        if not cells or (not self._begun and self._is_header(cells)):
            return None
        if len(cells) > self._width:
            raise _LineRefused(f"more than {self._width} columns")
        code_at, serial_at, expires_at = self._places
        width = len(cells)
        code = cells[code_at].strip() if code_at < width else ""
        serial = cells[serial_at].strip() if serial_at < width else ""
        if not code:
            raise _LineRefused("code: missing")
        if len(code) > CODE_CHARACTERS_MAX:
            raise _LineRefused(f"code: longer than {CODE_CHARACTERS_MAX} characters")
        if not code.isprintable():
            raise _LineRefused("code: has characters that can't be printed")
        if len(serial) > SERIAL_CHARACTERS_MAX:
            raise _LineRefused(f"serial: longer than {SERIAL_CHARACTERS_MAX} characters")
        if not serial.isprintable():
            raise _LineRefused("serial: has characters that can't be printed")
        return code, serial, self._expiry(cells[expires_at].strip()) if expires_at < width else None

    def _is_header(self, cells: list[str]) -> bool:
        """Whether the first line with text names the columns; if it does, they are read by these names."""
        self._begun = True
        names = [cell.strip().lower() for cell in cells]
        # Codes taken by mistake can't be taken back, so a doubtful file is refused as a whole.
        if len(names) == 1 and ";" in names[0]:
            raise FileRefused(
                f"line {self.line}: columns must be separated by commas (a `code` header allows semicolons)"
            )
        if not set(names) & set(COLUMNS):
            return False
        if "code" not in names:
            raise FileRefused(f"line {self.line}: the header has no column `code`")
        for column, name in enumerate(names, start=1):
            if name not in COLUMNS or names.index(name) != column - 1:
                raise FileRefused(
                    f"line {self.line}: column {column} must be one of {', '.join(COLUMNS)}, each once"
                )
        code_at, serial_at, expires_at = (names.index(name) if name in names else _ABSENT for name in COLUMNS)
        self._places = (code_at, serial_at, expires_at)
        self._width = len(names)
        return True

    def _expiry(self, text: str) -> datetime | None:
        known = self._expiries
        if text in known:
            return known[text]
        moment = read_expiry(text)
        if moment is None:
            raise _LineRefused("expires: not an ISO date or date-time")
        if moment <= self._now:
            raise _LineRefused("expires: already past")
        if len(known) > EXPIRIES_MAX:
            raise FileRefused(f"line {self.line}: more than {EXPIRIES_MAX} different expiries in one file")
        known[text] = moment
        return moment

    def _note(self, reason: str) -> None:
        self.bad_count += 1
        if len(self.bad) < BAD_LINES_KEPT_MAX:
            self.bad.append(BadLine(self.line, reason))


def read_expiry(text: str) -> datetime | None:
    """The moment in an ISO text: a date is the end of that day, no zone is UTC; None for anything else."""
    try:
        return datetime.combine(date.fromisoformat(text), _LAST_SECOND)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _cells(raw: bytes) -> list[str]:
    """The cells of one line; none for an empty one."""
    if len(raw) > LINE_BYTES_MAX:
        raise _LineRefused(f"longer than {LINE_BYTES_MAX} bytes")
    try:
        text = raw.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise _LineRefused("not UTF-8") from None
    if '"' not in text:
        return text.split(",") if text and not text.isspace() else []
    try:
        # A quote that is never closed must not swallow the lines behind it: no cell spans two lines.
        return next(csv.reader([text], strict=True))
    except csv.Error:
        raise _LineRefused("quotes don't match") from None
