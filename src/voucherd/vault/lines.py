"""Codes from a file, a chunk at a time: what can be taken, and which lines can't and why.

A reason names the rule and never the text: codes are bearer secrets, and reasons end on screens and in logs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, date, datetime, time
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from msgspec import Struct

from voucherd.vault.sources import (
    COLUMNS,
    CsvSource,
    FileRefused,
    LineRefused,
    Source,
    begin,
    refuse_shortened,
)

CHUNK_LINES: Final = 10_000
CODE_CHARACTERS_MAX: Final = 200
SERIAL_CHARACTERS_MAX: Final = 200
EXPIRIES_MAX: Final = 1000
"""Every expiry is a lot of its own; a file with more of them than this has something else in that column."""
BAD_LINES_KEPT_MAX: Final = 100

_ABSENT: Final = len(COLUMNS)  # No accepted line has a cell with this index.
_LAST_SECOND: Final = time(23, 59, 59, tzinfo=UTC)


class BadLine(NamedTuple):
    """A line that can't be taken."""

    line: int
    reason: str


Entry: TypeAlias = tuple[bytes, bytes, datetime | None]
"""A code and its serial in UTF-8, and when it expires."""
_Columns: TypeAlias = tuple[list[bytes], list[bytes], list[datetime | None]]
"""Codes, serials and expiries."""


class Chunk(Struct, frozen=True):
    """Codes of a file in its order, each once, as columns: whole columns are quick to seal and to send."""

    blinds: list[bytes]
    codes: list[bytes]
    serials: list[bytes]
    expiries: list[datetime | None]

    def __len__(self) -> int:
        return len(self.blinds)

    def entries(self) -> Iterator[Entry]:
        """The codes, line by line."""
        return zip(self.codes, self.serials, self.expiries, strict=True)

    def without(self, known: Collection[bytes]) -> Chunk:
        """The chunk without these blinded codes."""
        return self.at([at for at, blind in enumerate(self.blinds) if blind not in known])

    def at(self, places: Sequence[int]) -> Chunk:
        """The codes at these places of the chunk."""
        return Chunk(
            [self.blinds[at] for at in places],
            [self.codes[at] for at in places],
            [self.serials[at] for at in places],
            [self.expiries[at] for at in places],
        )


class CodeFile:
    """Reads a stream of lines once, in constant memory, and counts what it could not use."""

    def __init__(self, stream: BinaryIO, blind: Callable[[bytes], bytes], now: datetime) -> None:
        self.repeated = 0
        self.bad: list[BadLine] = []
        self.bad_count = 0
        self._stream = stream
        self._source: Source | None = None
        self._blind = blind
        self._now = now
        self._begun = False
        self._places = (0, 1, 2)
        self._width = len(COLUMNS)
        self._expiries: dict[str, datetime | None] = {"": None}

    @property
    def line(self) -> int:
        """The line that was read last."""
        return 0 if self._source is None else self._source.line

    @property
    def bytes_read(self) -> int:
        """How much of the file was read."""
        return 0 if self._source is None else self._source.bytes_read

    def chunk(self) -> Chunk | None:
        """The usable entries of the next lines; None at the end of the file."""
        # Not before: the caller that asks for the first chunk is ready to wait for a slow stream.
        source = self._source = self._source or begin(self._stream)
        line_before = source.line
        columns = self._plain(source) or self._line_by_line(source)
        return self._once(*columns) if self.line > line_before else None

    def _once(self, codes: list[bytes], serials: list[bytes], expiries: list[datetime | None]) -> Chunk:
        """The chunk of these columns; of a code that is there twice the first line counts."""
        chunk = Chunk(list(map(self._blind, codes)), codes, serials, expiries)
        if len(set(chunk.blinds)) == len(chunk):
            return chunk
        first: dict[bytes, int] = {}
        for at, blind in enumerate(chunk.blinds):
            first.setdefault(blind, at)
        self.repeated += len(chunk) - len(first)
        return chunk.at(list(first.values()))

    def _plain(self, source: Source) -> _Columns | None:
        """The next lines all at once, if that gives what reading them one by one would; None, and none read, if not."""
        if not self._begun or not isinstance(source, CsvSource):
            return None
        columns = source.plain_columns(CHUNK_LINES)
        code_at, serial_at, expires_at = self._places
        if columns is None or not code_at < len(columns) <= self._width:
            return None
        absent = [b""] * len(columns[0])
        codes = columns[code_at]
        serials, expiries = (columns[at] if at < len(columns) else absent for at in (serial_at, expires_at))
        if not all(codes) or len(max(codes, key=len)) > CODE_CHARACTERS_MAX:
            return None
        if len(max(serials, key=len)) > SERIAL_CHARACTERS_MAX:
            return None
        try:
            # In the order of the file, and after everything else: an expiry that is refused is refused at its line.
            moments = {text: self._expiry(text.decode()) for text in dict.fromkeys(expiries)}
        except (LineRefused, FileRefused):
            return None
        source.pass_columns()
        return codes, serials, [moments[text] for text in expiries]

    def _line_by_line(self, source: Source) -> _Columns:
        entries: list[Entry] = []
        for _ in range(CHUNK_LINES):
            try:
                cells = source.cells()
                if cells is None:
                    break
                entry = self._entry(cells)
            except LineRefused as refusal:
                self._note(str(refusal))
                continue
            if entry is not None:
                entries.append(entry)
        codes, serials, expiries = zip(*entries, strict=True) if entries else ((), (), ())
        return list(codes), list(serials), list(expiries)

    def _entry(self, cells: list[str]) -> Entry | None:
        """What the line says; None for an empty one and for the header."""
        if not cells or (not self._begun and self._is_header(cells)):
            return None
        if len(cells) > self._width:
            raise LineRefused(f"more than {self._width} columns")
        code_at, serial_at, expires_at = self._places
        width = len(cells)
        code = cells[code_at].strip() if code_at < width else ""
        serial = cells[serial_at].strip() if serial_at < width else ""
        if not code:
            raise LineRefused("code: missing")
        if len(code) > CODE_CHARACTERS_MAX:
            raise LineRefused(f"code: longer than {CODE_CHARACTERS_MAX} characters")
        if "+" in code:
            refuse_shortened(code)
        if not code.isprintable():
            raise LineRefused("code: has characters that can't be printed")
        if len(serial) > SERIAL_CHARACTERS_MAX:
            raise LineRefused(f"serial: longer than {SERIAL_CHARACTERS_MAX} characters")
        if not serial.isprintable():
            raise LineRefused("serial: has characters that can't be printed")
        expires = self._expiry(cells[expires_at].strip()) if expires_at < width else None
        return code.encode(), serial.encode(), expires

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
            raise LineRefused("expires: not an ISO date or date-time")
        if moment <= self._now:
            raise LineRefused("expires: already past")
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
