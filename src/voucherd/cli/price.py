"""`voucherd price`: price lists, what they say, and whose they are."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, TypeAlias

import typer

from voucherd.access import store as access
from voucherd.catalogue import agreements, price_changes, price_store, store
from voucherd.catalogue.agreements import Wanted
from voucherd.catalogue.price_store import NAME_CHARS_MAX, ListedEntry, PriceList
from voucherd.catalogue.rules import BadProduct
from voucherd.cli.answers import Answer, Refused, stacked, table
from voucherd.cli.files import FormatOption, InFile, OutFile, read_rows, save
from voucherd.cli.frame import command, noun
from voucherd.cli.office import Office
from voucherd.cli.words import CompanyArgument, read_day

app = noun()
lists = noun()
app.add_typer(lists, name="list", help="Price lists, and who has which.", no_args_is_help=True)

ListName: TypeAlias = Annotated[str, typer.Argument(metavar="LIST", help="The price list's name.")]
Slug: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="SLUG", help="A product; without it and --brand, everything.")
]
Brand: TypeAlias = Annotated[str | None, typer.Option("--brand", help="All of a brand, by its slug.")]
From: TypeAlias = Annotated[
    date | None, typer.Option("--from", metavar="DAY", parser=read_day, help="The first day, in UTC.")
]
Until: TypeAlias = Annotated[
    date | None, typer.Option("--until", metavar="DAY", parser=read_day, help="The last day, in UTC.")
]


@command(lists, "add")
async def add(office: Office, name: ListName) -> Answer:
    """Add a price list."""
    if not 1 <= len(name) <= NAME_CHARS_MAX or name != name.strip() or not name.isprintable():
        raise typer.BadParameter(f"a name is 1 to {NAME_CHARS_MAX} printable characters")
    async with office.transaction() as tx:
        await price_store.add_list(tx, name)
    return Answer({"list": name}, f"The price list {name} is there, and says nothing yet.")


@command(lists, "remove")
async def remove(office: Office, name: ListName) -> Answer:
    """Remove a price list that no company has, with all that it says."""
    async with office.transaction() as tx:
        await price_store.remove_list(tx, name)
    return Answer({"list": name}, f"The price list {name} is gone.")


@command(lists, "assign")
async def assign(office: Office, name: ListName, company: CompanyArgument) -> Answer:
    """Give a company this list, instead of the one that it may have had."""
    async with office.transaction() as tx:
        found = await access.find_company(tx, company)
        await price_store.assign(tx, found.id, await price_store.find_list(tx, name))
    return Answer({"list": name, "company": found.name}, f"{found.name} has the prices of {name}.")


@command(lists, "unassign")
async def unassign(office: Office, company: CompanyArgument) -> Answer:
    """Take a company's list away: it pays the catalogue's prices."""
    async with office.transaction() as tx:
        found = await access.find_company(tx, company)
        if not await price_store.unassign(tx, found.id):
            raise Refused(f"{found.name} has no price list")
    return Answer({"company": found.name}, f"{found.name} has the catalogue's prices.")


@command(lists, "all")
async def all_(office: Office) -> Answer:
    """Show every price list, how much it says, and who has it."""
    async with office.connection() as connection:
        found = await price_store.lists(connection)
    view = table(
        ["~list", ">entries", "~companies"],
        [(one.name, one.entries, ", ".join(one.companies)) for one in found],
        empty="No price lists: everyone pays the catalogue's prices.",
    )
    return Answer([_list(one) for one in found], view)


@command(lists, "show")
async def show(office: Office, name: ListName) -> Answer:
    """Show what a price list says, and who has it."""
    async with office.connection() as connection:
        await price_store.find_list(connection, name)
        (found,) = [one for one in await price_store.lists(connection) if one.name == name]
        entries = await price_store.entries(connection, found.id)
        products = await store.current(connection, [one.slug for one in entries if one.slug is not None])
    fits = [one.slug is None or one.entry.fits(products[one.slug].version) for one in entries]
    view = table(
        ["~for", ">discount", ">price", ">fee", "from", "until", "applies"],
        [
            (_target(one), *_said(one), ok or "no: its face value changed")
            for one, ok in zip(entries, fits, strict=True)
        ],
        empty="It says nothing yet.",
    )
    owners = f"Companies: {', '.join(found.companies) or 'none'}"
    documents = [_document(one) | {"applies": ok} for one, ok in zip(entries, fits, strict=True)]
    return Answer(_list(found) | {"entries": documents}, stacked(owners, "", view))


@command(app, "set")
async def set_(
    office: Office,
    name: ListName,
    slug: Slug = None,
    brand: Brand = None,
    discount: Annotated[str | None, typer.Option("--discount", metavar="2%")] = None,
    price: Annotated[str | None, typer.Option("--price", metavar="'47.50 EUR'")] = None,
    fee: Annotated[str | None, typer.Option("--fee", metavar="1.01+0.05")] = None,
    from_: From = None,
    until: Until = None,
) -> Answer:
    """Say what a list's companies pay for a product, a brand, or everything."""
    wanted = Wanted(slug, brand, discount, price, fee, from_, until)
    async with office.transaction() as tx:
        list_id = await price_store.find_list(tx, name)
        try:
            entry = await price_changes.set_entry(tx, list_id, wanted)
        except BadProduct as bad:
            raise typer.BadParameter(str(bad)) from None
    made = ListedEntry(slug, brand, entry, from_, until)
    off, *instead = _said(made)[:3]
    words = f"{off} off" if off else f"{next(filter(None, instead))} for"
    return Answer({"list": name} | _document(made), f"{name}: {words} {_target(made)}.")


