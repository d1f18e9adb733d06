"""The company's money: balances, how each came to be, and below which of them it wants an alert."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final

from msgspec import Struct

from voucherd import clock
from voucherd.db import tenant
from voucherd.http import HttpError, Response
from voucherd.money import DIGITS, BadAmount, Money
from voucherd.pages.forms import read_period, whole
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.sheets import csv_text
from voucherd.sorting import OLDEST, by_time
from voucherd.wallet import deeds, low_balance
from voucherd.wallet import store as wallets
from voucherd.wallet.deeds import BadPayment, NoAlert
from voucherd.wallet.ledger import EntryKind
from voucherd.wallet.statement import StatementFilters, WalletAccount
from voucherd.wallet.statement_file import file_name, statement_file
from voucherd.words import Words, phrase

PAGE_SIZE: Final = 50
CHART_DAYS: Final = 30
KINDS: Final = {kind.word: kind for kind in EntryKind}
WORDS: Final = {
    EntryKind.TOP_UP: phrase("Top-up"),
    EntryKind.ORDER: phrase("Order"),
    EntryKind.REFUND: phrase("Refund"),
    EntryKind.HOLD: phrase("Held for an order"),
    EntryKind.RELEASE: phrase("Released"),
    EntryKind.CORRECTION: phrase("Correction"),
}
"""Why money moved, for people."""
CURRENCY_FIRST: Final = "EUR"


class Funds(Struct, frozen=True):
    """One balance: what there is, what of it can be spent, and from where on it is low."""

    balance: Money
    available: Money
    alert: Money | None

    @property
    def currency(self) -> str:
        """What it is in."""
        return self.balance.currency

    @property
    def low(self) -> bool:
        """Whether it fell below what its owner chose."""
        return self.alert is not None and self.available.minor < self.alert.minor


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
    if after and whole(after) is None:
        raise HttpError(400, "bad_place", visit.words.text("This place in the statement does not exist."))
    part = await visit.services.statements.page(account, filters, after=whole(after), size=PAGE_SIZE)
    path = f"/portal/balances/{account.currency}"
    chosen = {name: visit.query.get(name) for name in ("kind", "from", "to")}
    kept = chosen | {"sort": by_time(visit.query.get("sort"))}
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
        kinds=[
            ("", visit.words.text("All types")),
            *((word, visit.words.text(WORDS[kind])) for word, kind in KINDS.items()),
        ],
        kind_words=WORDS,
        sort=kept["sort"],
        first=qualified(path, kept) if after else "",
        after=qualified(path, {**kept, "after": part.after}) if part.after is not None else "",
        file=qualified(f"{path}/statement.csv", kept),
        points=await _chart(visit.services, account, visit.words),
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
    period = read_period(visit.query, visit.words)
    if word and word not in KINDS:
        return StatementFilters(), visit.words.text("There is no such type of movement.")
    kinds = frozenset([KINDS[word]]) if word else frozenset()
    oldest_first = visit.query.get("sort") == OLDEST
    filters = StatementFilters(period.begins, period.ends, kinds, oldest_first=oldest_first)
    return filters, period.problem


async def _chart(services: Services, account: WalletAccount, words: Words) -> list[tuple[str, int, str]]:
    """The balance at the end of each of the last days."""
    today = words.today(clock.now())
    ends = [words.midnight(today - timedelta(days=back - 1)) for back in reversed(range(CHART_DAYS))]
    closing = await services.statements.balances_at(account, ends)
    return [
        (words.day(end - timedelta(hours=1)), minor, words.figure(Money(minor, account.currency)))
        for end, minor in zip(ends, closing, strict=True)
    ]


async def purses_of(visit: Visit) -> list[Funds]:
    """The company's balances in the state that the visitor looks at; none for who may not see them."""
    if not visit.may(Right.WALLET_VIEW):
        return []
    async with tenant(visit.pool, visit.company_id, visit.state) as connection:
        found = await wallets.balances(connection, visit.company_id, visit.state)
        alerts = await low_balance.alerts(connection, [one.wallet_id for one in found])
    return [
        Funds(
            Money(one.balance_minor, one.currency),
            Money(one.balance_minor - one.held_minor, one.currency),
            Money(alerts[one.wallet_id], one.currency) if one.wallet_id in alerts else None,
        )
        for one in found
    ]


def usual_currency(purses: list[Funds]) -> str:
    """What to pay with until somebody chooses: euros if there are any, else whatever there is."""
    filled = [purse.currency for purse in purses if purse.available.minor > 0]
    return CURRENCY_FIRST if CURRENCY_FIRST in filled or not filled else filled[0]


async def alerts(visit: Visit) -> Response:
    """Every balance, and below how much it is low."""
    return render(
        "buyer/alerts.html", visit, purses=await purses_of(visit), may_set=visit.may(Right.ORDERS_PLACE)
    )


async def set_alert(visit: Visit) -> Response:
    """Be told when a balance falls below this; an empty amount ends the alert."""
    currency, text = visit.form.get("currency"), visit.form.get("below").replace(",", ".")
    if currency not in DIGITS:
        raise HttpError(400, "bad_currency", visit.words.text("There is no such currency."))
    if not text:
        with suppress(NoAlert):
            await visit.do(deeds.remove_alert, visit.company_id, visit.state, currency)
        return visit.go(
            "/portal/alerts",
            visit.words.text("There is no alert for {currency} any more.", currency=currency),
        )
    try:
        below = Money.parse(text, currency)
        await visit.do(deeds.set_alert, visit.company_id, visit.state, below)
    except (BadAmount, BadPayment) as bad:
        amiss = isinstance(bad, BadAmount)
        visit.problems[currency] = (
            visit.words.text("Write an amount such as 250.00")
            if amiss
            else visit.words.text("The amount is above zero")
        )
        return await alerts(visit)
    return visit.go(
        "/portal/alerts", visit.words.text("You are warned below {amount}.", amount=visit.words.amount(below))
    )
