"""The statement of a company's wallet, movement by movement."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from voucherd.companies.model import Company
from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, Money
from voucherd.pages.console.inputs import amount_of, company_of, number_of, optional_day
from voucherd.pages.forms import Period
from voucherd.pages.render import ROWS_AT_ONCE, amount, qualified, render, sheet
from voucherd.pages.visit import Visit, missing
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.sheets.writing import Value
from voucherd.sorting import OLDEST, by_time
from voucherd.wallet import deeds, low_balance
from voucherd.wallet import store as wallets
from voucherd.wallet.deeds import NoAlert
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, StatementLine, WalletAccount
from voucherd.wallet.store import Balance

STATEMENT_LINES: Final = 50
KINDS: Final = {kind.word: kind for kind in EntryKind}


async def statement(visit: Visit) -> Response:
    """The movements of one wallet, newest first unless the address says otherwise, with filters."""
    query, filters = visit.query, _filters(visit)
    found, balances, chosen = await _chosen(visit)
    currency = chosen["currency"]
    part = None
    if currency and not {"from", "to"} & visit.problems.keys():
        account = await _account(visit, found, currency)
        part = await visit.services.statements.page(
            account, filters, after=number_of(query.get("after")), size=STATEMENT_LINES
        )
    path, sort = f"/console/companies/{found.id}/statement", by_time(visit.query.get("sort"))
    kept = chosen | {"sort": sort}
    wallet = next((one for one in balances if one.currency == currency), None)
    alerts = {} if wallet is None else await visit.look(low_balance.alerts, [wallet.wallet_id])
    low = None if wallet is None else alerts.get(wallet.wallet_id)
    return render(
        "console/statement.html",
        visit,
        company=found,
        balance=None if wallet is None else Money(wallet.balance_minor, currency),
        held=None if wallet is None else Money(wallet.held_minor, currency),
        currencies=[(one.currency, one.currency) for one in balances],
        kinds=[("", "All"), *((word, word.capitalize()) for word in KINDS)],
        chosen=chosen,
        filtered=any(chosen[name] for name in ("from", "to", "kind")),
        clear=qualified(path, {"currency": currency}),
        rows=[_movement(visit.services, line, currency) for line in part.lines] if part else [],
        below=visit.form.get("below") or ("" if low is None else str(Money(low, currency).decimal())),
        may_manage=visit.may(Right.COMPANIES_MANAGE),
        sort=sort,
        first="" if not query.get("after") else qualified(path, kept),
        after="" if part is None or part.after is None else qualified(path, kept | {"after": part.after}),
    )


async def set_alert(visit: Visit) -> Response:
    """Warn the company when less than this can be spent of a balance; an empty amount ends the warning."""
    currency = visit.form.get("currency")
    if currency not in DIGITS:
        raise missing()
    below = visit.read("below", lambda text: amount_of(text, currency)) if visit.form.get("below") else None
    if visit.problems:
        return await statement(visit)
    found = await visit.look(company_of, visit)
    path = qualified(f"/console/companies/{found.id}/statement", {"currency": currency})
    if below is not None:
        await visit.do(deeds.set_alert, found.id, visit.state, below)
        return visit.go(path, f"{found.name} is warned below {amount(below)}.")
    with suppress(NoAlert):
        await visit.do(deeds.remove_alert, found.id, visit.state, currency)
    return visit.go(path, f"{found.name} is not warned of a low balance in {currency}.", "note")


async def statement_file(visit: Visit) -> Response:
    """The same as a file, all of it."""
    filters = _filters(visit)
    found, _, chosen = await _chosen(visit)
    if not chosen["currency"]:
        raise missing()
    if visit.problems:
        raise HttpError(400, "bad_filter", "A day looks like 2026-01-31.")
    account = await _account(visit, found, chosen["currency"])

    async def pages() -> AsyncIterator[list[list[Value]]]:
        after: int | None = None
        while True:
            part = await visit.services.statements.page(account, filters, after=after, size=ROWS_AT_ONCE)
            yield [_line(visit.services, line, account.currency) for line in part.lines]
            if part.after is None:
                return
            after = part.after

    name = f"statement-{found.id}-{account.currency.lower()}-{visit.state.word}"
    columns = ("number", "at", "kind", "amount", "hold", "balance", "currency", "order", "reference")
    return await sheet(visit, name, columns, pages(), title="statement")


async def _chosen(visit: Visit) -> tuple[Company, list[Balance], dict[str, str]]:
    """Whose wallets these are, and what the address, or the form of the page, chooses of them."""
    query = visit.query
    async with visit.pool.acquire() as conn:
        found = await company_of(conn, visit)
        balances = await wallets.balances(conn, found.id, visit.state)
    currencies = [one.currency for one in balances]
    wanted = (visit.form.get("currency") or query.get("currency")).upper()
    kind = query.get("kind") if query.get("kind") in KINDS else ""
    chosen = {name: query.get(name) for name in ("from", "to")} | {"kind": kind}
    chosen["currency"] = wanted if wanted in currencies else next(iter(currencies), "")
    return found, balances, chosen


def _filters(visit: Visit) -> StatementFilters:
    period = Period(visit.words, visit.ask("from", optional_day), visit.ask("to", optional_day))
    kind = KINDS.get(visit.query.get("kind"))
    kinds = frozenset(() if kind is None else {kind})
    return StatementFilters(period.begins, period.ends, kinds, oldest_first=visit.query.get("sort") == OLDEST)


async def _account(visit: Visit, company: Company, currency: str) -> WalletAccount:
    account = await visit.services.statements.account(company.id, currency, visit.state)
    assert account is not None, "it has just been read, and no wallet is ever removed"
    return account


def _line(services: Services, line: StatementLine, currency: str) -> list[Value]:
    one = _movement(services, line, currency)
    amounts = [one[name].decimal() for name in ("amount", "hold", "balance")]
    return [line.seq, line.at, line.kind.word, *amounts, currency, one["trx"], line.reference]


def _movement(services: Services, line: StatementLine, currency: str) -> dict[str, Any]:
    return {
        "number": line.seq,
        "at": line.at,
        "kind": line.kind.word,
        "amount": Money(line.amount_minor, currency),
        "hold": Money(line.hold_minor, currency),
        "balance": Money(line.balance_after_minor, currency),
        "trx": None if line.order_id is None else services.ids.trx(line.order_id),
        "reference": line.reference,
    }
