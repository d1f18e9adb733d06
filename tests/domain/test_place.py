"""The decision behind Create, tried without a database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.handmade import DAY, NOW, lot, order, product
from voucherd.catalogue.pricing import ExchangeRates
from voucherd.catalogue.products import Listing, ProductVersion
from voucherd.catalogue.rules import UNIT_MINOR_MAX
from voucherd.ids import State
from voucherd.money import MINOR_MAX, RATE_ONE, Money
from voucherd.orders.model import OFFERS_SHOWN_MAX, Order
from voucherd.orders.rules.cart import Buyer, CartLine, Create, SalesPolicy, Shop, place
from voucherd.orders.rules.refusals import BadInput, CompanyNotActive, Loss, OffersNotAvailable, Refusal
from voucherd.orders.rules.states import Payment, Status
from voucherd.suppliers.offers import Offer
from voucherd.vault.model import Lot

RATES = {"EUR": RATE_ONE, "USD": 92_319_055, "JPY": 611_808, "KWD": 301_204_819}


def shop(*products: ProductVersion, stock: int = 10, **changes: Any) -> Shop:
    """A shop that sells these to company 1, with that many live codes of each."""
    made = Shop(
        now=NOW,
        window=DAY,
        operator_country="NL",
        buyers={1: Buyer(True, "NL", None)},
        listings={one.slug: Listing(one, active=True) for one in products},
        rates=dict(RATES),
        vat_rates={"NL": 2100, "DE": 1900},
    )
    for one in products:
        face_minor = one.face_minor or 2_500
        lots = [lot(one.product_id * 2, one.product_id, stock, face_minor=face_minor)] if stock else []
        made.shelves[one.product_id, face_minor, State.LIVE] = lots
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def cart(*lines: CartLine | tuple[str, int], currency: str = "EUR", reference: str | None = None) -> Create:
    """A cart of company 1."""
    made = [line if isinstance(line, CartLine) else CartLine(*line) for line in lines]
    return Create(1, State.LIVE, 0, tuple(made), currency, reference)


def numbers() -> Callable[[State], int]:
    """Order ids, whose lowest bit is the state."""
    counter = count(1)
    return lambda state: next(counter) * 2 + state


def placed(made: Shop, command: Create) -> Order:
    """The order of a cart that can be sold."""
    (answer,) = place(made, [command], numbers())
    assert isinstance(answer, Order), answer
    return answer


def refused(made: Shop, command: Create) -> Refusal:
    """The refusal of a cart that can't."""
    (answer,) = place(made, [command], numbers())
    assert isinstance(answer, Refusal)
    return answer


def variable(product_id: int = 3, **changes: Any) -> ProductVersion:
    """A product whose buyer picks a face value of 5 to 50 EUR, for 2% and 25 cents."""
    return product(
        product_id,
        face_minor=None,
        face_min_minor=500,
        face_max_minor=5_000,
        price_minor=None,
        price_currency=None,
        fee_variable_e8=102 * RATE_ONE // 100,
        fee_fixed_minor=25,
        vat_category="multi_purpose",
        **changes,
    )


def test_a_cart_becomes_an_order_that_nobody_has_paid() -> None:
    """Contract 1: pricing is fixed, the balance is not debited and no code is delivered."""
    made = placed(shop(product(1), product(2)), cart(("gift-1", 2), ("gift-2", 3), reference="R 1"))

    assert (made.status, made.payment_status) == (Status.CREATED, Payment.UNPAID)
    assert (made.charged_minor, made.held_minor, made.lines_finished) == (0, 0, 0)
    assert (made.created_at, made.expires_at, made.reference) == (NOW, NOW + DAY, "R 1")
    assert [(i.item_no, i.first_line, i.amount) for i in made.items] == [(0, 0, 2), (1, 2, 3)]
    assert (made.lines, made.price_minor) == (5, 5 * 950)
    assert made.vat_minor == 5 * 200  # 21% of 9.50 is 1.995, rounded half up once per unit.


def test_the_order_remembers_the_best_offers_it_was_shown() -> None:
    """OP-58: lot and stock, best first, at most a handful."""
    made = shop(product(1))
    lots = [lot(n * 2, 1, n + 10, cursor=1) for n in range(1, 9)]
    made.shelves[1, 1_000, State.LIVE] = lots

    (item,) = placed(made, cart(("gift-1", 1))).items

    assert item.offers == tuple(n for one in lots[:OFFERS_SHOWN_MAX] for n in (one.id, one.left))


