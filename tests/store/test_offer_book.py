"""Offers: which ones can serve now, how prices are remembered, and when a process looks again."""

from __future__ import annotations

import asyncio

from tests.patience import until_blocked
from tests.purchasing.fake import FakeSupplier
from tests.store.stalls import ground, stall
from voucherd.db import Pool, transaction
from voucherd.purchasing import quoting
from voucherd.suppliers.breaker import FAILURES_MAX
from voucherd.suppliers.offer_book import EPOCH_AGE_S_MAX, OfferBook
from voucherd.suppliers.store import note_call, supplier

SHELF = (1, 1_000, 0)


async def sold_by(pool: Pool, book: OfferBook | None = None) -> list[int]:
    """The suppliers that can serve product 1 now, best first."""
    async with pool.acquire() as conn:
        looked = await (book or OfferBook()).look(conn, [SHELF, (1, 2_000, 0), (1, 1_000, 1)])
    assert looked[1, 2_000, 0] == looked[1, 1_000, 1] == [], "another face value and the other state"
    return [offer.supplier_id for offer in looked[SHELF]]


async def quotes(pool: Pool) -> list[tuple[int, int]]:
    """Every quote for product 1: its number and its price."""
    rows = await pool.fetch("SELECT id, price_minor FROM quote WHERE product_id = 1 ORDER BY id")
    return [tuple(row) for row in rows]


async def test_offers_that_can_not_serve_now_disappear(pool: Pool) -> None:
    """OP-43: a stale quote, no stock, an open breaker, an offer or a supplier switched off are no offers."""
    await ground(pool)
    one, two = await stall(pool, "one"), await stall(pool, "two")
    assert await sold_by(pool) == [one.id, two.id]
    gone = {
        "UPDATE offer SET stock = 0 WHERE supplier_id = $1": "UPDATE offer SET stock = 9",
        "UPDATE offer SET active = false WHERE supplier_id = $1": "UPDATE offer SET active = true",
        "UPDATE supplier SET active = false WHERE id = $1": "UPDATE supplier SET active = true",
        "UPDATE offer SET quoted_at = now() - interval '301 seconds' WHERE supplier_id = $1": (
            "UPDATE offer SET quoted_at = now()"
        ),
    }
    for away, back in gone.items():
        await pool.execute(away, one.id)
        assert await sold_by(pool) == [two.id], away
        await pool.execute(back)
        assert await sold_by(pool) == [one.id, two.id]

    async with transaction(pool) as tx:
        for _ in range(FAILURES_MAX):
            await note_call(tx, one.id, failed=True)
    assert await sold_by(pool) == [two.id]
    await pool.execute(
        "UPDATE supplier_health SET open_until = now() - interval '1 second' WHERE supplier_id = 1"
    )
    assert await sold_by(pool) == [one.id, two.id], "half-open: one call may try"


async def test_a_quote_is_written_when_a_price_changes_and_only_then(pool: Pool) -> None:
    """Decision 12: an order shows the quotes that its Create saw, for ever as they were."""
    await ground(pool)
    row = await stall(pool)
    fake = FakeSupplier(price="9.00 EUR", stock=5)
    before = await quotes(pool)

    assert await quoting.refresh(pool, row, fake) == 2
    same = await quotes(pool)
    fake.price, fake.stock = "9.10 EUR", 3
    await quoting.refresh(pool, row, fake)
    dearer = await quotes(pool)
    fake.silent = True
    assert await quoting.refresh(pool, row, fake) == 0

    assert same == before
    assert [price for _, price in dearer] == [900, 910]
    offer = await pool.fetchrow("SELECT quote_id, stock FROM offer WHERE product_id = 1")
    assert tuple(offer or ()) == (dearer[-1][0], 3), "an answer that did not come changes no offer"
    async with pool.acquire() as conn:
        failing = await supplier(conn, "one")
    assert (failing.health.failures, failing.quote_error) == (1, "closed today")
    fake.silent = False
    await quoting.refresh(pool, row, fake)
    async with pool.acquire() as conn:
        well = await supplier(conn, "one")
    assert (well.health.failures, well.quote_error) == (0, None)


async def test_prices_are_asked_for_by_one_worker_at_half_their_age(pool: Pool) -> None:
    """An offer disappears only if asking again fails; nobody asks twice at once."""
    await ground(pool)
    row = await stall(pool)
    assert await quoting.take_due(pool) == []
    await pool.execute("UPDATE offer SET quoted_at = now() - interval '151 seconds'")
    assert await quoting.take_due(pool) == [row.id]
    assert await quoting.take_due(pool) == []
    await quoting.refresh(pool, row, FakeSupplier())
    assert await quoting.take_due(pool) == []


async def test_workers_that_ask_for_prices_take_suppliers_in_one_order(pool: Pool) -> None:
    """OP-106: two of them never wait for each other, in whatever order the rows lie."""
    await ground(pool)
    rows = [await stall(pool, name) for name in ("one", "two", "three")]
    await pool.execute("UPDATE offer SET quoted_at = now() - interval '151 seconds'")
    for row in reversed(rows):
        await pool.execute("UPDATE supplier_health SET failures = 0 WHERE supplier_id = $1", row.id)
    async with transaction(pool) as tx:
        await tx.execute("SELECT FROM supplier_health WHERE supplier_id = $1 FOR UPDATE", rows[0].id)
        taking = asyncio.create_task(quoting.take_due(pool))
        await until_blocked(pool)
        others = (
            "SELECT count(*) FROM (SELECT FROM supplier_health WHERE supplier_id <> $1 FOR UPDATE NOWAIT) o"
        )
        assert await tx.fetchval(others, rows[0].id) == 2, "it has those that come later already"
    assert sorted(await taking) == [row.id for row in rows]


async def test_a_process_looks_for_offers_anew_when_some_came_or_went(pool: Pool) -> None:
    """Decision 12: which products have offers at all is remembered, and one row tells when that has changed."""
    await ground(pool)
    book = OfferBook()

    async def sold() -> list[tuple[int, int, int]]:
        async with pool.acquire() as conn:
            return await book.sold_elsewhere(conn, [SHELF])

    assert await sold() == []
    await stall(pool)
    assert await sold() == [], "it was looked up less than a second ago"
    book._checked_at -= EPOCH_AGE_S_MAX
    assert await sold() == [SHELF]
    await pool.execute("UPDATE offer SET stock = 0")
    book._checked_at -= EPOCH_AGE_S_MAX
    assert await sold() == [SHELF], "sold elsewhere, whether it can be had now or not"
    await pool.execute("UPDATE supplier SET active = false")
    book._checked_at -= EPOCH_AGE_S_MAX
    assert await sold() == []
