"""The audit of what changed since it was last run: quick, and honest about what it can not see."""

from __future__ import annotations

from typing import Final

from tests.shop import Shop
from voucherd.actors import SYSTEM
from voucherd.audit import AuditSince, audit, audit_since
from voucherd.db import Connection

NEWEST_ITEM: Final = (
    "UPDATE order_item SET pay_price_minor = pay_price_minor {} WHERE order_id = (SELECT max(id) FROM orders)"
)


async def since_last(shop: Shop) -> AuditSince:
    """One run."""
    async with shop.pool.acquire() as conn:
        return await audit_since(conn, SYSTEM, shop.sealer)


async def by_hand(conn: Connection, table: str, sql: str) -> None:
    """Change rows with the guards of their table switched off."""
    await conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    await conn.execute(sql)
    await conn.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


async def test_a_run_goes_on_where_the_last_one_that_found_nothing_ended(quiet_shop: Shop) -> None:
    """OP-117: the first run looks at everything, the next one at what changed; a fault is found until it is gone."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=20)
    for _ in range(3):
        await shop.confirm(company, (await shop.create(company, ("gift-10", 1)))["trx"])

    first = await since_last(shop)
    assert (first.findings, first.mark, first.marked) == ([], None, True)
    idle = await since_last(shop)
    assert (idle.findings, idle.orders, idle.marked) == ([], 0, True)
    await shop.confirm(company, (await shop.create(company, ("gift-10", 2)))["trx"])
    second = await since_last(shop)
    assert (second.findings, second.orders, second.marked) == ([], 1, True)

    await shop.confirm(company, (await shop.create(company, ("gift-10", 1)))["trx"])
    async with shop.pool.acquire() as conn, conn.transaction():
        await by_hand(conn, "order_item", NEWEST_ITEM.format("+ 1"))
    for _ in range(2):
        broken = await since_last(shop)
        assert "order-is-its-items" in {finding.check for finding in broken.findings}
        assert not broken.marked
    async with shop.pool.acquire() as conn, conn.transaction():
        await by_hand(conn, "order_item", NEWEST_ITEM.format("- 1"))
    assert (await since_last(shop)).marked
    await shop.assert_books_balance()


async def test_a_balance_that_somebody_changed_is_seen_however_old_it_is(quiet_shop: Shop) -> None:
    """OP-117: every wallet is compared with its mark and its entries since, whether something happened to it or not."""
    shop = quiet_shop
    await shop.company(balance="50.00 EUR")
    assert (await since_last(shop)).marked

    async with shop.pool.acquire() as conn, conn.transaction():
        await by_hand(conn, "wallet", "UPDATE wallet SET balance_minor = balance_minor + 1")

    assert [finding.check for finding in (await since_last(shop)).findings] == ["wallet-is-its-entries"]


async def test_an_old_row_that_somebody_changed_is_seen_by_the_whole_audit_alone(quiet_shop: Shop) -> None:
    """OP-117: nothing happened to the order since, so a run since the last one does not look at it; the docs say so."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    await shop.confirm(company, (await shop.create(company, ("gift-10", 1)))["trx"])
    assert (await since_last(shop)).marked

    async with shop.pool.acquire() as conn, conn.transaction():
        await by_hand(conn, "order_item", "UPDATE order_item SET pay_price_minor = pay_price_minor + 1")

    assert (await since_last(shop)).findings == []
    async with shop.pool.acquire() as conn:
        assert "order-is-its-items" in {finding.check for finding in await audit(conn)}


async def test_marks_that_somebody_moved_are_not_believed(quiet_shop: Shop) -> None:
    """OP-117: the trail has their hash; where it differs, or a check is new, everything is looked at again."""
    shop = quiet_shop
    await shop.company(balance="50.00 EUR")
    for sql in (
        "UPDATE audit_mark SET event_id = event_id + 1000",
        "UPDATE audit_wallet SET seq = seq + 1, balance_minor = balance_minor + 1",
        "DELETE FROM audit_mark WHERE name = 'code-once'",
        "UPDATE audit_mark SET trail_id = 0",
    ):
        assert (await since_last(shop)).marked
        assert (await since_last(shop)).mark is not None
        await shop.pool.execute(sql)
        again = await since_last(shop)
        assert (again.findings, again.mark) == ([], None), sql


async def test_without_the_master_key_nothing_is_marked(quiet_shop: Shop) -> None:
    """OP-117: blocks of the trail are checked with the key, so the next run must not take them for checked."""
    async with quiet_shop.pool.acquire() as conn:
        run = await audit_since(conn, SYSTEM)

    assert (run.findings, run.marked) == ([], False)
    assert await quiet_shop.pool.fetchval("SELECT count(*) FROM audit_mark") == 0
