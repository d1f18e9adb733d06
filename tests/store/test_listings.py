"""The rows that products are found by, the feed of their changes, and the sweep that announces stock."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from tests.patience import until_blocked
from tests.shop import open_shop
from voucherd.catalogue import store
from voucherd.catalogue.products import FaceRange, Fee, ProductChanges, ProductDraft, price_with_fee
from voucherd.db import Pool, Tx, transaction
from voucherd.ids import State
from voucherd.money import Money
from voucherd.storefront import feed, listing, search, stock

GIFT = ProductDraft(
    slug="gift-50",
    name="Gift Ünder 50",
    brand="Café Acme",
    product_type="giftcard",
    category="shopping",
    redeem_type="currency",
    region="ww",
    face=Money(5000, "EUR"),
    selling=Money(4810, "EUR"),
)


async def told(pool: Pool, after: int = 0) -> list[tuple[str, bool]]:
    """What the feed says, and whether the product was for sale then."""
    async with pool.acquire() as conn:
        return [(one.kind, one.active) for one in await feed.changes_after(conn, after, State.LIVE, 100)]


async def set_product(pool: Pool, slug: str = "gift-50", **wanted: Any) -> None:
    async with transaction(pool) as tx:
        await store.set_product(tx, slug, ProductChanges(**wanted))


async def test_a_change_is_told_once_for_each_kind(pool: Pool) -> None:
    """OP-54: price, content and activation, in order; what changes nothing, or is not for sale, is not told."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT, active=False)
    assert await told(pool) == []
    await set_product(pool, selling=Money(4700, "EUR"))
    assert await told(pool) == []
    for wanted in (
        {"active": True},
        {"active": True},
        {"selling": Money(4600, "EUR")},
        {"selling": Money(4600, "EUR")},
        {"terms": "No refunds."},
        {"vat_category": "exempt", "name": "Gift"},
        {"face": Money(6000, "EUR")},
        {"selling": Fee(101_000_000, Decimal(0))},
        {"face": Money(5000, "EUR")},
        {"terms": "", "active": False},
        {"name": "Unseen"},
        {"active": True},
    ):
        await set_product(pool, **wanted)
    assert await told(pool) == [
        ("activation", True),
        ("price", True),
        ("content", True),
        ("price", True),
        ("content", True),
        ("content", True),
        ("price", True),
        ("price", True),
        ("content", True),
        ("activation", False),
        ("activation", True),
    ]
    rows = await pool.fetch(
        "SELECT c.at, v.name FROM product_change c JOIN product_version v ON v.id = c.version_id"
        " ORDER BY c.id"
    )
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    assert rows[-1]["name"] == "Unseen"


