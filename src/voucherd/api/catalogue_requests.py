"""Reading what clients ask of the catalogue: filters, orders, cursors (OP-25)."""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal
from typing import Final

import msgspec
from msgspec import Struct

from voucherd.api import query
from voucherd.api.query import Given, PageQuery
from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, REGION_LENGTH_MAX
from voucherd.catalogue.rules import SLUG_LENGTH_MAX, is_slug
from voucherd.http import Request
from voucherd.orders.rules.refusals import BadInput
from voucherd.storefront import search
from voucherd.storefront.listing import Order, ProductFilters
from voucherd.storefront.sorting import PRODUCT_ID_MAX, Place, Sort

SORTS: Final = tuple(sort.value for sort in Sort)
DIRECTIONS: Final = ("asc", "desc")
NOW: Final = "now"
"""As `since` of the feed: from here on."""

CURSOR_CHARS_MAX: Final = 2_000
_CHANGE_MAX: Final = 2**63 - 1


class ProductListQuery(Struct, frozen=True):
    """A part of the list of products."""

    payment_currency: str | None
    filters: ProductFilters
    order: Order
    page: PageQuery
    after: Place | None


class ProductQuery(Struct, frozen=True):
    """How one product is to be shown."""

    payment_currency: str | None
    face_value: Decimal | None


class ChangeQuery(Struct, frozen=True):
    """Behind which change the feed is to begin (None: at its end), and how much of it."""

    payment_currency: str | None
    after: int | None
    size: int


def find_all(request: Request) -> ProductListQuery:
    """What a list of products is asked for."""
    given = query.read(request)
    sort = query.choice(given, "sortBy", SORTS)
    direction = query.choice(given, "sortOrder", DIRECTIONS)
    order = Order(Sort.NAME if sort is None else Sort(sort), direction == "desc")
    page = query.page(given)
    after = read_place(page.cursor, order) if page.cursor else None
    return ProductListQuery(_payment_currency(given), _filters(given), order, page, after)


def find(request: Request) -> ProductQuery:
    """What one product is asked for."""
    given = query.read(request)
    return ProductQuery(_payment_currency(given), _amount(given, "faceValue"))


def changes(request: Request) -> ChangeQuery:
    """What the feed of changes is asked for."""
    given = query.read(request)
    size = query.whole(given, "limit", query.PAGE_SIZE, query.PAGE_SIZE_MAX)
    since = query.one(given, "since")
    after = None if since == NOW else read_number(since) if since else 0
    return ChangeQuery(_payment_currency(given), after, size)


def brands(request: Request) -> tuple[PageQuery, str | None]:
    """Which part of the list of brands is asked for, and behind which slug."""
    page = query.page(query.read(request))
    if not page.cursor:
        return page, None
    after = _opened("cursor", page.cursor)
    if not is_slug(after):
        raise BadInput("cursor", "is not one of ours")
    return page, after


def _payment_currency(given: Given) -> str | None:
    text = query.one(given, "paymentCurrency")
    return None if text is None else query.currency("paymentCurrency", text)


def _filters(given: Given) -> ProductFilters:
    currency = query.one(given, "currency")
    region = query.one(given, "region")
    return ProductFilters(
        slug=_word(given, "slug"),
        brand_slug=_word(given, "brandSlug"),
        category=_word(given, "category"),
        product_type=query.choice(given, "productType", PRODUCT_TYPES),
        redeem_type=query.choice(given, "redeemType", REDEEM_TYPES),
        region=None if region is None else _slug("region", region.lower(), REGION_LENGTH_MAX),
        currency=None if currency is None else query.currency("currency", currency),
        face_value=_amount(given, "faceValue"),
        variable=_flag(given, "isVariableProduct"),
        stocked=_flag(given, "isStocked"),
        words=_words(given),
    )


def _words(given: Given) -> tuple[str, ...]:
    """The words of a search; an empty one finds everything, like none at all."""
    text = query.one(given, "q") or ""
    if len(text) > search.QUERY_CHARS_MAX:
        raise BadInput("q", f"must be at most {search.QUERY_CHARS_MAX} characters")
    words = search.terms(text)
    if len(words) > search.TERMS_MAX:
        raise BadInput("q", f"must be at most {search.TERMS_MAX} words")
    return tuple(words)


def _word(given: Given, name: str) -> str | None:
    text = query.one(given, name)
    return None if text is None else _slug(name, text)


def _slug(name: str, text: str, most: int = SLUG_LENGTH_MAX) -> str:
    if not 1 <= len(text) <= most:
        raise BadInput(name, f"must be 1 to {most} characters")
    return text


def _flag(given: Given, name: str) -> bool | None:
    word = query.choice(given, name, ("true", "false"))
    return None if word is None else word == "true"


def _amount(given: Given, name: str) -> Decimal | None:
    text = query.one(given, name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,8})?", text):
        raise BadInput(name, "must be a number")
    return Decimal(text)


# ── cursors ───────────────────────────────────────────────────────────────────────────────────────────────


def place_cursor(place: Place, order: Order) -> str:
    """Where a page ended, for the next one of the same order to go on from."""
    direction = DIRECTIONS[order.descending]
    return _closed(
        msgspec.json.encode([order.sort, direction, place.words, str(place.worth), place.product_id])
    )


_decode_place: Final = msgspec.json.Decoder(tuple[str, str, tuple[str, ...], str, int]).decode


def read_place(text: str, order: Order) -> Place:
    """The place that a cursor of ours names, refused for another order than the one it came from."""
    try:
        sort, direction, words, worth, product_id = _decode_place(_opened("cursor", text))
    except msgspec.DecodeError:
        raise BadInput("cursor", "is not one of ours") from None
    known = len(words) == {Sort.NAME: 1, Sort.BRAND: 2}.get(order.sort, 0)
    if (sort, direction) != (order.sort.value, DIRECTIONS[order.descending]):
        raise BadInput("cursor", "is of another sortBy or sortOrder")
    if not known or not re.fullmatch("[0-9]{1,40}", worth) or not 0 <= product_id <= PRODUCT_ID_MAX:
        raise BadInput("cursor", "is not one of ours")
    if any("\x00" in word for word in words):
        raise BadInput("cursor", "is not one of ours")
    return Place(words, int(worth), product_id)


def number_cursor(number: int) -> str:
    """Where a page of the feed ended."""
    return _closed(str(number).encode())


def read_number(text: str) -> int:
    """The change that a cursor of the feed names."""
    plain = _opened("since", text)
    if not re.fullmatch("[0-9]{1,19}", plain) or int(plain) > _CHANGE_MAX:
        raise BadInput("since", "is not one of ours")
    return int(plain)


def slug_cursor(slug: str) -> str:
    """Where a page of brands ended."""
    return _closed(slug.encode())


def _closed(plain: bytes) -> str:
    return base64.urlsafe_b64encode(plain).decode().rstrip("=")


def _opened(name: str, text: str) -> str:
    try:
        if len(text) > CURSOR_CHARS_MAX:
            raise ValueError
        plain = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4)).decode("utf-8")
    except (ValueError, binascii.Error):
        raise BadInput(name, "is not one of ours") from None
    if "\x00" in plain:
        raise BadInput(name, "is not one of ours")
    return plain
