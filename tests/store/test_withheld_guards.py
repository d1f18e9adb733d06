"""The guards of recoveries: no code is withheld that was sold, none moves that was not released, all of it stays."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.store.test_guards import GROUND, deliver, refused
from voucherd.db import Pool, Tx, transaction
from voucherd.ids import EPOCH_BLOCKS_MIN, ORDER_BLOCK_SIZE, ORDER_NUMBER_BITS, epoch_blocks
from voucherd.recovery import store

WITHHOLD = "INSERT INTO withheld (recovery_id, lot_id, seq_from, seq_to) VALUES (1, 2, {}, {})"
RELEASE = "INSERT INTO withheld_release (lot_id, withheld_id, seq_from, seq_to) VALUES ({}, 1, {}, {})"
LOTS = """
INSERT INTO recovery (moment, source) VALUES (now(), 'x');
INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency, purchase_fx_e8, size)
SELECT id, 1, 1000, 0, 'own', 900, 'EUR', 100000000, 5 FROM unnest(ARRAY[12, 14]) AS id;
INSERT INTO code (lot_id, seq, sealed, blind) VALUES (2, 30, 'x', '0123456789abcdeX'), (2, 40, 'x', '0123456789abcdeY');
"""


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on a small shop that was restored; codes 30 and 40 of lot 2 are there, and its cursor is at 50."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND + LOTS)
        yield opened


async def test_only_what_the_cursor_passed_and_nobody_sold_is_withheld(tx: Tx) -> None:
    """OP-120: a code is sold, or withheld once, or for sale."""
    await deliver(tx, 0, 5, 10)
    await refused(tx, WITHHOLD.format(45, 51), "sold or withheld already")
    await refused(tx, WITHHOLD.format(14, 20), "sold or withheld already")
    await refused(tx, WITHHOLD.format(15, 20).replace("(1, 2,", "(1, 8,"), "sold or withheld already")
    await tx.execute(WITHHOLD.format(15, 50))
    await refused(tx, WITHHOLD.format(49, 50), "sold or withheld already")
    await refused(tx, "UPDATE withheld SET seq_to = 20", "is only ever added to|append-only|changed")
    await refused(tx, "DELETE FROM withheld", "is only ever added to|append-only|changed")


async def test_a_code_moves_only_to_the_lot_that_it_was_released_to(tx: Tx) -> None:
    """OP-120: a release is within what is withheld, and happens once."""
    move = "UPDATE code SET lot_id = {}, seq = {} WHERE lot_id = 2 AND seq = {}"
    await tx.execute(WITHHOLD.format(20, 40))
    await refused(tx, move.format(12, 0, 30), "stays in its place")
    await refused(tx, RELEASE.format(12, 36, 41), "not withheld")
    await refused(tx, RELEASE.format(16, 30, 35), "not withheld")
    await tx.execute(RELEASE.format(12, 30, 35))
    await refused(tx, RELEASE.format(14, 34, 36), "not withheld")
    await refused(tx, move.format(12, 1, 30), "stays in its place")
    await refused(tx, move.format(14, 0, 30), "stays in its place")
    await refused(tx, move.format(12, 0, 40), "stays in its place")
    await tx.execute(move.format(12, 0, 30))
    await refused(
        tx, "UPDATE code SET blind = '0123456789abcdeZ'", "is only ever added to|append-only|changed"
    )
    await refused(tx, "DELETE FROM withheld_release", "is only ever added to|append-only|changed")


async def test_a_restore_is_recovered_from_once_and_stays_written_down(tx: Tx) -> None:
    """OP-119: there is one restore at a time that waits for its recovery."""
    await refused(tx, "INSERT INTO recovery (moment, source) VALUES (now(), 'y')", "recovery_open")
    await refused(tx, "UPDATE recovery SET moment = now()", "is only ever added to|append-only|changed")
    await refused(tx, "DELETE FROM recovery", "is only ever added to|append-only|changed")
    await tx.execute("UPDATE recovery SET recovered_at = now()")
    await refused(tx, "UPDATE recovery SET recovered_at = NULL", "is only ever added to|append-only|changed")
    await tx.execute("INSERT INTO drill (backup_at, ok, said, seconds) VALUES (now(), true, '', 1)")
    await refused(tx, "UPDATE drill SET ok = false", "is only ever added to|append-only|changed")


async def test_every_number_of_the_schema_jumps(tx: Tx) -> None:
    """OP-121: no sequence gives a number again that the lost time may have given."""
    rows = await tx.fetch("SELECT sequencename, coalesce(last_value, 0) FROM pg_sequences")
    before = {row[0]: row[1] for row in rows}
    ends = await store.jump(tx, 60.0)
    assert ends.keys() >= {"order_block", "lot_number", "webhook_number", "event_id_seq", "api_key_id_seq"}
    assert all(ends[name] >= before.get(name, 0) + store.SMALL_STEP for name in ends)
    assert await tx.fetchval("SELECT nextval('order_block')") == ends["order_block"] + 1


def test_a_new_epoch_is_behind_the_lost_time_and_leaves_room_for_others() -> None:
    """OP-121: numbers of orders stay below 2^39, however wrong a clock was."""
    end = (1 << ORDER_NUMBER_BITS) // ORDER_BLOCK_SIZE
    assert epoch_blocks(7, 60.0) == 7 + EPOCH_BLOCKS_MIN
    assert epoch_blocks(7, 30 * 86_400.0) == 7 + 8 * 30 * 86_400
    last = 0
    for _ in range(100):
        last, before = epoch_blocks(last, 1e9), last
        assert before <= last < end
