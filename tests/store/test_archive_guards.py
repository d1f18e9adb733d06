"""The guards of the archive: rows go by its function alone, called by the owner, and only of orders that are over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.store.test_guards import GROUND, cancel, deliver, refused
from voucherd.db import Pool, Tx, open_pool, transaction
from voucherd.migrate import service_url

OVER = """
UPDATE orders SET status = 3, payment_status = 3, charged_minor = 121, refunded_minor = 121, lines_cancelled = 20,
    created_at = '2020-01-15', updated_at = '2020-01-15' WHERE id = 2;
"""
NOTED = """
SELECT set_config('voucherd.archiving', 'on', true);
INSERT INTO archive_month (month, orders, last_at)
VALUES ('2020-01-01', 1, '2020-01-15'), ('2020-02-01', 0, '2020-02-15');
INSERT INTO archive_file (month, name, first_id, last_id, orders, bytes, sha256)
VALUES ('2020-01-01', 'a.parquet', 2, 4, 1, 1, sha256('x'));
SELECT set_config('voucherd.archiving', 'off', true);
"""
BOOKED = """
ALTER TABLE entry DISABLE TRIGGER entry_payment_tied;
INSERT INTO entry (wallet_id, seq, kind, amount_minor, balance_after_minor, held_after_minor, order_id, reference, at)
VALUES (2, 1, 6, 200, 200, 0, NULL, 'r', '2020-01-15'), (2, 2, 2, -121, 79, 0, 2, NULL, '2020-01-15'),
       (2, 3, 6, 1, 80, 0, NULL, 's', '2020-01-15'), (2, 4, 3, 121, 201, 0, 2, NULL, '2020-01-16'),
       (2, 5, 6, 1, 202, 0, NULL, 't', '2020-01-17');
"""
REMOVE = "SELECT remove_archived('2020-01-01', '{{{}}}')"


@pytest.fixture
async def tx(pool: Pool) -> AsyncIterator[Tx]:
    """A transaction on a small shop with an order that is over and in a file."""
    async with transaction(pool) as opened:
        await opened.execute(GROUND + OVER)
    async with pool.acquire() as conn:
        undone = conn.transaction()
        await undone.start()
        await cancel(conn, 0, 20)
        await conn.execute(NOTED + BOOKED)
        yield conn
        await undone.rollback()


async def test_an_order_that_is_over_and_in_a_file_may_leave(tx: Tx) -> None:
    """OP-129: its rows go, its sums stay, and to do it again does nothing."""
    assert await tx.fetchval(REMOVE.format(2)) == 1
    assert await tx.fetchval(REMOVE.format(2)) == 0

    for table in ("outcome", "order_item"):
        assert await tx.fetchval(f"SELECT count(*) FROM {table} WHERE order_id = 2") == 0  # noqa: S608 - Ours.
    row = await tx.fetchrow("SELECT wallet_id, orders, charged_minor, refunded_minor FROM archived_wallet")
    assert tuple(row or ()) == (2, 1, 121, 121)
    assert await tx.fetchval("SELECT current_setting('voucherd.archiving')") == "off"
    rows = await tx.fetch("SELECT seq, kind FROM entry WHERE wallet_id = 2 ORDER BY seq")
    assert [tuple(row) for row in rows] == [(1, 6), (3, 6), (5, 6)]
    row = await tx.fetchrow("SELECT wallet_id, seq, balance_minor, held_minor FROM archived_ledger")
    assert tuple(row or ()) == (2, 4, 201, 0)


async def test_an_order_whose_entries_do_not_fit_stays(tx: Tx) -> None:
    """Invariant 1: what was charged is what the entries tell, and the chain is whole, or nothing leaves."""
    more = "UPDATE orders SET charged_minor = 121, refunded_minor = 0 WHERE id = 2;"
    await refused(tx, more + REMOVE.format(2), "not what it was charged and refunded")
    await tx.execute("ALTER TABLE entry DISABLE TRIGGER USER")
    broken = "UPDATE entry SET balance_after_minor = 200 WHERE seq = 4;"
    await refused(tx, broken + REMOVE.format(2), "do not continue one another")
    gone = "DELETE FROM entry WHERE seq = 3;"
    await refused(tx, gone + REMOVE.format(2), "do not continue one another")


async def test_every_other_order_stays(tx: Tx) -> None:
    """OP-129: one that is not over, of another month, in no file, with a PIN, or of a month that is not noted."""
    stays = "stays in its table"
    await refused(tx, REMOVE.format("2,4"), stays)
    other_month = "UPDATE orders SET created_at = '2020-02-01' WHERE id = 2;"
    await refused(tx, other_month + REMOVE.format(2), stays)
    await refused(tx, "SELECT remove_archived('2020-02-01', '{2}')", stays)
    with_pin = "INSERT INTO order_pin (order_id, hash) VALUES (2, sha256('1'));"
    await refused(tx, with_pin + REMOVE.format(2), stays)
    moved = "SELECT set_config('voucherd.archiving', 'on', true); UPDATE archive_file SET first_id = 3;"
    await refused(tx, moved + REMOVE.format(2), stays)
    await refused(tx, "SELECT remove_archived('2020-03-01', '{2}')", "not written to files")
    closed = (
        "SELECT set_config('voucherd.archiving', 'on', true); UPDATE archive_month SET removed_at = now();"
    )
    await refused(tx, closed + REMOVE.format(2), "not written to files")


async def test_codes_of_archived_orders_become_ranges_and_none_is_sold_twice(tx: Tx) -> None:
    """Invariant 3: ranges that touch are one; a code that was archived before can't be archived again."""
    await tx.execute("ALTER TABLE outcome DISABLE TRIGGER USER; DELETE FROM outcome")
    for line_from, line_to, seq in ((0, 5, 10), (5, 10, 15), (10, 12, 30)):
        await deliver(tx, line_from, line_to, seq)
    await tx.execute("ALTER TABLE outcome ENABLE TRIGGER USER")
    archived = "SELECT set_config('voucherd.archiving', 'on', true); INSERT INTO archived_codes VALUES {};"
    await refused(tx, archived.format("(2, 14, 16)") + REMOVE.format(2), "a code was sold twice")
    await tx.execute(archived.format("(2, 20, 25), (2, 0, 9)"))

    await tx.execute(REMOVE.format(2))

    rows = await tx.fetch("SELECT seq_from, seq_to FROM archived_codes WHERE lot_id = 2 ORDER BY 1")
    assert [tuple(row) for row in rows] == [(0, 9), (10, 25), (30, 32)]