async def test_a_listing_is_there_while_its_product_is_for_sale(pool: Pool) -> None:
    """The row is what the newest version says, whichever of the two rows is written last."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)
    row = await pool.fetchrow("SELECT * FROM product_listing")
    assert row is not None
    assert (row["name_key"], row["brand_key"], row["brand_slug"]) == (
        "gift under 50",
        "cafe acme",
        "cafe-acme",
    )
    assert (row["face_low"], row["face_high"], row["price_minor"], row["variable"]) == (
        5000,
        5000,
        4810,
        False,
    )
    assert row["words"] == "'50' 'acme' 'cafe' 'gift' 'under'"
    await set_product(pool, face=FaceRange(500, 9900, "USD"), selling=Fee(101_000_000, Decimal("0.10")))
    row = await pool.fetchrow("SELECT * FROM product_listing")
    assert row is not None
    assert (row["face_low"], row["face_high"], row["price_minor"], row["variable"]) == (500, 9900, 515, True)
    assert (row["price_currency"], row["face_currency"]) == ("USD", "USD")
    await set_product(pool, active=False)
    assert await pool.fetchval("SELECT count(*) FROM product_listing") == 0
    # By hand, the product first: its version brings the listing with it.
    async with transaction(pool) as tx:
        await tx.execute("INSERT INTO product (slug, version_id) VALUES ('late', 99)")
        assert await tx.fetchval("SELECT count(*) FROM product_listing") == 0
        await tx.execute(
            "INSERT INTO product_version (id, product_id, brand_id, name, product_type, category, redeem_type, region,"
            " vat_category, async_delivery, face_currency, face_minor, price_minor, price_currency)"
            " OVERRIDING SYSTEM VALUE SELECT 99, p.id, b.id, 'Late', 'giftcard', 'x', 'currency', 'ww', 'exempt',"
            " false, 'EUR', 1, 1, 'EUR' FROM product p, brand b WHERE p.slug = 'late'"
        )
    assert await pool.fetchval("SELECT slug FROM product_listing") == "late"


async def test_what_is_for_sale_is_counted_as_it_comes_and_goes(pool: Pool) -> None:
    """In all, by brand and by category; a product that moves is counted where it is."""
    async with transaction(pool) as tx:
        for at in range(3):
            await store.add_product(tx, replace(GIFT, slug=f"p{at}", category=f"c{at % 2}"))
        await store.add_product(tx, replace(GIFT, slug="off"), active=False)
    await set_product(pool, "p0", category="c1", brand="Other")
    await set_product(pool, "p1", active=False)
    await set_product(pool, "p2", selling=Money(1, "EUR"))
    await set_product(pool, "off", active=True)
    rows = await pool.fetch("SELECT kind, slug, count FROM product_count ORDER BY kind, slug")
    assert [tuple(row) for row in rows] == [
        ("all", "", 3),
        ("brand", "cafe-acme", 2),
        ("brand", "other", 1),
        ("category", "c0", 1),
        ("category", "c1", 1),
        ("category", "shopping", 1),
    ]


async def test_the_price_that_is_sorted_by_is_the_price_that_is_paid(pool: Pool) -> None:
    """OP-51: the database rounds a fee like `price_with_fee`, at the half and at the largest amounts."""
    cases = [(1, 150_000_000, 0), (3, 50_000_000, 7), (49, 101_020_408, 0), (10**9, 9_999_999_999, 5)]
    cases += [(face, 102_350_001 + face, 25) for face in range(101, 140)]
    async with transaction(pool) as tx:
        for at, (face, variable_e8, fixed) in enumerate(cases):
            selling = Fee(variable_e8, Money(fixed, "EUR").decimal())
            await store.add_product(
                tx, replace(GIFT, slug=f"p{at}", face=Money(face, "EUR"), selling=selling)
            )
    rows = await pool.fetch("SELECT price_minor FROM product_listing ORDER BY product_id")
    assert [row[0] for row in rows] == [price_with_fee(*case) for case in cases]


@pytest.mark.parametrize(
    "text", ["Crème Brûlée", "İstanbul ÅÄÖ", "ﬁne ½ №7", "straße ΣΊΣΥΦΟΣ", "日本語 カード", "a_b'c\\d"]
)
async def test_the_database_folds_words_as_python_does(pool: Pool, text: str) -> None:
    """A search finds a name by its own words, whatever their accents."""
    assert await pool.fetchval("SELECT folded($1)", text) == search.folded(text)
    async with transaction(pool) as tx:
        await store.add_product(tx, replace(GIFT, name=text))
        filters = listing.ProductFilters(words=tuple(search.terms(text)))
        found = await listing.page_of_products(tx, State.LIVE, filters, listing.ProductOrder(), size=2)
    assert len(found) == 1


async def test_a_reader_of_the_feed_misses_nothing_of_writers_side_by_side(pool: Pool) -> None:
    """Numbers become visible in order: a change with a smaller one never comes later."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)
        await store.add_product(tx, replace(GIFT, slug="other"))
    (first,) = (await pool.fetch("SELECT max(id) FROM product_change"))[0]

    async with transaction(pool) as slow:
        await store.set_product(slow, "gift-50", ProductChanges(name="A"))
        quick = asyncio.create_task(set_product(pool, "other", name="B"))
        await until_blocked(pool)
        # The quick one drew no number yet, so nothing behind the slow one's can be seen.
        assert not quick.done()
        assert await told(pool, first) == []
    await quick
    rows = await pool.fetch(
        "SELECT v.name FROM product_change c JOIN product_version v ON v.id = c.version_id"
        " WHERE c.id > $1 ORDER BY c.id",
        first,
    )
    assert [row["name"] for row in rows] == ["A", "B"]


async def stocked(pool: Pool) -> list[tuple[str, bool]]:
    """What was announced of each product."""
    rows = await pool.fetch("SELECT slug, stocked FROM product_listing ORDER BY slug")
    return [tuple(row) for row in rows]


