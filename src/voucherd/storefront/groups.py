"""Brands and categories that have something for sale, and how much of it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection

CATEGORIES_MAX: Final = 10_000


class ProductGroup(Struct, frozen=True):
    """Products that belong together."""

    slug: str
    name: str
    count: int


class BrandGroup(ProductGroup, frozen=True):
    """The products of a brand, and what the first of them by name is."""

    category: str
    redeem_type: str


_BRANDS: Final = """
    SELECT c.slug, b.name, c.count, first.category, first.redeem_type
    FROM product_count c JOIN brand b ON b.slug = c.slug
    CROSS JOIN LATERAL (SELECT category, redeem_type FROM product_listing WHERE brand_slug = c.slug
                        ORDER BY brand_slug, name_key, product_id LIMIT 1) first
    WHERE c.kind = 'brand' AND c.count > 0"""


async def page_of_brands(
    conn: Connection, *, size: int, skip: int = 0, after_slug: str | None = None
) -> list[BrandGroup]:
    """One page of the brands, in the order of their slugs."""
    rows = await conn.fetch(
        f"{_BRANDS} AND c.slug > $1 ORDER BY c.slug LIMIT {size:d} OFFSET {skip:d}", after_slug or ""
    )
    return [BrandGroup(*row) for row in rows]


async def count_brands(conn: Connection) -> int:
    """How many brands have something for sale."""
    return int(await conn.fetchval("SELECT count(*) FROM product_count WHERE kind = 'brand' AND count > 0"))


async def brand(conn: Connection, slug: str) -> BrandGroup | None:
    """The brand with this slug, if it has something for sale."""
    if not is_slug(slug):
        return None
    row = await conn.fetchrow(f"{_BRANDS} AND c.slug = $1", slug)
    return None if row is None else BrandGroup(*row)


async def categories(conn: Connection) -> list[ProductGroup]:
    """Every category, in the order of their slugs."""
    rows = await conn.fetch(
        "SELECT slug, count FROM product_count WHERE kind = 'category' AND count > 0 ORDER BY slug LIMIT $1",
        CATEGORIES_MAX,
    )
    return [ProductGroup(slug, category_name(slug), count) for slug, count in rows]


def category_name(slug: str) -> str:
    """The name that a category's slug stands for: food-and-drink is Food and drink."""
    words = slug.replace("-", " ")
    return words[:1].upper() + words[1:]
