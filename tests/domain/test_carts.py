"""Prices of random carts, held against exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voucherd.catalogue.pricing import UnitPrice, price_unit
from voucherd.catalogue.products import FaceRange, Fee, ProductDraft, ProductVersion
from voucherd.money import RATE_ONE, Money, digits

RATES = {"EUR": RATE_ONE, "USD": 92319055, "JPY": 611808, "KWD": 301204819}
CURRENCIES = tuple(RATES)
HALF = Fraction(1, 2)


def version(face: Money | FaceRange, selling: Money | Fee, vat_category: str) -> ProductVersion:
    """A version with these terms and nothing else of note."""
    draft = ProductDraft(
        slug="gift",
        name="Gift",
        brand="Brand",
        product_type="giftcard",
        category="shopping",
        redeem_type="currency",
        region="ww",
        face=face,
        selling=selling,
        vat_category=vat_category,
    )
    described = ("gift", "Gift", "brand", "Brand", "giftcard", "shopping", "currency", "ww", vat_category)
    return ProductVersion(1, 1, *described, False, False, *draft.figures())  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Cart:
    """An order to price: products with a face value each, and how they are paid."""

    items: list[tuple[ProductVersion, int]]
    payment_currency: str
    vat_bp: int
    rates: dict[str, int]


def random_cart(random: Random) -> Cart:
    """One to six items, with rates up to ten times off and amounts over seven orders of magnitude."""
    rates = {currency: e8 * random.randint(100, 10_000) // 1_000 for currency, e8 in RATES.items()}
    rates["EUR"] = RATE_ONE
    items = []
    for _ in range(random.randint(1, 6)):
        face = Money(random.randint(1, 10 ** random.randint(1, 7)), random.choice(CURRENCIES))
        selling: Money | Fee
        if random.random() < 0.4:
            selling = Money(random.randint(1, 10 ** random.randint(1, 7)), random.choice(CURRENCIES))
        else:
            fixed = Money(random.randint(1, 500), face.currency)
            selling = Fee(random.randint(50_000_000, 150_000_000), fixed.decimal())
        category = random.choice(("single_purpose", "multi_purpose", "exempt"))
        items.append((version(face, selling, category), face.minor))
    rate_bp = random.choice((0, 1, 550, 1900, 2100, 2550, 2700))
    return Cart(items, random.choice(CURRENCIES), rate_bp, rates)


def assert_unit_is_exact(cart: Cart, product: ProductVersion, face_minor: int, unit: UnitPrice) -> None:
    """Each amount is the exact value, rounded half up once."""
    price = Fraction(product.price_minor or 0)
    if product.fee_variable_e8 is not None and product.fee_fixed_minor is not None:
        price = Fraction(face_minor * product.fee_variable_e8, RATE_ONE) + product.fee_fixed_minor
    assert unit.price_minor == floor(price + HALF)

    turnover = 0
    if product.vat_category == "single_purpose":
        turnover = unit.price_minor
    elif product.vat_category == "multi_purpose" and product.fee_variable_e8 is not None:
        turnover = max(0, unit.price_minor - face_minor)
    assert unit.turnover_minor == turnover
    assert unit.vat_minor == floor(Fraction(turnover * cart.vat_bp, 10_000) + HALF)

    # What one minor unit of each currency is worth in EUR; their ratio is OP-50's fx(from) ÷ fx(to).
    own_worth = Fraction(cart.rates[unit.price_currency], 10 ** digits(unit.price_currency))
    paid_worth = Fraction(cart.rates[cart.payment_currency], 10 ** digits(cart.payment_currency))
    for own, paid in (
        (unit.price_minor, unit.pay_price_minor),
        (unit.vat_minor, unit.pay_vat_minor),
        (unit.turnover_minor, unit.pay_turnover_minor),
    ):
        assert -HALF < paid - own * own_worth / paid_worth <= HALF
    assert 0 <= unit.pay_vat_minor <= unit.pay_turnover_minor <= unit.pay_price_minor
    assert unit.face_fx_e8 == cart.rates[product.face_currency]
    assert unit.price_fx_e8 == cart.rates[unit.price_currency]
    assert unit.pay_fx_e8 == cart.rates[cart.payment_currency]


def assert_cart_is_exact(cart: Cart) -> int:
    """Every unit is exact; gives back the number of items."""
    for product, face_minor in cart.items:
        unit = price_unit(
            product, face_minor, payment_currency=cart.payment_currency, rates=cart.rates, vat_bp=cart.vat_bp
        )
        assert_unit_is_exact(cart, product, face_minor, unit)
    return len(cart.items)


@pytest.mark.parametrize("carts", [4_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_random_carts_are_exact_to_the_cent(carts: int) -> None:
    """OP-50, OP-51, OP-52: each amount of each unit is the exact value, rounded half up once."""
    items = sum(assert_cart_is_exact(random_cart(Random(seed))) for seed in range(carts))
    assert items > carts * 3


@settings(max_examples=1_000, deadline=None)
@given(st.randoms(use_true_random=False))
def test_carts_that_look_for_the_edges_are_exact_too(random: Random) -> None:
    """OP-50, OP-51, OP-52: the same, with choices that hypothesis makes, and shrinks where one fails."""
    assert_cart_is_exact(random_cart(random))


@settings(max_examples=1_000, deadline=None)
@given(st.data())
def test_a_higher_face_value_never_costs_less(data: st.DataObject) -> None:
    """OP-51: a variable product's price rises with its face value, in every currency."""
    currency, pay = data.draw(st.sampled_from(CURRENCIES)), data.draw(st.sampled_from(CURRENCIES))
    fixed = Money(data.draw(st.integers(1, 1_000)), currency)
    fee = Fee(data.draw(st.integers(1, 2 * RATE_ONE)), fixed.decimal())
    product = version(FaceRange(1, 10**9, currency), fee, "single_purpose")
    low_minor = data.draw(st.integers(1, 10**8))
    high_minor = low_minor + data.draw(st.integers(0, 10**6))

    low = price_unit(product, low_minor, payment_currency=pay, rates=RATES, vat_bp=2100)
    high = price_unit(product, high_minor, payment_currency=pay, rates=RATES, vat_bp=2100)

    assert low.price_minor <= high.price_minor
    assert low.vat_minor <= high.vat_minor
    assert low.pay_price_minor <= high.pay_price_minor
    assert low.pay_vat_minor <= high.pay_vat_minor