CHANGES = (
    "DELETE FROM outcome",
    "DELETE FROM entry",
    "DELETE FROM archived_ledger",
    "DELETE FROM attempt_line",
    "DELETE FROM line_view",
    "DELETE FROM orders WHERE id = 2",
    "DELETE FROM archived_view",
    "INSERT INTO archive_month (month, orders, last_at) VALUES ('2020-05-01', 0, now())",
    "UPDATE archive_file SET first_id = 0",
    "DELETE FROM archived_wallet",
    "INSERT INTO archived_codes VALUES (2, 0, 1)",
    "DELETE FROM archived_purchase",
)


async def test_outside_of_the_archive_all_of_it_is_append_only(tx: Tx) -> None:
    """Invariant 5: history never changes, whoever forgets a WHERE."""
    for change in CHANGES:
        await refused(tx, change, "is append-only")


async def test_a_view_of_an_archived_line_stays_as_it_is(tx: Tx) -> None:
    """OP-57: the first time is the first time."""
    await tx.execute(
        "INSERT INTO archived_view (order_id, line, company_id, link_viewed_at) VALUES (2, 0, 1, now())"
    )
    await refused(tx, "UPDATE archived_view SET link_viewed_at = now() - interval '1 day'", "append-only")
    await tx.execute("UPDATE archived_view SET voucher_viewed_at = now()")


async def test_the_role_of_the_service_can_take_nothing_away(pool: Pool, database_url: str) -> None:
    """OP-105, OP-129: who has the password of the service can't make history disappear, with the switch set or not."""
    url = await service_url(database_url)
    if url == database_url:
        pytest.skip("this server has no role for the service")
    async with transaction(pool) as opened:
        await opened.execute(GROUND + OVER + NOTED)
        await cancel(opened, 0, 20)
    service = await open_pool(url)
    try:
        for change in (
            REMOVE.format(2),
            "DELETE FROM outcome",
            "UPDATE archive_month SET removed_at = now()",
        ):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
                await service.execute(f"SET voucherd.archiving = 'on'; {change}")
    finally:
        await service.close()
    assert await pool.fetchval("SELECT count(*) FROM outcome") == 1
