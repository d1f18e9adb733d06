"""A company's wallets, movement by movement."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from voucherd.http import Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages.console.inputs import Problems, company_of, number_of, optional_day
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit
from voucherd.services import Services
from voucherd.wallet import store as wallets
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, StatementLine

PAGE: Final = 50
KINDS: Final = {kind.word: kind for kind in EntryKind}
_STATES: Final = {"live": State.LIVE, "sandbox": State.SANDBOX}


async def statement(visit: Visit) -> Response:
    """The movements of one wallet, newest first, with filters."""
    query, problems = visit.query, Problems()
    state = _STATES.get(query.get("state"), visit.state)
    first = problems.read("from", lambda: optional_day(query.get("from")))
    last = problems.read("to", lambda: optional_day(query.get("to")))
    kind = query.get("kind") if query.get("kind") in KINDS else ""
    filters = StatementFilters(
        None if first is None else _midnight(first),
        None if last is None else _midnight(last + timedelta(days=1)) - timedelta(microseconds=1),
        frozenset({KINDS[kind]}) if kind else frozenset(),
    )
    async with visit.pool.acquire() as conn:
        company = await company_of(conn, visit)
        balances = await wallets.balances(conn, company.id, state)
    currencies = [one.currency for one in balances]
    wanted = query.get("currency").upper()
    currency = wanted if wanted in currencies else next(iter(currencies), "")
    part = None
    if currency and not problems:
        account = await visit.services.statements.account(company.id, currency, state)
        assert account is not None, "it has just been read, and no wallet is ever removed"
        part = await visit.services.statements.page(
            account, filters, after=number_of(query.get("after")), size=PAGE
        )
    chosen = {name: query.get(name) for name in ("from", "to")} | {"kind": kind}
    chosen |= {"currency": currency, "state": state.word}
    path = f"/console/companies/{company.id}/statement"
    return render(
        "console/statement.html",
        visit,
        status=422 if problems else 200,
        company=company,
        balance=next((Money(b.balance_minor, b.currency) for b in balances if b.currency == currency), None),
        held=next((Money(b.held_minor, b.currency) for b in balances if b.currency == currency), None),
        currencies=[(one, one) for one in currencies],
        kinds=[("", "Everything"), *((word, word) for word in KINDS)],
        chosen=chosen,
        problems=problems,
        rows=[_row(visit.services, line, currency) for line in part.lines] if part else [],
        first="" if not query.get("after") else qualified(path, chosen),
        older="" if part is None or part.after is None else qualified(path, chosen | {"after": part.after}),
    )


def _row(services: Services, line: StatementLine, currency: str) -> dict[str, object]:
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


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