@command(app, "remove")
async def remove_entry(
    office: Office, name: ListName, slug: Slug = None, brand: Brand = None, from_: From = None
) -> Answer:
    """Take back what a list says of a product, a brand, or everything (from that day on)."""
    wanted = Wanted(slug, brand, from_=from_)
    async with office.transaction() as tx:
        list_id = await price_store.find_list(tx, name)
        target, _ = await price_changes.found(tx, wanted)
        if not await price_store.remove_entry(tx, list_id, target):
            raise Refused(f"{name} says nothing of that" + (f" from {from_} on" if from_ else ""))
    return Answer({"list": name, "product": slug, "brand": brand, "from": from_}, f"{name} says it no more.")


@command(app, "export")
async def export(
    office: Office, name: ListName, file: OutFile, format_: FormatOption = None
) -> Answer | None:
    """Write what a price list says to a file that `price import` reads."""
    async with office.connection() as connection:
        entries = await price_store.entries(connection, await price_store.find_list(connection, name))
    rows = [
        (one.slug, one.brand_slug, *_said(one)[:3], *(day and day.isoformat() for day in _said(one)[3:]))
        for one in entries
    ]
    return save(office, file, format_, "prices", agreements.COLUMNS, rows)


@command(app, "import")
async def import_(office: Office, name: ListName, file: InFile) -> Answer:
    """Let a price list say what a file says and nothing else: all of it, or nothing if it has an error."""
    wanted = agreements.read_file(await read_rows(office, file))
    async with office.transaction() as tx:
        list_id = await price_store.find_list(tx, name)
        count = await price_changes.replace_entries(tx, list_id, wanted)
    return Answer({"list": name, "entries": count}, f"{name} has {count} entries now.")


def _target(one: ListedEntry) -> str:
    if one.slug is not None:
        return one.slug
    return "everything" if one.brand_slug is None else f"brand {one.brand_slug}"


def _said(one: ListedEntry) -> tuple[Any, ...]:
    """Discount, price, fee and period, as they are written."""
    terms = one.entry.terms
    texts = agreements.discount_text(terms), agreements.price_text(terms), agreements.fee_text(one.entry)
    return *texts, one.valid_from, one.valid_until


def _document(one: ListedEntry) -> dict[str, Any]:
    discount, price, fee, from_, until = _said(one)
    return {
        "product": one.slug,
        "brand": one.brand_slug,
        "discount": discount,
        "price": price,
        "fee": fee,
        "from": from_,
        "until": until,
    }


def _list(one: PriceList) -> dict[str, Any]:
    return {"list": one.name, "companies": one.companies, "entryCount": one.entries}
