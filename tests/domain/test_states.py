"""The table of states, held against Contract 3."""

from __future__ import annotations

from itertools import product

import pytest

from voucherd.orders.rules.states import MOVES, IllegalMove, Move, Payment, Status, move

# Contract 3, row by row: where an order starts, what happens to it, where it ends. "Within 20-30 seconds" is how
# long the call watches, not a move of its own.
SECTION_3 = [
    ("created", "confirm, all lines delivered", [Move.PAID, Move.DELIVERED], "finished"),
    ("created", "confirm, not all lines delivered", [Move.PAID], "pending"),
    ("created", "confirm, sandbox chance", [Move.DECLINED], "cancelled"),
    ("created", "resolve, delivered from stock", [Move.PAID, Move.DELIVERED], "finished"),
    ("created", "resolve, delivered within the limit", [Move.HELD, Move.DELIVERED], "finished"),
    ("created", "resolve, not delivered within the limit", [Move.HELD, Move.CANCELLED], "cancelled"),
    ("created", "resolve, sandbox chance", [Move.DECLINED], "cancelled"),
    ("pending", "background fulfilment completes", [Move.DELIVERED], "finished"),
    ("created", "cancel, not confirmed", [Move.WITHDRAWN], "deleted"),
    ("pending", "cancel, confirmed", [Move.CANCELLED], "cancelled"),
]


@pytest.mark.parametrize(("start", "trigger", "moves", "end"), SECTION_3)
def test_every_row_of_section_3_is_a_path_through_the_table(
    start: str, trigger: str, moves: list[Move], end: str
) -> None:
    """Contract 3: the transitions."""
    status = Status[start.upper()]
    for event in moves:
        status = move(status, event)
    assert status is Status[end.upper()], trigger


def test_the_table_has_no_move_that_section_3_does_not_need() -> None:
    """Contract 3: nothing else can happen to an order."""
    used = set()
    for start, _, moves, _ in SECTION_3:
        status = Status[start.upper()]
        for event in moves:
            used.add((status, event))
            status = move(status, event)
    assert set(MOVES) == used


def test_any_other_move_is_a_programmers_error() -> None:
    """Contract 3: a finished, cancelled or deleted order stays what it is."""
    refused = [pair for pair in product(Status, Move) if pair not in MOVES]
    assert len(refused) == len(Status) * len(Move) - len(MOVES)
    for status, event in refused:
        with pytest.raises(
            IllegalMove, match=f"{event.name.lower()} on an order that is {status.name.lower()}"
        ):
            move(status, event)


def test_the_statuses_are_those_of_the_contract_in_the_order_of_the_database() -> None:
    """Contract 3: created, pending, finished, cancelled, deleted."""
    words = [status.name.lower() for status in Status]
    assert words == ["created", "pending", "finished", "cancelled", "deleted"]
    assert [int(status) for status in Status] == [0, 1, 2, 3, 4]


def test_the_payments_are_kept_by_their_numbers() -> None:
    """OP-11: unpaid, paid, partially refunded, refunded; the number is what the database keeps."""
    words = [(int(payment), payment.name.lower()) for payment in Payment]
    assert words == [(0, "unpaid"), (1, "paid"), (2, "partially_refunded"), (3, "refunded")]
