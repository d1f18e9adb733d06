"""What an integrator asks about money: the balances, and how each came to be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Raw, Struct

from voucherd.api import query
from voucherd.api.errors import AccountNotFound
from voucherd.api.handlers import Call
from voucherd.api.wire.shapes import Account, AccountEntry, AccountEntryPage, WalkMetadata
from voucherd.api.wire.templates import encode
from voucherd.clock import written
from voucherd.http import JSON, Request, Response
from voucherd.ids import Identifiers
from voucherd.money import DIGITS, digits, plain
from voucherd.orders.rules.refusals import BadInput
from voucherd.services import Services
from voucherd.sheets import csv_text as csv
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, StatementLine, WalletAccount
from voucherd.wallet.statement_file import file_name, statement_file
from voucherd.wallet.store import Balance

KINDS: Final = {kind.word: kind for kind in EntryKind}


class StatementQuery(Struct, frozen=True):
    """What a statement is to show."""

    filters: StatementFilters
    size: int
    after: int | None
    as_csv: bool


async def accounts(services: Services, call: Call) -> Response:
    """The company's balances in the key's state."""
    currency = read_currency(call.request)
    found = await services.statements.balances(call.caller.company_id, call.caller.state)
    shown = [account(one) for one in found if currency in (None, one.currency)]
    return Response(200, encode(shown), JSON)


async def statement(services: Services, call: Call) -> Response:
    """An account's movements: a page of them, or all of them as a file."""
    asked = read_statement(call.request, services.ids)
    account = await _account(services, call)
    if asked.as_csv:
        name = file_name(account, call.caller.state.word)
        body = statement_file(services.statements, account, asked.filters, services.ids)
        return Response(200, body, csv.CSV, csv.headers(name))
    part = await services.statements.page(account, asked.filters, after=asked.after, size=asked.size)
    page = AccountEntryPage(
        entries(part.lines, account.currency, services.ids),
        WalkMetadata(asked.size, None if part.after is None else query.write_place(part.after)),
    )
    return Response(200, encode(page), JSON)


async def _account(services: Services, call: Call) -> WalletAccount:
    """The account in the path. A currency that does not exist has none either."""
    code = call.parameter.upper() if call.parameter.isascii() else ""
    found = None
    if code in DIGITS:
        found = await services.statements.account(call.caller.company_id, code, call.caller.state)
    if found is None:
        raise AccountNotFound
    return found


CURRENCY: Final = query.currency_code("currency", "Only the account in this currency.")


def read_currency(request: Request) -> str | None:
    """The one currency that is asked for, if only one is."""
    return CURRENCY.read(query.read(request))


_CURSOR: Final = query.cursor(
    "Where to go on: the `nextCursor` of the last page. Not for CSV.", query.write_place(118)
)
_LIMIT: Final = query.whole(
    "limit",
    "The most movements that a page holds. Not for CSV, which has no pages.",
    default=query.PAGE_SIZE,
    most=query.PAGE_SIZE_MAX,
)
_FROM, _TO = query.period("movements of")
_KIND: Final = query.several("kind", "Only movements of this kind; repeat it for several.", [*KINDS])
_TRX: Final = query.text("trx", "Only movements of this order.")
_FORMAT: Final = query.choice(
    "format", "`csv` is the same as `Accept: text/csv`.", ("json", "csv"), default="json"
)
STATEMENT: Final = (_CURSOR, _LIMIT, _FROM, _TO, _KIND, _TRX, query.BY_TIME, _FORMAT)


def read_statement(request: Request, ids: Identifiers) -> StatementQuery:
    """What a statement request asks for."""
    given = query.read(request)
    as_csv = _as_csv(request, given)
    trx, cursor = _TRX.read(given), _CURSOR.read(given)
    filters = StatementFilters(
        date_from=_FROM.read(given),
        date_to=_TO.read(given),
        kinds=frozenset(_kind(word) for word in given.get(_KIND.name, ())),
        order_id=None if trx is None else ids.order_id(trx) or 0,
        oldest_first=query.BY_TIME.read(given) == "asc",
    )
    size = _LIMIT.read(given)
    return StatementQuery(filters, size, query.read_place(cursor) if cursor else None, as_csv)


def _as_csv(request: Request, given: query.Given) -> bool:
    """A file has no pages: it is all that the filters let through."""
    chosen = _FORMAT.read(given)
    if chosen != "csv" and (chosen or b"text/csv" not in request.headers.get(b"accept", b"").lower()):
        return False
    for name in (_CURSOR.name, _LIMIT.name):
        if name in given:
            raise BadInput(name, "can not be combined with CSV, which has no pages")
    return True


def _kind(word: str) -> EntryKind:
    kind = KINDS.get(word.lower())
    if kind is None:
        raise BadInput(_KIND.name, query.either([*KINDS]))
    return kind


def account(balance: Balance) -> Account:
    """A balance as clients see it."""
    places = digits(balance.currency)
    held_minor = balance.held_minor
    total, held, available = (
        # Not kept like prices are: hardly two balances are alike.
        Raw(plain(minor, places).encode())
        for minor in (balance.balance_minor, held_minor, balance.balance_minor - held_minor)
    )
    return Account(balance.currency, balance.state.word, total, held, available)


def entries(lines: Iterable[StatementLine], currency: str, ids: Identifiers) -> list[AccountEntry]:
    """Movements as clients see them."""
    places = digits(currency)
    return [
        AccountEntry(
            line.seq,
            written(line.at),
            line.kind.word,
            Raw(plain(line.amount_minor, places).encode()),
            Raw(plain(line.hold_minor, places).encode()),
            Raw(plain(line.balance_after_minor, places).encode()),
            Raw(plain(line.held_after_minor, places).encode()),
            currency,
            None if line.order_id is None else ids.trx_unkept(line.order_id),
            line.reference,
        )
        for line in lines
    ]
