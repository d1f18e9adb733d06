"""A large order is sent in pieces; put together they are the order as it would be in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.handmade import order
from tests.wire import gallery
from voucherd.api.wire.order import is_large, render, stream
from voucherd.api.wire.versions import SHAPES
from voucherd.orders.answers import Codes
from voucherd.orders.model import INLINE_LINES_MAX, Order, Outcome
from voucherd.orders.rules.states import Payment, Status

LINES = 1_234
FINISHED = gallery.gift(
    5_000,
    LINES,
    status=Status.FINISHED,
    payment_status=Payment.PAID,
    lines_finished=LINES,
    outcomes=(Outcome(0, LINES, 40, 77),),
)
SEVERAL_LOTS = gallery.gift(
    5_002,
    LINES,
    status=Status.PENDING,
    payment_status=Payment.PAID,
    lines_finished=900,
    outcomes=(Outcome(0, 1, 42, 5), Outcome(1, 700, 40, 0), Outcome(700, 900, 42, 6)),
)
CANCELLED_REST = gallery.gift(
    5_004,
    LINES,
    status=Status.CANCELLED,
    payment_status=Payment.PARTIALLY_REFUNDED,
    lines_finished=500,
    lines_cancelled=734,
    outcomes=(Outcome(0, 500, 40, 0), Outcome(500, LINES, None, None)),
)
UNTOUCHED = gallery.gift(5_006, LINES)
TWO_ITEMS = order(
    5_008,
    (gallery.GIFT, gallery.GIFT_UNIT, 600),
    (gallery.GAME, gallery.GAME_UNIT, 634),
    offers=gallery.OFFERS,
    status=Status.PENDING,
    payment_status=Payment.PAID,
    lines_finished=700,
    outcomes=(Outcome(0, 550, 40, 0), Outcome(600, 750, 44, 2)),
)
ORDERS = {
    "finished": FINISHED,
    "several lots": SEVERAL_LOTS,
    "cancelled rest": CANCELLED_REST,
    "untouched": UNTOUCHED,
    "two items": TWO_ITEMS,
}


class Vault:
    """Reads codes and remembers how many at once."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    async def read(self, ranges: Sequence[tuple[int, int, int]]) -> Codes:
        """The codes of each range."""
        self.reads.append(sum(b - a for _, a, b in ranges))
        return [[gallery.code(lot_id, seq) for seq in range(a, b)] for lot_id, a, b in ranges]


async def streamed(shown: Order, version: str, vault: Vault, *, bare: bool) -> list[bytes]:
    """The pieces of a stream."""
    view = gallery.view(shown, bare=bare, with_codes=False)
    assert is_large(view)
    return [piece async for piece in stream(SHAPES[version], view, vault.read)]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("version", SHAPES)
@pytest.mark.parametrize("bare", [True, False])
async def test_the_pieces_of_a_stream_are_the_whole_order(name: str, version: str, bare: bool) -> None:
    """Contract 2: the same order, whichever way it was sent."""
    shown = ORDERS[name]
    vault = Vault()

    pieces = await streamed(shown, version, vault, bare=bare)

    whole = render(SHAPES[version], gallery.view(shown, bare=bare))
    assert json.loads(b"".join(pieces)) == json.loads(whole)
    assert b"".join(pieces) == whole
    lines = [line for item in json.loads(whole)["items"] for line in item["orderLines"]]
    assert len({line["tag"] for line in lines}) == LINES
    assert sum(vault.reads) == shown.lines_finished


async def test_no_piece_holds_more_than_a_few_hundred_lines() -> None:
    """OP-14: 10,000 extended lines are never in memory as a whole."""
    vault = Vault()
    pieces = await streamed(FINISHED, "1.03", vault, bare=False)
    assert max(vault.reads) <= INLINE_LINES_MAX
    assert max(piece.count(b'"tag":') for piece in pieces) <= INLINE_LINES_MAX