def test_an_inactive_company_may_not_order() -> None:
    """Contract 7: company not active, whatever is in the cart."""
    made = shop(product(1), buyers={1: Buyer(False, "NL", None)})
    assert isinstance(refused(made, cart(("gift-1", 1))), CompanyNotActive)
    assert isinstance(refused(made, cart(("unknown", 1))), CompanyNotActive)


def test_all_that_is_missing_is_named_in_the_order_of_the_cart() -> None:
    """OP-21: names, or the slug where there is none, each once: unknown, withdrawn and out of stock alike."""
    made = shop(product(1), product(2), product(3), product(4, async_delivery=True), stock=5)
    made.listings["gift-2"] = Listing(product(2), active=False)

    refusal = refused(
        made, cart(("gift-3", 6), ("none", 1), ("gift-2", 1), ("gift-1", 5), ("gift-4", 9), ("none", 2))
    )

    assert isinstance(refusal, OffersNotAvailable)
    assert refusal.names == ("Gift 3", "none", "Gift 2")


def test_stock_is_counted_over_all_lines_of_a_cart() -> None:
    """OP-21: two lines of three do not fit a stock of five, whichever way they are written."""
    made = shop(product(1), stock=5)
    assert isinstance(refused(made, cart(("gift-1", 3), ("gift-1", 3))), OffersNotAvailable)
    assert placed(made, cart(("gift-1", 3), ("gift-1", 2))).lines == 5


def test_a_product_that_may_come_later_needs_no_stock() -> None:
    """OP-21, OP-43: only what can't be delivered later must be there now."""
    made = shop(product(1, async_delivery=True), stock=0)
    assert placed(made, cart(("gift-1", 10_000))).lines == 10_000


@pytest.mark.parametrize(
    ("line", "field", "rule"),
    [
        (CartLine("gift-1", 1, Decimal(11)), "items[1].faceValue", "is not allowed for a product with a"),
        (CartLine("gift-1", 1, Decimal("10.001")), "items[1].faceValue", "is not allowed for a product with"),
        (CartLine("gift-1", 1, Decimal(-10)), "items[1].faceValue", "is not allowed for a product with a"),
        (CartLine("gift-3", 1), "items[1].faceValue", "is required for a product with a variable face"),
        (CartLine("gift-3", 1, Decimal("4.99")), "items[1].faceValue", "must be between 5.00 EUR and 50.00"),
        (CartLine("gift-3", 1, Decimal("50.01")), "items[1].faceValue", "must be between 5.00 EUR and 50.00"),
        (CartLine("gift-3", 1, Decimal("9.999")), "items[1].faceValue", "has more than 2 digits after"),
        (CartLine("gift-3", 1, Decimal(-25)), "items[1].faceValue", "must be between"),
    ],
)
def test_a_face_value_that_breaks_a_rule_is_named_with_the_rule(
    line: CartLine, field: str, rule: str
) -> None:
    """OP-10, OP-25: and before anything is said about offers."""
    refusal = refused(shop(product(1), variable()), cart(("unknown", 1), line))
    assert isinstance(refusal, BadInput)
    assert refusal.field == field
    assert rule in refusal.rule


@pytest.mark.parametrize("given", ["10", "10.0", "10.00", "1E+1"])
def test_a_fixed_product_takes_its_own_face_value(given: str) -> None:
    """OP-10: clients that name the value of everything they order get the same order as without."""
    made = shop(product(1))
    named, plain = (placed(made, cart(CartLine("gift-1", 2, face))) for face in (Decimal(given), None))
    assert [item.unit for item in named.items] == [item.unit for item in plain.items]
    assert named.total_minor == plain.total_minor


def test_a_variable_product_costs_its_face_value_and_the_fee() -> None:
    """OP-51, OP-52: 25 EUR × 1.02 + 0.25, and VAT on the fee only."""
    (item,) = placed(shop(variable()), cart(CartLine("gift-3", 2, Decimal("25.00")))).items
    assert (item.unit.face_minor, item.unit.price_minor) == (2_500, 2_575)
    assert (item.unit.turnover_minor, item.unit.vat_minor) == (75, 16)


def test_a_currency_without_a_rate_is_refused_by_name() -> None:
    """OP-50: nothing can be priced in it."""
    refusal = refused(shop(product(1)), cart(("gift-1", 1), currency="THB"))
    assert isinstance(refusal, BadInput)
    assert (refusal.field, refusal.rule) == ("paymentCurrency", "there is no exchange rate for THB")


