"""One search for everything in the console: a few hits of each kind, of what the person may see."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote

from voucherd.catalogue import search as product_register
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.search import ProductSearch
from voucherd.companies import store as company_store
from voucherd.companies.store import CompanySearch
from voucherd.db import Connection
from voucherd.http import Response
from voucherd.money import Money
from voucherd.orders import archived, register
from voucherd.orders.register import OrderSearch, Registered
from voucherd.pages.render import number, qualified, render
from voucherd.pages.statuses import STATUSES
from voucherd.pages.visit import Visit, see_other
from voucherd.people import user_store
from voucherd.people.roles import Right
from voucherd.purchasing import records
from voucherd.purchasing.records import ID_DIGITS, ID_DIGITS_MIN, Record
from voucherd.storefront import search as words_of
from voucherd.suppliers import store as supplier_store
from voucherd.vault import serials

PATH: Final = "/console/search"
QUERY_CHARS_MIN: Final = 2
QUERY_CHARS_MAX: Final = 200
HITS_MAX: Final = 8
"""Hits of one kind; the list of the kind finds more."""
TRXS_MAX: Final = 2_000
"""The newest orders whose numbers are compared with a part of one."""
_PART_OF_TRX: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{4,26}")
_DIGITS: Final = re.compile(rf"[0-9a-f]{{{ID_DIGITS_MIN},{ID_DIGITS}}}")


class Hit(NamedTuple):
    """Something that was found, and where it is."""

    title: str
    text: str
    path: str
    exact: bool = False
    """Whether it is what was asked for, and not something like it."""


class HitGroup(NamedTuple):
    """Hits of one kind, and where more of them are."""

    label: str
    hits: list[Hit]
    more: str = ""


Finder: TypeAlias = Callable[[Connection, Visit, str], Awaitable[HitGroup]]


async def search(visit: Visit) -> Response:
    """Everything that fits a text; a single thing of exactly that name is opened at once."""
    text = visit.query.get("q")[:QUERY_CHARS_MAX]
    if visit.may(Right.ORDERS_ALL) and (trx := await _order_of(visit, text)):
        return see_other(f"/console/orders/{trx}")
    groups: list[HitGroup] = []
    if len(text) >= QUERY_CHARS_MIN:
        async with visit.pool.acquire() as conn:
            groups = [await find(conn, visit, text) for right, find in FINDERS if visit.may(right)]
    groups = [one for one in groups if one.hits]
    hits = [hit for group in groups for hit in group.hits]
    if len(hits) == 1 and hits[0].exact:
        return see_other(hits[0].path)
    return render(
        "console/search.html", visit, q=text, found=groups, short=bool(text) and len(text) < QUERY_CHARS_MIN
    )


async def _order_of(visit: Visit, text: str) -> str:
    """The number of the order that is named in full, in the archive, too; none for anything else."""
    order_id = visit.services.ids.order_id(text.upper())
    if order_id is None:
        return ""
    services = visit.services
    found = await archived.read_anywhere(services.pool, services.orders.archive, order_id, VersionCache())
    return "" if found is None else services.ids.trx_unkept(order_id)


async def _orders(conn: Connection, visit: Visit, text: str) -> HitGroup:
    """By reference, or by the last characters of the number as lists show it."""
    filters = OrderSearch(visit.state, reference=text)
    exact = (await register.search(conn, filters, size=HITS_MAX)).rows
    found = exact + [
        one
        for one in await register.newest_like(conn, visit.state, text, HITS_MAX)
        if one.id not in {other.id for other in exact}
    ]
    ending = text.upper().lstrip("…")
    if not found and _PART_OF_TRX.fullmatch(ending):
        found = await _by_ending(conn, visit, ending)
    found = found[:HITS_MAX]
    leading = await register.leading(conn, [one.id for one in found])
    more = qualified("/console/orders", {"q": text}) if exact else ""
    return HitGroup("Orders", [_order_hit(visit, one, leading, text) for one in found], more)


async def _by_ending(conn: Connection, visit: Visit, ending: str) -> list[Registered]:
    newest = await register.newest_ids(conn, visit.state, TRXS_MAX)
    wanted = visit.services.ids.ending_with(ending, newest)
    return await register.these(conn, wanted[:HITS_MAX])


def _order_hit(visit: Visit, one: Registered, leading: dict[int, register.Leading], text: str) -> Hit:
    trx, first = visit.services.ids.trx_unkept(one.id), leading.get(one.id)
    title = one.company if first is None else f"{number(first.amount)} × {first.name}, {one.company}"
    total = Money(one.total_minor, one.payment_currency)
    said = [STATUSES[one.status.name.lower()][0], str(total), f"…{trx[-8:]}"]
    said += [one.reference] if one.reference else []
    return Hit(title, " · ".join(said), f"/console/orders/{trx}", one.reference == text)


async def _companies(conn: Connection, visit: Visit, text: str) -> HitGroup:
    found = await company_store.search_companies(conn, CompanySearch(text), HITS_MAX)
    hits = [
        Hit(
            one.name,
            " · ".join(filter(None, (one.country, one.vat_number, "" if one.active else "inactive"))),
            f"/console/companies/{one.id}",
            text.lower() in (one.name.lower(), (one.vat_number or "").lower()),
        )
        for one in found
    ]
    return HitGroup("Companies", hits, qualified("/console/companies", {"q": text}))


async def _people(conn: Connection, visit: Visit, text: str) -> HitGroup:
    found = await user_store.search_users(conn, text, HITS_MAX)
    ids = {one.company_id for one in found if one.company_id is not None}
    companies = await company_store.companies(conn, ids)
    hits = []
    for one in found:
        exact = one.email == text.lower()
        title = f"{one.name}, {one.email}" if one.name else one.email
        if one.company_id is not None:
            company = companies[one.company_id]
            hits.append(Hit(title, f"{one.role}, {company.name}", f"/console/companies/{company.id}", exact))
        elif visit.may(Right.STAFF_MANAGE):
            hits.append(Hit(title, f"{one.role}, staff", "/console/staff", exact))
    return HitGroup("People", hits)


async def _products(conn: Connection, visit: Visit, text: str) -> HitGroup:
    words = words_of.terms(text)[: words_of.TERMS_MAX]
    if not words:
        return HitGroup("Products", [])
    filters = ProductSearch(words=words, query=words_of.prefix_query(words))
    found = await product_register.page_of_products(conn, filters, size=HITS_MAX)
    hits = [
        Hit(
            one.version.name,
            f"{one.version.brand_name} · {one.version.slug}{'' if one.active else ' · not for sale'}",
            f"/console/products/{one.version.slug}",
            text.lower() in (one.version.slug, one.version.name.lower()),
        )
        for one in found
    ]
    return HitGroup("Products", hits, qualified("/console/products", {"q": text}))


async def _brands(conn: Connection, visit: Visit, text: str) -> HitGroup:
    sought = text.lower()
    found = [
        one for one in await catalogue.list_brands(conn) if sought in one.name.lower() or sought == one.slug
    ]
    hits = [
        Hit(one.name, "", qualified("/console/products", {"brand": one.slug}), sought == one.name.lower())
        for one in found[:HITS_MAX]
    ]
    return HitGroup("Brands", hits)


async def _suppliers(conn: Connection, visit: Visit, text: str) -> HitGroup:
    found = [one for one in await supplier_store.suppliers(conn) if text.lower() in one.name.lower()]
    hits = [
        Hit(
            one.name,
            f"{one.state.word}{'' if one.active else ' · inactive'}",
            f"/console/suppliers/{quote(one.name, safe='')}",
            one.name.lower() == text.lower(),
        )
        for one in found[:HITS_MAX]
    ]
    return HitGroup("Suppliers", hits)


async def _codes(conn: Connection, visit: Visit, text: str) -> HitGroup:
    """By the serial in full: no part of one can be looked for, because none is stored."""
    hits = []
    for one in await serials.find(conn, visit.services.sealer, text):
        if one.order_id is not None and one.line is not None:
            trx = visit.services.ids.trx_unkept(one.order_id)
            said = f"Sold, code {number(one.line + 1)} of order …{trx[-8:]}"
            hits.append(Hit(one.name, said, f"/console/orders/{trx}", True))
        elif visit.may(Right.STOCK_MANAGE):
            said = f"{'Sold' if one.sold else 'In stock'}, lot {one.lot_id}"
            hits.append(Hit(one.name, said, f"/console/lots?slug={one.slug}&sold_out=yes", True))
    return HitGroup("Codes", hits)


async def _purchases(conn: Connection, visit: Visit, text: str) -> HitGroup:
    """By the beginning of our number, or by the supplier's own in full."""
    digits = text.lower().replace("-", "")
    found = await records.find(conn, digits) if _DIGITS.fullmatch(digits) else []
    exact = len(digits) == ID_DIGITS
    hits = [_purchase_hit(one, exact) for one in found]
    hits += [_purchase_hit(one, True) for one in await records.by_external_id(conn, text, HITS_MAX)]
    return HitGroup("Purchases", hits[:HITS_MAX])


def _purchase_hit(one: Record, exact: bool) -> Hit:
    title = f"{number(one.count)} × {one.slug} at {one.supplier}"
    said = f"{str(one.id)[:8]}{f' · {one.external_id}' if one.external_id else ''}"
    return Hit(title, said, f"/console/purchases/{one.id}", exact)


FINDERS: Final[tuple[tuple[Right, Finder], ...]] = (
    (Right.ORDERS_ALL, _orders),
    (Right.ORDERS_ALL, _codes),
    (Right.COMPANIES_VIEW, _companies),
    (Right.COMPANIES_VIEW, _people),
    (Right.CATALOGUE_MANAGE, _products),
    (Right.CATALOGUE_MANAGE, _brands),
    (Right.SUPPLIERS_MANAGE, _suppliers),
    (Right.ATTEMPTS_MANAGE, _purchases),
)
"""What is looked for, by whom."""
