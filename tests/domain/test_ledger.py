"""The ledger's arithmetic: a wallet, a movement, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from voucherd.wallet.ledger import EntryKind, LedgerEntry, Overdrawn, Wallet, post


def test_a_movement_gives_the_next_wallet_and_the_entry_that_carries_it() -> None:
    """Contract 1: the balance is debited; every entry says what the balance was after it."""
    wallet, entry = post(
        Wallet(3, 1_000, 400, 7),
        EntryKind.ORDER,
        amount_minor=-300,
        vat_minor=-50,
        hold_minor=-300,
        order_id=12,
        reference="R",
    )

    assert wallet == Wallet(3, 700, 100, 8)
    assert entry == LedgerEntry(3, 8, EntryKind.ORDER, -300, -50, -300, 700, 100, 12, "R")


def test_a_movement_moves_nothing_that_it_does_not_name() -> None:
    """Contract 1: money that is held is neither charged nor taxed, and stays in the balance."""
    wallet, entry = post(Wallet(3, 1_000, 0, 0), EntryKind.HOLD, hold_minor=1)

    assert wallet == Wallet(3, 1_000, 1, 1)
    assert entry == LedgerEntry(3, 1, EntryKind.HOLD, 0, 0, 1, 1_000, 1, None, None)
    assert post(wallet, EntryKind.TOP_UP, amount_minor=5)[0] == Wallet(3, 1_005, 1, 2)


@pytest.mark.parametrize(
    ("movement", "refused"),
    [
        ({"amount_minor": -600}, False),
        ({"amount_minor": -601}, True),
        ({"hold_minor": 600}, False),
        ({"hold_minor": 601}, True),
        ({"hold_minor": -400}, False),
        ({"hold_minor": -401}, True),
        ({"amount_minor": 5, "hold_minor": -401}, True),
        ({"amount_minor": -1_000, "hold_minor": -400}, False),
        ({"amount_minor": -1_001, "hold_minor": -400}, True),
    ],
)
def test_no_movement_takes_more_than_is_free_or_releases_more_than_is_held(
    movement: dict[str, Any], refused: bool
) -> None:
    """Contract 7, OP-46: what is held can't be spent, and less than nothing can't be held."""
    wallet = Wallet(3, 1_000, 400, 0)
    assert wallet.available_minor == 600
    if refused:
        with pytest.raises(Overdrawn, match="3"):
            post(wallet, EntryKind.ORDER, **movement)
    else:
        assert post(wallet, EntryKind.ORDER, **movement)[0].seq == 1


def test_the_kinds_of_movements_keep_their_numbers_and_words() -> None:
    """Contract 1: the number is in every row of the ledger, the word in every statement."""
    assert [(int(kind), kind.word) for kind in EntryKind] == [
        (1, "top-up"),
        (2, "order"),
        (3, "refund"),
        (4, "hold"),
        (5, "release"),
        (6, "correction"),
    ]
