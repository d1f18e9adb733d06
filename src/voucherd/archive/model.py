"""What the archive keeps of an order: columns by name, as the tables have them, each with its kind in a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct

FORMAT: Final = 1
"""The form of the files; a manifest tells it."""
MANIFEST: Final = "manifest.json"

ArchivedRow: TypeAlias = dict[str, Any]
"""An order with its `webhook_url`, and each of `PARTS` as a list of the same."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is done with which month or book, how much of it is done, and how much there is."""

ORDER: Final = {
    "id": "int64",
    "company_id": "int32",
    "type": "int16",
    "status": "int16",
    "payment_status": "int16",
    "payment_currency": "string",
    "payment_fx_e8": "int64",
    "price_minor": "int64",
    "vat_minor": "int64",
    "charged_minor": "int64",
    "refunded_minor": "int64",
    "held_minor": "int64",
    "lines": "int32",
    "lines_finished": "int32",
    "lines_cancelled": "int32",
    "resolving": "bool",
    "downloaded": "bool",
    "version": "int32",
    "created_at": "moment",
    "expires_at": "moment",
    "updated_at": "moment",
    "deadline_at": "moment",
    "reference": "string",
    "cancelling": "bool",
}
ITEM: Final = {
    "item_no": "int16",
    "version_id": "int32",
    "amount": "int32",
    "first_line": "int32",
    "face_minor": "int64",
    "face_fx_e8": "int64",
    "price_currency": "string",
    "price_fx_e8": "int64",
    "price_minor": "int64",
    "vat_minor": "int64",
    "turnover_minor": "int64",
    "pay_price_minor": "int64",
    "pay_vat_minor": "int64",
    "pay_turnover_minor": "int64",
    "offers": "numbers",
}
OUTCOME: Final = {
    "line_from": "int32",
    "line_to": "int32",
    "lot_id": "int64",
    "seq_from": "int32",
    "at": "moment",
}
PURCHASE: Final = {"attempt_id": "string", "line_from": "int32", "line_to": "int32"}
ENTRY: Final = {
    "wallet_id": "int64",
    "seq": "int64",
    "kind": "int16",
    "amount_minor": "int64",
    "vat_minor": "int64",
    "hold_minor": "int64",
    "balance_after_minor": "int64",
    "held_after_minor": "int64",
    "reference": "string",
    "at": "moment",
}

PARTS: Final = {
    "items": ("order_item", ITEM, "item_no"),
    "outcomes": ("outcome", OUTCOME, "line_from"),
    "purchases": ("attempt_line", PURCHASE, "attempt_id, line_from"),
    "entries": ("entry", ENTRY, "wallet_id, seq"),
}
"""The lists of an order: the table, its columns but for the order's number, and the order of its rows."""


class ArchiveFile(Struct, frozen=True):
    """One file of a month."""

    month: date
    name: str
    first_id: int
    last_id: int
    orders: int
    size: int
    sha256: bytes

    @property
    def place(self) -> str:
        """Where it lies, from the folder of the archive on."""
        return f"{folder_of(self.month)}/{self.name}"


class ArchiveMonth(Struct, frozen=True):
    """A month that was written to files."""

    month: date
    orders: int
    last_at: datetime
    written_at: datetime
    removed_at: datetime | None


class ArchiveRefused(Exception):
    """The archive can't be made, read or trusted; the message is one line for the operator."""


def folder_of(month: date) -> str:
    """The name of the folder of a month."""
    return f"{month:%Y-%m}"


def next_month(month: date) -> date:
    """The first day of the month after."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def months_back(day: date, count: int) -> date:
    """The first day of the month so many months before that of the day."""
    months = day.year * 12 + day.month - 1 - count
    return date(months // 12, months % 12 + 1, 1)


def start_of(day: date) -> datetime:
    """The moment at which a day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
