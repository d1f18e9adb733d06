"""The catalogue: what can be bought, at the company's own prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voucherd import clock
from voucherd.catalogue import logos
from voucherd.catalogue.pricing import NoRate
from voucherd.catalogue.products import PRODUCT_TYPES
from voucherd.catalogue.rules import is_slug
from voucherd.http import Response
from voucherd.money import Money
from voucherd.orders import carts
from voucherd.pages import product_words
from voucherd.pages.buyer.balances import purses_of, usual_currency
from voucherd.pages.buyer.prices import priced, rates_of, vat_note, vat_of
from voucherd.pages.forms import whole
from voucherd.pages.render import qualified, render
from voucherd.pages.visit import Visit, missing
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.storefront import search
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.service import Shopper, ShownProduct, StorefrontPage
from voucherd.storefront.sorting import Sort
from voucherd.words import Words, phrase

PAGE_SIZE: Final = 24
PAGE_MAX: Final = 10_000
BRANDS_MAX: Final = 500
SORTS: Final = {
    "name": (phrase("Name"), ProductOrder(Sort.NAME)),
    "brand": (phrase("Brand"), ProductOrder(Sort.BRAND)),
    "cheap": (phrase("Price, lowest first"), ProductOrder(Sort.PRICE)),
    "dear": (phrase("Price, highest first"), ProductOrder(Sort.PRICE, descending=True)),
}


async def catalogue(visit: Visit) -> Response:
    """Everything that is for sale, searched, filtered and sorted."""
    filters, asked = _filters(visit)
    sort = visit.query.get("sort", "name")
    sort = sort if sort in SORTS else "name"
    number = page_number(visit)
    cart = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, cart)
    found = await look(visit, currency, filters, SORTS[sort][1], skip=(number - 1) * PAGE_SIZE)
    brands = await visit.services.storefront.brands(size=BRANDS_MAX, skip=None, after_slug=None)
    asked |= {"sort": "" if sort == "name" else sort}
    vat = await vat_of(visit, clock.now().date())
    return render(
        "buyer/catalogue.html",
        visit,
        found=found,
        logos=await logos_for(visit.services, found.products),
        priced=priced,
        currency=currency,
        rates=rates_of([shown.paid for shown in found.products if shown.paid is not None], currency),
        vat=vat,
        back=qualified("/portal/catalogue", asked | {"page": number if number > 1 else ""}),
        may_buy=visit.may(Right.ORDERS_PLACE),
        asked=asked,
        sort=sort,
        sorts=[(key, visit.words.text(label)) for key, (label, _) in SORTS.items()],
        types=[
            ("", visit.words.text("All types")),
            *((key, visit.words.text(label)) for key, label in product_words.TYPES.items()),
        ],
        brands=[("", visit.words.text("All brands")), *((brand.slug, brand.name) for brand in brands.brands)],
        categories=[("", visit.words.text("All categories"))]
        + [
            (group.slug, f"{group.name} ({group.count})")
            for group in await visit.services.storefront.categories()
        ],
        number=number,
        pages=-(-(found.total or 0) // PAGE_SIZE),
    )


async def product(visit: Visit) -> Response:
    """One product, and how many of it to buy."""
    return await product_page(visit, visit.parameters["slug"])


async def product_page(visit: Visit, slug: str) -> Response:
    """The product's page, again with what was filled in where something was wrong with it."""
    cart = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, cart)
    visitor = Shopper(visit.company, visit.state, currency)
    try:
        shown = await visit.services.storefront.find(visitor, slug)
    except NoRate:
        shown = await visit.services.storefront.find(Shopper(visit.company, visit.state), slug)
    if shown is None:
        raise missing()
    version, unit = shown.version, shown.paid or shown.own
    vat = await vat_of(visit, clock.now().date())
    return render(
        "buyer/product.html",
        visit,
        shown=shown,
        logos=await logos_for(visit.services, [shown]),
        price=priced(shown, currency),
        currency=currency,
        vat=vat,
        rates=rates_of([] if shown.paid is None else [shown.paid], currency),
        vat_percent=vat.percent if vat.bp and unit is not None and unit.vat_minor else "",
        vat_note=""
        if unit is None
        else vat_note(visit.words, vat, version.vat_category, unit.turnover_minor),
        edges=version.faces if version.is_variable else None,
        selling=_selling_now(shown, visit.words),
        type_word=visit.words.text(product_words.TYPES[version.product_type]),
        region=product_words.region_words(version.region, visit.words),
        may_buy=visit.may(Right.ORDERS_PLACE),
    )


def _selling_now(shown: ShownProduct, words: Words) -> str:
    """The values of a variable product that sell now, in words; empty where all of them do, or none."""
    currency = shown.version.face_currency
    ends = [[words.amount(Money(one, currency)) for one in both] for both in shown.some_faces or ()]
    return ", ".join(
        first if first == last else words.text("{first} to {last}", first=first, last=last)
        for first, last in ends
    )


async def logos_for(services: Services, products: Sequence[ShownProduct]) -> dict[str, str]:
    """The names of the logos of these products' brands, by the brand's slug."""
    return await logos.logos_of(services.pool, {shown.version.brand_slug for shown in products})


async def payment_currency(visit: Visit, cart: carts.Cart) -> str:
    """What the visitor pays with: what was chosen, else what there is."""
    return cart.payment_currency or usual_currency(await purses_of(visit))


def page_number(visit: Visit) -> int:
    """Which page of a list is asked for; anything that is no number is the first."""
    return whole(visit.query.get("page"), 1, PAGE_MAX) or 1


def _filters(visit: Visit) -> tuple[ProductFilters, dict[str, str]]:
    """What is looked for; a value that makes no sense is not looked for."""
    text = visit.query.get("q")[: search.QUERY_CHARS_MAX]
    brand, category, kind = (visit.query.get(name) for name in ("brand", "category", "type"))
    asked = {
        "q": text,
        "brand": brand if is_slug(brand) else "",
        "category": category if is_slug(category) else "",
        "type": kind if kind in PRODUCT_TYPES else "",
        "stocked": "yes" if visit.query.get("stocked") == "yes" else "",
    }
    filters = ProductFilters(
        brand_slug=asked["brand"] or None,
        category=asked["category"] or None,
        product_type=asked["type"] or None,
        stocked=True if asked["stocked"] else None,
        words=tuple(search.terms(text)[: search.TERMS_MAX]),
    )
    return filters, asked


async def look(
    visit: Visit,
    currency: str,
    filters: ProductFilters,
    order: ProductOrder,
    *,
    size: int = PAGE_SIZE,
    skip: int | None = None,
) -> StorefrontPage:
    """A page of what is for sale; without an exchange rate everything still has a price of its own."""
    find_all = visit.services.storefront.find_all
    try:
        visitor = Shopper(visit.company, visit.state, currency)
        return await find_all(visitor, filters, order, size=size, skip=skip, after=None)
    except NoRate:
        visitor = Shopper(visit.company, visit.state)
        return await find_all(visitor, filters, order, size=size, skip=skip, after=None)
