"""Products in the console: found, added, changed, taken off sale; and what each was before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from voucherd.catalogue import product_deeds, store
from voucherd.catalogue import search as register
from voucherd.catalogue.products import (
    PRODUCT_TYPES,
    Face,
    Leaflet,
    Listing,
    ProductChanges,
    ProductDraft,
    draft_of,
)
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.search import ProductSearch
from voucherd.catalogue.store import ProductExists
from voucherd.catalogue.texts import face_text, read_face, read_selling
from voucherd.companies.places import countries
from voucherd.http import HttpError, Response
from voucherd.pages import product_words
from voucherd.pages.console import margins
from voucherd.pages.console.inputs import FILE_ROWS_MAX
from voucherd.pages.console.margins import face_fields, price_words, selling_fields
from voucherd.pages.console.pickers import brand_options, currency_options, with_currency
from voucherd.pages.forms import FormFields, sentence
from voucherd.pages.render import amount, qualified, render, sheet
from voucherd.pages.visit import Visit
from voucherd.sheets.writing import Row
from voucherd.sorting import chosen
from voucherd.storefront import search
from voucherd.vault import lots

PAGE_SIZE: Final = 50
FILE_PAGE: Final = 500
FILE_COLUMNS: Final = ("slug", "name", "brand", "type", "region", "face value", "price", "for sale")
EDITIONS_SHOWN: Final = 25
PATH: Final = "/console/products"

REGIONS: Final = ("ww", "eu")
"""What a product is for besides countries."""
_NEEDED: Final = {"face_value": "write the face value", "price": "write a price, or a fee"}
_ACTIVE: Final = {"yes": True, "no": False}
BRANDS_OFFERED_MAX: Final = 200
_TEXTS: Final = ("name", "brand", "product_type", "category", "redeem_type", "region", "vat_category")
_LEAFLET: Final = ("redeem_instructions", "terms", "image_url")
_FACE: Final = ("face_value", "face_to", "face_currency")
_SELLING: Final = ("price", "price_currency", "fee_times", "fee_plus")
_WRITTEN: Final = (*_TEXTS, *_LEAFLET, *_FACE, *_SELLING, "slug")
_FLAGS: Final = ("async_delivery", "incentive", "active", "allow_loss")
_FIELDS: Final = {"type": "product_type", "face_value_range": "face_to", "fee": "fee_times"}
"""Fields whose rule is told under another name."""
CHOICES: Final[dict[str, Any]] = {
    "types": list(product_words.TYPES.items()),
    "redeem_types": list(product_words.REDEEMED.items()),
    "vat_categories": list(product_words.VAT.items()),
}


async def products(visit: Visit) -> Response:
    """Every product, for sale or not, by slug unless the address says otherwise."""
    query = visit.query
    given, filters = _given(visit), _filters(visit)
    after, before, kept = query.get("after"), query.get("before"), given | {"sort": _sort(visit)}
    async with visit.pool.acquire() as conn:
        found = await register.page_of_products(
            conn, filters, after=after, before=before, size=PAGE_SIZE + 1, sort=kept["sort"]
        )
        brands = await store.list_brands(conn)
        categories = await register.categories(conn)
    few = len(brands) <= BRANDS_OFFERED_MAX
    backwards = bool(before) and not after
    more = len(found) > PAGE_SIZE
    page = (found[1:] if backwards else found[:-1]) if more else found
    first, last = (page[0].version.slug, page[-1].version.slug) if page else ("", "")
    earlier = more if backwards else bool(after)
    later = bool(before) if backwards else more
    return render(
        "console/products.html",
        visit,
        rows=[(one, _kind(one), face_text(one.version, amount), price_words(one.version)) for one in page],
        given=given,
        brands=[
            ("", "Every brand"),
            # A choice of thousands is none: then the search finds them, by the same name.
            *((one.slug, one.name) for one in brands if few or one.slug == given["brand"]),
        ],
        categories=[("", "Every category"), *((one, one) for one in categories)],
        types=[("", "Every type"), *product_words.TYPES.items()],
        sort=kept["sort"],
        before=qualified(PATH, kept | {"before": first}) if earlier and page else "",
        after=qualified(PATH, kept | {"after": last}) if later and page else "",
        filtered=any(given.values()),
    )


def _kind(one: Listing) -> str:
    """The type of a product and where it can be redeemed, in words."""
    version = one.version
    return f"{product_words.TYPES[version.product_type]} · {product_words.region_words(version.region)}"


def _given(visit: Visit) -> dict[str, str]:
    names = ("q", "brand", "category", "type", "active")
    return {name: visit.query.get(name)[: search.QUERY_CHARS_MAX] for name in names}


def _sort(visit: Visit) -> str:
    return chosen(visit.query.get("sort"), register.SORTS, "slug")


def _filters(visit: Visit) -> ProductSearch:
    """Which products the address asks for."""
    given = _given(visit)
    words = search.terms(given["q"])[: search.TERMS_MAX]
    return ProductSearch(
        words=words,
        query=search.prefix_query(words),
        brand_slug=given["brand"] or None,
        category=given["category"] or None,
        product_type=given["type"] if given["type"] in PRODUCT_TYPES else None,
        active=_ACTIVE.get(given["active"]),
    )


async def products_file(visit: Visit) -> Response:
    """The same products as a file; the one that an import reads is another."""
    return await sheet(visit, "products", FILE_COLUMNS, _file_rows(visit, _filters(visit)), title="Products")


async def _file_rows(visit: Visit, filters: ProductSearch) -> AsyncIterator[list[Row]]:
    after, sort = "", _sort(visit)
    for _ in range(FILE_ROWS_MAX // FILE_PAGE):
        found = await visit.look(register.page_of_products, filters, after=after, size=FILE_PAGE, sort=sort)
        yield [
            (
                *(one.version.slug, one.version.name, one.version.brand_name, one.version.product_type),
                *(one.version.region, face_text(one.version), str(price_words(one.version)), one.active),
            )
            for one in found
        ]
        if len(found) < FILE_PAGE:
            return
        after = found[-1].version.slug


async def product(visit: Visit) -> Response:
    """One product: price, stock, offers, and what it was before."""
    async with visit.pool.acquire() as conn:
        listing = await register.find(conn, visit.parameters["slug"])
        version = listing.version
        leaflet = (await store.leaflets(conn, [version.version_id]))[version.version_id]
        editions = await register.editions(conn, version.product_id, size=EDITIONS_SHOWN + 1)
        shelves = await lots.on_shelf(conn, version.product_id, visit.state)
        costs = await margins.costs(conn, version, visit.state)
    return render(
        "console/product.html",
        visit,
        listing=listing,
        leaflet=leaflet,
        face=face_text(version, amount),
        price=price_words(version),
        type=product_words.TYPES[version.product_type],
        redeemed=product_words.REDEEMED[version.redeem_type],
        vat=product_words.VAT[version.vat_category],
        region=product_words.region_words(version.region),
        editions=_history([(one, price_words(one.version)) for one in editions[:EDITIONS_SHOWN]]),
        more_editions=len(editions) > EDITIONS_SHOWN,
        shelves=shelves,
        costs=costs,
        guard=margins.guard_words(visit.services.settings.margin_min_bp),
    )


def _history(editions: list[tuple[register.Edition, str]]) -> list[dict[str, Any]]:
    """Each edition with what is different from the one before it."""
    rows: list[dict[str, Any]] = []
    for at, (edition, price) in enumerate(editions):
        older = editions[at + 1][0].version if at + 1 < len(editions) else None
        new = edition.version
        changed = [] if older is None else margins.differences(older, new)
        rows.append(
            {"since": edition.since, "price": price, "face": face_text(new, amount), "changed": changed}
        )
    return rows


async def new_page(visit: Visit) -> Response:
    """The form for a product to be."""
    usual = {"vat_category": "multi_purpose", "region": "ww", "active": "yes", "face_currency": "EUR"}
    return await _form(visit, dict.fromkeys(_WRITTEN, "") | usual | {"price_currency": "EUR"})


async def add(visit: Visit) -> Response:
    """Add a product."""
    form = visit.form
    try:
        draft = ProductDraft(slug=form.get("slug"), **_read(form))
        await visit.do(product_deeds.add, draft, active="active" in form)
    except BadProduct as bad:
        return await _again(visit, bad)
    except ProductExists:
        visit.problems["slug"] = "There is a product with this slug already."
        return await _again(visit)
    return visit.go(f"{PATH}/{draft.slug}", f"{draft.name} was added.")


async def edit_page(visit: Visit) -> Response:
    """The form with the product as it stands."""
    async with visit.pool.acquire() as conn:
        listing = await register.find(conn, visit.parameters["slug"])
        version_id = listing.version.version_id
        leaflet = (await store.leaflets(conn, [version_id]))[version_id]
    return await _form(visit, _values(listing, leaflet), listing.version.slug)


async def edit(visit: Visit) -> Response:
    """Change a product; orders made before keep their prices."""
    slug = (await visit.look(register.find, visit.parameters["slug"])).version.slug
    form = visit.form
    try:
        changes = ProductChanges(**_read(form), active="active" in form, allow_loss="allow_loss" in form)
        await visit.do(product_deeds.change, slug, changes)
    except BadProduct as bad:
        return await _again(visit, bad, slug)
    return visit.go(f"{PATH}/{slug}", "Saved. Orders that were made before keep their prices.")


async def activate(visit: Visit) -> Response:
    """Put a product on sale, or take it off."""
    slug = (await visit.look(register.find, visit.parameters["slug"])).version.slug
    active = _ACTIVE.get(visit.form.get("active"))
    if active is None:
        raise HttpError(400, "bad_active", "Say whether it is for sale.")
    await visit.do(product_deeds.change, slug, ProductChanges(active=active))
    return visit.go(
        f"{PATH}/{slug}",
        "It is for sale now." if active else "It is not for sale any more. What is paid for is delivered.",
    )


def _read(form: FormFields) -> dict[str, Any]:
    """The fields that a new product and a change have in common."""
    return {
        **{name: form.get(name) for name in _TEXTS},
        "face": _face(form),
        "selling": read_selling(
            with_currency(form.get("price"), form.get("price_currency")) or None, _fee(form) or None
        ),
        "async_delivery": "async_delivery" in form,
        "incentive": "incentive" in form,
        # Without the carriage returns that browsers send.
        **{name: form.get(name).replace("\r\n", "\n") for name in _LEAFLET},
    }


def _face(form: FormFields) -> Face:
    """The face value, or the range of them up to the second amount."""
    low, high, currency = (form.get(name) for name in _FACE)
    if high and low:
        return read_face(None, f"{low}-{with_currency(high, currency)}")
    return read_face(with_currency(low, currency) or None, form.get("face_value_range") or None)


def _fee(form: FormFields) -> str:
    times, plus = form.get("fee_times"), form.get("fee_plus")
    return f"{times}+{plus}" if times and plus else times or form.get("fee")


async def _form(visit: Visit, values: dict[str, str], slug: str = "") -> Response:
    async with visit.pool.acquire() as conn:
        brands = [(name, name) for _, name in await brand_options(conn)]
        categories = [(one, one) for one in await register.categories(conn)]
    return render(
        "console/product_form.html",
        visit,
        values=values,
        slug=slug,
        brands=brands,
        categories=categories,
        regions=[
            *((one, product_words.region_words(one)) for one in REGIONS),
            *((code.lower(), name) for code, name in countries().items()),
        ],
        currencies=currency_options(["EUR"]),
        **CHOICES,
    )


async def _again(visit: Visit, bad: BadProduct | None = None, slug: str = "") -> Response:
    """The form as it was sent, with its problem."""
    if bad is not None:
        field = bad.field.replace("-", "_")
        rule = _NEEDED.get(field, bad.rule) if bad.rule.startswith("is needed") else bad.rule
        visit.problems[_FIELDS.get(field, field)] = sentence(rule)
    values = {name: visit.form.get(name) for name in _WRITTEN}
    return await _form(visit, values | {name: "yes" if name in visit.form else "" for name in _FLAGS}, slug)


def _values(listing: Listing, leaflet: Leaflet) -> dict[str, str]:
    draft = draft_of(listing.version, leaflet)
    values = {name: str(getattr(draft, name)) for name in ("slug", *_TEXTS, *_LEAFLET)}
    flags = (draft.async_delivery, draft.incentive, listing.active, listing.allow_loss)
    values |= {name: "yes" if on else "" for name, on in zip(_FLAGS, flags, strict=True)}
    return values | face_fields(draft) | selling_fields(draft)
