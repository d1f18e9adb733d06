"""Accounts, statements, and the parts of large orders: their words, parameters and examples."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Raw

from voucherd.api import query
from voucherd.api.accounts import FORMATS, KINDS
from voucherd.api.errors import Op
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import TRX, query_parameter
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Part, Success, Words
from voucherd.api.order_parts import LINES_PAGE, LINES_PAGE_MAX
from voucherd.api.wire import accounts as wire
from voucherd.api.wire.lines import extended_lines
from voucherd.api.wire.parts import CODES_HEAD, code_rows
from voucherd.api.wire.shapes import AccountEntryPage, WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.api.wire.view import pieces
from voucherd.ids import State
from voucherd.wallet import statement_file
from voucherd.wallet.ledger import Kind, Wallet, post
from voucherd.wallet.statement import StatementLine
from voucherd.wallet.store import Balance

MONEY: Final = "Money"
FINDING: Final = "Finding"


def _movements() -> list[StatementLine]:
    """A top-up and the sample order, newest first."""
    order = examples.sample(in_stock=2)
    wallet, topped_up = post(Wallet(1, 0, 0, 0), Kind.TOP_UP, amount_minor=100_000, reference="INV-2026-0007")
    _, paid = post(
        wallet,
        Kind.ORDER,
        amount_minor=-order.total_minor,
        vat_minor=-order.vat_minor,
        order_id=order.id,
    )
    times: tuple[datetime, ...] = (examples.CONFIRMED_AT, examples.CREATED_AT - timedelta(days=1))
    return [
        StatementLine(
            entry.seq,
            at,
            entry.kind,
            entry.amount_minor,
            entry.hold_minor,
            entry.balance_after_minor,
            entry.held_after_minor,
            entry.order_id,
            entry.reference,
        )
        for entry, at in zip((paid, topped_up), times, strict=True)
    ]


def _accounts(_version: str, _public_url: str) -> Raw:
    newest = _movements()[0]
    balance = Balance(1, 1, "EUR", State.LIVE, newest.balance_after_minor, newest.held_after_minor)
    return Raw(encode([wire.account(balance)]))


def _statement(_version: str, _public_url: str) -> Raw:
    shown = wire.entries(_movements(), "EUR", examples.IDS)
    return Raw(encode(AccountEntryPage(shown, WalkMetadata(query.PAGE_SIZE, None))))


def _statement_file(_public_url: str) -> str:
    return statement_file.HEAD + statement_file.rows(_movements(), "EUR", examples.IDS).decode()


def _lines(_version: str, public_url: str) -> Raw:
    view = examples.sample_view(public_url)
    lines = b",".join(
        [extended_lines(view, piece) for item in view.order.items for piece in pieces(view.answer, item)]
    )
    return Raw(b'{"data":[%b],"metadata":%b}' % (lines, encode(WalkMetadata(LINES_PAGE, None))))


def _codes_file(public_url: str) -> str:
    view = examples.sample_view(public_url)
    found = [code_rows(view, piece) for item in view.order.items for piece in pieces(view.answer, item)]
    return (CODES_HEAD + b"".join(found)).decode()


def _cursor(words: str, place: int) -> Part:
    return query_parameter(
        "cursor", words, {"type": "string"}, allowEmptyValue=True, example=query.write_place(place)
    )


def _limit(words: str, default: int, most: int) -> Part:
    return query_parameter(
        "limit", words, {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    )


_CURRENCY: Final[dict[str, Any]] = {"type": "string", "pattern": "^[A-Za-z]{3}$"}

_STATEMENT: Final = (
    {
        "name": "currency",
        "in": "path",
        "required": True,
        "description": "ISO 4217 code of the account, in upper or lower case.",
        "schema": _CURRENCY,
        "example": "EUR",
    },
    _cursor("Where to go on: the `nextCursor` of the last page. Not for CSV.", 118),
    _limit(
        "The most movements that a page holds. Not for CSV, which has no pages.",
        query.PAGE_SIZE,
        query.PAGE_SIZE_MAX,
    ),
    query_parameter(
        "dateFrom",
        "Only movements of this moment or later: a date or date-time of ISO 8601, in UTC unless it names a zone.",
        {"type": "string"},
        example="2026-01-01",
    ),
    query_parameter(
        "dateTo",
        "Only movements of this moment or earlier. A bare date is its first moment.",
        {"type": "string"},
        example="2026-02-01T00:00:00Z",
    ),
    query_parameter(
        "kind",
        "Only movements of this kind; repeat it for several.",
        {"type": "array", "items": {"type": "string", "enum": list(KINDS)}},
        style="form",
        explode=True,
    ),
    query_parameter("trx", "Only movements of this order.", {"type": "string"}),
    query_parameter(
        "sortOrder",
        "`desc`: newest first. `asc`: oldest first.",
        {"type": "string", "enum": ["desc", "asc"], "default": "desc"},
    ),
    query_parameter(
        "format",
        "`csv` is the same as `Accept: text/csv`.",
        {"type": "string", "enum": list(FORMATS), "default": "json"},
    ),
)

WORDS: Final[dict[Op, Words]] = {
    Op.LINES: Words(
        "findOrderLines",
        "Find order lines",
        FINDING,
        "The lines of an order in pages, for orders that are too large to read at once. The lines are the same as "
        "those of Find order in version 1.03, and each page shows them as they stand when it is read.",
        (
            Success(
                200,
                "A page of lines.",
                {"lines": ("Two lines of a finished order", _lines)},
                schema={"$ref": REF + "LinePage"},
            ),
        ),
        (
            TRX,
            _cursor("Where to go on: the `nextCursor` of the last page.", LINES_PAGE),
            _limit("The most lines that a page holds.", LINES_PAGE, LINES_PAGE_MAX),
        ),
    ),
    Op.CODES: Words(
        "downloadCodes",
        "Download codes",
        FINDING,
        "The codes of the order's finished lines as a CSV file, however many. Once the first code has left, "
        "`downloaded` of the order is true.\n\n"
        "Codes and serials are in quotes and exactly as they are, because a changed code is worth nothing. One that "
        "begins with `=`, `+`, `-` or `@` may look like a formula to a spreadsheet: import the columns as text.",
        (Success(200, "The codes, one a line.", csv=_codes_file),),
        (TRX,),
    ),
    Op.ACCOUNTS: Words(
        "findAccounts",
        "Find accounts",
        MONEY,
        "Your company's balances in the key's own state, one for each currency in which there ever was money.",
        (
            Success(
                200,
                "The balances, by currency.",
                {"accounts": ("One account", _accounts)},
                schema={"type": "array", "items": {"$ref": REF + "Account"}},
            ),
        ),
        (query_parameter("currency", "Only the account in this currency.", _CURRENCY),),
    ),
    Op.STATEMENT: Words(
        "findAccountEntries",
        "Find account entries",
        MONEY,
        "The statement of one account: every movement with the balance after it, newest first. The chain has no "
        "gap: `seq` counts by one, and each `balanceAfter` is the one before plus `amount`, each `heldAfter` the "
        "one before plus `holdAmount`. The last `balanceAfter` is the balance.\n\n"
        "Walk by `cursor`: it costs the same at any depth, and new movements do not shift it. A page of a rare "
        "`kind` may hold fewer movements than `limit`, or none: go on until `nextCursor` is null.\n\n"
        "With `Accept: text/csv` or `format=csv` the answer is all that the filters let through, as one file. A "
        "`reference` that a spreadsheet could take for a formula has an apostrophe before it there.",
        (
            Success(
                200,
                "A page of movements, or all of them as CSV.",
                {"statement": ("A top-up and an order", _statement)},
                schema={"$ref": REF + "AccountEntryPage"},
                csv=_statement_file,
            ),
        ),
        _STATEMENT,
    ),
}
