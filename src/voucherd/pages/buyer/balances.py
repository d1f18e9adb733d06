"""The company's money: balances, and how each came to be."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from voucherd import clock
from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, Money
from voucherd.pages.periods import read_period
from voucherd.pages.render import figure, qualified, render
from voucherd.pages.visit import Visit, missing
from voucherd.services import Services
from voucherd.sheets import csv_text
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, WalletAccount
from voucherd.wallet.statement_file import file_name, statement_file

PAGE_SIZE: Final = 50
CHART_DAYS: Final = 30
KINDS: Final = {kind.word: kind for kind in EntryKind}


async def balances(visit: Visit) -> Response:
    """What there is, and what of it is held for orders that are under way."""
    found = await visit.services.statements.balances(visit.company_id, visit.state)
    rows = [
        {
            "currency": one.currency,
            "total": Money(one.balance_minor, one.currency),
            "held": Money(one.held_minor, one.currency),
            "free": Money(one.balance_minor - one.held_minor, one.currency),
        }
        for one in found
    ]
    return render("buyer/balances.html", visit, rows=rows)


async def statement(visit: Visit) -> Response:
    """A balance over the last month, and every movement."""
    account = await _account(visit)
    filters, problem = _filters(visit)
    after = visit.query.get("after")
    if after and not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise HttpError(400, "bad_place", "This place in the statement does not exist.")
    part = await visit.services.statements.page(
        account, filters, after=int(after) if after else None, size=PAGE_SIZE
    )
    path = f"/portal/balances/{account.currency}"
    chosen = {name: visit.query.get(name) for name in ("kind", "from", "to")}
    lines = [
        {
            "line": line,
            "amount": Money(line.amount_minor, account.currency),
            "hold": Money(line.hold_minor, account.currency),
            "balance": Money(line.balance_after_minor, account.currency),
            "trx": None if line.order_id is None else visit.services.ids.trx_unkept(line.order_id),
        }
        for line in part.lines
    ]
    return render(
        "buyer/statement.html",
        visit,
        currency=account.currency,
        lines=lines,
        chosen=chosen,
        problem=problem,
        kinds=[("", "Every kind"), *((word, word.replace("-", " ")) for word in KINDS)],
        older=qualified(path, {**chosen, "after": part.after}) if part.after is not None else "",
        newest=qualified(path, chosen) if after else "",
        file=qualified(f"{path}/statement.csv", chosen),
        points=await _chart(visit.services, account),
    )


async def download(visit: Visit) -> Response:
    """The statement as a file."""
    account = await _account(visit)
    filters, problem = _filters(visit)
    if problem:
        raise HttpError(400, "bad_filter", problem)
    body = statement_file(visit.services.statements, account, filters, visit.services.ids)
    return Response(200, body, csv_text.CSV, csv_text.headers(file_name(account, visit.state.word)))


async def _account(visit: Visit) -> WalletAccount:
    currency = visit.parameters["currency"].upper()
    found = None
    if currency in DIGITS:
        found = await visit.services.statements.account(visit.company_id, currency, visit.state)
    if found is None:
        raise missing()
    return found


def _filters(visit: Visit) -> tuple[StatementFilters, str]:
    """What the statement is to show, and what was wrong with the wish."""
    word = visit.query.get("kind")
    period = read_period(visit.query)
    if word and word not in KINDS:
        return StatementFilters(), "There is no such kind of movement."
    kinds = frozenset([KINDS[word]]) if word else frozenset()
    return StatementFilters(date_from=period.begins, date_to=period.ends, kinds=kinds), period.problem


async def _chart(services: Services, account: WalletAccount) -> list[tuple[str, int, str]]:
    """The balance at the end of each of the last days, as shares of the highest."""
    today = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    ends = [today - timedelta(days=back - 1) for back in reversed(range(CHART_DAYS))]
    closing = await services.statements.balances_at(account, ends)
    highest = max(closing, default=0) or 1
    return [
        (f"{end - timedelta(days=1):%-d %b}", minor * 100 // highest, figure(Money(minor, account.currency)))
        for end, minor in zip(ends, closing, strict=True)
    ]
