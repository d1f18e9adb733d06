"""Price lists: what they say, and whose they are."""

from __future__ import annotations

import asyncio
import io
from typing import Final

from voucherd.catalogue import price_deeds, price_list_files, price_store, store
from voucherd.catalogue.logos import BrandNotFound
from voucherd.catalogue.price_deeds import BadListName, BadRow
from voucherd.catalogue.price_list_files import PriceChange
from voucherd.catalogue.price_store import PriceList, PriceListExists, PriceListInUse
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import Connection, transaction
from voucherd.http import Response
from voucherd.pages.console.inputs import number_in, optional_day
from voucherd.pages.render import in_pages, render, sheet
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
ROWS_MAX: Final = 5_000
"""Rows of a file: each is looked up by itself, and a browser does not wait for ever."""
SHOWN_MAX: Final = 100


async def price_lists(visit: Visit) -> Response:
    """Every price list, how much it says, and who has it."""
    found = await visit.look(price_store.lists)
    return render("console/prices.html", visit, lists=found, name=visit.form.get("name"))


async def add_list(visit: Visit) -> Response:
    """Add a price list."""
    try:
        number = await visit.do(price_deeds.add_list, visit.form.get("name"))
    except (BadListName, PriceListExists) as refused:
        visit.problems["name"] = str(refused)
        return await price_lists(visit)
    return see_other(f"/console/prices/{number}")


async def price_list(visit: Visit) -> Response:
    """What one price list says."""
    async with visit.pool.acquire() as conn:
        found = await _found(conn, visit)
        entries = await price_store.entries(conn, found.id)
        shown = entries[:SHOWN_MAX]
        products = await store.current(conn, [one.slug for one in shown if one.slug is not None])
    rows = [
        {
            "slug": one.slug,
            "brand": one.brand_slug,
            "says": next(filter(None, one.said), ""),
            "from": one.valid_from,
            "until": one.valid_until,
            "applies": one.slug is None or one.entry.fits(products[one.slug].version),
        }
        for one in shown
    ]
    return render(
        "console/price_list.html",
        visit,
        list=found,
        rows=rows,
        more=len(entries) - len(shown),
    )


async def remove_list(visit: Visit) -> Response:
    """Remove a price list that no company has."""
    found = await visit.look(_found, visit)
    try:
        await visit.do(price_deeds.remove_list, found.name)
    except PriceListInUse as used:
        visit.problems["list"] = str(used)
        return await price_list(visit)
    return visit.go("/console/prices", f"The price list {found.name} is gone.", "note")


async def set_entry(visit: Visit) -> Response:
    """Say what a list's companies pay for a product, a brand, or everything."""
    wanted = _wanted(visit)
    async with transaction(visit.pool) as tx:
        found = await _found(tx, visit)
        if not visit.problems:
            try:
                await price_deeds.set_entry(tx, visit.actor, found.name, wanted)
            except BadProduct as bad:
                visit.problems["terms" if bad.field in ("discount", "price", "fee") else bad.field] = str(bad)
            except UnknownProduct as unknown:
                visit.problems["product"] = str(unknown)
            except BrandNotFound as unknown:
                visit.problems["brand"] = str(unknown)
    if visit.problems:
        return await price_list(visit)
    return visit.go(f"/console/prices/{found.id}", "The list says so from now on.")


async def remove_entry(visit: Visit) -> Response:
    """Take back what a list says of a product, a brand, or everything."""
    wanted = _wanted(visit)
    async with transaction(visit.pool) as tx:
        found = await _found(tx, visit)
        if visit.problems:
            raise missing()
        await price_deeds.remove_entry(tx, visit.actor, found.name, wanted)
    return visit.go(f"/console/prices/{found.id}", "The list says it no more.", "note")


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
            raise SheetRefused(f"a page takes {ROWS_MAX:,} rows at most: `voucherd price import` takes more")
        async with transaction(visit.pool) as tx:
            count = await price_deeds.import_file(tx, visit.actor, found.name, upload.name, rows)
            if trial:
                raise _OnlyTried
    except (SheetRefused, BadRow) as bad:
        visit.problems["file"] = str(bad)
        return await price_list(visit)
    except _OnlyTried:
        visit.tell(
            f"It could be imported: {count} entries instead of {found.entries}. Nothing was changed.", "note"
        )
    else:
        visit.tell(f"{found.name} has {count} entries now.")
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
    return PriceChange(**terms, from_=from_, until=until)
