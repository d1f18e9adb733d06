"""`voucherd wallet`: balances, top-ups and statements."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, record, table
from voucherd.cli.words import CompanyArgument, StateOption, StateWord, decimal, read_currency, read_money
from voucherd.companies import store as company_store
from voucherd.ids import Identifiers
from voucherd.wallet import deeds, store
from voucherd.wallet import statement as statements
from voucherd.wallet.deeds import BadPayment, NoAlert
from voucherd.wallet.statement import StatementFilters, StatementLine
from voucherd.wallet.store import Balance

app = noun()

Currency = Annotated[str, typer.Argument(metavar="CURRENCY", parser=read_currency)]


@command(app, "top-up")
async def top_up(
    context: CommandContext,
    company: CompanyArgument,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT")],
    currency: Currency,
    state: StateOption,
    reference: Annotated[str, typer.Option(help="Names the payment: booked once, however often it is sent.")],
) -> Output:
    """Add money to a company's balance."""
    money = read_money("amount", f"{amount} {currency}")
    with usage(BadPayment):
        deeds.check_top_up(money, reference)
    async with context.transaction() as tx:
        owner = await company_store.find_company(tx, company)
        booked, balance = await deeds.top_up(tx, context.actor, owner, state.state, money, reference)
    document = _document(balance) | {"toppedUp": booked, "company": company, "reference": reference}
    said = f"{money} added" if booked else f"nothing: {reference!r} was booked before"
    return Output(document, record([("top-up", said), *_pairs(balance)]))


@command(app, "show")
async def show(context: CommandContext, company: CompanyArgument) -> Output:
    """Show a company's balances."""
    async with context.connection() as connection:
        owner = await company_store.find_company(connection, company)
        balances = await store.balances(connection, owner.id)
    view = table(
        ["state", "currency", ">balance", ">held", ">available"],
        [(balance.state.word, balance.currency, *_amounts(balance)) for balance in balances],
        empty=f"{owner.name} has no money yet.",
    )
    return Output([_document(balance) for balance in balances], view)


@command(app, "statement")
async def statement(
    context: CommandContext,
    company: CompanyArgument,
    currency: Currency,
    state: StateOption = StateWord.LIVE,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many movements.")] = 50,
    before: Annotated[int | None, typer.Option(help="Go on below this number.")] = None,
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
    rows = [_movement(line, currency, names) for line in lines]
    view = table(
        ["?>no", "when", "what", ">amount", ">balance", "~for"],
        [
            (
                row["number"],
                f"{row['at']:%Y-%m-%d}",
                row["kind"],
                row["amount"],
                row["balance"],
                row["trx"] or row["reference"],
            )
            for row in rows
        ],
        empty="No movements.",
    )
    return Output(rows, view)


@command(app, "alert")
async def alert(
    context: CommandContext,
    company: CompanyArgument,
    currency: Currency,
    state: StateOption = StateWord.LIVE,
    below: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Say so when less than this can be spent.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Say nothing any more.")] = False,
) -> Output:
    """Choose below which balance the event `wallet.low_balance` is sent."""
    if (below is None) != off:
        raise typer.BadParameter("give either --below or --off")
    money = None if below is None else read_money("below", f"{below} {currency}")
    try:
        with usage(BadPayment):
            async with context.transaction() as tx:
                owner = await company_store.find_company(tx, company)
                if money is not None:
                    await deeds.set_alert(tx, context.actor, owner.id, state.state, money)
                else:
                    await deeds.remove_alert(tx, context.actor, owner.id, state.state, currency)
    except NoAlert:
        raise CommandRefused(f"{owner.name} has no alert for its {state} wallet in {currency}") from None
    said = "no alert any more" if money is None else f"an alert below {money}"
    document = {
        "company": owner.name,
        "currency": currency,
        "state": state.value,
        "below": None if money is None else decimal(money.minor, currency),
    }
    return Output(document, f"{owner.name}, {state} {currency}: {said}.")


def _amounts(balance: Balance) -> tuple[Any, Any, Any]:
    held_minor = balance.held_minor
    minors = (balance.balance_minor, held_minor, balance.balance_minor - held_minor)
    whole, held, available = (decimal(minor, balance.currency) for minor in minors)
    return whole, held, available


def _pairs(balance: Balance) -> list[tuple[str, object]]:
    whole, held, _ = _amounts(balance)
    return [("state", balance.state.word), ("balance", f"{whole} {balance.currency}"), ("held", held)]


def _document(balance: Balance) -> dict[str, Any]:
    whole, held, available = _amounts(balance)
    return {
        "state": balance.state.word,
        "currency": balance.currency,
        "balance": whole,
        "held": held,
        "available": available,
    }


def _movement(line: StatementLine, currency: str, names: Identifiers | None) -> dict[str, Any]:
    return {
        "number": line.seq,
        "at": line.at,
        "kind": line.kind.word,
        "amount": decimal(line.amount_minor, currency),
        "hold": decimal(line.hold_minor, currency),
        "balance": decimal(line.balance_after_minor, currency),
        "held": decimal(line.held_after_minor, currency),
        "trx": names.trx(line.order_id) if names is not None and line.order_id is not None else None,
        "reference": line.reference,
    }
