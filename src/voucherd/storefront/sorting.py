"""The orders in which products can be walked, and the place that a walk has reached. Pure.

Each has an index that is entered where the last page ended. Amounts are compared by their worth in EUR: the index
has those of each currency in order, so the place is turned into one amount for each currency, and a page merges the
currencies. No column holds a worth, so a new exchange rate rewrites nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from voucherd.money import DIGITS, RATE_ONE

DIGITS_MAX: Final = max(DIGITS.values())
BOUND_MAX: Final = 2**62
PRODUCT_ID_MAX: Final = 2**31 - 1


class Sort(StrEnum):
    """What products can be sorted by, as the wire says it."""

    NAME = "name"
    BRAND = "brand"
    PRICE = "price"
    FACE_VALUE = "faceValueAmount"


KEYS: Final = {Sort.NAME: ("name_key",), Sort.BRAND: ("brand_key", "name_key")}
"""The columns of an order by words; the product's id follows in every order."""

AMOUNTS: Final = {
    Sort.PRICE: ("price_currency", "price_minor"),
    Sort.FACE_VALUE: ("face_currency", "face_low"),
}
"""The columns of an order by worth."""


PLACES: Final = {Sort.NAME: "name", Sort.BRAND: "brand", Sort.PRICE: "price", Sort.FACE_VALUE: "face"}
"""The orders as the table of places names them."""


class SortPosition(Struct, frozen=True):
    """Where a page ended: the last product's words, or its worth, and its id."""

    words: tuple[str, ...]
    worth: int
    product_id: int


class SortLane(Struct, frozen=True):
    """One currency of a walk by worth: how much one minor unit is worth, and behind which row to go on."""

    currency: str
    factor: int
    minor: int
    product_id: int


def factor(currency: str, eur_e8: int) -> int:
    """What one minor unit is worth, in a unit that all currencies share."""
    return int(eur_e8 * 10 ** (DIGITS_MAX - DIGITS[currency]))


def lane(
    currency: str, rates: Mapping[str, int], after: SortPosition | None, *, descending: bool
) -> SortLane:
    """Where a walk by worth goes on in one currency. One without a rate is taken for EUR: it must not vanish."""
    each = factor(currency, rates.get(currency, RATE_ONE))
    if after is None:
        return SortLane(currency, each, BOUND_MAX if descending else -1, 0)
    minor, rest = divmod(after.worth, each)
    if rest == 0:
        return SortLane(currency, each, min(minor, BOUND_MAX), after.product_id)
    # The place lies between two amounts of this currency.
    if descending:
        return SortLane(currency, each, min(minor + 1, BOUND_MAX), 0)
    return SortLane(currency, each, min(minor, BOUND_MAX), PRODUCT_ID_MAX)
