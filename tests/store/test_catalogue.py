"""Products and brands in a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from voucherd.catalogue import store
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.pricing import price_unit
from voucherd.catalogue.products import FaceRange, Fee, Listing, ProductChanges, ProductDraft
from voucherd.catalogue.rules import BadProduct
from voucherd.db import Connection, Pool, transaction
from voucherd.money import RATE_ONE, Money

GIFT = ProductDraft(
    slug="gift-50",
    name="Gift 50",
    brand="Café Acme",
    product_type="giftcard",
    category="shopping",
    redeem_type="currency",
    region="ww",
    face=Money(5000, "EUR"),
    selling=Money(4810, "EUR"),
)
OPEN = replace(
    GIFT,
    slug="open-usd",
    name="Open",
    face=FaceRange(500, 50_000, "USD"),
    selling=Fee(102_000_000, Decimal("0.10")),
    vat_category="single_purpose",
    async_delivery=True,
    incentive=True,
)

SEEN_BY_ALL = VersionCache()
"""A memory that outlives the tests' databases."""


@contextmanager
def counting(conn: Connection) -> Iterator[list[str]]:
    """The statements on products that the connection runs inside the block."""
    seen: list[str] = []

    def note(record: Any) -> None:
        # The driver itself asks about a type when it first meets it.
        if "FROM product" in record.query:
            seen.append(record.query)

    conn.add_query_logger(note)
    try:
        yield seen
    finally:
        conn.remove_query_logger(note)


async def test_a_product_that_was_added_is_for_sale_as_it_was_described(pool: Pool) -> None:
    """Contract 2: slug, name, brand, type, region, category and face value come back as they went in."""
    async with transaction(pool) as tx:
        added = await store.add_product(tx, OPEN)

    async with pool.acquire() as conn:
        listing = (await store.current(conn, ["open-usd"]))["open-usd"]

    assert listing == Listing(added, active=True)
    assert (added.slug, added.name, added.brand_slug, added.brand_name) == (
        *("open-usd", "Open"),
        *("cafe-acme", "Café Acme"),
    )
    assert (added.product_type, added.category, added.redeem_type, added.region) == (
        *("giftcard", "shopping"),
        *("currency", "ww"),
    )
    assert (added.vat_category, added.async_delivery, added.incentive) == ("single_purpose", True, True)
    assert added.is_variable
    assert (added.face_currency, added.face_minor, added.face_min_minor, added.face_max_minor) == (
        *("USD", None),
        *(500, 50_000),
    )
    assert (added.price_minor, added.price_currency) == (None, None)
    assert (added.fee_variable_e8, added.fee_fixed_minor) == (102_000_000, 10)


