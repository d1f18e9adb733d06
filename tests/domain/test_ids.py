"""Identifiers: sealed forms that open for us only (OP-09, OP-57)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voucherd import ids
from voucherd.ids import LINES_MAX, ORDER_BLOCK_SIZE, Identifiers, State, derive, line_number, state_of

ORDER_IDS = st.integers(0, 2**63 - 1)
LINES = st.integers(0, LINES_MAX - 1)
NUMBERED_IDS = st.integers(0, (1 << ids.ORDER_NUMBER_BITS) - 1)
IDS = Identifiers(bytes(range(32)))
OTHER = Identifiers(bytes(32))


def test_orders_are_found_by_the_ending_of_their_trx() -> None:
    """OP-161: as lists show it; a longer ending finds fewer, and the whole finds one."""
    ids, orders = Identifiers(bytes(32)), range(2, 4_000, 2)
    for order_id in (2, 1_000, 3_998):
        trx = ids.trx(order_id)
        for characters in (1, 2, 4, 8, 13, 26):
            ending = trx[-characters:]
            assert ids.ending_with(ending, orders) == [one for one in orders if ids.trx(one).endswith(ending)]
        assert ids.ending_with(trx[-26:], orders) == [order_id]
    assert ids.ending_with("ZZZZZZZZ", orders) == []
    assert ids.ending_with("Z", []) == []


@given(ORDER_IDS)
def test_a_trx_opens_to_its_order_and_no_other_key_opens_it(order_id: int) -> None:
    """OP-09: `TRX` and 16 to 26 characters of Crockford base 32; a sealed form of the id."""
    trx = IDS.trx(order_id)

    assert re.fullmatch("TRX[0-9A-HJKMNP-TV-Z]{26}", trx)
    assert IDS.order_id(trx) == order_id
    assert OTHER.order_id(trx) is None


@given(ORDER_IDS, st.integers(0, 29), st.characters(codec="utf-8"))
def test_the_name_of_an_event_opens_for_us_only_and_can_not_be_altered(
    number: int, at: int, character: str
) -> None:
    """OP-80: an event's name says nothing of its neighbours; an order's trx is not one."""
    name = IDS.event(number)
    altered = name[:at] + character + name[at + 1 :]

    assert re.fullmatch("evt_[0-9A-HJKMNP-TV-Z]{26}", name)
    assert IDS.event_number(altered) == (number if altered == name else None)
    assert OTHER.event_number(name) is None
    assert IDS.event_number("evt_" + IDS.trx(number)[3:]) is None


@given(ORDER_IDS, st.integers(0, 28), st.characters(codec="utf-8"))
def test_a_trx_that_was_altered_anywhere_is_nobodys(order_id: int, at: int, character: str) -> None:
    """OP-09: nothing to enumerate or guess; one spelling each."""
    trx = IDS.trx(order_id)
    altered = trx[:at] + character + trx[at + 1 :]

    assert IDS.order_id(altered) == (order_id if altered == trx else None)


@pytest.mark.parametrize(
    "text",
    ["", "TRX", "TRX" + "0" * 26, "TRX" + "Z" * 26, "TRX8" + "0" * 25, "trx" + "0" * 26, "TRX" + "é" * 26],
)
def test_a_made_up_trx_is_nobodys(text: str) -> None:
    """A made-up trx is refused without a look-up."""
    assert IDS.order_id(text) is None
    assert IDS.order_id(IDS.trx(1).lower()) is None


@given(ORDER_IDS, LINES)
def test_a_redemption_token_opens_to_its_line(order_id: int, line: int) -> None:
    """OP-57: the token is unguessable and says nothing of the order."""
    [token] = IDS.tokens(order_id, [line])

    assert IDS.line_of_token(token) == (order_id, line)
    assert OTHER.line_of_token(token) is None
    assert IDS.order_id("TRX" + token) is None


@given(ORDER_IDS)
def test_tags_are_uuids_and_differ_by_line(order_id: int) -> None:
    """OP-09: `TAG-` and a uuid."""
    tags = IDS.tags(order_id, range(100))

    assert len(set(tags)) == 100
    for tag in tags:
        assert uuid.UUID(tag.removeprefix("TAG-")).version == 8
        assert uuid.UUID(tag.removeprefix("TAG-")).variant == uuid.RFC_4122
    assert IDS.tags(order_id, [7]) == [tags[7]]


def test_neighbours_have_nothing_in_common() -> None:
    """OP-09: nothing to enumerate."""
    first, second = IDS.trx(1000), IDS.trx(1002)

    assert sum(a == b for a, b in zip(first[3:], second[3:], strict=True)) < 10


def test_the_lowest_bit_is_the_state() -> None:
    """Live and sandbox never meet: the id alone tells them apart."""
    assert [state_of(number) for number in (0, 1, 2, 3)] == [State.LIVE, State.SANDBOX] * 2
    assert [state.word for state in State] == ["live", "sandbox"]


@given(NUMBERED_IDS, LINES, NUMBERED_IDS, LINES)
def test_line_numbers_are_unique(order: int, line: int, other: int, other_line: int) -> None:
    """The extended shape's `id` names one line of one order, and every reader of JSON keeps it exact."""
    mine = line_number(IDS.order_number(order), line)
    theirs = line_number(IDS.order_number(other), other_line)
    assert (mine == theirs) == ((order, line) == (other, other_line))
    assert max(mine, theirs) < 2**53
    assert IDS.line_of_number(mine) == (order, line)


