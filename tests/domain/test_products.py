"""Products: every rule of a draft, and the texts of the command line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voucherd.catalogue.products import (
    Face,
    FaceRange,
    Fee,
    ProductChanges,
    ProductDraft,
    ProductVersion,
    Selling,
    amend,
    draft_of,
    slugify,
)
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import read_face, read_selling
from voucherd.money import Money

DRAFT = ProductDraft(
    slug="gift-50",
    name="Gift 50",
    brand="Acme",
    product_type="giftcard",
    category="shopping",
    redeem_type="currency",
    region="ww",
    face=Money(5000, "EUR"),
    selling=Money(4810, "EUR"),
)
VERSION = ProductVersion(
    version_id=7,
    product_id=3,
    slug="gift-50",
    name="Gift 50",
    brand_slug="acme",
    brand_name="Acme",
    product_type="giftcard",
    category="shopping",
    redeem_type="currency",
    region="ww",
    vat_category="multi_purpose",
    async_delivery=False,
    incentive=False,
    face_currency="EUR",
    face_minor=5000,
    face_min_minor=None,
    face_max_minor=None,
    price_minor=4810,
    price_currency="EUR",
    fee_variable_e8=None,
    fee_fixed_minor=None,
)
RANGE = FaceRange(500, 50_000, "EUR")
FEE = Fee(102_000_000, Decimal("0.10"))


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("slug", "Gift-50", "slug"),
        ("slug", "gift--50", "slug"),
        ("slug", "gift-50\n", "slug"),
        ("slug", "g" * 101, "slug"),
        ("name", "", "name"),
        ("name", "n" * 201, "name"),
        ("name", "two\nlines", "name"),
        ("name", " Gift", "name"),
        ("brand", "", "brand"),
        ("brand", "ソニー", "brand"),
        ("product_type", "voucher", "type"),
        ("category", "Shop & Go", "category"),
        ("redeem_type", "cash", "redeem-type"),
        ("region", "x", "region"),
        ("region", "EU", "region"),
        ("region", "r" * 21, "region"),
        ("vat_category", "reduced", "vat-category"),
        ("face", Money(0, "EUR"), "face-value"),
        ("face", Money(10**11 + 1, "EUR"), "face-value"),
        ("selling", Money(0, "EUR"), "price"),
        ("selling", Fee(0, Decimal(1)), "fee"),
        ("selling", Fee(10**11, Decimal(1)), "fee"),
        ("selling", Fee(102_000_000, Decimal("0.001")), "fee"),
        ("selling", Fee(102_000_000, Decimal(-1)), "fee"),
        ("selling", Fee(1, Decimal(0)), "fee"),
    ],
)
def test_a_draft_that_breaks_a_rule_is_refused_by_the_name_of_its_field(
    field: str, value: Any, named: str
) -> None:
    """OP-12, OP-51, OP-52: one line that names the field and the rule."""
    with pytest.raises(BadProduct) as refused:
        replace(DRAFT, **{field: value})
    assert refused.value.field == named
    assert str(refused.value).startswith(f"{named}: ")
    assert "\n" not in str(refused.value)


def test_a_variable_product_has_a_fee_and_no_price() -> None:
    """OP-51: variable products always use the fee."""
    with pytest.raises(BadProduct, match="price: must be a fee instead"):
        replace(DRAFT, face=RANGE)

    assert replace(DRAFT, face=RANGE, selling=FEE).figures() == (
        *("EUR", None, 500, 50_000),
        *(None, None, 102_000_000, 10),
    )


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    """OP-51: faceValueMin to faceValueMax."""
    with pytest.raises(BadProduct, match="face-value-range: must not end below its start"):
        replace(DRAFT, face=FaceRange(500, 499, "EUR"), selling=FEE)


@pytest.mark.parametrize(
    ("value", "value_range", "face"),
    [
        ("50 EUR", None, Money(5000, "EUR")),
        (" 9.99 eur ", None, Money(999, "EUR")),
        ("3000 JPY", None, Money(3000, "JPY")),
        (None, "5-500 EUR", RANGE),
        (None, "0.500 - 20 KWD", FaceRange(500, 20_000, "KWD")),
    ],
)
def test_a_face_value_is_read_from_its_text(value: str | None, value_range: str | None, face: Face) -> None:
    """OP-51: a fixed face value or a range."""
    assert read_face(value, value_range) == face


@pytest.mark.parametrize(
    ("price", "fee", "selling"),
    [
        ("48.10 EUR", None, Money(4810, "EUR")),
        (None, "1.02", Fee(102_000_000, Decimal(0))),
        (None, "1.02+0.10", FEE),
        (None, "0.97500001+2", Fee(97_500_001, Decimal(2))),
    ],
)
def test_a_price_or_a_fee_is_read_from_its_text(price: str | None, fee: str | None, selling: Selling) -> None:
    """OP-51: a fixed price, or a multiplier and perhaps a fixed fee."""
    assert read_selling(price, fee) == selling


@pytest.mark.parametrize(
    "text",
    [
        "",
        "50",
        "EUR",
        "50EUR",
        "-50 EUR",
        "1e3 EUR",
        "1_0 EUR",
        "٥ EUR",
        "NaN EUR",
        "5.001 EUR",
        "50 XXX",
        "5 000 EUR",
    ],
)
def test_a_text_that_is_no_amount_is_refused(text: str) -> None:
    """OP-07: no amount is guessed from a text that only looks like one."""
    for field, read in (
        ("face-value", lambda: read_face(text, None)),
        ("price", lambda: read_selling(text, None)),
    ):
        with pytest.raises(BadProduct) as refused:
            read()
        assert refused.value.field == field


@pytest.mark.parametrize(
    "text", ["", "5", "5 EUR", "5-500", "500 EUR-5 EUR", "-5-500 EUR", "5-500 XYZ", "5.001-6 EUR"]
)
def test_a_text_that_is_no_range_is_refused(text: str) -> None:
    """OP-51: a range is two amounts and a currency."""
    with pytest.raises(BadProduct, match=r"^face-value-range: "):
        read_face(None, text)


@pytest.mark.parametrize("text", ["", "x", "1.02+", "+0.10", "1.02 EUR", "1.123456789", "-1", "1.02+0.10+1"])
def test_a_text_that_is_no_fee_is_refused(text: str) -> None:
    """OP-51: a fee is a multiplier with at most eight digits and perhaps an amount."""
    with pytest.raises(BadProduct, match=r"^fee: "):
        read_selling(None, text)


def test_exactly_one_of_two_ways_must_be_given() -> None:
    """OP-51: a fixed face value or a range, a price or a fee."""
    for read in (read_face, read_selling):
        with pytest.raises(BadProduct, match="not both"):
            read("50 EUR", "x")
        with pytest.raises(BadProduct, match="is needed"):
            read(None, None)


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    """OP-25: bad input gets one clear line, whatever it is."""
    for read in (read_face, read_selling):
        for arguments in ((text, None), (None, text)):
            said = ""
            try:
                read(*arguments)
            except BadProduct as refused:
                said = str(refused)
            assert said.isprintable()


def test_a_change_leaves_everything_else_as_it_was() -> None:
    """OP-42: a change is a new version, made of the old one and what changed."""
    assert draft_of(VERSION) == DRAFT
    assert amend(VERSION, ProductChanges(active=False)) == DRAFT
    assert amend(VERSION, ProductChanges(name="Gift card 50")) == replace(DRAFT, name="Gift card 50")
    assert amend(VERSION, ProductChanges(async_delivery=True)) == replace(DRAFT, async_delivery=True)
    assert amend(VERSION, ProductChanges(face=RANGE, selling=FEE)) == replace(DRAFT, face=RANGE, selling=FEE)
    with pytest.raises(BadProduct, match="price: must be a fee"):
        amend(VERSION, ProductChanges(face=RANGE))


def test_ten_cents_of_fee_never_become_ten_yen() -> None:
    """OP-51: the fixed fee is in the face value's currency, so it is said anew when that changes."""
    product = replace(
        VERSION, price_minor=None, price_currency=None, fee_variable_e8=102_000_000, fee_fixed_minor=10
    )

    with pytest.raises(BadProduct, match="fee: its fixed part must have at most 0 digits"):
        amend(product, ProductChanges(face=Money(3000, "JPY")))


def test_a_version_knows_the_face_values_it_can_be_sold_at() -> None:
    """OP-10: a variable product takes any face value of its range, a fixed one its own."""
    variable = replace(VERSION, face_minor=None, face_min_minor=500, face_max_minor=50_000)

    assert not VERSION.is_variable
    assert variable.is_variable
    assert [VERSION.accepts_face(minor) for minor in (4999, 5000, 5001)] == [False, True, False]
    assert [variable.accepts_face(minor) for minor in (499, 500, 50_000, 50_001)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Acme", "acme"), ("Café & Co.", "cafe-co"), ("  7-Eleven  ", "7-eleven"), ("é" * 300, "e" * 100)],
)
def test_a_brand_s_slug_comes_from_its_name(name: str, slug: str) -> None:
    """Contract 2: brandSlug; brands are made by name on demand."""
    assert slugify(name) == slug
