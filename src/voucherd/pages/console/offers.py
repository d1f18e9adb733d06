"""What a supplier sells of ours: added, named, removed (OP-158)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final

from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import read_amount
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.money import Money
from voucherd.pages.console.inputs import number_of
from voucherd.pages.console.pickers import NotPicked, pick_product, product_options, shown, with_currency
from voucherd.pages.forms import sentence
from voucherd.pages.render import ROWS_AT_ONCE, qualified, render, sheet
from voucherd.pages.visit import Visit, missing
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen
from voucherd.suppliers import deeds
from voucherd.suppliers import store as supplier_store
from voucherd.suppliers.deeds import BadSku, FaceNotOffered, NotOffered, OfferedAlready
from voucherd.suppliers.store import OFFER_SORTS, OfferRow, OfferSearch, SupplierRow

PAGE_SIZE: Final = 50
PAGES_MAX: Final = 200
STATUSES: Final = [
    ("", "On sale"),
    ("lacking", "Without price or stock"),
    ("removed", "Removed"),
    ("all", "All"),
]
_COLUMNS: Final = ("product", "name", "sku", "face value", "face value to", "currency", "price", "price to",
                   "price currency", "stock", "status", "price asked")  # fmt: skip


async def offers(visit: Visit) -> Response:
    """Everything that a supplier sells of ours, or what is looked for."""
    given, search = _search(visit)
    page = number_of(visit.query.get("page"), PAGES_MAX) or 1
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        found = await supplier_store.search_offers(
            conn, row.id, search, PAGE_SIZE + 1, (page - 1) * PAGE_SIZE
        )
        count = await supplier_store.count_offers(conn, row.id)
    path, more = _path(row), len(found) > PAGE_SIZE and page < PAGES_MAX
    return render(
        "console/offers.html",
        visit,
        row=row,
        offers=[offer_facts(row, one) for one in found[:PAGE_SIZE]],
        given=given,
        filtered=bool(given["q"] or given["status"]),
        sort=given["sort"],
        statuses=STATUSES,
        count=count,
        before=qualified(path, given | {"page": page - 1}) if page > 1 else "",
        after=qualified(path, given | {"page": page + 1}) if more else "",
    )


async def offers_file(visit: Visit) -> Response:
    """The same as a file."""
    _, search = _search(visit)
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])

    async def pages() -> AsyncIterator[list[list[Value]]]:
        offset = 0
        while True:
            found = await visit.look(supplier_store.search_offers, row.id, search, ROWS_AT_ONCE, offset)
            yield [_line(row, one) for one in found]
            offset += len(found)
            if len(found) < ROWS_AT_ONCE:
                return

    return await sheet(visit, f"offers-{row.name}", _COLUMNS, pages(), title="offers")


async def new_page(visit: Visit) -> Response:
    """The form for one more product."""
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        options = await product_options(conn)
    given = visit.form if visit.problems else visit.query
    values = {name: given.get(name) for name in ("product", "face", "sku")}
    values["product"] = shown(options, values["product"])
    return render("console/offer_form.html", visit, row=row, offer=None, products=options, values=values)


async def edit_page(visit: Visit) -> Response:
    """The form of one product that it sells."""
    given = visit.form if visit.problems else visit.query
    face_minor = number_of(given.get("edited" if visit.problems else "face"))
    async with visit.pool.acquire() as conn:
        row = await supplier_store.supplier(conn, visit.parameters["name"])
        found = await _offers_of(conn, row, given.get("product"))
        offer = next((one for one in found if one.face_minor == face_minor), None)
        if offer is None:
            raise missing()
        version = (await pick_product(conn, offer.slug)).version
    facts = offer_facts(row, offer)
    return render(
        "console/offer_form.html",
        visit,
        row=row,
        offer=offer,
        face=facts["face"],
        face_to=facts["face_to"],
        face_text=str(facts["face"]),
        variable=version.face_minor is None,
        values={"sku": visit.form.get("sku") if visit.problems else offer.sku},
    )


async def save(visit: Visit) -> Response:
    """Say that a supplier sells a product, under this name."""
    form, problems = visit.form, visit.problems
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    again = edit_page if form.get("edited") else new_page
    try:
        version = (await visit.look(pick_product, form.get("product"))).version
        text = with_currency(form.get("face"), version.face_currency)
        face = read_amount("face", text) if text else None
        await visit.do(deeds.offer, row.name, version.slug, form.get("sku") or None, face)
    except NotPicked as wrong:
        problems["product"] = str(wrong)
    except BadProduct:
        problems["face"] = "Must be an amount, such as 25."
    except (FaceNotOffered, OfferedAlready) as refused:
        problems["face"] = sentence(refused)
    except BadSku as bad:
        problems["sku"] = sentence(str(bad).removeprefix("sku: "))
    if problems:
        return await again(visit)
    return visit.go(f"/console/suppliers/{row.name}", f"{row.name} sells {version.name}.")


async def remove(visit: Visit) -> Response:
    """Buy a product there no more."""
    form = visit.form
    row = await visit.look(supplier_store.supplier, visit.parameters["name"])
    found = [one for one in await visit.look(_offers_of, row, form.get("product")) if one.active]
    offer = next((one for one in found if str(one.face_minor) == form.get("face")), None)
    if offer is None:
        raise missing()
    # Of a product with one offer all is withdrawn: its face value may have changed since.
    face = None if len(found) == 1 else Money(offer.face_minor, offer.face_currency)
    try:
        await visit.do(deeds.withdraw, row.name, offer.slug, face)
    except (FaceNotOffered, NotOffered) as refused:
        return visit.go(_path(row), sentence(refused), "bad")
    return visit.go(f"/console/suppliers/{row.name}", f"{offer.name} is not bought at {row.name} any more.")


async def _offers_of(conn: Connection, row: SupplierRow, slug: str) -> list[OfferRow]:
    wanted = OfferSearch(slug, active=None)
    found = await supplier_store.search_offers(conn, row.id, wanted, ROWS_AT_ONCE)
    return [one for one in found if one.slug == slug]


def _search(visit: Visit) -> tuple[dict[str, str], OfferSearch]:
    given = {name: visit.query.get(name)[:200] for name in ("q", "status")}
    given["sort"] = chosen(visit.query.get("sort"), OFFER_SORTS, "name")
    active = {"removed": False, "all": None}.get(given["status"], True)
    return given, OfferSearch(given["q"], active, given["status"] == "lacking", given["sort"])


def _path(row: SupplierRow) -> str:
    return f"/console/suppliers/{row.name}/offers"


def offer_facts(row: SupplierRow, offer: OfferRow) -> dict[str, Any]:
    """An offer as pages show it."""
    first = Money(offer.face_minor, offer.face_currency)
    last = None if offer.face_to_minor is None else Money(offer.face_to_minor, offer.face_currency)
    price = price_to = None
    if offer.price_minor is not None and offer.currency is not None:
        price = Money(offer.price_minor, offer.currency)
        price_to = None if offer.price_to_minor is None else Money(offer.price_to_minor, offer.currency)
    kind, standing = _standing(row, offer)
    return {
        "offer": offer,
        "face": first,
        "face_to": last,
        "price": price,
        "price_to": price_to,
        "age": age_words(offer.quoted_at, row.now),
        "kind": kind,
        "standing": standing,
    }


def _line(row: SupplierRow, offer: OfferRow) -> list[Value]:
    one = offer_facts(row, offer)
    amounts = [None if money is None else money.decimal() for money in (one["face"], one["face_to"])]
    prices = [None if money is None else money.decimal() for money in (one["price"], one["price_to"])]
    texts = [offer.slug, offer.name, offer.sku]
    return [*texts, *amounts, offer.face_currency, *prices, offer.currency, offer.stock, one["standing"],
            offer.quoted_at]  # fmt: skip


def _standing(row: SupplierRow, offer: OfferRow) -> tuple[str, str]:
    """Whether the offer can serve now, and why not."""
    if not offer.active:
        return "", "Removed"
    if offer.quoted_at is None:
        return "note", "Price not asked yet"
    if offer.quote_id is None:
        return "bad", "Not sold there"
    if row.now - offer.quoted_at >= timedelta(seconds=row.quote_age_s):
        return "warn", "Price too old"
    return ("good", "Available") if offer.stock else ("warn", "Out of stock")


def age_words(then: datetime | None, now: datetime) -> str:
    """How long ago that was, in its largest unit."""
    if then is None:
        return "–"
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
