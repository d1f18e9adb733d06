"""The pure parts of the storefront: places in an order, words of a search, price tags."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.handmade import product
from voucherd.api.catalogue_requests import place_cursor, read_place
from voucherd.ids import Identifiers
from voucherd.money import RATE_ONE
from voucherd.orders.rules.refusals import BadInput
from voucherd.storefront import prices, search
from voucherd.storefront.groups import category_name
from voucherd.storefront.listing import ProductOrder
from voucherd.storefront.sorting import BOUND_MAX, Sort, SortPosition, factor, lane

IDS = Identifiers(bytes(range(32)))
RATES = {"EUR": RATE_ONE, "USD": 92_319_055, "JPY": 611_808, "KWD": 301_204_819, "VND": 1}
AMOUNTS = st.lists(
    st.tuples(
        st.sampled_from([*RATES, "ZAR"]), st.sampled_from([1, 2, 100, 163, 10**11]) | st.integers(1, 2_000)
    ),
    max_size=40,
)


def worth(currency: str, minor: int) -> int:
    return minor * factor(currency, RATES.get(currency, RATE_ONE))


@given(AMOUNTS, st.booleans(), st.integers(1, 7))
def test_a_walk_by_worth_meets_everyone_once_and_in_order(
    amounts: list[tuple[str, int]], descending: bool, size: int
) -> None:
    """OP-03, OP-50: page after page, each currency entered where the last page ended."""
    rows = [(currency, minor, at + 1) for at, (currency, minor) in enumerate(amounts)]
    sign = -1 if descending else 1
    seen: list[tuple[str, int, int]] = []
    after: SortPosition | None = None
    while len(seen) < len(rows) or not rows:
        page = []
        for currency in {row[0] for row in rows}:
            own = lane(currency, RATES, after, descending=descending)
            page += [
                row
                for row in rows
                if row[0] == currency
                and (sign * row[1], sign * row[2]) > (sign * own.minor, sign * own.product_id)
            ]
        page = sorted(page, key=lambda row: (sign * worth(row[0], row[1]), sign * row[2]))[:size]
        if not page:
            break
        seen += page
        after = SortPosition((), worth(*page[-1][:2]), page[-1][2])
    assert seen == sorted(rows, key=lambda row: (sign * worth(row[0], row[1]), sign * row[2]))


def test_a_place_beyond_every_amount_stays_inside_the_database() -> None:
    """A cheap currency turns a great worth into more units than a bigint holds."""
    far = SortPosition((), 10**39, 5)
    for descending in (False, True):
        assert lane("VND", RATES, far, descending=descending).minor == BOUND_MAX


@given(
    st.sampled_from(list(Sort)),
    st.booleans(),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=200),
    st.integers(0, 10**30),
    st.integers(0, 2**31 - 1),
)
def test_a_cursor_leads_back_to_its_place(
    sort: Sort, descending: bool, word: str, amount: int, product_id: int
) -> None:
    """OP-03: whatever the name; for another order it is refused."""
    words = {Sort.NAME: (word,), Sort.BRAND: (word, word)}.get(sort, ())
    place, order = SortPosition(words, 0 if words else amount, product_id), ProductOrder(sort, descending)
    cursor = place_cursor(IDS, place, order)
    assert read_place(IDS, cursor, order) == place
    with pytest.raises(BadInput, match="is of another sortBy or sortOrder"):
        read_place(IDS, cursor, ProductOrder(sort, not descending))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Café  NOIR-25", ["cafe", "noir", "25"]),
        ("gift gift", ["gift"]),
        ("it's 50% & (more)!", ["it", "s", "50", "more"]),
        ("'\\:*|!<->", []),
        ("", []),
    ],
)
def test_a_search_is_its_folded_words(text: str, words: list[str]) -> None:
    """Accents, capitals and punctuation do not matter, and nothing of a query's own language is left."""
    assert search.terms(text) == words


def test_a_query_matches_beginnings_of_all_words() -> None:
    """Every word must be there, each as the beginning of one."""
    assert search.prefix_query(["cof", "brig"]) == "'cof':* & 'brig':*"
    assert search.prefix_query([]) == ""


def test_a_tag_has_no_price_where_none_can_be_said() -> None:
    """OP-50, OP-51: no face value, no rate, or more than any amount."""
    dollar = product(price_currency="USD")
    open_card = product(
        face_minor=None, face_min_minor=500, face_max_minor=900, price_minor=None, price_currency=None,
        fee_variable_e8=RATE_ONE, fee_fixed_minor=0,
    )  # fmt: skip
    asked = {"rates": {"EUR": RATE_ONE}, "vat_bp": 0}
    assert prices.tag(dollar, 1_000, payment_currency="EUR", **asked) is None  # type: ignore[arg-type]
    own = prices.tag(dollar, 1_000, payment_currency=None, **asked)  # type: ignore[arg-type]
    assert own is not None
    assert (own.price_currency, own.price_minor) == ("USD", 950)
    assert prices.face_of(open_card, None) is None
    assert prices.face_of(open_card, Decimal("7.5")) == 750
    assert prices.face_of(open_card, Decimal("7.555")) is None
    assert prices.face_of(open_card, Decimal("9.01")) is None
    assert prices.face_of(dollar, Decimal("7.5")) == 1_000
    assert prices.tag(open_card, None, payment_currency=None, **asked) is None  # type: ignore[arg-type]


def test_a_category_gets_its_name_from_its_slug() -> None:
    """OP-12: the slug is the operator's own word."""
    assert (category_name("food-and-drink"), category_name("games"), category_name("3d")) == (
        "Food and drink",
        "Games",
        "3d",
    )
