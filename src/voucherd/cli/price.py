"""`voucherd price`: price lists, what they say, and whose they are."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, TypeAlias

from typer import Argument, Option

from voucherd.catalogue import price_deeds, price_list_files, price_store, store
from voucherd.catalogue.price_deeds import BadListName
from voucherd.catalogue.price_list_files import ListedEntry, PriceChange
from voucherd.catalogue.price_store import PriceList
from voucherd.catalogue.rules import BadProduct
from voucherd.cli.command import command, noun, usage
from voucherd.cli.context import CommandContext
from voucherd.cli.files import FormatOption, InFile, OutFile, name_of, read_rows, save
from voucherd.cli.output import Document, Output, listed, stacked, table_of
from voucherd.cli.words import CompanyArgument, read_day
from voucherd.companies import store as company_store

app = noun()
lists = noun()
app.add_typer(lists, name="list", help="Price lists, and who has which.", no_args_is_help=True)

ListName: TypeAlias = Annotated[str, Argument(metavar="LIST", help="The price list's name.")]
Slug: TypeAlias = Annotated[
    str | None, Argument(metavar="SLUG", help="A product; without it and --brand, everything.")
]
Brand: TypeAlias = Annotated[str | None, Option("--brand", help="All of a brand, by its slug.")]
From: TypeAlias = Annotated[
    date | None, Option("--from", metavar="DAY", parser=read_day, help="The first day, in UTC.")
]
Until: TypeAlias = Annotated[
    date | None, Option("--until", metavar="DAY", parser=read_day, help="The last day, in UTC.")
]


@command(lists, "add")
async def add(context: CommandContext, name: ListName) -> Output:
    """Add a price list."""
    with usage(BadListName):
        async with context.transaction() as tx:
            await price_deeds.add_list(tx, context.actor, name)
    return Output({"list": name}, f"The price list {name} is there, and says nothing yet.")


@command(lists, "remove")
async def remove(context: CommandContext, name: ListName) -> Output:
    """Remove a price list that no company has, with all that it says."""
    async with context.transaction() as tx:
        await price_deeds.remove_list(tx, context.actor, name)
    return Output({"list": name}, f"The price list {name} is gone.")


@command(lists, "assign")
async def assign(context: CommandContext, name: ListName, company: CompanyArgument) -> Output:
    """Give a company this list, instead of the one that it may have had."""
    async with context.transaction() as tx:
        found = await company_store.find_company(tx, company)
        await price_deeds.assign(tx, context.actor, name, found)
    return Output({"list": name, "company": found.name}, f"{found.name} has the prices of {name}.")


@command(lists, "unassign")
async def unassign(context: CommandContext, company: CompanyArgument) -> Output:
    """Take a company's list away: it pays the catalogue's prices."""
    async with context.transaction() as tx:
        found = await company_store.find_company(tx, company)
        await price_deeds.unassign(tx, context.actor, found)
    return Output({"company": found.name}, f"{found.name} has the catalogue's prices.")


@command(lists, "all")
async def all_(context: CommandContext) -> Output:
    """Show every price list, how much it says, and who has it."""
    async with context.connection() as connection:
        found = await price_store.lists(connection)
    return listed(
        [_list(one) for one in found],
        ["~list", (">entries", "entryCount"), ("~companies", lambda one: ", ".join(one["companies"]))],
        empty="No price lists: everyone pays the catalogue's prices.",
    )


@command(lists, "show")
async def show(context: CommandContext, name: ListName) -> Output:
    """Show what a price list says, and who has it."""
    async with context.connection() as connection:
        await price_store.find_list(connection, name)
        (found,) = [one for one in await price_store.lists(connection) if one.name == name]
        entries = await price_store.entries(connection, found.id)
        products = await store.current(connection, [one.slug for one in entries if one.slug is not None])
    fits = [one.slug is None or one.entry.fits(products[one.slug].version) for one in entries]
    documents = [_document(one) | {"applies": ok} for one, ok in zip(entries, fits, strict=True)]
    view = table_of(
        documents,
        [
            *(("~for", _target), ">discount", ">price", ">fee", "from", "until"),
            ("applies", lambda one: one["applies"] or "no: its face value changed"),
        ],
        empty="No prices yet.",
    )
    owners = f"Companies: {', '.join(found.companies) or 'none'}"
    return Output(_list(found) | {"entries": documents}, stacked(owners, "", view))


@command(app, "set")
async def set_(
    context: CommandContext,
    name: ListName,
    slug: Slug = None,
    brand: Brand = None,
    discount: Annotated[str | None, Option(metavar="2%")] = None,
    price: Annotated[str | None, Option(metavar="'47.50 EUR'")] = None,
    fee: Annotated[str | None, Option(metavar="1.01+0.05")] = None,
    from_: From = None,
    until: Until = None,
) -> Output:
    """Say what a list's companies pay for a product, a brand, or everything."""
    wanted = PriceChange(slug, brand, discount, price, fee, from_, until)
    with usage(BadProduct):
        async with context.transaction() as tx:
            entry = await price_deeds.set_entry(tx, context.actor, name, wanted)
    made = _document(ListedEntry(slug, brand, entry, from_, until))
    words = f"{made['discount']} off" if made["discount"] else f"{made['price'] or made['fee']} for"
    return Output({"list": name} | made, f"{name}: {words} {_target(made)}.")


@command(app, "remove")
async def remove_entry(
    context: CommandContext, name: ListName, slug: Slug = None, brand: Brand = None, from_: From = None
) -> Output:
    """Take back what a list says of a product, a brand, or everything (from that day on)."""
    async with context.transaction() as tx:
        await price_deeds.remove_entry(tx, context.actor, name, PriceChange(slug, brand, from_=from_))
    return Output({"list": name, "product": slug, "brand": brand, "from": from_}, f"{name} says it no more.")


@command(app, "export")
async def export(
    context: CommandContext, name: ListName, file: OutFile, format_: FormatOption = None
) -> Output | None:
    """Write what a price list says to a file that `price import` reads."""
    async with context.connection() as connection:
        entries = await price_store.entries(connection, await price_store.find_list(connection, name))
    return save(context, file, format_, "prices", price_list_files.COLUMNS, price_list_files.rows(entries))


@command(app, "import")
async def import_(context: CommandContext, name: ListName, file: InFile) -> Output:
    """Let a price list say what a file says and nothing else: all of it, or nothing if it has an error."""
    wanted = price_list_files.read_file(await read_rows(context, file))
    async with context.transaction() as tx:
        count = await price_deeds.import_file(tx, context.actor, name, name_of(file), wanted)
    return Output({"list": name, "entries": count}, f"{name} has {count} entries now.")


def _target(one: Document) -> str:
    if one["product"] is not None:
        return str(one["product"])
    return "everything" if one["brand"] is None else f"brand {one['brand']}"


def _document(one: ListedEntry) -> dict[str, Any]:
    said = dict(zip(("discount", "price", "fee"), one.said, strict=True))
    valid = {"from": one.valid_from, "until": one.valid_until}
    return {"product": one.slug, "brand": one.brand_slug, **said, **valid}


def _list(one: PriceList) -> dict[str, Any]:
    return {"list": one.name, "companies": one.companies, "entryCount": one.entries}
