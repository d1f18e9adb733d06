"""The catalogue's operations: their words, parameters and examples."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from msgspec import Raw

from voucherd.api.catalogue_requests import DIRECTIONS, NOW, SORTS, number_cursor, place_cursor, slug_cursor
from voucherd.api.errors import Op
from voucherd.api.openapi import examples
from voucherd.api.openapi.parameters import query_parameter
from voucherd.api.openapi.schemas import REF
from voucherd.api.openapi.words import Example, Part, Success, Words
from voucherd.api.query import PAGE_MAX, PAGE_SIZE, PAGE_SIZE_MAX
from voucherd.api.wire import catalogue as wire
from voucherd.api.wire.shapes import PageMetadata
from voucherd.api.wire.templates import encode
from voucherd.catalogue.fx import BASE
from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, Leaflet
from voucherd.catalogue.rules import SLUG_LENGTH_MAX
from voucherd.catalogue.store import Rate
from voucherd.money import RATE_ONE
from voucherd.storefront import prices
from voucherd.storefront.groups import Group, category_name
from voucherd.storefront.listing import Order
from voucherd.storefront.search import QUERY_CHARS_MAX, folded
from voucherd.storefront.service import ProductChange, ShownProduct
from voucherd.storefront.sorting import Place

CATALOGUE: Final = "Catalogue"

_BRAND: Final = Group(examples.PRODUCT.brand_slug, examples.PRODUCT.brand_name, 3)
_CATEGORY: Final = Group(examples.PRODUCT.category, category_name(examples.PRODUCT.category), 12)
_USD: Final = Rate("USD", examples.CREATED_AT.date(), 92_319_055, "", examples.CREATED_AT)
_LEAFLET: Final = Leaflet(
    "Show the code at the till of any Brightbean coffee bar.",
    "Not exchangeable for cash.",
    "https://img.example.com/brightbean-25.png",
)


def _shown(payment_currency: str | None = None) -> ShownProduct:
    """The sample product, as a Dutch company sees it."""
    product, rates = examples.PRODUCT, {BASE: RATE_ONE, _USD.currency: _USD.eur_e8}
    own, paid = (
        prices.tag(product, product.face_minor, payment_currency=currency, rates=rates, vat_bp=2100)
        for currency in (None, payment_currency)
    )
    updated_at = examples.CREATED_AT - timedelta(days=3)
    return ShownProduct(product, _LEAFLET, True, True, updated_at, own, paid)


def _product(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.product(_shown(), None)))


def _products(_version: str, _public_url: str) -> Raw:
    shown = [wire.product(_shown("USD"), "USD")]
    return Raw(encode(wire.ProductPage(shown, PageMetadata(PAGE_SIZE, None, 1, 1, 1))))


def _changes(_version: str, _public_url: str) -> Raw:
    shown = _shown()
    told = wire.change(ProductChange("price", shown.updated_at, shown), None)
    return Raw(encode(wire.ProductChangePage([told], wire.FeedMetadata(number_cursor(_CHANGE)))))


def _brand(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.brand(_BRAND)))


def _brands(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.BrandPage([wire.brand(_BRAND)], PageMetadata(PAGE_SIZE, None, 1, 1, 1))))


def _categories(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.CategoryList([wire.category(_CATEGORY)], wire.ListMetadata(1))))


def _rates(_version: str, _public_url: str) -> Raw:
    return Raw(encode(wire.FxRateList([wire.fx_rate(_USD, BASE)], wire.ListMetadata(1))))


_CHANGE: Final = 4_711
_CURRENCY: Final[Part] = {"type": "string", "pattern": "^[A-Za-z]{3}$"}
_SLUG: Final[Part] = {"type": "string", "minLength": 1, "maxLength": SLUG_LENGTH_MAX}
_PLACE: Final = Place((folded(examples.NAME),), 0, 1)


def _named(words: str, example: str) -> Part:
    return {
        "name": "slug",
        "in": "path",
        "required": True,
        "description": words,
        "schema": {"type": "string"},
        "example": example,
    }


def _limit(what: str) -> Part:
    schema = {"type": "integer", "minimum": 1, "maximum": PAGE_SIZE_MAX, "default": PAGE_SIZE}
    return query_parameter("limit", f"The most {what} that a page holds.", schema)


def _pages(what: str, cursor: str) -> tuple[Part, ...]:
    return (
        query_parameter(
            "page",
            "Number of the page. Not together with `cursor`.",
            {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": 1},
        ),
        _limit(what),
        query_parameter(
            "cursor",
            "Where to go on: the `nextCursor` of the last page, or empty to begin a walk.",
            {"type": "string"},
            allowEmptyValue=True,
            example=cursor,
        ),
    )


_PAYMENT_CURRENCY: Final = query_parameter(
    "paymentCurrency",
    "Show prices in this currency, too, as Create would fix them now. Refused if there is no exchange rate for it.",
    _CURRENCY,
    example="USD",
)


def _face_value(words: str) -> Part:
    return query_parameter("faceValue", words, {"type": "number", "minimum": 0})


def _flag(name: str, words: str) -> Part:
    return query_parameter(name, words, {"type": "boolean"})


def _choice(name: str, words: str, choices: tuple[str, ...], default: str | None = None) -> Part:
    schema: dict[str, Any] = {"type": "string", "enum": list(choices)}
    return query_parameter(name, words, schema if default is None else schema | {"default": default})


_FILTERS: Final = (
    query_parameter(
        "q",
        "Only products in whose name, brand or slug, for each of these words, a word begins with it. Capitals and "
        "accents do not matter.",
        {"type": "string", "maxLength": QUERY_CHARS_MAX},
    ),
    query_parameter("slug", "Only the product with this slug.", _SLUG),
    query_parameter("brandSlug", "Only products of the brand with this slug.", _SLUG),
    query_parameter("category", "Only products of this category.", _SLUG),
    _choice("productType", "Only products of this type.", PRODUCT_TYPES),
    _choice("redeemType", "Only products that are redeemed for this.", REDEEM_TYPES),
    query_parameter("region", "Only products for exactly this region.", {"type": "string"}),
    query_parameter("currency", "Only products with a face value in this currency.", _CURRENCY),
    _face_value(
        "Only products that can be had with this face value, in their own currency; variable products are priced "
        "at it."
    ),
    _flag("isVariableProduct", "Only products whose face value the client picks, or only the others."),
    _flag(
        "isStocked",
        "Only products that are in stock, or only the others. What was sold or stocked in the last moments may not "
        "be counted yet; the field of each product is exact.",
    ),
)
_ORDER: Final = (
    _choice(
        "sortBy",
        "Amounts are compared by what they are worth in EUR; a variable product counts with its smallest face "
        "value. `brand` is by brand, then by name.",
        SORTS,
        SORTS[0],
    ),
    _choice(
        "sortOrder", "`asc`: smallest, or A, first. `desc`: the other way round.", DIRECTIONS, DIRECTIONS[0]
    ),
)


def _words(
    id_: str,
    title: str,
    text: str,
    success: tuple[str, str, str, Example],
    parameters: tuple[Part, ...] = (),
) -> Words:
    """An operation with one good answer: its words, its shape, and an example with its own words."""
    words, shape, about, example = success
    answer = Success(200, words, {"example": (about, example)}, schema={"$ref": REF + shape})
    return Words(id_, title, CATALOGUE, text, (answer,), parameters)


WORDS: Final[dict[Op, Words]] = {
    Op.PRODUCTS: _words(
        "findProducts",
        "Find all products",
        "The products that are for sale, with the prices and the VAT of your company, a page at a time. Use `page` for "
        "a list that people leaf through, and `cursor` to walk through all: its cost is the same at any depth; the "
        "totals are left out then. A cursor belongs to its `sortBy` and `sortOrder`.",
        ("A page of products.", "ProductPage", "A page with one product, in USD, too", _products),
        (*_pages("products", place_cursor(_PLACE, Order())), *_FILTERS, _PAYMENT_CURRENCY, *_ORDER),
    ),
    Op.PRODUCT: _words(
        "findProduct",
        "Find product",
        "One product that is for sale.",
        ("The product.", "CatalogueProduct", "A product", _product),
        (
            _named("The product's slug.", examples.SLUG),
            _face_value("The face value at which a variable product is priced, in its own currency."),
            _PAYMENT_CURRENCY,
        ),
    ),
    Op.PRODUCT_CHANGES: _words(
        "findProductChanges",
        "Find product changes",
        "Every change of a product that is for sale, in order and without a gap, each with the product as it stood "
        "after it: `activation` (it came up for sale, or ceased to be: `isActive`), `price`, `content` and, with a "
        "live key, `stock`. Keep `nextCursor` and pass it as `since` of the next call; while nothing is new you get "
        "an empty page and the same cursor.\n\n"
        "Without `since` the feed begins with the first product ever, so that a copy of the catalogue can be made "
        "from it alone. `since=now` gives only the cursor of the present: ask for it first, then walk through Find "
        "all products, then follow the feed. Exchange rates are no changes of products; see Find exchange rates.",
        ("A page of changes.", "ProductChangePage", "A new price", _changes),
        (
            query_parameter(
                "since",
                f"Where to go on: the `nextCursor` of the last call, or `{NOW}`.",
                {"type": "string"},
                allowEmptyValue=True,
                example=number_cursor(_CHANGE - 1),
            ),
            _limit("changes"),
            _PAYMENT_CURRENCY,
        ),
    ),
    Op.BRANDS: _words(
        "findBrands",
        "Find all brands",
        "The brands that have something for sale, by slug, a page at a time.",
        ("A page of brands.", "BrandPage", "A page with one brand", _brands),
        _pages("brands", slug_cursor(_BRAND.slug)),
    ),
    Op.BRAND: _words(
        "findBrand",
        "Find brand",
        "One brand that has something for sale.",
        ("The brand.", "Brand", "A brand", _brand),
        (_named("The brand's slug.", _BRAND.slug),),
    ),
    Op.CATEGORIES: _words(
        "findCategories",
        "Find all categories",
        "The categories that have something for sale, by slug, in one piece.",
        ("All categories.", "CategoryList", "One category", _categories),
    ),
    Op.FX_RATES: _words(
        "findFxRates",
        "Find exchange rates",
        "The exchange rates that Create works with today: what one unit of each currency is worth in EUR.",
        ("All rates.", "FxRateList", "One rate", _rates),
    ),
}
