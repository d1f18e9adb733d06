"""One row of a file of products: its cells read as words, yes or no, face values and prices. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from voucherd.catalogue.products import Face, ProductDraft, Selling
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import read_face, read_selling
from voucherd.money import DIGITS, Money
from voucherd.sheets.model import EMPTY, Cell, CellKind, SheetRow

CLEAR: Final = "-"
"""What an operator writes to empty a cell that may be empty: an empty one leaves things as they are."""
FLAGS: Final = ("async-delivery", "incentive", "active")

_WORDS: Final = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_AMOUNTS: Final = ("face-value", "price", "fee")
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_BARE: Final = re.compile(rf"{_NUMBER}(?:\s*-\s*{_NUMBER})?")
_COMMA: Final = re.compile(r"[0-9.]*[0-9],[0-9]+(?:\s.*)?")
_PLACES_MAX: Final = 8


class BadCell(NamedTuple):
    """A cell that can't be taken."""

    row: int
    column: str
    rule: str

    def __str__(self) -> str:
        return f"row {self.row}, column {self.column}: {self.rule}"


class RowCells:
    """The cells of one row by the names of their columns, and what was found wrong with them."""

    def __init__(self, row: SheetRow, names: list[str]) -> None:
        self.number = row.number
        self.bad: list[BadCell] = []
        self._cells = dict(zip(names, row.cells, strict=False))
        for at in range(len(names), len(row.cells)):
            if row.cells[at] != EMPTY:
                self.note(f"{at + 1}", "has no name in the header")
        self.slug = self.word("slug")

    def note(self, column: str, rule: str) -> None:
        """Something is wrong with a cell."""
        self.bad.append(BadCell(self.number, column, rule))

    def has_error(self, column: str) -> bool:
        """Whether something is wrong with the cell already."""
        return any(bad.column == column for bad in self.bad)

    def cleared(self, column: str) -> bool:
        """Whether the cell asks to be emptied."""
        return self._cells.get(column, EMPTY).text == CLEAR

    def word(self, column: str) -> str | None:
        """The text of a cell; None for an empty one, and for one that is no text, which is noted."""
        cell = self._cells.get(column, EMPTY)
        if self._is_plain(column, cell) and cell.text:
            return cell.text
        return None

    def flag(self, column: str) -> bool | None:
        """Yes or no; None for an empty cell, and for one that is neither, which is noted."""
        word = self.word(column)
        if word is None:
            return None
        if word.lower() not in _WORDS:
            self.note(column, "must be yes or no")
        return _WORDS.get(word.lower())

    def face(self, known: ProductDraft | None) -> Face | None:
        """The face value or the range of them; None if the row says nothing of it."""
        currency = self._currency("face-currency")
        value = self._amount("face-value", currency)
        span = self._amount("face-value-range", currency)
        if value is None and span is None:
            same = known is not None and currency in (None, known.face.currency)
            self._must_be_told("face-value", "face-value-range", "face-currency", same=same)
            return None
        try:
            return read_face(value, span)
        except BadProduct as bad:
            self.note(bad.field, bad.rule)
            return None

    def selling(self, known: ProductDraft | None) -> Selling | None:
        """The price or the fee; None if the row says nothing of it."""
        currency = self._currency("price-currency")
        price = self._amount("price", currency)
        fee = self._amount("fee", None)
        if price is None and fee is None:
            before = known.selling.currency if known and isinstance(known.selling, Money) else None
            same = known is not None and currency in (None, before)
            self._must_be_told("price", "fee", "price-currency", same=same)
            return None
        try:
            return read_selling(price, fee)
        except BadProduct as bad:
            self.note(bad.field, bad.rule)
            return None

    def _must_be_told(self, column: str, other: str, currency: str, *, same: bool) -> None:
        """Refuse a row that takes a value away, lacks one that a new product needs, or changes only its currency."""
        if any(self.has_error(name) for name in (column, other, currency)):
            return
        if self.cleared(column) or self.cleared(other):
            self.note(column, f"can't be cleared without a {other} beside it, or the other way round")
        elif not same:
            self.note(column, f"is needed, or {other}")

    def _currency(self, column: str) -> str | None:
        word = None if self.cleared(column) else self.word(column)
        if word is None:
            return None
        if word.upper() not in DIGITS:
            self.note(column, f"{word[:40]!a} is not a currency code of ISO 4217")
            return None
        return word.upper()

    def _amount(self, column: str, currency: str | None) -> str | None:
        """The cell as the command line writes it, with its currency; None for an empty or a bad one."""
        word = None if self.cleared(column) else self.word(column)
        if word is None:
            return None
        rule = _wrong_number(word)
        if rule is None and column != "fee":
            if _BARE.fullmatch(word):
                if currency is None:
                    rule = "has no currency: write it behind the amount, or in the column for it"
                word = f"{word} {currency}"
            elif currency is not None and word.split()[-1].upper() != currency:
                rule = f"is not in {currency}, as the column beside it says"
        if rule is not None:
            self.note(column, rule)
            return None
        return word

    def _is_plain(self, column: str, cell: Cell) -> bool:
        """Whether the cell is of a kind that its column may hold."""
        if cell.kind is CellKind.TEXT:
            return True
        if (cell.kind is CellKind.NUMBER and column in (*_AMOUNTS, *FLAGS)) or (
            cell.kind is CellKind.FLAG and column in FLAGS
        ):
            return True
        if not self.has_error(column):
            more = ": put its value there" if cell.kind is CellKind.FORMULA else ", and must be text"
            self.note(column, f"is {cell.kind.value}{more}")
        return False


def _wrong_number(word: str) -> str | None:
    """The fault of a number, before anyone asks for its currency."""
    if _COMMA.fullmatch(word):
        return "has a decimal comma: write a point, or send the file as XLSX"
    if any(len(part) > _PLACES_MAX for part in re.findall(r"\.([0-9]+)", word)):
        return f"{word[:40]} has more digits after the point than money has: round it"
    return None