def test_numbers_of_orders_tell_no_count() -> None:
    """OP-14: who buys twice in a day can't tell from the numbers how much others bought in between."""
    numbers = [IDS.order_number(order_id) for order_id in range(2, 2_002, 2)]

    assert len(set(numbers)) == len(numbers)
    steps = [after - before for before, after in pairwise(numbers)]
    assert len(set(steps)) == len(steps)
    assert 400 < sum(step > 0 for step in steps) < 600
    with pytest.raises(ValueError, match="out of range"):
        IDS.order_number(1 << 39)


def test_a_cursor_is_sealed_for_its_list() -> None:
    """OP-03: nobody reads a place, makes one up, or takes it to another list."""
    cursor = IDS.cursor(b"orders", b"4711")

    assert IDS.cursor_place(b"orders", cursor) == b"4711"
    assert b"4711" not in bytes.fromhex(cursor)
    changed = ("b" if cursor[0] == "a" else "a") + cursor[1:]
    for foreign in (changed, cursor + "aa", cursor[:-2], cursor[:-1], "", "é", b"4711".hex(), "\x00"):
        assert IDS.cursor_place(b"orders", foreign) is None
    assert IDS.cursor_place(b"brands", cursor) is None
    assert Identifiers(bytes(32)).cursor_place(b"orders", cursor) is None


def test_each_purpose_has_a_key_of_its_own(master: bytes) -> None:
    """No key opens what another sealed."""
    keys = {derive(master, purpose) for purpose in ("trx", "tag", "token")}

    assert len(keys) == 3
    assert master not in keys
    assert len(derive(master, "trx", 64)) == 64


def test_the_forms_that_clients_keep_never_change() -> None:
    """OP-09, OP-14, OP-57: a trx, a tag, a link or a name that one release gave out is good in all later ones."""
    assert IDS.trx(2) == IDS.trx_unkept(2) == "TRX5PZCGT3KF0WCAEXQMZJBG5D8EX"
    assert IDS.event(7) == "evt_77WJC57E70HNVG6ENBRVRA1QVX"
    assert IDS.webhook(7) == "wh_2JRHW4WG72PXPPY1KX28VVPNC1"
    assert IDS.key(7) == "key_2BXVXGYGQEED4NNY287GNWXTAB"
    tags = ["TAG-d2333821-38cb-8dd2-8185-450f2ebedafa", "TAG-34774cbd-af28-87bc-9963-df8f6b83c8b7"]
    assert IDS.tags(2, []) == IDS.tokens(2, []) == []
    assert IDS.tags(2, [0, 1]) == [*IDS.tags(2, [0]), *IDS.tags(2, [1])] == tags
    assert IDS.tokens(2, [0, 1]) == ["1JN6MQBT5CQAMG37H2AJ4VER7M", "0KE1C332K5DF3FW6Q7Y9XPFZBA"]
    assert (line_number(2, 7), LINES_MAX, ORDER_BLOCK_SIZE) == (20_007, 10_000, 1_024)


NAMES = [
    (Identifiers.trx_unkept, Identifiers.order_id, 3),
    (Identifiers.event, Identifiers.event_number, 4),
    (Identifiers.webhook, Identifiers.webhook_number, 3),
    (Identifiers.key, Identifiers.key_number, 4),
]


@pytest.mark.parametrize(("name", "number", "head"), NAMES)
def test_a_name_opens_to_its_number_and_to_nothing_else(
    name: Callable[[Identifiers, int], str], number: Callable[[Identifiers, str], int | None], head: int
) -> None:
    """OP-09, OP-80: names of another kind, of another key, cut short or beyond every number are nobody's."""
    fresh = Identifiers(bytes(range(32)))
    for one in (0, 1, 2**63 - 1):
        assert number(fresh, name(fresh, one)) == one
    assert number(fresh, name(fresh, 2**63)) is None
    assert number(fresh, name(fresh, 2**64 - 1)) is None
    text = name(fresh, 5)
    assert number(OTHER, text) is None
    for wrong in (
        text[:-1],
        text + "0",
        text[head:],
        "x" * head + text[head:],
        text[:head] + "Z" * 26,
        text[:head],
    ):
        assert number(fresh, wrong) is None
    for other, _, other_head in NAMES:
        if other is not name:
            assert number(fresh, text[:head] + other(fresh, 5)[other_head:]) is None


def test_a_token_opens_to_nothing_beyond_every_number() -> None:
    """OP-57: what was not sealed for a line of ours is nobody's."""
    assert IDS.line_of_token(IDS.tokens(2**63 - 1, [9_999])[0]) == (2**63 - 1, 9_999)
    assert IDS.line_of_token(IDS.tokens(2**63, [0])[0]) is None
    assert IDS.line_of_token("") is None
    assert IDS.line_of_token(IDS.trx(2)[3:]) is None


def test_as_many_orders_are_remembered_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-09: a trx opens whether it is remembered or not, and memory has a bound."""
    monkeypatch.setattr(ids, "KEPT_MAX", 2)
    small = Identifiers(bytes(range(32)))
    names = [small.trx(number) for number in (2, 4)]
    assert len(small._recent) == 2
    names.append(small.trx(6))
    assert len(small._recent) == 1
    assert [small.order_id(name) for name in names] == [2, 4, 6]
    assert small.order_id(small.trx_unkept(8)) == 8
    assert len(small._recent) == 1, "what is not to be kept pushes nothing out"


def test_the_last_bit_of_a_number_is_its_state() -> None:
    """OP-29: live and sandbox are told apart by it everywhere."""
    assert [State(number & 1) for number in (2, 3)] == [State.LIVE, State.SANDBOX]
