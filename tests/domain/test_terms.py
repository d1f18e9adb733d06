"""Prices of a company's own: how they are computed, which entry of a list applies, and what is never sold at a loss."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests.domain.test_place import cart, numbers, placed, refused, shop, variable
from tests.handmade import lot, product
from voucherd.catalogue.price_list_files import PriceChange, entry_of
from voucherd.catalogue.pricing import price_unit
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.terms import PriceEntry, PriceTerms, agreed, tariff
from voucherd.ids import State
from voucherd.money import RATE_ONE
from voucherd.orders.model import Order
from voucherd.orders.rules.cart import CartLine, Create, place
from voucherd.orders.rules.refusals import OffersNotAvailable
from voucherd.suppliers.offers import Offer


def fee(variable_e8: int, fixed_minor: int) -> dict[str, Any]:
    """A fee instead of a price."""
    return {
        "price_minor": None,
        "price_currency": None,
        "fee_variable_e8": variable_e8,
        "fee_fixed_minor": fixed_minor,
    }


def unit(
    version: ProductVersion, terms: PriceTerms | None, face_minor: int = 1_000
) -> tuple[int, int, int, str]:
    """Price, VAT turnover and VAT of one code, and the currency, at 21%."""
    rates = {"EUR": RATE_ONE, "USD": 92_319_055}
    made = price_unit(version, face_minor, payment_currency="EUR", rates=rates, vat_bp=2100, terms=terms)
    return made.price_minor, made.turnover_minor, made.vat_minor, made.price_currency


def test_terms_take_the_place_of_the_price_and_its_vat_follows() -> None:
    """OP-72, OP-52: a fixed price has no fee and so no VAT, a fee has; a discount keeps what the product has."""
    fixed = product(1, price_minor=950, vat_category="multi_purpose")
    with_fee = product(2, **fee(102_000_000, 10), vat_category="multi_purpose")
    assert unit(fixed, None) == (950, 0, 0, "EUR")
    assert unit(fixed, PriceTerms(discount_bp=200)) == (931, 0, 0, "EUR")
    assert unit(fixed, PriceTerms(price_minor=940, price_currency="USD")) == (940, 0, 0, "USD")
    assert unit(fixed, PriceTerms(fee_variable_e8=101_000_000, fee_fixed_minor=5)) == (1015, 15, 3, "EUR")
    assert unit(with_fee, None) == (1030, 30, 6, "EUR")
    assert unit(with_fee, PriceTerms(discount_bp=200)) == (1009, 9, 2, "EUR")
    assert unit(with_fee, PriceTerms(price_minor=1005, price_currency="EUR")) == (1005, 0, 0, "EUR")


def test_a_discount_is_rounded_once_together_with_the_fee() -> None:
    """OP-50, OP-72: 5.04 × 1.035 less 10% is 4.69476, so 4.69; 10% off the rounded 5.22 would be 4.70."""
    version = product(1, **fee(103_500_000, 0))
    assert unit(version, PriceTerms(discount_bp=1_000), 504)[0] == 469
    for face_minor in range(500, 600):
        for discount_bp in (1, 250, 3333, 9_999):
            exact_e12 = face_minor * 103_500_000 * (10_000 - discount_bp)
            found = unit(version, PriceTerms(discount_bp=discount_bp), face_minor)[0]
            assert abs(found * 10**12 - exact_e12) * 2 <= 10**12


def test_the_first_entry_that_fits_applies() -> None:
    """OP-72: the product before the brand before everything; one that was agreed for another face value is passed."""
    version = product(1, price_minor=950)
    price = PriceEntry(PriceTerms(price_minor=940, price_currency="EUR"), "EUR", 1_000)
    other = PriceEntry(PriceTerms(price_minor=940, price_currency="EUR"), "EUR", 2_000)
    a_fee = PriceEntry(PriceTerms(fee_variable_e8=RATE_ONE, fee_fixed_minor=10), "JPY")
    brand, everything = PriceEntry(PriceTerms(discount_bp=200)), PriceEntry(PriceTerms(discount_bp=100))

    assert agreed(version, [price, brand, everything]) == price.terms
    assert agreed(version, [other, a_fee, brand, everything]) == brand.terms
    assert agreed(version, [everything]) == everything.terms
    assert agreed(version, [other]) is None
    # A product that came to have a range of face values keeps no fixed price: 500 EUR for the price of 10.
    assert agreed(variable(), [price]) is None
    assert tariff(version, None).price_minor == 950


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (PriceChange("p"), "discount: give one of discount, price and fee"),
        (PriceChange("p", discount="1%", fee="1.01"), "discount: give one of"),
        (PriceChange("p", "b", discount="1%"), "brand: give a product or a brand, not both"),
        (PriceChange("p", discount="100%"), "discount: must be between 0.01% and 99.99%"),
        (PriceChange("p", discount="0%"), "discount: must be between"),
        (PriceChange("p", discount="2"), "discount: must be a share such as '1.5%'"),
        (PriceChange("p", discount="0.005%"), "discount: must be a share"),
        (PriceChange("p", price="0 EUR"), "price: must be more than 0"),
        (PriceChange("p", price="1 XYZ"), "price: 'XYZ' is not a currency"),
        (PriceChange("p", fee="0"), "fee: its multiplier must be more than 0"),
        (PriceChange("p", fee="1+0.001"), "fee: its fixed part must have at most 2 digits"),
        (
            PriceChange("p", discount="1%", from_=date(2026, 2, 1), until=date(2026, 1, 31)),
            "until: must not be before",
        ),
    ],
)
def test_what_can_not_be_agreed_is_refused(wanted: PriceChange, said: str) -> None:
    """OP-72: the rules of a product's own price hold for a company's."""
    with pytest.raises(BadProduct, match="^" + said.replace("(", r"\(").replace("'", ".")):
        entry_of(wanted, product(1))


def test_terms_are_agreed_for_the_product_as_it_is() -> None:
    """OP-72: a price for its face value, a fee for its currency, and neither for a range or a brand where none fits."""
    fixed = product(1)
    assert entry_of(PriceChange("p", price="9.40 usd"), fixed) == PriceEntry(
        PriceTerms(0, 940, "USD"), "EUR", 1_000
    )
    a_fee = PriceEntry(PriceTerms(0, None, None, 101_000_000, 5), "EUR", None)
    assert entry_of(PriceChange("p", fee="1.01+0.05"), fixed) == a_fee
    assert entry_of(PriceChange("p", fee="1.01+0.05"), variable()) == a_fee
    assert entry_of(PriceChange(discount="1.25%"), None) == PriceEntry(PriceTerms(125))
    with pytest.raises(BadProduct, match="must be a fee instead"):
        entry_of(PriceChange("p", price="9.40 EUR"), variable())
    with pytest.raises(BadProduct, match="is for a product"):
        entry_of(PriceChange(brand="b", price="9.40 EUR"), None)


def test_each_company_of_a_batch_pays_its_own_price() -> None:
    """OP-72: carts of one batch that ask for the same, in either order."""
    made = shop(product(1, price_minor=950))
    made.buyers[2] = made.buyers[1]
    made.terms = {(2, 1): PriceTerms(discount_bp=1_000)}
    asked = [Create(company, State.LIVE, 0, (CartLine("gift-1", 2),), "EUR") for company in (1, 2, 1)]
    for commands in (asked, asked[1:]):
        prices = {
            (o.company_id, o.price_minor) for o in place(made, commands, numbers()) if isinstance(o, Order)
        }
        assert prices == {(1, 1900), (2, 1710)}


def test_a_sandbox_cart_of_a_batch_makes_no_live_one_a_bargain() -> None:
    """OP-73: the same product in both states, in either order; only the live one is refused."""
    made = shop(product(1, price_minor=899), margin_min_bp=0)
    made.shelves[1, 1_000, State.SANDBOX] = made.shelves[1, 1_000, State.LIVE]
    asked = [Create(1, state, 0, (CartLine("gift-1", 1),), "EUR") for state in State]
    for commands in (asked, asked[::-1]):
        answers = place(made, commands, numbers())
        refusals = [isinstance(answer, OffersNotAvailable) for answer in answers]
        assert refusals == [command.state is State.LIVE for command in commands]


def loss(**changes: Any) -> OffersNotAvailable:
    """The refusal of one code that costs 9.00 EUR and sells at 8.99."""
    made = shop(product(1, price_minor=899), **{"margin_min_bp": 0} | changes)
    said = refused(made, cart(("gift-1", 1), ("gift-1", 2)))
    assert isinstance(said, OffersNotAvailable)
    return said


def test_nothing_is_sold_below_what_its_best_offer_costs() -> None:
    """OP-73: before VAT and in EUR; equal is no loss, and the operator hears both figures."""
    said = loss()
    assert said.names == ("Gift 1",)
    (one,) = said.losses
    assert (one.slug, one.price, one.cost) == ("gift-1", 899 * 10**9, 900 * 10**9)
    assert placed(shop(product(1, price_minor=900), margin_min_bp=0), cart(("gift-1", 1)))
    # A margin of 5% asks for 9.45, and -100% for nothing.
    assert isinstance(
        refused(shop(product(1, price_minor=944), margin_min_bp=500), cart(("gift-1", 1))),
        OffersNotAvailable,
    )
    assert placed(shop(product(1, price_minor=945), margin_min_bp=500), cart(("gift-1", 1)))
    assert placed(shop(product(1, price_minor=1), margin_min_bp=-10_000), cart(("gift-1", 1)))


def test_the_best_offer_counts_whoever_has_it() -> None:
    """OP-73: a cheaper lot or a cheaper supplier makes it no loss; without any offer nobody knows the cost."""
    shelf = (1, 1_000, int(State.LIVE))
    made = shop(product(1, price_minor=899), margin_min_bp=0)
    made.offers[shelf] = [Offer(1, 5, "P1", 3, 899, "EUR", RATE_ONE)]
    assert placed(made, cart(("gift-1", 1)))
    made = shop(product(1, price_minor=899), margin_min_bp=0)
    made.shelves[shelf].append(lot(8, 1, 1, purchase_minor=500))
    assert placed(made, cart(("gift-1", 3)))
    assert placed(
        shop(product(1, price_minor=1, async_delivery=True), stock=0, margin_min_bp=0), cart(("gift-1", 1))
    )


def test_a_loss_may_be_allowed_and_the_sandbox_has_none() -> None:
    """OP-73: per product; sandbox costs are play."""
    made = shop(product(1, price_minor=899), margin_min_bp=0)
    (listing,) = made.listings.values()
    made.listings["gift-1"] = type(listing)(listing.version, active=True, allow_loss=True)
    assert placed(made, cart(("gift-1", 1)))
    made = shop(product(1, price_minor=899), margin_min_bp=0)
    made.shelves[1, 1_000, State.SANDBOX] = made.shelves[1, 1_000, State.LIVE]
    assert placed(made, Create(1, State.SANDBOX, 0, (CartLine("gift-1", 1),), "EUR"))


def test_a_company_s_own_price_is_guarded_too() -> None:
    """OP-72, OP-73: a discount that goes below cost is refused for that company alone."""
    made = shop(product(1, price_minor=950), margin_min_bp=0)
    made.terms = {(1, 1): PriceTerms(discount_bp=1_000)}
    assert isinstance(refused(made, cart(("gift-1", 1))), OffersNotAvailable)
    made.terms = {(1, 1): PriceTerms(discount_bp=500)}
    assert placed(made, cart(("gift-1", 1)))