async def test_stock_is_announced_when_it_comes_and_when_it_goes(
    pool: Pool, database_url: str, tmp_path: Any
) -> None:
    """OP-54, OP-49: once each, in the feed and as an event, for live only; expired codes and other face values don't
    count."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        company = await shop.company()
        await shop.product("gift-10", stock=1)
        await shop.product("choose", face_range="5-50 EUR", fee="1")
        await shop.product("empty")
        await shop.product("stale", stock=1, expires=datetime.now(UTC) + timedelta(days=1))
        await shop.product("was-ten", stock=1)
        await shop.set_product("was-ten", face=Money(2000, "EUR"))
        await shop.stock("choose", 1, face="50 EUR")
        before = len(await told(pool))
        assert await shop.worker.run_once("announce_stock") == 3
        assert await shop.worker.run_once("announce_stock") == 0
        assert await stocked(pool) == [
            ("choose", True),
            ("empty", False),
            ("gift-10", True),
            ("stale", True),
            ("was-ten", False),
        ]
        await shop.expire_codes("stale")
        trx = (await shop.create(company, ("gift-10", 1)))["trx"]
        await shop.confirm(company, trx)
        assert await shop.worker.run_once("announce_stock") == 2
        assert (await told(pool))[before:] == [("stock", True)] * 5
        events = await pool.fetch(
            "SELECT data ->> 'slug', (data ->> 'stocked')::boolean, state FROM event"
            " WHERE type = 'product.updated' ORDER BY id"
        )
        assert [tuple(row) for row in events] == [
            ("gift-10", True, 0),
            ("choose", True, 0),
            ("stale", True, 0),
            ("gift-10", False, 0),
            ("stale", False, 0),
        ]
        async with pool.acquire() as conn:
            seen = await feed.changes_after(conn, 0, State.SANDBOX, 100)
        assert {one.kind for one in seen} == {"activation", "content"}
        await shop.assert_books_balance()


async def test_a_supplier_that_can_serve_counts_as_stock(pool: Pool) -> None:
    """OP-43: from stock or a supplier that has it; not a stale quote, a broken supplier or another face value."""
    async with transaction(pool) as tx:
        version = await store.add_product(tx, GIFT)
        supplier_id = await tx.fetchval(
            "INSERT INTO supplier (name, kind, state, config) VALUES ('other', 'voucherd', 0, '{}') RETURNING id"
        )
        await tx.execute("INSERT INTO supplier_health (supplier_id) VALUES ($1)", supplier_id)
        await tx.execute(
            "INSERT INTO quote (id, supplier_id, state, product_id, face_minor, price_minor, currency, fx_e8)"
            " VALUES (2, $1, 0, $2, 5000, 4500, 'EUR', 100000000)",
            *(supplier_id, version.product_id),
        )
        await tx.execute(
            "INSERT INTO offer (supplier_id, state, product_id, face_minor, sku, quote_id, stock, quoted_at)"
            " VALUES ($1, 0, $2, 5000, 'x', 2, 7, now())",
            *(supplier_id, version.product_id),
        )

    async def served() -> bool:
        async with pool.acquire() as conn:
            return version.product_id in await stock.in_stock(conn, [version.product_id], State.LIVE)

    assert await served()
    for change, back in (
        ("offer SET stock = 0", "offer SET stock = 7"),
        ("offer SET active = false", "offer SET active = true"),
        ("supplier SET active = false", "supplier SET active = true"),
        ("offer SET quoted_at = now() - interval '1 hour'", "offer SET quoted_at = now()"),
        (
            "supplier_health SET open_until = now() + interval '1 hour'",
            "supplier_health SET open_until = NULL",
        ),
        ("offer SET face_minor = 6000", "offer SET face_minor = 4000, face_to_minor = 5000"),
    ):
        await pool.execute(f"UPDATE {change}")
        assert not await served(), change
        await pool.execute(f"UPDATE {back}")
        assert await served(), back
    assert (await stock.announce(pool, 0)).announced == 1


async def test_the_sweep_goes_round_in_slices_and_two_of_them_announce_once(pool: Pool) -> None:
    """Bounded work a round, whatever the size of the catalogue."""
    async with transaction(pool) as tx:
        for at in range(7):
            version = await store.add_product(tx, replace(GIFT, slug=f"p{at}"))
            await _lot(tx, version.product_id, at)
    after, rounds = 0, []
    for _ in range(4):
        done = await stock.announce(pool, after, 3)
        rounds.append(done.announced)
        after = done.after
    assert rounds == [3, 3, 1, 0]
    assert after != 0
    await pool.execute("UPDATE lot SET cursor = size")
    both = await asyncio.gather(stock.announce(pool, 0, 10), stock.announce(pool, 0, 10))
    assert sum(one.announced for one in both) == 7
    assert await stock.announce(pool, 10**6, 10) == stock.Slice(0, 0)


async def _lot(tx: Tx, product_id: int, at: int) -> None:
    await tx.execute(
        "INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,"
        " purchase_fx_e8, size) VALUES ($1, $2, 5000, 0, 's', 1, 'EUR', 1, 1)",
        1000 + 2 * at,
        product_id,
    )


async def test_products_from_before_the_feed_are_in_it(pool: Pool) -> None:
    """The migration lists what was there; doing it again changes nothing."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)
        await store.add_product(tx, replace(GIFT, slug="off"), active=False)
    await pool.execute("SELECT list_products(array_agg(id)) FROM product")
    assert await told(pool) == [("activation", True)]
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="product_change is append-only"):
        await pool.execute("DELETE FROM product_change")
