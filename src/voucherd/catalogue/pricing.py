"""What one code costs: price, VAT and conversion, each rounded once per unit. Pure, integers only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.rules import UNIT_MINOR_MAX
from voucherd.catalogue.terms import PriceTerms, Tariff, tariff
from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.money import DIGITS, RATE_ONE, divide_half_up

BP_ONE: Final = 10_000
"""A share of 100%, in basis points."""

_MINOR_PER_UNIT: Final = {currency: 10**places for currency, places in DIGITS.items()}


class NoRate(LookupError):
    """There is no exchange rate for the currency, so nothing can be priced in it."""

    def __init__(self, currency: str) -> None:
        self.currency = currency
        super().__init__(f"no exchange rate for {currency}")


class NoVatRate(LookupError):
    """There is no VAT rate on the day for a country that has VAT."""

    def __init__(self, country: str) -> None:
        self.country = country
        super().__init__(f"there is no VAT rate for its country, {country}, today")


class PriceTooLarge(ValueError):
    """One unit would cost more than any amount that the service handles."""

    def __init__(self, slug: str, currency: str) -> None:
        self.slug = slug
        self.currency = currency
        super().__init__(f"a unit of {slug} costs too much in {currency}")


class RateTooOld(LookupError):
    """The newest exchange rate of the currency is of a day that is too long ago."""

    def __init__(self, currency: str, day: date) -> None:
        self.currency = currency
        self.day = day
        super().__init__(f"the exchange rate for {currency} is of {day}, which is too old")


class ExchangeRates(Struct, frozen=True):
    """What converting a price depends on beyond the rates themselves."""

    days: Mapping[str, date] = {}
    """The day of each rate; the base has none."""
    oldest: date | None = None
    """No rate of a day before this is used; None uses any."""
    margins: Mapping[tuple[str, str], int] = {}
    """What is added to a price in the first currency that is paid in the second, in basis points."""


PLAIN: Final = ExchangeRates()


class UnitPrice(Struct, frozen=True, cache_hash=True):
    """One code's price: in its own currency, and (`pay_…`) in the currency that it is paid in."""

    face_minor: int
    face_fx_e8: int
    price_currency: str
    price_fx_e8: int
    price_minor: int
    vat_minor: int
    turnover_minor: int
    pay_fx_e8: int
    pay_price_minor: int
    pay_vat_minor: int
    pay_turnover_minor: int


def price_unit(
    product: ProductVersion,
    face_minor: int,
    *,
    payment_currency: str,
    rates: Mapping[str, int],
    vat_bp: int,
    exchange: ExchangeRates = PLAIN,
    terms: PriceTerms | None = None,
) -> UnitPrice:
    """The price of one code, by the exchange rates and the VAT rate of the moment (OP-50, OP-51, OP-52)."""
    selling = tariff(product, terms)
    price_minor = _price(selling, face_minor)
    price_currency = selling.price_currency or product.face_currency
    try:
        face_fx_e8 = rates[product.face_currency]
        price_fx_e8 = rates[price_currency]
        pay_fx_e8 = rates[payment_currency]
    except KeyError as missing:
        raise NoRate(missing.args[0]) from None

    turnover_minor = _turnover(product, selling, price_minor, face_minor)
    vat_minor = divide_half_up(turnover_minor * vat_bp, BP_ONE)
    if payment_currency == price_currency:
        pay_price_minor, pay_vat_minor, pay_turnover_minor = price_minor, vat_minor, turnover_minor
    else:
        _refuse_old(exchange, price_currency, payment_currency)
        margin_bp = exchange.margins.get((price_currency, payment_currency), 0)
        # The margin is part of the one division, so it adds no rounding of its own.
        up = price_fx_e8 * _MINOR_PER_UNIT[payment_currency] * (BP_ONE + margin_bp)
        down = pay_fx_e8 * _MINOR_PER_UNIT[price_currency] * BP_ONE
        pay_price_minor = divide_half_up(price_minor * up, down)
        pay_vat_minor = divide_half_up(vat_minor * up, down)
        pay_turnover_minor = divide_half_up(turnover_minor * up, down)

    if price_minor + vat_minor > UNIT_MINOR_MAX:
        raise PriceTooLarge(product.slug, price_currency)
    if pay_price_minor + pay_vat_minor > UNIT_MINOR_MAX:
        raise PriceTooLarge(product.slug, payment_currency)
    return UnitPrice(
        face_minor,
        face_fx_e8,
        price_currency,
        price_fx_e8,
        price_minor,
        vat_minor,
        turnover_minor,
        pay_fx_e8,
        pay_price_minor,
        pay_vat_minor,
        pay_turnover_minor,
    )


def vat_bp(
    company_country: str, vat_number: str | None, operator_country: str, rates_on_day: Mapping[str, int]
) -> int:
    """The VAT rate that a company pays, in basis points (OP-52).

    It is the rate of the company's own country. A company with a VAT number in another EU country than the
    operator's accounts for the VAT itself (reverse charge): 0. A company outside the EU is outside the scope
    of the EU's VAT, and the service has no data for any other: 0.
    """
    if company_country not in EU_COUNTRIES:
        return 0
    if vat_number and company_country != operator_country:
        return 0
    try:
        return rates_on_day[company_country]
    except KeyError:
        # A member state without a rate is a hole in the data. Selling without VAT would hide it.
        raise NoVatRate(company_country) from None


def _refuse_old(exchange: ExchangeRates, *currencies: str) -> None:
    for currency in currencies:
        day = exchange.days.get(currency)
        if day is not None and exchange.oldest is not None and day < exchange.oldest:
            raise RateTooOld(currency, day)


def oldest_day(now: datetime, age_max: timedelta) -> date | None:
    """The first day whose rates are still used; None, where no age is too high."""
    return (now - age_max).date() if age_max else None


def _price(selling: Tariff, face_minor: int) -> int:
    """The price in its own currency. A discount is part of the one division, so it adds no rounding of its own."""
    share = BP_ONE - selling.discount_bp
    if selling.price_minor is not None:
        return divide_half_up(selling.price_minor * share, BP_ONE)
    assert selling.fee_variable_e8 is not None, "The schema allows nothing without a price or a fee."
    assert selling.fee_fixed_minor is not None, "The schema keeps both parts of a fee together."
    exact_e8 = face_minor * selling.fee_variable_e8 + selling.fee_fixed_minor * RATE_ONE
    return divide_half_up(exact_e8 * share, RATE_ONE * BP_ONE)


def _turnover(product: ProductVersion, selling: Tariff, price_minor: int, face_minor: int) -> int:
    """The amount that VAT is due on (OP-52)."""
    if product.vat_category == "single_purpose":
        return price_minor
    if product.vat_category == "multi_purpose" and selling.price_minor is None:
        return max(price_minor - face_minor, 0)  # A discount is no negative fee.
    return 0
