"""Files of products: what a row changes, what it leaves alone, and how each error is named."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.handmade import product
from tests.workbooks import workbook
from voucherd.catalogue import files
from voucherd.catalogue.columns import COLUMNS, text, values
from voucherd.catalogue.files import ImportPlan
from voucherd.catalogue.products import Fee, Leaflet, Listing, draft_of
from voucherd.money import RATE_ONE
from voucherd.sheets import reading
from voucherd.sheets.model import Cell, SheetRefused, SheetRow

FIXED = product(1)
OPEN = product(
    2,
    face_minor=None,
    face_min_minor=500,
    face_max_minor=50_000,
    price_minor=None,
    price_currency=None,
    fee_variable_e8=102 * RATE_ONE // 100,
    fee_fixed_minor=10,
)
KNOWN = {"gift-1": Listing(FIXED, True), "gift-2": Listing(OPEN, True)}
LEAFLETS = {
    FIXED.version_id: Leaflet("1. Open the app\n2. Tap C:\\now", "No cash.", "https://a.example/x.png"),
    OPEN.version_id: Leaflet(),
}
NEW = "new,New,Acme,giftcard,gifts,currency,ww"
NEW_COLUMNS = "slug,name,brand,type,category,redeem-type,region"


def plan(content: str | bytes) -> ImportPlan:
    """What a file would change of the two products."""
    stream = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return files.plan(files.read(reading.rows(stream)), KNOWN, LEAFLETS)


def changes(content: str | bytes) -> list[tuple[str, str, str, str]]:
    """The changes of a file without errors: slug, column, from, to."""
    planned = plan(content)
    assert planned.errors == []
    return [(change.draft.slug, *changed) for change in planned.changes for changed in change.fields]


def test_a_row_changes_what_it_fills_and_leaves_the_rest_alone() -> None:
    """The command line, product import: an empty cell leaves things as they are."""
    told = changes("slug,name,price,price-currency,fee,active\ngift-1,,9.40,EUR,,\ngift-2,,,,1.03,no\n")
    assert told == [
        ("gift-1", "price", "9.50", "9.40"),
        ("gift-2", "fee", "1.02+0.10", "1.03"),
        ("gift-2", "active", "yes", "no"),
    ]
    assert changes("slug,price,fee\ngift-1,,1.01+0.05\n") == [
        ("gift-1", "price", "9.50", ""),
        ("gift-1", "price-currency", "EUR", ""),
        ("gift-1", "fee", "", "1.01+0.05"),
    ]
    assert changes("slug,brand,price\ngift-1,TESTBRAND,9.5 eur\n") == []


def test_texts_for_recipients_are_one_line_of_a_file_and_several_on_a_page() -> None:
    """The command line, product import: texts go out and come back as they were, and change like any other column."""
    before = LEAFLETS[FIXED.version_id]
    row = {column: text(value) for column, value in values(draft_of(FIXED, before), True).items()}
    assert row["redeem-instructions"] == "1. Open the app\\n2. Tap C:\\\\now"
    columns = ("redeem-instructions", "terms", "image-url")
    head, cells = f"slug,{','.join(columns)}", ",".join(row[column] for column in columns)
    assert changes(f"{head}\ngift-1,{cells}\ngift-2,,,\n") == []
    (change,) = plan(f"{head}\ngift-1,Line\\nline,-,\n").changes
    assert (change.draft.redeem_instructions, change.draft.terms) == ("Line\nline", "")
    assert change.draft.image_url == before.image_url
    assert [field.column for field in change.fields] == ["redeem-instructions", "terms"]
    (bad,) = plan("slug,image-url\ngift-1,http://a.example/\n").errors
    assert bad.column == "image-url"


def test_a_dash_clears_what_may_be_empty() -> None:
    """The command line, product import: an explicit way to clear optional cells."""
    assert changes("slug,vat-category,incentive,price,fee\ngift-1,-,-,-,1.5\n") == [
        ("gift-1", "price", "9.50", ""),
        ("gift-1", "price-currency", "EUR", ""),
        ("gift-1", "fee", "", "1.5"),
        ("gift-1", "vat-category", "single_purpose", "multi_purpose"),
    ]


def test_an_unknown_slug_is_a_new_product() -> None:
    """The command line, product import: a row with an unknown slug adds it."""
    planned = plan(f"{NEW_COLUMNS},face-value,face-currency,price\n{NEW},20,eur,19 USD\n")
    assert (planned.added, planned.changed, planned.unchanged, planned.errors) == (1, 0, 0, [])
    (change,) = planned.changes
    assert (str(change.draft.face), str(change.draft.selling)) == ("20.00 EUR", "19.00 USD")
    assert (change.active, change.draft.vat_category, change.draft.async_delivery) == (
        True,
        "multi_purpose",
        False,
    )
    ranged = plan(f"{NEW_COLUMNS},face-value-range,fee,active\n{NEW},5-50 EUR,1.02+0.1,no\n").changes[0]
    assert isinstance(ranged.draft.selling, Fee)
    assert not ranged.active


def test_numbers_of_a_workbook_are_exact_or_refused() -> None:
    """OP-07: the shortest digits that mean the same number, and no more of them than the currency has."""
    header = ["slug", "price", "price-currency"]
    assert changes(workbook(header, ["gift-1", 9.45, "EUR"])) == [("gift-1", "price", "9.50", "9.45")]
    for number, rule in ((9.455, "9.455 has more than 2 digits"), (9.123456789, "round it")):
        (bad,) = plan(workbook(header, ["gift-1", number, "EUR"])).errors
        assert rule in bad.rule
    (bad,) = plan(workbook(header, ["gift-1", "=1+1", "EUR"])).errors
    assert str(bad) == "row 2, column price: is a formula: put its value there"
    (bad,) = plan(workbook(["slug", "name"], ["gift-1", 2048])).errors
    assert str(bad) == "row 2, column name: is a number, and must be text"


BAD = [
    ("slug,price\ngift-1,9.40\n", "row 2, column price: has no currency"),
    ('slug,price\ngift-1,"9,40"\n', "row 2, column price: has a decimal comma"),
    ("slug,price,price-currency\ngift-1,9 USD,EUR\n", "row 2, column price: is not in EUR"),
    ("slug,price-currency\ngift-1,USD\n", "row 2, column price: is needed, or fee"),
    ("slug,price-currency\ngift-1,XYZ\n", "row 2, column price-currency: 'XYZ' is not a currency"),
    ("slug,price,fee\ngift-1,9 EUR,1.02\n", "row 2, column price: give a price or a fee, not both"),
    ("slug,price\ngift-1,-\n", "row 2, column price: can't be cleared without a fee beside it"),
    ("slug,name\ngift-1,-\n", "row 2, column name: can't be cleared"),
    ("slug,active\ngift-1,perhaps\n", "row 2, column active: must be yes or no"),
    ("slug,type\ngift-1,toy\n", "row 2, column type: must be one of giftcard"),
    ("slug,price\ngift-2,9 EUR\n", "row 2, column price: must be a fee instead"),
    ("slug,face-value-range\ngift-1,5-50 EUR\n", "row 2, column price: must be a fee instead"),
    ("slug,name\n,x\n", "row 2, column slug: is needed"),
    ("slug,name\ngift-1,x\ngift-1,y\n", "row 3, column slug: is in row 2 already"),
    ("slug,name\ngift-1,x,y\n", "row 2, column 3: has no name in the header"),
    (f"{NEW_COLUMNS},price\n{NEW},9 EUR\n", "row 2, column face-value: is needed, or face-value-range"),
    (f"{NEW_COLUMNS},face-value\n{NEW},9 EUR\n", "row 2, column price: is needed, or fee"),
    (
        f"{NEW_COLUMNS},face-value,price\n{NEW},9 EUR,8 EUR\n".replace("new,", "New!,"),
        "row 2, column slug: must",
    ),
]


@pytest.mark.parametrize(("content", "told"), BAD)
def test_an_error_names_its_row_and_its_column(content: str, told: str) -> None:
    """The command line, product import: errors name the row and the column."""
    (bad,) = plan(content).errors
    assert str(bad).startswith(told)


def test_all_errors_of_a_file_are_counted_and_the_first_hundred_told() -> None:
    """Every list has a named maximum; an operator fixes a file once, not row after row."""
    planned = plan("slug,type,region,active\n" + "".join(f"n{n},toy,x,perhaps\n" for n in range(60)))
    # Each row: three wrong cells, four that a new product lacks, and neither face value nor price.
    assert (planned.error_count, len(planned.errors), planned.changes) == (60 * 9, 100, [])
    assert {bad.row for bad in planned.errors} == set(range(2, 14))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "the file is empty"),
        ("slug,colour\n", "row 1, column 'colour': is none of"),
        ("slug,Slug\n", "is there twice"),
        ("name\n", "there is no column slug"),
    ],
)
def test_a_file_of_another_shape_is_refused(content: str, rule: str) -> None:
    """The command line: refused with one clear line."""
    with pytest.raises(SheetRefused, match=rule):
        plan(content)


@given(st.booleans(), st.sampled_from([FIXED, OPEN]), st.booleans())
def test_an_export_changes_nothing_when_it_is_read_again(
    as_texts: bool, version: object, active: bool
) -> None:
    """What is written is what is read."""
    listing = Listing(FIXED if version is FIXED else OPEN, active)
    row = values(draft_of(listing.version, LEAFLETS[listing.version.version_id]), active)
    cells = [Cell(text(row[column])) for column in COLUMNS]
    read = files.read([SheetRow(1, [Cell(column) for column in COLUMNS]), SheetRow(2, cells)])
    planned = files.plan(read, {listing.version.slug: listing}, LEAFLETS)
    assert (planned.changes, planned.unchanged, planned.errors) == ([], 1, [])