def test_a_country_without_a_vat_rate_is_refused_by_name_and_its_neighbours_are_priced() -> None:
    """OP-52: a hole in the rates is no reason to sell without VAT, and no other buyer pays for it."""
    made = shop(product(1), buyers={1: Buyer(True, "FI", None), 2: Buyer(True, "NL", None)})
    mine = cart(("gift-1", 1))
    other = replace(mine, company_id=2)

    refusal, order = place(made, [mine, other], numbers())

    assert isinstance(refusal, BadInput)
    assert str(refusal) == "company: there is no VAT rate for its country, FI, today"
    assert isinstance(order, Order)


def test_a_total_beyond_all_amounts_is_refused() -> None:
    """OP-14: no sum grows out of its column."""
    made = shop(product(1, price_minor=UNIT_MINOR_MAX, vat_category="exempt"), stock=20_000)
    most = MINOR_MAX // UNIT_MINOR_MAX
    refusal = refused(made, cart(("gift-1", most + 1)))
    assert isinstance(refusal, BadInput)
    assert refusal.field == "items"
    assert placed(made, cart(("gift-1", most))).price_minor == MINOR_MAX


@pytest.mark.parametrize(
    ("buyer", "vat_minor"),
    [
        (Buyer(True, "NL", None), 200),
        (Buyer(True, "NL", "NL001234567B01"), 200),
        (Buyer(True, "DE", None), 181),
        (Buyer(True, "DE", "DE123456789"), 0),
        (Buyer(True, "US", None), 0),
    ],
)
def test_the_vat_is_that_of_the_buyers_country_or_reverse_charged(buyer: Buyer, vat_minor: int) -> None:
    """OP-52: 0 for a company with a VAT number in another EU country than the operator."""
    made = placed(shop(product(1), buyers={1: buyer}), cart(("gift-1", 1)))
    assert made.vat_minor == vat_minor


def test_a_refused_cart_of_a_batch_leaves_its_neighbours_alone() -> None:
    """OP-48: one answer for each cart, in their order."""
    made = shop(product(1))
    answers = place(made, [cart(("gift-1", 1)), cart(("none", 1)), cart(("gift-1", 10))], numbers())
    assert [type(answer) for answer in answers] == [Order, OffersNotAvailable, Order]


def test_offers_are_shown_cheapest_first_and_of_equal_ones_our_own_shelf_is_first() -> None:
    """OP-58, OP-73: lots have positive numbers and quotes negative ones; the stock of all of them counts."""
    made = shop(product(1))
    shelf = (1, 1_000, State.LIVE)
    made.shelves[shelf] = [lot(4, 1, 3), lot(2, 1, 5, cursor=1)]
    quotes = [(71, 1, 900), (72, 6, 899), (73, 2, 901), (70, 1, 900)]
    made.offers[shelf] = [
        Offer(5, number, "SKU", stock, cost, "EUR", RATE_ONE) for number, stock, cost in quotes
    ]

    (item,) = placed(made, cart(("gift-1", 17))).items

    assert item.offers == (-72, 6, 2, 4, 4, 3, -71, 1, -70, 1)
    assert isinstance(refused(made, cart(("gift-1", 18))), OffersNotAvailable)


@pytest.mark.parametrize(
    ("cost_minor", "margin_min_bp", "sold"),
    [
        (950, 0, True),
        (951, 0, False),
        (904, 500, True),
        (905, 500, False),
        (1_000, -500, True),
        (1_001, -500, False),
        (10**6, -10_000, True),
    ],
)
def test_a_price_is_above_its_cost_by_the_least_margin_or_nothing_is_sold(
    cost_minor: int, margin_min_bp: int, sold: bool
) -> None:
    """OP-73: before VAT, in EUR, and just the margin is enough."""
    made = shop(product(1), product(2), margin_min_bp=margin_min_bp)
    for number in (1, 2):
        made.shelves[number, 1_000, State.LIVE] = [lot(number * 2, number, 9, purchase_minor=cost_minor)]
    command = cart(("gift-2", 1), ("gift-1", 1), ("gift-2", 2))
    if sold:
        assert placed(made, command).lines == 4
        return
    refusal = refused(made, command)
    assert isinstance(refusal, OffersNotAvailable)
    assert refusal.names == ("Gift 2", "Gift 1")
    price, cost = 950 * 10**9, cost_minor * 10**9
    assert refusal.losses == (Loss("gift-2", "Gift 2", price, cost), Loss("gift-1", "Gift 1", price, cost))


def test_prices_are_not_guarded_unless_the_operator_says_so() -> None:
    """OP-71, OP-73: rates of any age, and prices below cost, unless settings say otherwise."""
    assert SalesPolicy(DAY, "NL") == SalesPolicy(DAY, "NL", timedelta(0), -10_000)
    assert (shop().margin_min_bp, shop().exchange) == (-10_000, ExchangeRates())


