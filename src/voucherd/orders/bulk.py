"""Orders that a file asks for: its rows one by one, and the orders that they become. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Final

from msgspec import Struct

from voucherd.ids import LINES_MAX
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX
from voucherd.orders.rules.cart import CartLine
from voucherd.sheets.model import EMPTY, CellKind, SheetRefused, SheetRow

COLUMNS: Final = ("slug", "amount", "value", "reference")
ROWS_MAX: Final = 500
ORDERS_MAX: Final = 50
"""Orders that one file may become."""
VALUE_CHARS_MAX: Final = 20
_READABLE: Final = (CellKind.TEXT, CellKind.NUMBER)


class RowProblem(StrEnum):
    """What is wrong with a row by itself."""

    SLUG = "slug"
    AMOUNT = "amount"
    VALUE = "value"
    REFERENCE = "reference"
    FORMULA = "formula"


class BulkRow(Struct, frozen=True):
    """One row of the file."""

    number: int
    cells: tuple[str, str, str, str]
    """What the file says, in the order of `COLUMNS`."""
    amount: int = 0
    value: Decimal | None = None
    problem: RowProblem | None = None

    @property
    def slug(self) -> str:
        """The product."""
        return self.cells[0]

    @property
    def reference(self) -> str:
        """The order that it belongs to; empty for none."""
        return self.cells[3]

    @property
    def key(self) -> tuple[str, Decimal | None]:
        """Rows with the same one ask for the same codes."""
        return self.slug, self.value


class BulkOrder(Struct, frozen=True):
    """The rows of one reference."""

    reference: str
    rows: list[BulkRow]


def parse(rows: Iterable[SheetRow]) -> list[BulkRow]:
    """The rows; the first one may name the columns. Refused as a whole if there are none, or too many."""
    found: list[BulkRow] = []
    names: Sequence[str] | None = None
    for row in rows:
        if names is None:
            named = _header(row)
            names = named or COLUMNS
            if named:
                continue
        if len(found) == ROWS_MAX:
            raise SheetRefused("the file has more than {most} rows", most=ROWS_MAX)
        found.append(_row(row, names))
    if not found:
        raise SheetRefused("the file has no rows")
    return found


def _header(row: SheetRow) -> list[str]:
    """The names of the columns, if this row has them."""
    names = [cell.text.strip().lower() for cell in row.cells]
    if "slug" not in names:
        return []
    for at, name in enumerate(names):
        if name not in COLUMNS or names.index(name) != at:
            raise SheetRefused(
                "row {row}, column {column}: is none of {columns}, or there twice",
                row=str(row.number),
                column=ascii(name[:40]),
                columns=", ".join(COLUMNS),
            )
    return names


def _row(row: SheetRow, names: Sequence[str]) -> BulkRow:
    if len(row.cells) > len(names):
        raise SheetRefused("row {row}: has more than {most} columns", row=str(row.number), most=len(names))
    by_name = dict(zip(names, row.cells, strict=False))
    given = [by_name.get(name, EMPTY) for name in COLUMNS]
    slug, amount, value, reference = (" ".join(cell.text.split()) for cell in given)
    cells = (slug, amount, value, reference)
    if any(cell.kind not in _READABLE for cell in given):
        return BulkRow(row.number, cells, problem=RowProblem.FORMULA)
    if not slug:
        return BulkRow(row.number, cells, problem=RowProblem.SLUG)
    count = _whole(amount)
    if not 1 <= count <= AMOUNT_MAX:
        return BulkRow(row.number, cells, problem=RowProblem.AMOUNT)
    try:
        face = _decimal(value)
    except ValueError:
        return BulkRow(row.number, cells, count, problem=RowProblem.VALUE)
    if len(reference) > REFERENCE_CHARS_MAX or not reference.isprintable():
        return BulkRow(row.number, cells, count, face, RowProblem.REFERENCE)
    return BulkRow(row.number, cells, count, face)


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(AMOUNT_MAX)) else 0


def _decimal(text: str) -> Decimal | None:
    """A value such as 25, 25.00 or 25,00; None for an empty cell."""
    if not text:
        return None
    plain = text.replace(",", ".")
    if len(plain) > VALUE_CHARS_MAX or not plain.isascii() or not plain.replace(".", "", 1).isdecimal():
        raise ValueError(text)
    try:
        return Decimal(plain)
    except InvalidOperation:
        raise ValueError(text) from None


def merged(rows: Iterable[BulkRow]) -> list[CartLine]:
    """The lines that these rows ask for: the same product and value is one line."""
    amounts: dict[tuple[str, Decimal | None], int] = {}
    for row in rows:
        if row.problem is None:
            amounts[row.key] = amounts.get(row.key, 0) + row.amount
    return [CartLine(slug, amount, value) for (slug, value), amount in amounts.items()]


def group(rows: Sequence[BulkRow]) -> list[BulkOrder]:
    """The orders that the rows become, in the order of the file; refused if one of them, or all, would be too large."""
    found: dict[str, BulkOrder] = {}
    for row in rows:
        found.setdefault(row.reference, BulkOrder(row.reference, [])).rows.append(row)
    if len(found) > ORDERS_MAX:
        raise SheetRefused("the file has more than {most} references", most=ORDERS_MAX)
    for order in found.values():
        lines = merged(order.rows)
        name = order.reference[:40] or "–"
        if len(lines) > ITEMS_MAX:
            raise SheetRefused(
                "the order {reference} has more than {most} products", reference=name, most=ITEMS_MAX
            )
        if any(line.amount > AMOUNT_MAX for line in lines):
            raise SheetRefused(
                "the order {reference} has more than {most} codes of one product",
                reference=name,
                most=AMOUNT_MAX,
            )
        if sum(line.amount for line in lines) > LINES_MAX:
            raise SheetRefused(
                "the order {reference} has more than {most} codes", reference=name, most=LINES_MAX
            )
    return list(found.values())
