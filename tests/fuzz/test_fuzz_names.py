"""Identifiers that strangers make up: they open nothing, and each of ours has one spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.bounded import bounded, briefly
from tests.fuzz.inputs import around, kept, texts
from tests.fuzz.world import MASTER
from voucherd.api import catalogue_requests, query, requests
from voucherd.ids import Identifiers
from voucherd.keys.key_text import bearer_key, well_formed
from voucherd.orders.rules.refusals import BadInput
from voucherd.storefront.listing import ProductOrder
from voucherd.storefront.sorting import Sort

IDS: Final = Identifiers(MASTER)
SEALED: Final[dict[str, tuple[Callable[[str], int | None], Callable[[int], str]]]] = {
    "trx": (IDS.order_id, IDS.trx_unkept),
    "event": (IDS.event_number, IDS.event),
    "webhook": (IDS.webhook_number, IDS.webhook),
    "key": (IDS.key_number, IDS.key),
}
"""How each kind of name is opened, and how it is written."""
CURSORS: Final = (b"orders", b"products", b"changes", b"brands")
ORDER: Final = ProductOrder(Sort.NAME, False)


@briefly
@given(name=texts(kept("names")))
def test_a_name_opens_if_it_is_ours_to_the_letter_and_else_not(name: str) -> None:
    """OP-09, OP-57: nothing is raised for a made-up name, and no name has a second spelling."""
    with bounded():
        for opened, written in SEALED.values():
            number = opened(name)
            assert number is None or written(number) == name
        line = IDS.line_of_token(name)
        assert line is None or IDS.tokens(line[0], [line[1]]) == [name]
        for kind in CURSORS:
            place = IDS.cursor_place(kind, name)
            assert place is None or IDS.cursor(kind, place) == "".join(name.split()).lower()


@briefly
@given(name=texts(kept("names") + kept("queries")))
def test_a_cursor_is_ours_or_refused(name: str) -> None:
    """OP-03, OP-25: whatever stands in a cursor is a place of ours, or named as bad input."""
    readers: tuple[Callable[[], object], ...] = (
        lambda: requests.read_cursor(IDS, name),
        lambda: catalogue_requests.read_place(IDS, name, ORDER),
        lambda: catalogue_requests.read_number(IDS, name),
        lambda: query.read_place(name),
    )
    for reader in readers:
        with bounded():
            try:
                reader()
            except BadInput:
                continue


@briefly
@given(
    header=around((b"Bearer vk_live_0123456789abcdef", b"bearer  vk_sandbox_x", b"Basic dTpw")),
    number=st.integers(),
)
def test_a_key_is_well_formed_or_nobody_looks_for_it(header: bytes, number: int) -> None:
    """OP-24: a header of any bytes names a well-formed key or none; a made-up number of a line names some order."""
    with bounded():
        key = bearer_key(header)
        assert key is None or well_formed(key)
        assert isinstance(IDS.line_of_number(abs(number) % (1 << 53)), tuple)