async def test_a_slug_is_taken_once(pool: Pool) -> None:
    """OP-21: offers are named by slug, so a slug names one product; the refusal spoils no transaction."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)
        with pytest.raises(store.ProductExists, match="there is a product gift-50 already"):
            await store.add_product(tx, replace(GIFT, name="Another"))
        await store.add_product(tx, OPEN)

    async with pool.acquire() as conn:
        assert [listing.version.name for listing in await store.list_products(conn)] == ["Gift 50", "Open"]
        assert await conn.fetchval("SELECT count(*) FROM product_version") == 2


async def test_ten_operators_who_add_the_same_product_add_one(pool: Pool) -> None:
    """OP-21: also when they do so at the same moment."""

    async def add() -> bool:
        try:
            async with transaction(pool) as tx:
                await store.add_product(tx, GIFT)
        except store.ProductExists:
            return False
        return True

    assert sum(await asyncio.gather(*(add() for _ in range(10)))) == 1


async def test_a_change_makes_a_new_version_and_leaves_the_old_one_readable(pool: Pool) -> None:
    """OP-42: what was ordered keeps the terms it was priced with."""
    async with transaction(pool) as tx:
        first = await store.add_product(tx, GIFT)
    async with transaction(pool) as tx:
        second = await store.set_product(
            tx, "gift-50", ProductChanges(selling=Money(4700, "EUR"), brand="Other")
        )

    async with pool.acquire() as conn:
        listing = (await store.current(conn, ["gift-50"]))["gift-50"]
        both = await store.versions(conn, [first.version_id, second.version_id])

    assert second == replace(
        first, version_id=second.version_id, price_minor=4700, brand_slug="other", brand_name="Other"
    )
    assert second.version_id > first.version_id
    assert listing.version == second
    assert both == {first.version_id: first, second.version_id: second}
    paid = {"payment_currency": "EUR", "rates": {"EUR": RATE_ONE}, "vat_bp": 2100}
    assert [price_unit(version, 5000, **paid).pay_price_minor for version in (first, second)] == [4810, 4700]  # type: ignore[arg-type]


async def test_taking_a_product_off_sale_makes_no_version(pool: Pool) -> None:
    """OP-21: an inactive slug is an offer that is not available."""
    async with transaction(pool) as tx:
        added = await store.add_product(tx, GIFT)
        assert await store.set_product(tx, "gift-50", ProductChanges(active=False)) == added

    async with pool.acquire() as conn:
        assert await store.current(conn, ["gift-50"]) == {"gift-50": Listing(added, active=False)}
        assert await store.list_products(conn, active=True) == []
        assert len(await store.list_products(conn, active=False)) == 1
        assert await conn.fetchval("SELECT count(*) FROM product_version") == 1


async def test_a_change_does_not_put_a_product_back_on_sale(pool: Pool) -> None:
    """OP-21: only the operator's word does."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT, active=False)
        renamed = await store.set_product(tx, "gift-50", ProductChanges(name="Renamed"))
        assert await store.current(tx, ["gift-50"], VersionCache()) == {
            "gift-50": Listing(renamed, active=False)
        }
        await store.set_product(tx, "gift-50", ProductChanges(active=True))
        assert await store.current(tx, ["gift-50"], VersionCache()) == {
            "gift-50": Listing(renamed, active=True)
        }


async def test_a_change_that_breaks_a_rule_changes_nothing(pool: Pool) -> None:
    """OP-51: a variable product always has a fee; and a slug that nobody knows can't be changed."""
    async with transaction(pool) as tx:
        added = await store.add_product(tx, GIFT)
        with pytest.raises(BadProduct, match="price: must be a fee"):
            await store.set_product(
                tx, "gift-50", ProductChanges(face=FaceRange(500, 900, "EUR"), active=False)
            )
        with pytest.raises(store.UnknownProduct, match="there is no product 'nothing'"):
            await store.set_product(tx, "nothing", ProductChanges(active=False))

    async with pool.acquire() as conn:
        assert await store.current(conn, ["gift-50"]) == {"gift-50": Listing(added, active=True)}


