"""What a table in a file is: rows of cells, each with its text and what kind of thing the file said it was."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

FILE_BYTES_MAX: Final = 32 * 1024 * 1024
ROWS_MAX: Final = 250_000
COLUMNS_MAX: Final = 64
CELL_CHARACTERS_MAX: Final = 32_767
"""A spreadsheet program's own limit."""


class CellKind(Enum):
    """The kind that the file gives a cell. CSV knows texts only; the reader of a cell says why it is refused."""

    TEXT = "text"
    NUMBER = "a number"
    FLAG = "yes or no"
    MOMENT = "a date"
    FORMULA = "a formula"
    ERROR = "an error of the spreadsheet"


class Cell(NamedTuple):
    """A cell: its text without space at either end (a number in plain digits, a moment in ISO form), and its kind."""

    text: str
    kind: CellKind = CellKind.TEXT


class SheetRow(NamedTuple):
    """A row that is not empty, with its number in the file, counted from 1; empty cells at its end are left out."""

    number: int
    cells: list[Cell]


class SheetRefused(ValueError):
    """The file as a whole is not what it should be; the one line of text says why.

    Whole numbers in its places are counts, which each language groups in its own way.
    """

    def __init__(self, words: str, **places: int | str) -> None:
        said = {name: f"{one:,}" if isinstance(one, int) else one for name, one in places.items()}
        super().__init__(words.format(**said) if places else words)
        self.words = words
        self.places = places


EMPTY: Final = Cell("")
