"""The guards of archived blocks: rows of the trail go by one function alone, which the owner of the tables calls."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store.test_guards import refused
from voucherd.db import Pool, Tx, open_pool
from voucherd.migrate import service_url

ROWS = """
INSERT INTO reveal (id, at, order_id, company_id, line_from, lines, via, actor_kind) OVERRIDING SYSTEM VALUE
SELECT id, '2020-01-15', 2, 1, 0, 1, 0, 4 FROM generate_series(1, 9) AS id;
INSERT INTO trail (id, at, actor_kind, actor, action, subject) OVERRIDING SYSTEM VALUE
SELECT id, '2020-01-15', 4, 'x', 'a.b', 'x' FROM generate_series(1, 3) AS id;
INSERT INTO trail_seal (book, block, first_id, last_id, rows, previous, hash)
SELECT 'reveal', block, block * 3 - 2, block * 3, 3, sha256('x'), sha256('x') FROM generate_series(1, 3) AS block;
INSERT INTO trail_seal (book, block, first_id, last_id, rows, previous, hash)
VALUES ('trail', 1, 1, 3, 3, sha256('x'), sha256('x'));
"""
NOTE = """
SELECT set_config('voucherd.archiving', 'on', true);
INSERT INTO archived_blocks (book, first_block, last_block, first_id, last_id, rows, last_at, bytes, sha256)
VALUES ('reveal', {}, {}, {}, {}, {}, {}, 1, sha256('x'));
SELECT set_config('voucherd.archiving', 'off', true);
"""
NOTED = NOTE.format(1, 2, 1, 6, 6, "'2020-01-15'")
OVER = "SELECT set_config('voucherd.archiving', 'on', true); UPDATE archived_blocks SET removed_at = now();"
REMOVE = "SELECT remove_archived_blocks('reveal', {}, {})"


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on books with old blocks."""
    async with pool.acquire() as conn:
        undone = conn.transaction()
        await undone.start()
        await conn.execute(ROWS)
        yield conn
        await undone.rollback()


async def test_whole_blocks_that_are_in_a_file_may_leave(tx: Tx) -> None:
    """OP-134: their rows go, their seals stay; in whichever order within the file."""
    await tx.execute(NOTED)
    assert await tx.fetchval(REMOVE.format(2, 2)) == 3
    assert await tx.fetchval(REMOVE.format(1, 1)) == 3
    assert [row[0] for row in await tx.fetch("SELECT id FROM reveal ORDER BY id")] == [7, 8, 9]
    assert await tx.fetchval("SELECT count(*) FROM trail_seal") == 4
    assert await tx.fetchval("SELECT current_setting('voucherd.archiving')") == "off"


async def test_every_other_block_stays(tx: Tx) -> None:
    """OP-134: one that is in no file, or too young, or not whole, or whose file has left already."""
    in_no_file = "are in no file, or too young"
    await refused(tx, REMOVE.format(1, 1), in_no_file)
    await refused(tx, NOTED + REMOVE.format(1, 3), in_no_file)
    await refused(tx, NOTED + REMOVE.format(2, 1), in_no_file)
    await refused(tx, NOTED + "SELECT remove_archived_blocks('trail', 1, 1)", in_no_file)
    young = NOTE.format(1, 2, 1, 6, 6, "now() - interval '27 days'")
    await refused(tx, young + REMOVE.format(1, 1), in_no_file)
    await refused(tx, NOTED + OVER + REMOVE.format(1, 1), in_no_file)
    not_whole = "are not whole in their table"
    await refused(tx, NOTED + REMOVE.format(1, 1) + ";" + REMOVE.format(1, 2), not_whole)
    younger = NOTE.format(1, 2, 1, 6, 6, "'2020-01-14'")
    await refused(tx, younger + REMOVE.format(1, 1), not_whole)


