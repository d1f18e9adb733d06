"""Price lists: what they say, and whose they are."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from voucherd.catalogue import price_deeds, price_list_files, price_store, store
from voucherd.catalogue.price_deeds import BadListName, BadRow
from voucherd.catalogue.price_list_files import ListedEntry, PriceChange
from voucherd.catalogue.price_store import PriceList, PriceListExists, PriceListInUse
from voucherd.catalogue.products import Listing
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.terms import PriceEntry
from voucherd.db import Connection, transaction
from voucherd.http import Response
from voucherd.money import Money
from voucherd.pages.console.inputs import number_in, optional_day
from voucherd.pages.console.pickers import (
    NotPicked,
    brand_options,
    currency_options,
    pick_brand,
    pick_product,
    product_options,
    shown,
    with_currency,
)
from voucherd.pages.forms import sentence
from voucherd.pages.render import amount, in_pages, number, render, sheet
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen, in_order

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
ROWS_MAX: Final = 5_000
"""Rows of a file: each is looked up by itself, and a browser does not wait for ever."""
SHOWN_MAX: Final = 100
_SORTS: Final[dict[str, Callable[[PriceList], Any]]] = {
    "name": lambda one: one.name.casefold(),
    "prices": lambda one: one.entries,
    "companies": lambda one: len(one.companies),
}
_ENTRY_SORTS: Final[dict[str, Callable[[ListedEntry], Any]]] = {
    "price": lambda one: _ranked(one.entry),
    "from": lambda one: one.valid_from,
    "until": lambda one: one.valid_until,
}
_NAME_SORT: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {"name": lambda row: row["name"].casefold()}


async def price_lists(visit: Visit) -> Response:
    """Every price list, how many prices it has, and whose it is."""
    given, found = await _lists(visit)
    return render(
        "console/prices.html",
        visit,
        lists=found,
        name=visit.form.get("name"),
        given=given,
        sort=given["sort"],
    )


async def lists_file(visit: Visit) -> Response:
    """The same as a file."""
    _, found = await _lists(visit)
    rows: list[list[Value]] = [[one.name, one.entries, ", ".join(one.companies)] for one in found]
    columns = ("list", "prices", "companies")
    return await sheet(visit, "price-lists", columns, in_pages(rows), title="price lists")


async def _lists(visit: Visit) -> tuple[dict[str, str], list[PriceList]]:
    given = {"q": visit.query.get("q")[:100], "sort": chosen(visit.query.get("sort"), _SORTS, "name")}
    found = await visit.look(price_store.lists)
    wanted = given["q"].casefold()
    found = [one for one in found if any(wanted in name.casefold() for name in (one.name, *one.companies))]
    return given, in_order(found, _SORTS, given["sort"])


async def add_list(visit: Visit) -> Response:
    """Add a price list."""
    try:
        number = await visit.do(price_deeds.add_list, visit.form.get("name"))
    except (BadListName, PriceListExists) as refused:
        visit.problems["name"] = str(refused)
        return await price_lists(visit)
    return see_other(f"/console/prices/{number}")


async def price_list(visit: Visit) -> Response:
    """The prices of one list."""
    wanted = visit.query.get("q")[:100].casefold()
    sort = chosen(visit.query.get("sort"), {*_ENTRY_SORTS, *_NAME_SORT}, "")
    async with visit.pool.acquire() as conn:
        found = await _found(conn, visit)
        entries = in_order(await price_store.entries(conn, found.id), _ENTRY_SORTS, sort)
        more = max(len(entries) - SHOWN_MAX, 0)
        # Only to search and to sort by name one has to know what all of them are called.
        entries = entries if wanted or sort.endswith("name") else entries[:SHOWN_MAX]
        products = await store.current(conn, [one.slug for one in entries if one.slug is not None])
        brands, options = await brand_options(conn), await product_options(conn)
    names = dict(brands)
    rows = [
        {
            "slug": one.slug,
            "brand": one.brand_slug,
            "name": _name(one, products, names),
            "says": _said(one),
            "from": one.valid_from,
            "until": one.valid_until,
            "applies": one.slug is None or one.entry.fits(products[one.slug].version),
        }
        for one in entries
    ]
    rows = [row for row in rows if wanted in f"{row['name']} {row['slug'] or ''}".casefold()]
    rows = in_order(rows, _NAME_SORT, sort)
    return render(
        "console/price_list.html",
        visit,
        list=found,
        rows=rows[:SHOWN_MAX],
        wanted=visit.query.get("q"),
        more=len(rows) - SHOWN_MAX if wanted else more,
        sort=sort,
        products=[("", "All products"), *options],
        product=shown(options, visit.form.get("product")),
        brands=[("", "All brands"), *brands],
        brand=shown(brands, visit.form.get("brand")),
        currencies=currency_options(["EUR"]),
    )


def _name(one: ListedEntry, products: Mapping[str, Listing], brands: Mapping[str, str]) -> str:
    """Whose price it is, as people call it."""
    if one.slug is not None:
        return products[one.slug].version.name
    if one.brand_slug is not None:
        return f"All of {brands.get(one.brand_slug, one.brand_slug)}"
    return "All products"


def _ranked(entry: PriceEntry) -> tuple[int, str, int, int]:
    """The place of a price among others: discounts, then fixed prices of each currency, then fees."""
    terms = entry.terms
    if terms.discount_bp:
        return 0, "", terms.discount_bp, 0
    if terms.price_minor is not None:
        return 1, terms.price_currency or "", terms.price_minor, 0
    return 2, entry.face_currency or "", terms.fee_variable_e8 or 0, terms.fee_fixed_minor or 0


def _said(one: ListedEntry) -> str:
    discount, price, fee = one.said
    if discount is not None:
        return f"{discount} off"
    return (
        amount(Money.read(price)) if price is not None else f"Face value × {(fee or '').replace('+', ' + ')}"
    )


async def remove_list(visit: Visit) -> Response:
    """Remove a price list that no company has."""
    found = await visit.look(_found, visit)
    try:
        await visit.do(price_deeds.remove_list, found.name)
    except PriceListInUse as used:
        visit.problems["list"] = str(used)
        return await price_list(visit)
    return visit.go("/console/prices", f"The price list {found.name} is removed.", "note")


async def set_entry(visit: Visit) -> Response:
    """Set what a list's companies pay for a product, a brand, or everything."""
    problems = visit.problems
    wanted = _wanted(visit)
    async with transaction(visit.pool) as tx:
        found = await _found(tx, visit)
        for field, pick in (("product", _slug), ("brand", pick_brand)):
            try:
                if visit.form.get(field):
                    wanted = replace(wanted, **{field: await pick(tx, visit.form.get(field))})
            except NotPicked as wrong:
                problems[field] = str(wrong)
        if not problems:
            try:
                await price_deeds.set_entry(tx, visit.actor, found.name, wanted)
            except BadProduct as bad:
                problems["terms" if bad.field in ("discount", "price", "fee") else bad.field] = sentence(
                    bad.rule
                )
    if problems:
        return await price_list(visit)
    return visit.go(f"/console/prices/{found.id}", "Saved. It holds for new orders.")


