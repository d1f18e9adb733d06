"""Money: exact digits in, exact digits out, and one way of rounding."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voucherd.money import (
    DIGITS,
    MINOR_MAX,
    RATE_ONE,
    BadAmount,
    Money,
    UnknownCurrency,
    digits,
    divide_half_up,
    in_eur,
    plain,
    to_minor,
    worth,
)


@pytest.mark.parametrize(
    ("currency", "places"), [("EUR", 2), ("USD", 2), ("JPY", 0), ("ISK", 0), ("KWD", 3), ("BHD", 3)]
)
def test_a_currency_has_the_digits_that_iso_4217_gives_it(currency: str, places: int) -> None:
    """OP-07: money has its ISO 4217 number of digits."""
    assert digits(currency) == places


def test_no_currency_is_in_two_digit_classes() -> None:
    """OP-07: each code is three capitals and has 0, 2 or 3 digits."""
    assert all(len(code) == 3 and code.isupper() and code.isascii() for code in DIGITS)
    assert set(DIGITS.values()) == {0, 2, 3}


@pytest.mark.parametrize(
    ("text", "minor", "currency", "written"),
    [
        ("48.10 EUR", 4810, "EUR", "48.10 EUR"),
        ("48.1 eur", 4810, "EUR", "48.10 EUR"),
        ("0.01 EUR", 1, "EUR", "0.01 EUR"),
        ("50 EUR", 5000, "EUR", "50.00 EUR"),
        ("-0.05 EUR", -5, "EUR", "-0.05 EUR"),
        ("3000 JPY", 3000, "JPY", "3000 JPY"),
        ("3000.0 JPY", 3000, "JPY", "3000 JPY"),
        ("1.005 KWD", 1005, "KWD", "1.005 KWD"),
        ("0.1 KWD", 100, "KWD", "0.100 KWD"),
    ],
)
def test_an_amount_is_read_and_written_without_loss(
    text: str, minor: int, currency: str, written: str
) -> None:
    """OP-06 and OP-07: any case in, the currency's own digits out."""
    money = Money.read(text)

    assert money == Money(minor, currency)
    assert str(money) == written
    assert money.decimal() == Decimal(written.removesuffix(currency))


@pytest.mark.parametrize(
    "text", ["48.101 EUR", "0.5 JPY", "1.0001 KWD", "x EUR", "NaN EUR", "Infinity EUR", "EUR", "1 2 EUR", ""]
)
def test_what_is_not_an_amount_of_its_currency_is_refused(text: str) -> None:
    """OP-07: an amount that its currency can't say is refused, never rounded."""
    with pytest.raises(BadAmount):
        Money.read(text)


def test_an_unknown_currency_is_refused() -> None:
    """OP-07: no digits are guessed."""
    with pytest.raises(UnknownCurrency):
        Money.read("1 XYZ")
    with pytest.raises(UnknownCurrency):
        Money(1, "eur")


def test_an_amount_has_a_largest_size() -> None:
    """OP-07: sums of amounts must stay inside a bigint."""
    assert (MINOR_MAX, RATE_ONE) == (1_000_000_000_000_000, 100_000_000)
    assert to_minor(Decimal(MINOR_MAX).scaleb(-2), "EUR") == MINOR_MAX
    for too_large in (MINOR_MAX + 1, -MINOR_MAX - 1):
        with pytest.raises(BadAmount, match="too large"):
            to_minor(Decimal(too_large).scaleb(-2), "EUR")
    assert to_minor(Decimal(-MINOR_MAX).scaleb(-2), "EUR") == -MINOR_MAX


@pytest.mark.parametrize(
    ("amount", "rule"),
    [
        ("1E+19", "too large"),
        ("1E+20", r"'1E\+20' is not an amount"),
        ("1E+999999", "not an amount"),
        ("1E-20", "more than 2 digits"),
        ("1E-21", "'1E-21' is not an amount"),
        ("1E-999999", "not an amount"),
        ("NaN", "not an amount"),
        ("-Infinity", "not an amount"),
    ],
)
def test_a_number_is_written_out_only_as_far_as_an_amount_may_be_long(amount: str, rule: str) -> None:
    """OP-07: an exponent that would take minutes to write out is refused at once."""
    with pytest.raises(BadAmount, match=rule):
        to_minor(Decimal(amount), "EUR")


@pytest.mark.parametrize("zero", ["0", "-0.00", "0E+30", "0E-30", "0E-20", "0E+999999"])
def test_nothing_is_nothing_however_it_is_written(zero: str) -> None:
    """OP-07: a zero has no size that could be too large."""
    assert to_minor(Decimal(zero), "EUR") == 0


@pytest.mark.parametrize(
    ("minor", "currency", "fx_e8", "e_11", "shown"),
    [
        (1, "EUR", RATE_ONE, 10**9, "0.01 EUR"),
        (1, "JPY", RATE_ONE, 10**11, "1.00 EUR"),
        (1, "KWD", RATE_ONE, 10**8, "0.00 EUR"),
        (5, "KWD", RATE_ONE, 5 * 10**8, "0.01 EUR"),
        (-5, "KWD", RATE_ONE, -5 * 10**8, "-0.01 EUR"),
        (1_000, "USD", 92_319_055, 923_190_550_000, "9.23 EUR"),
        (3, "JPY", 611_808, 1_835_424_000, "0.02 EUR"),
    ],
)
def test_what_an_amount_is_worth_in_euros_minds_the_digits_of_its_currency(
    minor: int, currency: str, fx_e8: int, e_11: int, shown: str
) -> None:
    """OP-50, OP-61: exact to compare, and rounded once, to the cent, to be shown."""
    assert worth(minor, currency, fx_e8) == e_11
    assert in_eur(e_11) == shown


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [
        (1, 2, 1),
        (-1, 2, -1),
        (3, 2, 2),
        (-3, 2, -2),
        (1, 3, 0),
        (2, 3, 1),
        (5, -10, -1),
        (-5, -10, 1),
        (0, 7, 0),
    ],
)
def test_half_a_minor_unit_goes_away_from_zero(numerator: int, denominator: int, rounded: int) -> None:
    """OP-50: rounded half up."""
    assert divide_half_up(numerator, denominator) == rounded


@settings(max_examples=1_000, deadline=None)
@given(st.integers(-(10**30), 10**30), st.integers(1, 10**20) | st.integers(-(10**20), -1))
def test_division_rounds_as_decimal_half_up_does(numerator: int, denominator: int) -> None:
    """OP-50: the one rounding rule is the decimal module's ROUND_HALF_UP."""
    with localcontext(prec=100):
        exact = Decimal(numerator) / Decimal(denominator)
        expected = int(exact.to_integral_value(ROUND_HALF_UP))

    assert divide_half_up(numerator, denominator) == expected


@settings(max_examples=1_000, deadline=None)
@given(st.integers(-MINOR_MAX, MINOR_MAX), st.sampled_from(sorted(DIGITS)))
def test_every_amount_survives_being_written_and_read(minor: int, currency: str) -> None:
    """OP-07: exact digits out, the same number in."""
    money = Money(minor, currency)

    assert Money.read(str(money)) == money
    assert to_minor(plain(minor, digits(currency)), currency) == minor