async def test_a_file_holds_what_was_sealed_and_follows_the_file_before(tx: Tx) -> None:
    """OP-134: only a prefix of the chain may leave."""
    old = "'2020-01-15'"
    await refused(tx, NOTE.format(2, 2, 4, 6, 3, old), "only blocks that follow")
    for wrong in ((1, 2, 1, 6, 5), (1, 2, 1, 7, 6), (1, 2, 2, 6, 6), (1, 4, 1, 9, 9)):
        await refused(tx, NOTE.format(*wrong, old), "the blocks that were sealed")
    await tx.execute(NOTED)
    await refused(tx, NOTE.format(1, 1, 1, 3, 3, old), "only blocks that follow")
    await tx.execute(NOTE.format(3, 3, 7, 9, 3, old))


async def test_a_row_of_the_trail_that_a_payment_is_tied_to_stays(tx: Tx) -> None:
    """OP-134, OP-105: a payment is told by its row of the trail for as long as there are books."""
    await tx.execute(NOTED.replace("'reveal', 1, 2, 1, 6, 6", "'trail', 1, 1, 1, 3, 3"))
    await tx.execute("ALTER TABLE payment_deed DROP CONSTRAINT payment_deed_wallet_id_seq_fkey")
    await tx.execute("INSERT INTO payment_deed (wallet_id, seq, trail_id) VALUES (2, 1, 2)")
    assert await tx.fetchval("SELECT remove_archived_blocks('trail', 1, 1)") == 2
    assert [row[0] for row in await tx.fetch("SELECT id FROM trail")] == [2]
    await refused(
        tx, "SELECT set_config('voucherd.archiving', 'on', true); DELETE FROM trail", "violates foreign key"
    )


CHANGES = (
    "DELETE FROM reveal",
    "DELETE FROM trail",
    "INSERT INTO archived_blocks (book, first_block, last_block, first_id, last_id, rows, last_at, bytes, sha256)"
    " VALUES ('reveal', 3, 3, 7, 9, 3, '2020-01-15', 1, sha256('x'))",
    "UPDATE archived_blocks SET removed_at = now()",
    "DELETE FROM archived_blocks",
)


async def test_outside_of_the_archive_nothing_leaves_and_nothing_is_noted(tx: Tx) -> None:
    """OP-94, OP-134: whoever forgets a WHERE, and whoever forgets what was noted before."""
    await tx.execute(NOTED)
    for change in CHANGES:
        await refused(tx, change, "is append-only")
    for again in ("last_block = 3", "removed_at = NULL"):
        await refused(tx, f"{OVER} UPDATE archived_blocks SET {again}", "is append-only")  # noqa: S608 - Ours.
    await tx.execute("SELECT set_config('voucherd.archiving', 'on', true)")
    await refused(tx, "UPDATE archived_blocks SET last_block = 3", "is append-only")


async def test_the_role_of_the_service_can_neither_note_a_file_nor_remove_a_block(
    pool: Pool, database_url: str
) -> None:
    """OP-105, OP-134: with the switch set or not; it has no right to write the notes, and a trigger beside that."""
    url = await service_url(database_url)
    if url == database_url:
        pytest.skip("this server has no role for the service")
    await pool.execute(ROWS)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute(NOTED)
    service = await open_pool(url)
    try:
        for change in (*CHANGES, REMOVE.format(1, 1)):
            with pytest.raises(
                (asyncpg.InsufficientPrivilegeError, asyncpg.IntegrityConstraintViolationError)
            ):
                await service.execute(f"SET voucherd.archiving = 'on'; {change}")
        await pool.execute("GRANT INSERT, UPDATE, DELETE ON archived_blocks TO voucherd_service")
        for change in (*CHANGES, REMOVE.format(1, 1)):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="is append-only"):
                await service.execute(f"SET voucherd.archiving = 'on'; {change}")
    finally:
        await service.close()
    assert await pool.fetchval("SELECT count(*) FROM reveal") == 9