async def test_changes_at_the_same_moment_are_all_kept(pool: Pool) -> None:
    """OP-42: each change amends what the one before left."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)

    async def change(changes: ProductChanges) -> None:
        async with transaction(pool) as tx:
            await store.set_product(tx, "gift-50", changes)

    await asyncio.gather(
        change(ProductChanges(name="New name")),
        change(ProductChanges(region="nl")),
        change(ProductChanges(selling=Money(4900, "EUR"))),
        change(ProductChanges(active=False)),
    )

    async with pool.acquire() as conn:
        listing = (await store.current(conn, ["gift-50"]))["gift-50"]
    assert (listing.version.name, listing.version.region, listing.version.price_minor, listing.active) == (
        *("New name", "nl"),
        *(4900, False),
    )


async def test_a_version_never_changes(pool: Pool) -> None:
    """OP-42: the database itself refuses."""
    async with transaction(pool) as tx:
        await store.add_product(tx, GIFT)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
        await pool.execute("UPDATE product_version SET price_minor = 1")


async def test_versions_are_read_once(pool: Pool) -> None:
    """OP-42: versions never change, so the second look at three hundred products is one light statement."""
    cache = VersionCache()
    slugs = [f"gift-{number}" for number in range(300)]
    async with transaction(pool) as tx:
        for slug in slugs:
            await store.add_product(tx, replace(GIFT, slug=slug))

    async with pool.acquire() as conn:
        with counting(conn) as first_time:
            first = await store.current(conn, [*slugs, "unknown"], cache)
        with counting(conn) as second_time:
            second = await store.current(conn, slugs, cache)
        with counting(conn) as third_time:
            known = await store.versions(
                conn, [listing.version.version_id for listing in first.values()], cache
            )

    assert (len(first_time), len(second_time), len(third_time)) == (2, 1, 0)
    assert first == second
    assert sorted(first) == sorted(slugs)
    assert len(known) == len(cache) == 300


async def test_a_full_memory_of_versions_still_answers(pool: Pool) -> None:
    """OP-42: the memory is bounded, the catalogue is not."""
    cache = VersionCache(size_max=2)
    async with transaction(pool) as tx:
        added = [await store.add_product(tx, replace(GIFT, slug=f"gift-{number}")) for number in range(5)]

    async with pool.acquire() as conn:
        for _ in range(2):
            listings = await store.current(conn, [version.slug for version in added], cache)
            assert [listings[version.slug].version for version in added] == added
            assert await store.versions(conn, [9_999], cache) == {}

    assert len(cache) == 2


@pytest.mark.parametrize("name", ["First", "Second"])
async def test_a_new_database_is_not_taken_for_an_old_one(pool: Pool, name: str) -> None:
    """OP-42: ids start at 1 in every database, and one process may see several."""
    async with transaction(pool) as tx:
        added = await store.add_product(tx, replace(GIFT, name=name))
    async with pool.acquire() as conn:
        assert added.version_id == 1
        assert (await store.versions(conn, [1]))[1].name == name
        assert (await store.current(conn, ["gift-50"]))["gift-50"].version.name == name
        # Also where another process made the product, so that this one's memory was not told.
        assert (await store.current(conn, ["gift-50"], SEEN_BY_ALL))["gift-50"].version.name == name


async def test_an_undone_change_is_not_remembered(pool: Pool) -> None:
    """OP-42: what was never committed is never sold."""
    async with transaction(pool) as tx:
        added = await store.add_product(tx, GIFT)
    with pytest.raises(RuntimeError):
        await change_and_fail(pool)

    async with pool.acquire() as conn:
        assert (await store.current(conn, ["gift-50"]))["gift-50"].version == added


async def change_and_fail(pool: Pool) -> None:
    """Changes the gift's price in a transaction that does not end well."""
    async with transaction(pool) as tx:
        await store.set_product(tx, "gift-50", ProductChanges(selling=Money(1, "EUR")))
        raise RuntimeError


async def test_products_are_listed_a_page_at_a_time(pool: Pool) -> None:
    """Contract 2: every product once, in order of slugs, also by brand."""
    async with transaction(pool) as tx:
        for number in range(5):
            await store.add_product(tx, replace(GIFT, slug=f"gift-{number}", brand=f"Brand {number % 2}"))

    async with pool.acquire() as conn:
        first = await store.list_products(conn, limit=3)
        rest = await store.list_products(conn, after_slug=first[-1].version.slug)
        odd = await store.list_products(conn, brand_slug="brand-1")
        brands = await store.list_brands(conn)

    assert [listing.version.slug for listing in first + rest] == [f"gift-{number}" for number in range(5)]
    assert [listing.version.slug for listing in odd] == ["gift-1", "gift-3"]
    assert [(brand.slug, brand.name) for brand in brands] == [("brand-0", "Brand 0"), ("brand-1", "Brand 1")]


async def test_a_brand_keeps_the_first_spelling_of_its_name(pool: Pool) -> None:
    """Contract 2: brand and brandSlug; one slug is one brand."""
    async with transaction(pool) as tx:
        first = await store.add_or_get_brand(tx, "ACME")
        assert await store.add_or_get_brand(tx, "Acme!") == first
    assert (first.slug, first.name) == ("acme", "ACME")
