"""What a price is made of, as every page of the portal shows it: discount, exchange rate and VAT."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from msgspec import Struct

from voucherd.catalogue import vat_store
from voucherd.catalogue.pricing import BP_ONE, UnitPrice
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.vat import EU_COUNTRIES
from voucherd.money import Money, digits, divide_half_up, plain, worth
from voucherd.pages.visit import Visit
from voucherd.storefront.service import ShownProduct
from voucherd.words import Words, phrase

RATE_SHOWN_DIGITS: Final = 4
DISCOUNT_LEAST_BP: Final = 50
"""A discount that is smaller than half a percent is not worth a word."""


class Price(Struct, frozen=True):
    """What one code costs."""

    net: Money
    vat: Money
    discount: int = 0
    """How far it is below the face value, VAT included, in percent."""

    @property
    def total(self) -> Money:
        """With VAT: what is paid."""
        return Money(self.net.minor + self.vat.minor, self.net.currency)


def priced(shown: ShownProduct, currency: str) -> Price | None:
    """What one code costs the visitor: in his currency if it can be converted; None where one picks the value."""
    unit, paid_in = shown.paid, currency
    if unit is None:
        unit, paid_in = shown.own, "" if shown.own is None else shown.own.price_currency
    if unit is None:
        return None
    return Price(
        Money(unit.pay_price_minor, paid_in),
        Money(unit.pay_vat_minor, paid_in),
        discount(shown.version, unit),
    )


def discount(version: ProductVersion, unit: UnitPrice) -> int:
    """How far the price with its VAT is below the face value, in whole percent; 0 where it is not."""
    converted = version.face_currency != unit.price_currency
    if converted and unit.face_fx_e8 == unit.price_fx_e8:
        return 0  # Nobody has looked up the rates of these two.
    face = worth(unit.face_minor, version.face_currency, unit.face_fx_e8)
    price = worth(unit.price_minor + unit.vat_minor, unit.price_currency, unit.price_fx_e8)
    below_bp = (face - price) * BP_ONE // face if face else 0
    return divide_half_up(below_bp, BP_ONE // 100) if below_bp >= DISCOUNT_LEAST_BP else 0


def rates_of(units: Iterable[UnitPrice], currency: str) -> list[tuple[str, str]]:
    """About what one unit of each price's currency costs in the currency of payment, the operator's margin included."""
    largest: dict[str, UnitPrice] = {}
    for unit in units:
        known = largest.get(unit.price_currency)
        if unit.price_minor and (known is None or known.price_minor < unit.price_minor):
            largest[unit.price_currency] = unit  # The larger the price, the less it is rounded.
    return [(own, _rate(unit, currency)) for own, unit in sorted(largest.items()) if own != currency]


def _rate(unit: UnitPrice, currency: str) -> str:
    paid = unit.pay_price_minor * 10 ** (digits(unit.price_currency) + RATE_SHOWN_DIGITS)
    rate = divide_half_up(paid, unit.price_minor * 10 ** digits(currency))
    return plain(rate, RATE_SHOWN_DIGITS)


class Vat(Struct, frozen=True):
    """The VAT rate of a company, and why it is that."""

    bp: int | None
    """None where nobody knows the rate."""
    reason: str = ""
    """`reverse_charge` or `outside`, where no VAT is charged."""

    @property
    def percent(self) -> str:
        """The rate, such as 21% or 5.5%."""
        whole, part = divmod(self.bp or 0, 100)
        return f"{whole}.{part:02d}".rstrip("0").rstrip(".") + "%"


async def vat_of(visit: Visit, day: date) -> Vat:
    """The VAT rate that the company pays on a day."""
    company, operator = visit.company, visit.services.settings.operator_country
    if company.country not in EU_COUNTRIES:
        return Vat(0, "outside")
    if company.vat_number and company.country != operator:
        return Vat(0, "reverse_charge")
    rate = await visit.look(vat_store.rate_on, company.country, day)
    return Vat(rate)


_NOTES: Final = {
    "reverse_charge": phrase("No VAT is charged: your company accounts for it itself (reverse charge)."),
    "outside": phrase("No VAT is charged: your company is outside the EU."),
    "exempt": phrase("Free of VAT."),
    "later": phrase("No VAT now: it is due when the code is redeemed (multi-purpose voucher)."),
    "multi_purpose": phrase(
        "VAT of {percent} on the fee alone. The rest is taxed when the code is redeemed (multi-purpose voucher)."
    ),
    "single_purpose": phrase("VAT of {percent} on the whole price (single-purpose voucher)."),
}


def vat_note(speak: Words, vat: Vat, category: str, turnover_minor: int) -> str:
    """Why a price has this VAT, in plain words; empty where nobody knows the rate."""
    why = "later" if category == "multi_purpose" and not turnover_minor else category
    if why not in ("later", "exempt") and vat.bp is None:
        return ""
    return speak.text(_NOTES[vat.reason or why], percent=speak.decimal(vat.percent))
