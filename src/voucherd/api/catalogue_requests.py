"""Reading what clients ask of the catalogue: filters, orders, cursors (OP-25)."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec
from msgspec import Struct

from voucherd.api import query
from voucherd.api.query import Given, PageQuery
from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, REGION_LENGTH_MAX
from voucherd.catalogue.rules import SLUG_LENGTH_MAX
from voucherd.http import Request
from voucherd.ids import Identifiers
from voucherd.orders.rules.refusals import BadInput
from voucherd.storefront import search
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.sorting import Sort, SortPosition

DIRECTIONS: Final = ("asc", "desc")
NOW: Final = "now"
"""As `since` of the feed: from here on."""

CURSOR_CHARS_MAX: Final = 2_000


class ProductListQuery(Struct, frozen=True):
    """A part of the list of products."""

    payment_currency: str | None
    filters: ProductFilters
    order: ProductOrder
    page: PageQuery
    after: SortPosition | None


class ProductQuery(Struct, frozen=True):
    """How one product is to be shown."""

    payment_currency: str | None
    face_value: Decimal | None


class ChangeQuery(Struct, frozen=True):
    """Behind which change the feed is to begin (None: at its end), and how much of it."""

    payment_currency: str | None
    after: int | None
    size: int


_PAGES: Final = query.Pages(
    "products",
    "534b420542c05498b39291ec57c9e7aed8f7737cf78132c3f63bd31d14ea95128bdbb1a303d44d4f5589d0ca1a06945c473a3ede7b32374a633a0eda9ba3ef0ef5",
)
_SORT_BY: Final = query.choice(
    "sortBy",
    "Amounts are compared by what they are worth in EUR; a variable product counts with its smallest face value. "
    "`brand` is by brand, then by name.",
    tuple(sort.value for sort in Sort),
    Sort.NAME.value,
)
_SORT_ORDER: Final = query.choice(
    "sortOrder", "`asc`: smallest, or A, first. `desc`: the other way round.", DIRECTIONS, DIRECTIONS[0]
)
_PAYMENT_CURRENCY: Final = query.currency_code(
    "paymentCurrency",
    "Show prices in this currency, too, as Create would fix them now. Refused if there is no exchange rate for it.",
    "USD",
)
_Q: Final = query.text(
    "q",
    "Only products in whose name, brand or slug, for each of these words, a word begins with it. Capitals and "
    "accents do not matter.",
    maxLength=search.QUERY_CHARS_MAX,
)
_SLUG: Final = query.word("slug", "Only the product with this slug.", most=SLUG_LENGTH_MAX)
_BRAND: Final = query.word("brandSlug", "Only products of the brand with this slug.", most=SLUG_LENGTH_MAX)
_CATEGORY: Final = query.word("category", "Only products of this category.", most=SLUG_LENGTH_MAX)
_TYPE: Final = query.choice("productType", "Only products of this type.", PRODUCT_TYPES)
_REDEEM: Final = query.choice("redeemType", "Only products that are redeemed for this.", REDEEM_TYPES)
_REGION: Final = query.text("region", "Only products for exactly this region.")
_CURRENCY: Final = query.currency_code("currency", "Only products with a face value in this currency.")
_FACE_VALUE: Final = query.amount(
    "faceValue",
    "Only products that can be had with this face value, in their own currency; variable products are priced at it.",
)
_VARIABLE: Final = query.flag(
    "isVariableProduct", "Only products whose face value the client picks, or only the others."
)
_STOCKED: Final = query.flag(
    "isStocked",
    "Only products that are in stock, or only the others. What was sold or stocked in the last moments may not be "
    "counted yet; the field of each product is exact.",
)
FIND_ALL: Final = (
    *(*_PAGES.parameters, _Q, _SLUG, _BRAND, _CATEGORY, _TYPE, _REDEEM, _REGION, _CURRENCY, _FACE_VALUE),
    *(_VARIABLE, _STOCKED, _PAYMENT_CURRENCY, _SORT_BY, _SORT_ORDER),
)


def find_all(request: Request, ids: Identifiers) -> ProductListQuery:
    """What a list of products is asked for."""
    given = query.read(request)
    sort, direction = _SORT_BY.read(given), _SORT_ORDER.read(given)
    order = ProductOrder(Sort.NAME if sort is None else Sort(sort), direction == "desc")
    page = _PAGES.read(given)
    after = read_place(ids, page.cursor, order) if page.cursor else None
    return ProductListQuery(_PAYMENT_CURRENCY.read(given), _filters(given), order, page, after)


_PRICED_AT: Final = query.amount(
    "faceValue", "The face value at which a variable product is priced, in its own currency."
)
FIND: Final = (_PRICED_AT, _PAYMENT_CURRENCY)


def find(request: Request) -> ProductQuery:
    """What one product is asked for."""
    given = query.read(request)
    return ProductQuery(_PAYMENT_CURRENCY.read(given), _PRICED_AT.read(given))


_SINCE: Final = query.cursor(
    f"Where to go on: the `nextCursor` of the last call, or `{NOW}`.",
    "80d02f3f3ec97db0a1793134d12146f4a40ac858",
    "since",
)
_LIMIT: Final = query.limit("changes")
CHANGES: Final = (_SINCE, _LIMIT, _PAYMENT_CURRENCY)


def changes(request: Request, ids: Identifiers) -> ChangeQuery:
    """What the feed of changes is asked for."""
    given = query.read(request)
    size, since = _LIMIT.read(given), _SINCE.read(given)
    after = None if since == NOW else read_number(ids, since) if since else 0
    return ChangeQuery(_PAYMENT_CURRENCY.read(given), after, size)


_BRAND_PAGES: Final = query.Pages("brands", "3ee59df3397eeeb89499c7e8bdaf0919cf8c62ab34275ba77394")
BRANDS: Final = _BRAND_PAGES.parameters


def brands(request: Request, ids: Identifiers) -> tuple[PageQuery, str | None]:
    """Which part of the list of brands is asked for, and behind which slug."""
    page = _BRAND_PAGES.read(query.read(request))
    return page, _opened(ids, b"brands", "cursor", page.cursor).decode() if page.cursor else None


def _filters(given: Given) -> ProductFilters:
    region = _REGION.read(given)
    return ProductFilters(
        slug=_SLUG.read(given),
        brand_slug=_BRAND.read(given),
        category=_CATEGORY.read(given),
        product_type=_TYPE.read(given),
        redeem_type=_REDEEM.read(given),
        region=None if region is None else query.short(_REGION.name, region.lower(), REGION_LENGTH_MAX),
        currency=_CURRENCY.read(given),
        face_value=_FACE_VALUE.read(given),
        variable=_VARIABLE.read(given),
        stocked=_STOCKED.read(given),
        words=_words(given),
    )


def _words(given: Given) -> tuple[str, ...]:
    """The words of a search; an empty one finds everything, like none at all."""
    text = _Q.read(given) or ""
    if len(text) > search.QUERY_CHARS_MAX:
        raise BadInput(_Q.name, f"must be at most {search.QUERY_CHARS_MAX} characters")
    words = search.terms(text)
    if len(words) > search.TERMS_MAX:
        raise BadInput(_Q.name, f"must be at most {search.TERMS_MAX} words")
    return tuple(words)


# ── cursors ───────────────────────────────────────────────────────────────────────────────────────────────


def place_cursor(ids: Identifiers, place: SortPosition, order: ProductOrder) -> str:
    """Where a page ended, for the next one of the same order to go on from."""
    direction = DIRECTIONS[order.descending]
    plain = [order.sort, direction, place.words, str(place.worth), place.product_id]
    return ids.cursor(b"products", msgspec.json.encode(plain))


_decode_place: Final = msgspec.json.Decoder(tuple[str, str, tuple[str, ...], str, int]).decode


def read_place(ids: Identifiers, text: str, order: ProductOrder) -> SortPosition:
    """The place that a cursor of ours names, refused for another order than the one it came from."""
    sort, direction, words, worth, product_id = _decode_place(_opened(ids, b"products", "cursor", text))
    if (sort, direction) != (order.sort.value, DIRECTIONS[order.descending]):
        raise BadInput("cursor", "is of another sortBy or sortOrder")
    return SortPosition(words, int(worth), product_id)


def number_cursor(ids: Identifiers, number: int) -> str:
    """Where a page of the feed ended."""
    return ids.cursor(b"changes", str(number).encode())


def read_number(ids: Identifiers, text: str) -> int:
    """The change that a cursor of the feed names."""
    return int(_opened(ids, b"changes", "since", text))


def slug_cursor(ids: Identifiers, slug: str) -> str:
    """Where a page of brands ended."""
    return ids.cursor(b"brands", slug.encode())


def _opened(ids: Identifiers, kind: bytes, name: str, text: str) -> bytes:
    place = ids.cursor_place(kind, text) if len(text) <= CURSOR_CHARS_MAX else None
    if place is None:
        raise BadInput(name, "is not one of ours")
    return place
