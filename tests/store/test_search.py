"""A search along the stretches of an order finds what the definition says, in that order, and reads little."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import product as pairs
from pathlib import Path
from typing import Any, cast

import pytest

from tests.shop import open_shop
from voucherd.catalogue import places, store
from voucherd.catalogue import search as register
from voucherd.catalogue.products import ProductChanges
from voucherd.db import Connection, Pool, transaction
from voucherd.ids import State
from voucherd.money import DIGITS, Money
from voucherd.storefront import listing, search
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.sorting import Sort, factor

WORDS = (
    "gift",
    "gi",
    "giftcard",
    "ginger",
    "coffee",
    "café",
    "game",
    "Zebra",
    "no",
    "1",
    "12",
    "123",
    "ünder",
)
BRANDS = ("Acme", "Ginger Café", "Zebra 12", "B")
CATEGORIES = ("food", "games", "rare")
RATES_E8 = {"EUR": 100_000_000, "USD": 92_319_055, "JPY": 611_808}
ID_STEP = places.STRETCH // 8
"""Ids are so far apart that every eighth product begins a stretch."""

_ADD = """
    WITH made AS (
        INSERT INTO product (id, slug, version_id) OVERRIDING SYSTEM VALUE
        SELECT id, slug, id FROM unnest($1::int[], $2::text[]) AS made (id, slug))
    INSERT INTO product_version (id, product_id, brand_id, name, product_type, category, redeem_type, region,
        vat_category, async_delivery, face_currency, face_minor, price_minor, price_currency) OVERRIDING SYSTEM VALUE
    SELECT made.id, made.id, b.id, made.name, 'giftcard', made.category, 'currency', 'ww', 'exempt', false,
           made.currency, made.minor, made.minor, made.currency
    FROM unnest($1::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
         AS made (id, brand, name, category, currency, minor) JOIN brand b ON b.name = made.brand"""


@dataclass(frozen=True)
class Sample:
    """A product for sale, as this test knows it."""

    product_id: int
    slug: str
    brand: str
    name: str
    category: str
    currency: str
    minor: int

    def has(self, words: list[str]) -> bool:
        """The definition: for each word asked for, one of the product's begins with it."""
        own = search.terms(f"{self.name} {self.brand} {self.slug}")
        return all(any(word.startswith(asked) for word in own) for asked in words)

    def key(self, sort: Sort) -> tuple[Any, ...]:
        if sort is Sort.NAME:
            return (search.folded(self.name).encode(), self.product_id)
        if sort is Sort.BRAND:
            return (search.folded(self.brand).encode(), search.folded(self.name).encode(), self.product_id)
        return (self.minor * factor(self.currency, RATES_E8[self.currency]), self.product_id)


def in_order(samples: list[Sample], sort: Sort, descending: bool) -> list[Sample]:
    return sorted(samples, key=lambda one: one.key(sort), reverse=descending)


def made_up(chance: random.Random, product_id: int) -> Sample:
    return Sample(
        product_id,
        f"p-{product_id}",
        chance.choice(BRANDS),
        " ".join(chance.choices(WORDS, k=chance.randint(1, 3))),
        chance.choice(CATEGORIES),
        chance.choice(list(RATES_E8)),
        chance.choice((100, 500, 999, 1000)),
    )


async def add(pool: Pool, samples: list[Sample]) -> None:
    async with transaction(pool) as tx:
        for brand in {one.brand for one in samples}:
            await store.add_or_get_brand(tx, brand)
        columns = ("product_id", "slug", "brand", "name", "category", "currency", "minor")
        await tx.execute(_ADD, *([getattr(one, column) for one in samples] for column in columns))


async def changed(pool: Pool, chance: random.Random, samples: dict[int, Sample]) -> None:
    """Rename, reprice, move and withdraw some of them, those that begin a stretch too."""
    for product_id in chance.sample(sorted(samples), len(samples) // 3):
        fresh = made_up(chance, product_id)
        active = chance.random() < 0.7
        async with transaction(pool) as tx:
            changes = ProductChanges(
                name=fresh.name,
                brand=fresh.brand,
                category=fresh.category,
                face=Money(fresh.minor, fresh.currency),
                selling=Money(fresh.minor, fresh.currency),
                active=active,
            )
            await store.set_product(tx, fresh.slug, changes)
        samples[product_id] = fresh
        if not active:
            del samples[product_id]


async def walked(pool: Pool, filters: ProductFilters, order: ProductOrder, size: int) -> list[int]:
    """All pages of a search, each from the cursor of the one before."""
    found: list[int] = []
    after = None
    async with pool.acquire() as conn, conn.transaction():
        await listing.plan_for_values(conn)
        while True:
            page = await listing.page_of_products(conn, State.LIVE, filters, order, size=size, after=after)
            found += [row.product_id for row in page]
            if len(page) < size:
                return found
            after = page[-1].place


async def registered(
    pool: Pool,
    words: list[str],
    size: int,
    *,
    backwards: bool = False,
    sort: str = "slug",
    active: bool = True,
) -> list[str]:
    """All pages of the operator's search, from either end."""
    filters = register.ProductSearch(words=words, query=search.prefix_query(words), active=active)
    slugs: list[str] = []
    end = "zzz" if backwards else ""
    while True:
        async with pool.acquire() as conn:
            where = {"before": end} if backwards else {"after": end}
            page = await register.page_of_products(conn, filters, **where, size=size, sort=sort)
        told = [one.version.slug for one in page]
        slugs = [*told, *slugs] if backwards else [*slugs, *told]
        if len(page) < size:
            return slugs
        end = told[0] if backwards else told[-1]


async def assert_placed(pool: Pool, samples: dict[int, Sample]) -> None:
    """Every listing has its place in each order, in the stretch of the last start before it."""
    rows = await pool.fetch(
        "SELECT sort, product_id, stretch FROM product_place ORDER BY sort, key, product_id"
    )
    assert len(rows) == 5 * len(samples)
    expected: dict[str, int] = {}
    for sort, product_id, stretch in rows:
        if product_id % places.STRETCH == 0:
            expected[sort] = product_id
        assert stretch == expected.get(sort, 0)
    assert sum(1 for one in samples if one % places.STRETCH == 0) > 5


@pytest.mark.parametrize("seed", range(3))
async def test_a_search_finds_what_the_definition_says(pool: Pool, seed: int) -> None:
    """In each order and direction, page by page, after any changes; by cursor."""
    chance = random.Random(seed)
    await pool.executemany(
        "INSERT INTO fx_rate (currency, day, eur_e8, source) VALUES ($1, '2026-01-01', $2, 'test')",
        [(currency, rate) for currency, rate in RATES_E8.items() if currency != "EUR"],
    )
    assert all(currency in DIGITS for currency in RATES_E8)
    samples = {id_: made_up(chance, id_) for id_ in range(ID_STEP, 160 * ID_STEP, ID_STEP)}
    late = {id_: made_up(chance, id_) for id_ in range(160 * ID_STEP, 200 * ID_STEP, ID_STEP)}
    await add(pool, list(samples.values()))
    await changed(pool, chance, samples)
    await add(pool, list(late.values()))
    samples |= late
    await assert_placed(pool, samples)

    for asked in (
        "gift",
        "gi",
        "g",
        "1",
        "zebra",
        "gi co",
        "ginger 12",
        "unde",
        "p g",
        "nothing",
        "gift nothing",
    ):
        words = search.terms(asked)
        fits = [one for one in samples.values() if one.has(words)]
        for sort, descending in pairs(Sort, (False, True)):
            expected = in_order(fits, sort, descending)
            order, ids = ProductOrder(sort, descending), [one.product_id for one in expected]
            assert await walked(pool, ProductFilters(words=tuple(words)), order, chance.randint(1, 30)) == ids
            for category in ("rare", "no'such"):
                filters = ProductFilters(words=tuple(words), category=category, brand_slug="zebra-12")
                kept = [o.product_id for o in expected if (o.category, o.brand) == (category, "Zebra 12")]
                assert await walked(pool, filters, order, 10) == kept
        slugs = sorted(one.slug for one in fits)
        for backwards in (False, True):
            assert await registered(pool, words, 7, backwards=backwards) == slugs
        by_amount = [
            one.slug for one in sorted(fits, key=lambda one: (one.currency, one.minor, one.product_id))
        ]
        for by in ("face", "price"):
            assert await registered(pool, words, 7, sort=by) == by_amount
            assert await registered(pool, words, 7, sort=f"-{by}") == by_amount[::-1]


@pytest.mark.parametrize("words", [[], ["gift"]])
async def test_a_product_that_is_not_for_sale_is_sorted_as_if_it_were(
    pool: Pool, database_url: str, tmp_path: Path, words: list[str]
) -> None:
    """OP-163: by its lowest face value and the price of that, currency by currency."""
    expected = {
        "price": ["gift-b", "gift-e", "gift-a", "gift-c", "gift-f", "gift-d"],
        "face": ["gift-e", "gift-a", "gift-b", "gift-c", "gift-d", "gift-f"],
    }
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        await shop.product("gift-a", face_range="5-50 EUR", fee="1.02+0.10")
        await shop.product("gift-b", face="5.00 EUR", price="5.19 EUR")
        await shop.product("gift-c", face="5.00 EUR", price="5.21 EUR")
        await shop.product("gift-d", face="9.99 EUR", price="6.00 USD")
        await shop.product("gift-e", face="4.99 EUR", fee="1.0391")
        await shop.product("gift-f", face="3 KWD", fee="1.0231+0.105")
        for active in (True, False):
            for slug in shop.products:
                await shop.set_product(slug, active=active)
            for sort, slugs in expected.items():
                up = await registered(pool, words, 2, sort=sort, active=active)
                down = await registered(pool, words, 2, sort=f"-{sort}", active=active)
                assert (up, down) == (slugs, slugs[::-1]), (sort, active)
        await shop.assert_books_balance()


class Reader:
    """A connection that counts the pages which its statements touch."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.pages = 0

    async def fetch(self, sql: str, *values: object) -> Any:
        told = await self._conn.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", *values
        )
        plan = json.loads(told)[0]["Plan"]
        self.pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        return await self._conn.fetch(sql, *values)


PAGES_MAX = 650
"""Pages that a search for 50 products may touch; the table of places has more than twice as many."""


async def test_a_search_reads_little_of_tables_that_nobody_analysed(pool: Pool) -> None:
    """A word of all products, of half of them, of few and of none; the beginning of all; and words together."""
    await pool.execute("ALTER TABLE product_place SET (autovacuum_enabled = off)")
    await pool.execute("ALTER TABLE product_listing SET (autovacuum_enabled = off)")
    step, count = places.STRETCH // 256, 12_000
    everything = [
        Sample(
            at * step,
            f"p-{at}",
            f"Brand {at % 50}",
            f"{('gift', 'game')[at % 2]} {('coffee', 'travel', 'toy')[at % 3]} {at}{' rare' if at % 4000 == 1 else ''}",
            "food",
            ("EUR", "USD")[at % 2],
            100 + at * 7919 % 5000,
        )
        for at in range(1, count + 1)
    ]
    await add(pool, everything)
    assert await pool.fetchval(
        "SELECT last_analyze IS NULL AND last_autoanalyze IS NULL FROM pg_stat_user_tables"
        " WHERE relname = 'product_place'"
    )
    pages: dict[str, int] = {}
    for asked, sort in pairs(
        ("brand", "gift", "g", "p", "rare", "nothing", "gift toy", "brand rare", "brand nothing"),
        (Sort.NAME, Sort.PRICE),
    ):
        words = tuple(search.terms(asked))
        async with pool.acquire() as conn, conn.transaction():
            await listing.plan_for_values(conn)
            reader = Reader(conn)
            await listing.page_of_products(
                cast("Connection", reader),
                State.LIVE,
                ProductFilters(words=words),
                ProductOrder(sort),
                size=51,
            )
        pages[f"{asked} by {sort}"] = reader.pages
    assert {name: count for name, count in pages.items() if count > PAGES_MAX} == {}
    table_pages = await pool.fetchval("SELECT pg_relation_size('product_place') / 8192")
    assert table_pages > 2 * PAGES_MAX
