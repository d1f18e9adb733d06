"""`voucherd company`: who may buy."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import typer
from msgspec.structs import replace
from typer import Argument, Option

from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.output import Column, CommandRefused, Document, Output, facts, listed, shown
from voucherd.cli.words import SpendOption, amount, read_spend, spend_facts, spend_words
from voucherd.companies import deeds
from voucherd.companies import store as company_store
from voucherd.companies.model import BadCompany, Company, CompanyDetails, CompanyDraft
from voucherd.keys import moving
from voucherd.people import policy
from voucherd.sandbox import deeds as sandbox

app = noun()

Name: TypeAlias = Annotated[str, Argument(metavar="NAME")]


@command(app, "add")
async def add(
    context: CommandContext,
    name: Name,
    country: Annotated[str, Option(help="Two letters, such as NL: whose VAT applies.")],
    vat_number: Annotated[str | None, Option(help="For the reverse charge between EU countries.")] = None,
    verified: Annotated[bool, Option("--verified", help="May finalise orders at once.")] = False,
    inactive: Annotated[bool, Option("--inactive", help="May not order yet.")] = False,
    expose_costs: Annotated[
        bool,
        Option(
            "--expose-costs/--no-expose-costs", help="Its orders show your purchase prices and suppliers."
        ),
    ] = True,
) -> Output:
    """Add a company."""
    with usage():
        draft = CompanyDraft(
            *(name.strip(), country.upper(), vat_number),
            active=not inactive,
            verified=verified,
            expose_costs=expose_costs,
        )
    async with context.transaction() as tx:
        with usage(BadCompany):
            company = await sandbox.add_company(tx, context.actor, draft)
    return _shown(company)


@command(app, "set")
async def set_(
    context: CommandContext,
    name: Name,
    verified: Annotated[bool | None, Option("--verified/--no-verified", help="May finalise orders.")] = None,
    active: Annotated[bool | None, Option("--active/--inactive", help="May order.")] = None,
    expose_costs: Annotated[
        bool | None,
        Option(
            "--expose-costs/--no-expose-costs", help="Its orders show your purchase prices and suppliers."
        ),
    ] = None,
    rename: Annotated[str | None, Option(metavar="NAME", help="Another name.")] = None,
    country: Annotated[str | None, Option(help="Two letters, such as NL: whose VAT applies.")] = None,
    vat_number: Annotated[
        str | None, Option(help="For the reverse charge between EU countries; an empty one removes it.")
    ] = None,
) -> Output:
    """Change what a company is called, where it is, and what it may do."""
    may = {"active": active, "verified": verified, "expose_costs": expose_costs}
    described = (rename, country, vat_number) != (None, None, None)
    if all(one is None for one in may.values()) and not described:
        raise typer.BadParameter("nothing to change: give at least one option")
    async with context.transaction() as tx:
        company = await company_store.find_company(tx, name)
        if described:
            details = CompanyDetails(
                company.name if rename is None else rename.strip(),
                company.country if country is None else country.upper(),
                company.vat_number if vat_number is None else vat_number or None,
            )
            with usage(BadCompany):
                company = await deeds.describe(tx, context.actor, company.name, details)
        if any(one is not None for one in may.values()):
            company = await deeds.change(tx, context.actor, company.name, **may)
    return _shown(company)


@command(app, "limit")
async def limit(
    context: CommandContext,
    name: Name,
    order: SpendOption = None,
    day: SpendOption = None,
) -> Output:
    """Limit what a company may spend on one order and in one day (UTC); what is not given has no limit."""
    order_minor, day_minor = read_spend("order", order), read_spend("day", day)
    async with context.transaction() as tx:
        company = await deeds.limit(
            tx, context.actor, name, order_eur_minor=order_minor, day_eur_minor=day_minor
        )
    return _shown(company)


@command(app, "people")
async def people_(
    context: CommandContext,
    name: Name,
    second_factor: Annotated[
        bool | None, Option("--second-factor/--no-second-factor", help="All of them must have one.")
    ] = None,
    approve_from: Annotated[
        str | None,
        Option(metavar="AMOUNT", help="Orders in the portal from here on need a second person."),
    ] = None,
    no_approval: Annotated[bool, Option("--no-approval", help="None does.")] = False,
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
            await policy.set_policy(tx, context.actor, company, asked)
    document = {
        "name": company.name,
        "secondFactor": asked.second_factor,
        "approveFromEur": amount(asked.approve_from_eur_minor, "EUR"),
    }
    return shown(
        document,
        [
            ("company", "name"),
            ("second factor", lambda one: "required" if one["secondFactor"] else "as each likes"),
            ("second person", _second_person),
        ],
    )


@command(app, "export")
async def export(context: CommandContext, name: Name) -> Output:
    """Write a company's terms and the hashes of its keys, as JSON, for `company import` in another cell."""
    async with context.transaction() as tx:
        file = await moving.file_of(tx, name)
    return Output(file, msgspec.json.encode(file).decode())


@command(app, "import")
async def import_(
    context: CommandContext,
    file: Annotated[typer.FileBinaryRead, Argument(metavar="FILE", help="Of `company export`; - for stdin.")],
) -> Output:
    """Let a company of another cell be here, inactive, with the keys of the file and no others."""
    content = await asyncio.to_thread(context.stream(file).read, moving.FILE_BYTES_MAX + 1)
    if len(content) > moving.FILE_BYTES_MAX:
        raise CommandRefused(f"the file is larger than {moving.FILE_BYTES_MAX} bytes")
    moved = moving.read_file(content)
    async with context.transaction() as tx:
        done = await moving.move_in(tx, context.actor, moved)
    document = {"company": done.company.name, "new": done.new, "keys": done.keys, "ended": done.ended}
    said = f"{done.company.name} is here, and may not order yet. Keys: {done.keys}; ended: {done.ended}."
    return Output(document, said)


@command(app, "list")
async def list_(context: CommandContext) -> Output:
    """List the companies."""
    async with context.connection() as connection:
        companies = await company_store.list_companies(connection)
    return listed(
        [_document(company) for company in companies],
        ["~name", *_COLUMNS],
        empty="No companies yet: add one with `voucherd company add`.",
    )


_COLUMNS: Final[list[Column]] = [
    "country",
    ("VAT number", "vatNumber"),
    "active",
    "verified",
    ("sees costs", "exposeCosts"),
]


def _second_person(document: Document) -> str:
    least = document["approveFromEur"]
    return "never" if least is None else f"for orders from {least} EUR on"


def _document(company: Company) -> dict[str, Any]:
    limits = spend_facts(company.spend_order_eur_minor, company.spend_day_eur_minor)
    return facts(company, "id name country vatNumber active verified exposeCosts", **limits)


def _shown(company: Company) -> Output:
    return shown(
        _document(company),
        [
            ("company", "name"),
            *_COLUMNS,
            ("may spend", lambda one: spend_words(one["spendOrderEur"], one["spendDayEur"])),
        ],
    )
