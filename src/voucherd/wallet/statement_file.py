"""A statement as one file of CSV, written as fast as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from voucherd.clock import written
from voucherd.ids import Identifiers
from voucherd.money import digits, plain
from voucherd.sheets.csv_text import safe
from voucherd.wallet.statement import StatementFilters, StatementLine, Statements, WalletAccount

HEAD: Final = "seq,dateCreated,kind,amount,holdAmount,balanceAfter,heldAfter,currency,trx,reference\r\n"


async def statement_file(
    statements: Statements, account: WalletAccount, filters: StatementFilters, ids: Identifiers
) -> AsyncIterator[bytes]:
    """The whole statement, piece by piece."""
    yield HEAD.encode()
    async for lines in statements.whole(account, filters):
        yield rows(lines, account.currency, ids)


def file_name(account: WalletAccount, state_word: str) -> str:
    """What the file is called."""
    return f"account-{account.currency}-{state_word}.csv"


def rows(lines: Iterable[StatementLine], currency: str, ids: Identifiers) -> bytes:
    """Movements as lines. A reference is somebody's own text, so no spreadsheet may take it for a formula."""
    places = digits(currency)
    return "".join(
        [
            f"{line.seq},{written(line.at)},{line.kind.word},{plain(line.amount_minor, places)},"
            f"{plain(line.hold_minor, places)},{plain(line.balance_after_minor, places)},"
            f"{plain(line.held_after_minor, places)},{currency},"
            f"{'' if line.order_id is None else ids.trx_unkept(line.order_id)},{safe(line.reference)}\r\n"
            for line in lines
        ]
    ).encode()
