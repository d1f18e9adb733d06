"""`voucherd wallet`: balances, top-ups and statements."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from voucherd.cli import words
from voucherd.cli.command import command, noun, refusing, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, facts, listed, shown
from voucherd.companies import store as company_store
from voucherd.ids import Identifiers
from voucherd.wallet import deeds, store
from voucherd.wallet import statement as statements
from voucherd.wallet.deeds import BadPayment, NoAlert
from voucherd.wallet.statement import StatementFilters, StatementLine
from voucherd.wallet.store import Balance

app = noun()

Currency = Annotated[str, Argument(metavar="CURRENCY", parser=words.read_currency)]


@command(app, "top-up")
async def top_up(
    context: CommandContext,
    company: words.CompanyArgument,
    amount: Annotated[str, Argument(metavar="AMOUNT")],
    currency: Currency,
    state: words.StateOption,
    reference: Annotated[str, Option(help="Names the payment: booked once, however often it is sent.")],
) -> Output:
    """Add money to a company's balance."""
    money = words.read_money("amount", f"{amount} {currency}")
    with usage(BadPayment):
        deeds.check_top_up(money, reference)
    async with context.transaction() as tx:
        owner = await company_store.find_company(tx, company)
        booked, balance = await deeds.top_up(tx, context.actor, owner, state.state, money, reference)
    document = _document(balance) | {"toppedUp": booked, "company": company, "reference": reference}
    said = f"{money} added" if booked else f"nothing: {reference!r} was booked before"
    return shown(document, [("top-up", lambda _: said), "state", ("balance", "balance currency"), "held"])


@command(app, "show")
async def show(context: CommandContext, company: words.CompanyArgument) -> Output:
    """Show a company's balances."""
    async with context.connection() as connection:
        owner = await company_store.find_company(connection, company)
        balances = await store.balances(connection, owner.id)
    return listed(
        [_document(balance) for balance in balances],
        ["state", "currency", ">balance", ">held", ">available"],
        empty=f"{owner.name} has no money yet.",
    )


@command(app, "statement")
async def statement(
    context: CommandContext,
    company: words.CompanyArgument,
    currency: Currency,
    state: words.StateOption = words.StateWord.LIVE,
    limit: Annotated[int, Option(min=1, max=10_000, help="How many movements.")] = 50,
    before: Annotated[int | None, Option(help="Go on below this number.")] = None,
) -> Output:
    """List a wallet's movements, newest first."""
    async with context.connection() as connection:
        owner = await company_store.find_company(connection, company)
        account = await statements.find(connection, owner.id, currency, state.state)
        if account is None:
            raise CommandRefused(f"{owner.name} has no {state} wallet in {currency}")
        lines = (
            await statements.page(connection, account, StatementFilters(), after=before, size=limit)
        ).lines
        with_orders = any(line.order_id is not None for line in lines)
        names = await context.identifiers(connection) if with_orders else None
    return listed(
        [_movement(line, currency, names) for line in lines],
        [
            *(("?>no", "number"), ("when", words.moment_day("at")), ("what", "kind"), ">amount", ">balance"),
            ("~for", lambda row: row["trx"] or row["reference"]),
        ],
        empty="No movements.",
    )


@command(app, "alert")
async def alert(
    context: CommandContext,
    company: words.CompanyArgument,
    currency: Currency,
    state: words.StateOption = words.StateWord.LIVE,
    below: Annotated[
        str | None, Option(metavar="AMOUNT", help="Say so when less than this can be spent.")
    ] = None,
    off: Annotated[bool, Option("--off", help="Say nothing any more.")] = False,
) -> Output:
    """Choose below which balance the event `wallet.low_balance` is sent."""
    if (below is None) != off:
        raise typer.BadParameter("give either --below or --off")
    money = None if below is None else words.read_money("below", f"{below} {currency}")
    with usage(BadPayment):
        async with context.transaction() as tx:
            owner = await company_store.find_company(tx, company)
            if money is not None:
                await deeds.set_alert(tx, context.actor, owner.id, state.state, money)
            else:
                with refusing({NoAlert: f"{owner.name} has no alert for its {state} wallet in {currency}"}):
                    await deeds.remove_alert(tx, context.actor, owner.id, state.state, currency)
    said = "no alert any more" if money is None else f"an alert below {money}"
    document = {
        "company": owner.name,
        "currency": currency,
        "state": state.value,
        "below": None if money is None else words.decimal(money.minor, currency),
    }
    return Output(document, f"{owner.name}, {state} {currency}: {said}.")


def _document(balance: Balance) -> dict[str, Any]:
    whole_minor, held_minor = balance.balance_minor, balance.held_minor
    return facts(
        balance,
        "state currency",
        balance=words.decimal(whole_minor, balance.currency),
        held=words.decimal(held_minor, balance.currency),
        available=words.decimal(whole_minor - held_minor, balance.currency),
    )


def _movement(line: StatementLine, currency: str, names: Identifiers | None) -> dict[str, Any]:
    return facts(
        line,
        "number at kind amount hold balance held trx reference",
        number=line.seq,
        amount=words.decimal(line.amount_minor, currency),
        hold=words.decimal(line.hold_minor, currency),
        balance=words.decimal(line.balance_after_minor, currency),
        held=words.decimal(line.held_after_minor, currency),
        trx=names.trx(line.order_id) if names is not None and line.order_id is not None else None,
    )
