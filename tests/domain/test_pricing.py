"""Prices: worked out by hand, on a page of the docs and case by case."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from voucherd.catalogue.fx import parse_rate
from voucherd.catalogue.pricing import (
    ExchangeRates,
    NoRate,
    NoVatRate,
    PriceTooLarge,
    RateTooOld,
    UnitPrice,
    oldest_day,
    price_unit,
    vat_bp,
)
from voucherd.catalogue.products import FaceRange, Fee, ProductDraft, ProductVersion
from voucherd.catalogue.rules import UNIT_MINOR_MAX
from voucherd.catalogue.texts import read_selling
from voucherd.money import RATE_ONE, Money

PRICES_PAGE = Path(__file__).parents[2] / "docs" / "prices.md"
RATES = {"EUR": RATE_ONE, "USD": 92319055, "JPY": 611808, "KWD": 301204819}


def version(
    face: Money | FaceRange, selling: Money | Fee, vat_category: str = "multi_purpose"
) -> ProductVersion:
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


def read_table(first_column: str, second_column: str) -> dict[str, dict[str, str]]:
    """The table on the page of prices that starts with these columns, by its first one."""
    lines = PRICES_PAGE.read_text(encoding="utf-8").splitlines()
    start = next(
        at for at, line in enumerate(lines) if line.startswith(f"| {first_column} | {second_column} |")
    )
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}


def test_the_page_of_prices_is_right() -> None:
    """OP-50, OP-51, OP-52: the order worked out by hand in docs/prices.md, to the cent."""
    rates = {"EUR": RATE_ONE}
    for currency, row in read_table("currency", "units for 1 EUR").items():
        rates[currency] = parse_rate(row["fx: EUR for 1 unit"])
    own = read_table("product", "price")
    paid = read_table("product", "paid price")
    totals = read_table("item", "total price")
    items = []
    for slug, row in read_table("product", "vatCategory").items():
        face = Money.read(row["face value"])
        text = row["sells at"]
        selling = read_selling(None, text[4:]) if text.startswith("fee ") else read_selling(text, None)
        product = version(face, selling, row["vatCategory"])

        unit = price_unit(product, face.minor, payment_currency="USD", rates=rates, vat_bp=2100)

        assert str(Money(unit.price_minor, unit.price_currency)) == own[slug]["price"]
        assert str(Money(unit.turnover_minor, unit.price_currency)) == own[slug]["VAT turnover"]
        assert str(Money(unit.vat_minor, unit.price_currency)) == own[slug]["VAT"]
        assert str(Money(unit.pay_price_minor, "USD")) == paid[slug]["paid price"]
        assert str(Money(unit.pay_turnover_minor, "USD")) == paid[slug]["paid VAT turnover"]
        assert str(Money(unit.pay_vat_minor, "USD")) == paid[slug]["paid VAT"]
        items.append((unit, int(row["amount"])))
        assert_total([items[-1]], totals[slug])
    assert len(items) == 4
    assert_total(items, totals["order"])


def assert_total(items: Sequence[tuple[UnitPrice, int]], row: dict[str, str]) -> None:
    """Units times amounts are the total that the page shows."""
    price_minor = sum(unit.pay_price_minor * amount for unit, amount in items)
    vat_minor = sum(unit.pay_vat_minor * amount for unit, amount in items)
    assert str(Money(price_minor, "USD")) == row["total price"]
    assert str(Money(vat_minor, "USD")) == row["total VAT"]
    assert str(Money(price_minor + vat_minor, "USD")) == row["total including VAT"]


@pytest.mark.parametrize(
    ("amount", "to_currency", "converted"),
    [
        ("1.00 EUR", "JPY", "163 JPY"),
        ("3000 JPY", "EUR", "18.35 EUR"),
        ("1.000 KWD", "EUR", "3.01 EUR"),
        ("3.01 EUR", "KWD", "0.999 KWD"),
        ("1 JPY", "KWD", "0.002 KWD"),
        ("9.999 KWD", "JPY", "4923 JPY"),
        ("12.34 USD", "USD", "12.34 USD"),
    ],
)
def test_conversion_minds_the_digits_of_both_currencies(
    amount: str, to_currency: str, converted: str
) -> None:
    """OP-07 and OP-50: from cents to yen to fils, rounded once."""
    money = Money.read(amount)

    unit = price_unit(version(money, money), money.minor, payment_currency=to_currency, rates=RATES, vat_bp=0)

    assert str(Money(unit.pay_price_minor, to_currency)) == converted


def test_a_discount_on_a_multi_purpose_voucher_is_no_negative_turnover() -> None:
    """OP-52: VAT on the fee only, and below face value there is none."""
    product = version(Money(5000, "EUR"), Fee(95_000_000, Money(0, "EUR").decimal()))

    unit = price_unit(product, 5000, payment_currency="EUR", rates=RATES, vat_bp=2100)

    assert (unit.price_minor, unit.turnover_minor, unit.vat_minor) == (4750, 0, 0)


@pytest.mark.parametrize(
    ("face", "selling", "pay"), [("USD", "EUR", "EUR"), ("EUR", "USD", "EUR"), ("EUR", "EUR", "USD")]
)
def test_nothing_is_priced_without_a_rate(face: str, selling: str, pay: str) -> None:
    """OP-50: face value, price and payment each need the fx of their currency."""
    product = version(Money(100, face), Money(90, selling))

    with pytest.raises(NoRate, match="no exchange rate for USD") as refused:
        price_unit(product, 100, payment_currency=pay, rates={"EUR": RATE_ONE}, vat_bp=0)
    assert refused.value.currency == "USD"


def test_a_unit_that_costs_too_much_is_refused() -> None:
    """OP-14: ten thousand lines of the dearest unit must stay inside a bigint."""
    product = version(Money(10**11, "KWD"), Money(10**11, "KWD"), "single_purpose")

    with pytest.raises(PriceTooLarge):
        price_unit(product, 10**11, payment_currency="KWD", rates=RATES, vat_bp=2100)
    with pytest.raises(PriceTooLarge):
        price_unit(product, 10**11, payment_currency="JPY", rates=RATES | {"JPY": 1}, vat_bp=0)
    assert (
        price_unit(product, 10**11, payment_currency="KWD", rates=RATES, vat_bp=0).pay_price_minor == 10**11
    )


@pytest.mark.parametrize(
    ("price_minor", "pay", "refused_in"),
    [
        (UNIT_MINOR_MAX // 2, "EUR", None),
        (UNIT_MINOR_MAX // 2 + 1, "EUR", "EUR"),
        (UNIT_MINOR_MAX // 4, "USD", None),
        (UNIT_MINOR_MAX // 4 + 1, "USD", "USD"),
        (UNIT_MINOR_MAX // 2 + 1, "USD", "EUR"),
    ],
)
def test_a_unit_costs_just_the_most_that_one_may_with_its_vat(
    price_minor: int, pay: str, refused_in: str | None
) -> None:
    """OP-14: the bound is for what is paid, in the price's own currency and in that of the payment."""
    product = version(Money(100, "EUR"), Money(price_minor, "EUR"), "single_purpose")
    rates = {"EUR": RATE_ONE, "USD": RATE_ONE // 2}
    if refused_in is None:
        unit = price_unit(product, 100, payment_currency=pay, rates=rates, vat_bp=10_000)
        assert unit.pay_price_minor + unit.pay_vat_minor == UNIT_MINOR_MAX
        return
    with pytest.raises(PriceTooLarge, match=f"a unit of gift costs too much in {refused_in}") as refused:
        price_unit(product, 100, payment_currency=pay, rates=rates, vat_bp=10_000)
    assert (refused.value.slug, refused.value.currency) == ("gift", refused_in)


@pytest.mark.parametrize(
    ("country", "vat_number", "operator", "rate_bp"),
    [
        ("NL", None, "NL", 2100),
        ("NL", "NL123456789B01", "NL", 2100),
        ("FI", None, "NL", 2550),
        ("FI", "FI12345678", "NL", 0),
        ("FI", "", "NL", 2550),
        ("FI", "FI12345678", "US", 0),
        ("US", None, "NL", 0),
        ("GB", "GB123456789", "NL", 0),
    ],
)
def test_vat_follows_the_company_s_country_and_vat_number(
    country: str, vat_number: str | None, operator: str, rate_bp: int
) -> None:
    """OP-52: the company's country's rate; reverse charge with a VAT number in another EU country."""
    assert vat_bp(country, vat_number, operator, {"NL": 2100, "FI": 2550, "GB": 2000}) == rate_bp


def test_an_eu_country_without_a_rate_is_never_sold_to_without_vat() -> None:
    """OP-52: a hole in the data is an error."""
    with pytest.raises(NoVatRate, match="no VAT rate for its country, FI, today") as refused:
        vat_bp("FI", None, "NL", {"NL": 2100})
    assert refused.value.country == "FI"


def test_a_margin_is_added_to_what_is_paid_in_another_currency_and_rounded_once() -> None:
    """OP-50, OP-71: 10.33 EUR are 11.1895… USD, and with 1.5% on top 11.3573…: not 11.19 × 1.015 = 11.3578…"""
    product = version(Money(1000, "EUR"), Money(1033, "EUR"), "single_purpose")
    exchange = ExchangeRates(margins={("EUR", "USD"): 150, ("USD", "EUR"): 900})

    def paid(currency: str) -> tuple[int, int, int]:
        unit = price_unit(
            product, 1000, payment_currency=currency, rates=RATES, vat_bp=2100, exchange=exchange
        )
        # The rates stay the plain ones, and so do the amounts in the price's own currency.
        assert (unit.price_fx_e8, unit.pay_fx_e8) == (RATE_ONE, RATES[currency])
        assert (unit.price_minor, unit.vat_minor, unit.turnover_minor) == (1033, 217, 1033)
        return unit.pay_price_minor, unit.pay_vat_minor, unit.pay_turnover_minor

    assert paid("USD") == (1136, 239, 1136)
    assert paid("EUR") == (1033, 217, 1033)
    assert paid("JPY") == (1688, 355, 1688)


def test_a_rate_that_is_too_old_converts_nothing_and_matters_to_nothing_else() -> None:
    """OP-71: only where a price is paid in another currency, and whichever of the two rates is old."""
    now = datetime(2026, 11, 15, 0, 30, tzinfo=UTC)
    oldest = oldest_day(now, timedelta(days=7))
    assert oldest == date(2026, 11, 8)
    assert oldest_day(now, timedelta(0)) is None
    product = version(Money(100, "JPY"), Money(90, "EUR"))

    def pay(currency: str, days: dict[str, date], oldest: date | None = oldest) -> int:
        exchange = ExchangeRates(days, oldest)
        unit = price_unit(product, 100, payment_currency=currency, rates=RATES, vat_bp=0, exchange=exchange)
        return unit.pay_price_minor

    kept, gone = date(2026, 11, 8), date(2026, 11, 7)
    assert pay("USD", {"USD": kept, "JPY": gone}) == 97
    assert pay("EUR", {"USD": gone, "JPY": gone}) == 90
    assert pay("USD", {"USD": gone}, None) == 97
    with pytest.raises(
        RateTooOld, match="the exchange rate for USD is of 2026-11-07, which is too old"
    ) as refused:
        pay("USD", {"USD": gone, "JPY": kept})
    assert (refused.value.currency, refused.value.day) == ("USD", gone)
    with pytest.raises(RateTooOld, match="for JPY"):
        price_unit(
            version(Money(100, "JPY"), Money(90, "JPY")),
            100,
            payment_currency="EUR",
            rates=RATES,
            vat_bp=0,
            exchange=ExchangeRates({"JPY": gone}, oldest),
        )
