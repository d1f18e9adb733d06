"""A supplier's statement: what it says it charged us for, row by row, as its columns are named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Final
from uuid import UUID

from msgspec import Struct

from voucherd.money import DIGITS, BadAmount, to_minor
from voucherd.sheets.model import EMPTY, CellKind, SheetRefused, SheetRow

BAD_ROWS_MAX: Final = 20
"""So many wrong cells are told before the file is given up."""
TEXT_CHARS_MAX: Final = 200
COUNT_MAX: Final = 1_000_000
FIELDS: Final = ("reference", "external-id", "count", "amount", "currency", "date", "status")

_USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "reference": ("reference", "our reference", "your reference", "client reference", "customer reference"),
    "external-id": ("external id", "id", "order id", "order", "transaction id", "transaction"),
    "count": ("count", "quantity", "qty", "codes", "pieces"),
    "amount": ("amount", "total", "total amount", "charged"),
    "currency": ("currency",),
    "date": ("date", "created", "created at", "order date", "time", "timestamp"),
    "status": ("status", "state"),
}
"""What suppliers usually call their columns, the best name first."""
_NOT_CHARGED: Final = frozenset(
    (
        "failed",
        "cancelled",
        "canceled",
        "rejected",
        "refused",
        "declined",
        "void",
        "voided",
        "error",
        "expired",
    )
)


class Charge(Struct, frozen=True):
    """One row of a statement."""

    row: int
    reference: UUID | None
    key: str
    """How the row names the purchase, for people."""
    external_id: str | None
    count: int | None
    amount_minor: int
    currency: str
    at: datetime


class Reading(Struct, frozen=True):
    """How a file is to be read."""

    columns: Mapping[str, str] = {}
    """Names of columns that are not the usual ones, by field."""
    currency: str | None = None
    """Of all amounts, where no column says it."""
    charged: frozenset[str] = frozenset()
    """The only statuses that count as charged; without any, all but those that plainly say no."""


class BadStatement(Exception):
    """The file can't be read as a statement; one line for each thing that is wrong."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines[0])
        self.lines = list(lines)


class Statement:
    """Reads rows as charges, in constant memory, and counts what it left out."""

    def __init__(self, reading: Reading) -> None:
        self.rows = 0
        self.not_charged = 0
        self._reading = reading
        self._places: dict[str, int] = {}
        self._bad: list[str] = []

    def charges(self, rows: Iterator[SheetRow]) -> Iterator[Charge]:
        """The rows that charge us (or credit us: their amount is negative); BadStatement at the end of a bad file."""
        try:
            header = next(rows, None)
            if header is None:
                raise BadStatement(["the file is empty"])
            self._places = self._find_columns([cell.text for cell in header.cells])
            for row in rows:
                self.rows += 1
                try:
                    charge = self._charge(row)
                except ValueError as wrong:
                    self._note(f"row {row.number}, {wrong}")
                    continue
                if charge is not None:
                    yield charge
        except SheetRefused as refused:
            raise BadStatement([str(refused)]) from None
        if self._bad:
            raise BadStatement(self._bad)

    def _note(self, line: str) -> None:
        self._bad.append(line)
        if len(self._bad) >= BAD_ROWS_MAX:
            raise BadStatement(self._bad)

    def _find_columns(self, names: Sequence[str]) -> dict[str, int]:
        given = {_plain(name): place for place, name in reversed(list(enumerate(names))) if name}
        found = {}
        for field in FIELDS:
            chosen = self._reading.columns.get(field)
            if chosen is not None and _plain(chosen) not in given:
                raise BadStatement([f"there is no column {chosen[:40]!a}: the file has {_listed(names)}"])
            usual = _USUAL[field] if chosen is None else (_plain(chosen),)
            places = [given[name] for name in usual if name in given]
            if places:
                found[field] = places[0]
        self._check_columns(found, names)
        return found

    def _check_columns(self, found: Mapping[str, int], names: Sequence[str]) -> None:
        wanted = {"amount", "date"} | (set() if self._reading.currency else {"currency"})
        lacking = sorted(wanted - found.keys())
        if not found.keys() & {"reference", "external-id"}:
            lacking.insert(0, "reference")
        if lacking:
            hint = f"say which is the {lacking[0]} column; the file has {_listed(names)}"
            raise BadStatement([f"no column for {', '.join(lacking)}: {hint}"])

    def _charge(self, row: SheetRow) -> Charge | None:
        status = self._text(row, "status").lower()
        charged = self._reading.charged
        if (status not in charged) if charged else (status in _NOT_CHARGED):
            self.not_charged += 1
            return None
        reference, external = self._text(row, "reference"), self._text(row, "external-id")
        if not reference and not external:
            raise ValueError("column reference: is empty")
        currency = self._currency(row)
        amount = self._amount(row, currency)
        return Charge(
            row.number,
            _uuid(reference),
            reference or external,
            external or (None if _uuid(reference) else reference),
            self._count(row, amount),
            amount,
            currency,
            self._date(row),
        )

    def _text(self, row: SheetRow, field: str) -> str:
        place = self._places.get(field)
        cell = EMPTY if place is None or place >= len(row.cells) else row.cells[place]
        if cell.kind in (CellKind.FORMULA, CellKind.ERROR):
            raise ValueError(f"column {field}: is {cell.kind.value}")
        if len(cell.text) > TEXT_CHARS_MAX:
            raise ValueError(f"column {field}: is longer than {TEXT_CHARS_MAX} characters")
        return cell.text

    def _currency(self, row: SheetRow) -> str:
        text = self._text(row, "currency").upper() or self._reading.currency or ""
        if text not in DIGITS:
            raise ValueError(f"column currency: {text[:10]!a} is not a currency code of ISO 4217")
        return text

    def _amount(self, row: SheetRow, currency: str) -> int:
        try:
            return to_minor(self._text(row, "amount"), currency)
        except BadAmount as wrong:
            raise ValueError(f"column amount: {wrong}") from None

    def _count(self, row: SheetRow, amount_minor: int) -> int | None:
        text = self._text(row, "count")
        if not text:
            return None
        if not re.fullmatch(r"-?[0-9]{1,7}", text) or abs(int(text)) > COUNT_MAX:
            raise ValueError(f"column count: {text[:20]!a} is not a number of codes")
        # A credit gives codes back, however its count is written.
        return -abs(int(text)) if amount_minor < 0 else int(text)

    def _date(self, row: SheetRow) -> datetime:
        text = self._text(row, "date")
        try:
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise ValueError(f"column date: {text[:40]!a} is not a date such as 2026-01-31") from None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip().lower())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(ascii(name[:40]) for name in names if name) or "none"


def _uuid(text: str) -> UUID | None:
    """Our own reference, however its digits are grouped."""
    digits = text.replace("-", "").lower()
    return UUID(digits) if re.fullmatch(r"[0-9a-f]{32}", digits) else None