def test_an_order_is_written_down_whole() -> None:
    """Contract 1: everything that is fixed at Create, for a type, a currency and a state of its own."""
    made = shop(product(1), now=NOW + DAY, window=2 * DAY)
    made.shelves[1, 1_000, State.SANDBOX] = [lot(3, 1, 9)]
    command = Create(1, State.SANDBOX, 1, (CartLine("gift-1", 2),), "USD", "R")

    (answer,) = place(made, [command], numbers())

    assert isinstance(answer, Order)
    (item,) = answer.items
    assert (item.unit.pay_price_minor, item.unit.pay_vat_minor, item.offers) == (1_029, 217, (3, 9))
    assert answer == order(
        3,
        (product(1), item.unit, 2),
        offers=[(3, 9)],
        type=1,
        payment_currency="USD",
        payment_fx_e8=RATES["USD"],
        created_at=NOW + DAY,
        updated_at=NOW + DAY,
        expires_at=NOW + 3 * DAY,
        reference="R",
    )
    assert (answer.price_minor, answer.vat_minor, answer.version) == (2_058, 434, 1)


def test_what_can_not_be_converted_or_is_too_dear_is_refused_by_its_field() -> None:
    """OP-14, OP-25, OP-71: the client learns which of its fields is at fault."""
    old = ExchangeRates({"USD": NOW.date()}, (NOW + DAY).date())
    refusal = refused(shop(product(1), exchange=old), cart(("gift-1", 1), currency="USD"))
    assert isinstance(refusal, BadInput)
    assert (refusal.field, "which is too old" in refusal.rule) == ("paymentCurrency", True)
    dear = shop(product(1, price_minor=UNIT_MINOR_MAX))
    refusal = refused(dear, cart(("gift-1", 1)))
    assert isinstance(refusal, BadInput)
    assert (refusal.field, "costs too much" in refusal.rule) == ("items", True)


def test_a_total_is_bounded_with_its_vat() -> None:
    """OP-14: what is paid, not only the price."""
    unit_minor = UNIT_MINOR_MAX // 2
    most = MINOR_MAX // (unit_minor + unit_minor * 21 // 100)
    made = shop(product(1, price_minor=unit_minor), stock=20_000)
    assert placed(made, cart(("gift-1", most))).total_minor <= MINOR_MAX
    refusal = refused(made, cart(("gift-1", most + 1)))
    assert isinstance(refusal, BadInput)
    assert refusal.rule == f"the total must be at most {Money(MINOR_MAX, 'EUR')}"


carts = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40)), min_size=1, max_size=6)
stocks = st.lists(st.lists(st.integers(1, 30), max_size=3), min_size=4, max_size=4)
prices = st.lists(st.integers(1, 10**6), min_size=4, max_size=4)


@settings(max_examples=200, deadline=None)
@given(carts, stocks, prices, st.sampled_from(sorted(RATES)), st.booleans())
def test_a_cart_is_sold_exactly_when_it_is_there_and_adds_up_to_the_cent(
    wanted: list[tuple[int, int]], lots: list[list[int]], price: list[int], currency: str, later: bool
) -> None:
    """OP-21, OP-50: lines add up to items and items to the order."""
    products = [product(n, price_minor=price[n - 1], async_delivery=later and n > 2) for n in range(1, 5)]
    made = shop(*products)
    for n, sizes in enumerate(lots, start=1):
        shelf: list[Lot] = [lot((n * 10 + at) * 2, n, size) for at, size in enumerate(sizes)]
        made.shelves[n, 1_000, State.LIVE] = shelf
    command = cart(*[(f"gift-{n}", amount) for n, amount in wanted], currency=currency)

    (answer,) = place(made, [command], numbers())

    short = {
        n
        for n, _ in wanted
        if sum(a for m, a in wanted if m == n) > sum(lots[n - 1]) and not (later and n > 2)
    }
    if short:
        assert isinstance(answer, OffersNotAvailable)
        assert set(answer.names) == {f"Gift {n}" for n in short}
        return
    assert isinstance(answer, Order)
    assert answer.price_minor == sum(item.unit.pay_price_minor * item.amount for item in answer.items)
    assert answer.vat_minor == sum(item.unit.pay_vat_minor * item.amount for item in answer.items)
    assert answer.total_minor == sum(item.unit_charge_minor * item.amount for item in answer.items)
    assert answer.lines == sum(amount for _, amount in wanted)