async def _slug(conn: Connection, text: str) -> str:
    return (await pick_product(conn, text)).version.slug


async def remove_entry(visit: Visit) -> Response:
    """Take back what a list says of a product, a brand, or everything."""
    wanted = _wanted(visit)
    async with transaction(visit.pool) as tx:
        found = await _found(tx, visit)
        if visit.problems:
            raise missing()
        await price_deeds.remove_entry(tx, visit.actor, found.name, wanted)
    return visit.go(f"/console/prices/{found.id}", "The price is removed.", "note")


async def import_entries(visit: Visit) -> Response:
    """Let a list say what a file says and nothing else; or only try whether it could."""
    trial, count = "trial" in visit.form, 0
    upload = visit.files.get("file")
    found = await visit.look(_found, visit)
    try:
        if upload is None:
            raise SheetRefused("choose a file first")
        rows = await asyncio.to_thread(
            lambda: price_list_files.read_file(list(reading.rows(io.BytesIO(upload.content))))
        )
        if len(rows) > ROWS_MAX:
            raise SheetRefused(f"a file has {number(ROWS_MAX)} rows at most here")
        async with transaction(visit.pool) as tx:
            count = await price_deeds.import_file(tx, visit.actor, found.name, upload.name, rows)
            if trial:
                raise _OnlyTried
    except (SheetRefused, BadRow) as bad:
        visit.problems["file"] = str(bad)
        return await price_list(visit)
    except _OnlyTried:
        visit.tell(
            f"Checked, not imported: it has {count} prices instead of {found.entries}. Nothing was changed.",
            "note",
        )
    else:
        visit.tell(f"{found.name} has {count} prices now.")
    return see_other(f"/console/prices/{found.id}")


async def export_entries(visit: Visit) -> Response:
    """What a list says, as a file that can be imported."""
    async with visit.pool.acquire() as conn:
        found = await _found(conn, visit)
        entries = await price_store.entries(conn, found.id)
    rows = price_list_files.rows(entries)
    return await sheet(visit, f"prices-{found.id}", price_list_files.COLUMNS, in_pages(rows), title="prices")


class _OnlyTried(Exception):
    """Undoes what was tried."""


async def _found(conn: Connection, visit: Visit) -> PriceList:
    number = number_in(visit, "list")
    for one in await price_store.lists(conn):
        if one.id == number:
            return one
    raise missing()


def _wanted(visit: Visit) -> PriceChange:
    """The entry that a form is about."""
    from_, until = visit.read("from", optional_day), visit.read("until", optional_day)
    terms = {name: visit.form.get(name) or None for name in ("product", "brand", "discount", "price", "fee")}
    if terms["price"] is not None:
        terms["price"] = with_currency(terms["price"], visit.form.get("price_currency"))
    return PriceChange(**terms, from_=from_, until=until)
