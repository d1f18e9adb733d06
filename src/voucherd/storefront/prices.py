"""Price tags: what a product would cost the caller now, by the same arithmetic as Create. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from voucherd.catalogue.pricing import (
    PLAIN,
    ExchangeRates,
    NoRate,
    PriceTooLarge,
    RateTooOld,
    UnitPrice,
    price_unit,
)
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.terms import PriceTerms, tariff
from voucherd.money import RATE_ONE, BadAmount, to_minor


def face_of(product: ProductVersion, face_value: Decimal | None) -> int | None:
    """The face value to price: the product's own, or for a variable product the one that is asked for."""
    if product.face_minor is not None or face_value is None:
        return product.face_minor
    try:
        minor = to_minor(face_value, product.face_currency)
    except BadAmount:
        return None
    return minor if product.accepts_face(minor) else None


def tag(
    product: ProductVersion,
    face_minor: int | None,
    *,
    payment_currency: str | None,
    rates: Mapping[str, int],
    vat_bp: int,
    exchange: ExchangeRates = PLAIN,
    terms: PriceTerms | None = None,
) -> UnitPrice | None:
    """The price of one code; None where none can be said: no face value, no fresh rate, or too large a price."""
    if face_minor is None:
        return None
    own = tariff(product, terms).price_currency or product.face_currency
    if payment_currency is None:
        # In its own currency no price depends on a rate, so a missing one does not matter.
        rates = dict.fromkeys((own, product.face_currency), RATE_ONE)
    try:
        return price_unit(
            product,
            face_minor,
            payment_currency=payment_currency or own,
            rates=rates,
            vat_bp=vat_bp,
            exchange=exchange,
            terms=terms,
        )
    except (NoRate, RateTooOld, PriceTooLarge):
        return None
