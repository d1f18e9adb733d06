"""What a company pays instead of the catalogue's price, and which entry of its list says so. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from voucherd.catalogue.products import ProductVersion

DISCOUNT_BP_MAX: Final = 9_999


class PriceTerms(Struct, frozen=True):
    """A discount on the catalogue's price, or instead of it a fixed price or a fee."""

    discount_bp: int = 0
    price_minor: int | None = None
    price_currency: str | None = None
    fee_variable_e8: int | None = None
    fee_fixed_minor: int | None = None


class PriceEntry(Struct, frozen=True):
    """What a list says, and the face value (or, of a fee, the currency alone) that it was agreed for."""

    terms: PriceTerms
    face_currency: str | None = None
    face_minor: int | None = None

    def fits(self, product: ProductVersion) -> bool:
        """Whether the product is still what it was when this was agreed; a discount fits anything."""
        if self.face_currency is None:
            return True
        return self.face_currency == product.face_currency and self.face_minor in (None, product.face_minor)


class Tariff(Struct, frozen=True):
    """How a code is sold: at a price or at a fee, and with what discount on it."""

    price_minor: int | None
    price_currency: str | None
    fee_variable_e8: int | None
    fee_fixed_minor: int | None
    discount_bp: int


def agreed(product: ProductVersion, entries: Iterable[PriceEntry]) -> PriceTerms | None:
    """The terms of the first entry that fits; the entries come in the order of their precedence."""
    return next((entry.terms for entry in entries if entry.fits(product)), None)


def tariff(product: ProductVersion, terms: PriceTerms | None) -> Tariff:
    """How the product is sold under these terms, or without any."""
    if terms is not None and not terms.discount_bp:
        return Tariff(
            terms.price_minor, terms.price_currency, terms.fee_variable_e8, terms.fee_fixed_minor, 0
        )
    return Tariff(
        product.price_minor,
        product.price_currency,
        product.fee_variable_e8,
        product.fee_fixed_minor,
        0 if terms is None else terms.discount_bp,
    )
