"""`voucherd company`: who may buy."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Output, record, table
from voucherd.cli.words import SpendOption, decimal, read_spend, spend_words
from voucherd.companies import deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import Company, CompanyDraft
from voucherd.money import Money

app = noun()


@command(app, "add")
async def add(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    country: Annotated[str, typer.Option(help="Two letters, such as NL: whose VAT applies.")],
    vat_number: Annotated[
        str | None, typer.Option(help="For the reverse charge between EU countries.")
    ] = None,
    verified: Annotated[bool, typer.Option("--verified", help="May finalise orders at once.")] = False,
    inactive: Annotated[bool, typer.Option("--inactive", help="May not order yet.")] = False,
) -> Output:
    """Add a company."""
    with usage():
        draft = CompanyDraft(
            name.strip(), country.upper(), vat_number, active=not inactive, verified=verified
        )
    async with context.transaction() as tx:
        company = await deeds.add(tx, context.actor, draft)
    return Output(_document(company), _view(company))


@command(app, "set")
async def set_(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    verified: Annotated[
        bool | None, typer.Option("--verified/--no-verified", help="May finalise orders.")
    ] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="May order.")] = None,
    expose_costs: Annotated[
        bool | None, typer.Option("--expose-costs/--no-expose-costs", help="Sees the cost fields.")
    ] = None,
) -> Output:
    """Change what a company may do."""
    if verified is None and active is None and expose_costs is None:
        raise typer.BadParameter("nothing to change: give at least one option")
    async with context.transaction() as tx:
        company = await deeds.change(
            tx, context.actor, name, active=active, verified=verified, expose_costs=expose_costs
        )
    return Output(_document(company), _view(company))


@command(app, "limit")
async def limit(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    order: SpendOption = None,
    day: SpendOption = None,
) -> Output:
    """Limit what a company may spend on one order and in one day (UTC); what is not given has no limit."""
    amounts = read_spend("order", order), read_spend("day", day)
    async with context.transaction() as tx:
        company = await deeds.limit(
            tx, context.actor, name, order_eur_minor=amounts[0], day_eur_minor=amounts[1]
        )
    return Output(_document(company), _view(company))


@command(app, "people")
async def people_(
    context: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    second_factor: Annotated[
        bool | None, typer.Option("--second-factor/--no-second-factor", help="All of them must have one.")
    ] = None,
    approve_from: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="Orders in the portal from here on need a second person."),
    ] = None,
    no_approval: Annotated[bool, typer.Option("--no-approval", help="None does.")] = False,
) -> Output:
    """Show or change what a company asks of its own people."""
    if approve_from is not None and no_approval:
        raise typer.BadParameter("give either --approve-from or --no-approval")
    async with context.transaction() as tx:
        company = await company_store.find_company(tx, name)
        asked = before = await company_store.policy(tx, company.id)
        if second_factor is not None:
            asked = replace(asked, second_factor=second_factor)
        if approve_from is not None or no_approval:
            asked = replace(asked, approve_from_eur_minor=read_spend("approve-from", approve_from))
        if asked != before:
            await deeds.set_policy(tx, context.actor, company, asked)
    amount = asked.approve_from_eur_minor
    document = {"name": company.name, "secondFactor": asked.second_factor, "approveFromEur": _eur(amount)}
    view = record(
        [
            ("company", company.name),
            ("second factor", "required" if asked.second_factor else "as each likes"),
            ("second person", "never" if amount is None else f"for orders from {Money(amount, 'EUR')} on"),
        ]
    )
    return Output(document, view)


@command(app, "list")
async def list_(context: CommandContext) -> Output:
    """List the companies."""
    async with context.connection() as connection:
        companies = await company_store.list_companies(connection)
    view = table(
        ["~name", "country", "VAT number", "active", "verified", "sees costs"],
        [(c.name, c.country, c.vat_number, c.active, c.verified, c.expose_costs) for c in companies],
        empty="No companies yet: add one with `voucherd company add`.",
    )
    return Output([_document(company) for company in companies], view)


def _document(company: Company) -> dict[str, Any]:
    return {
        "id": company.id,
        "name": company.name,
        "country": company.country,
        "vatNumber": company.vat_number,
        "active": company.active,
        "verified": company.verified,
        "exposeCosts": company.expose_costs,
        "spendOrderEur": _eur(company.spend_order_eur_minor),
        "spendDayEur": _eur(company.spend_day_eur_minor),
    }


def _eur(minor: int | None) -> Decimal | None:
    return None if minor is None else decimal(minor, "EUR")


def _view(company: Company) -> Any:
    return record(
        [
            ("company", company.name),
            ("country", company.country),
            ("VAT number", company.vat_number),
            ("active", company.active),
            ("verified", company.verified),
            ("sees costs", company.expose_costs),
            ("may spend", spend_words(company.spend_order_eur_minor, company.spend_day_eur_minor)),
        ]
    )
