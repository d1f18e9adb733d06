"""The table brand as the operator works on it: listed, added, renamed (OP-159)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.catalogue import store
from voucherd.catalogue.logos import BrandNotFound
from voucherd.catalogue.products import slugify
from voucherd.catalogue.rules import check_name
from voucherd.db import Connection, Tx
from voucherd.sorting import order_by

SORTS: Final = {
    "name": "lower(b.name) {0}, b.slug",
    "products": "products {0}, b.slug",
    "slug": "b.slug {0}",
}
"""How a list of brands can be sorted."""


class BrandExists(Exception):
    """There is a brand of that name, or of the slug that the name makes, already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a brand {name} already")


class Brand(Struct, frozen=True):
    """A brand, its logo, and how many of its products are for sale."""

    brand_id: int
    slug: str
    name: str
    logo: str | None
    products: int


_BRAND: Final = """
    SELECT b.id, b.slug, b.name, l.name AS logo, coalesce(c.count, 0)::int AS products
    FROM brand b LEFT JOIN brand_logo l ON l.brand_id = b.id
    LEFT JOIN product_count c ON c.kind = 'brand' AND c.slug = b.slug
"""


async def search(conn: Connection, text: str, sort: str, limit: int, offset: int = 0) -> list[Brand]:
    """The brands whose name or slug holds the text; `sort` is a key of SORTS."""
    rows = await conn.fetch(
        f"{_BRAND} WHERE $1 = '' OR strpos(lower(b.name), lower($1)) > 0 OR strpos(b.slug, lower($1)) > 0"
        f" ORDER BY {order_by(SORTS, sort)} LIMIT $2 OFFSET $3",
        text,
        limit,
        offset,
    )
    return [Brand(*row) for row in rows]


async def find(conn: Connection, slug: str) -> Brand:
    """The brand of this slug."""
    row = await conn.fetchrow(f"{_BRAND} WHERE b.slug = $1", slug)
    if row is None:
        raise BrandNotFound(slug)
    return Brand(*row)


async def add(tx: Tx, name: str) -> Brand:
    """A new brand; refused if one has the name, or the slug that it makes."""
    check_name("brand", name)
    slug = slugify(name)
    await _refuse_taken(tx, name, slug, None)
    await store.add_or_get_brand(tx, name)
    return await find(tx, slug)


async def rename(tx: Tx, brand: Brand, name: str) -> list[tuple[str, bool]]:
    """Give a brand another name, and its products versions that have it; their slugs, and whether they are for sale.

    A version never changes, so that processes can keep it in memory for ever: a new name needs new ones.
    """
    check_name("brand", name)
    await store.take_turns(tx)
    await _refuse_taken(tx, name, slugify(name), brand.brand_id)
    await tx.execute("UPDATE brand SET name = $2 WHERE id = $1", brand.brand_id, name)
    rows = await tx.fetch(
        f"""WITH copied AS (
                INSERT INTO product_version (product_id, {store.DESCRIPTION})
                SELECT product_id, {store.DESCRIPTION} FROM product_version
                WHERE id IN (SELECT version_id FROM product) AND brand_id = $1
                RETURNING id, product_id)
            UPDATE product p SET version_id = c.id FROM copied c WHERE p.id = c.product_id
            RETURNING p.slug, p.active, p.version_id""",  # noqa: S608 - Constants of ours.
        brand.brand_id,
    )
    store.forget(row[2] for row in rows)
    # The listing sees no difference between the versions: what changed is the name of their brand.
    await tx.execute(
        """
        INSERT INTO product_change (at, product_id, version_id, kind, active, stocked)
        SELECT clock_timestamp(), l.product_id, l.version_id, 'content', true, l.stocked
        FROM product_listing l WHERE l.brand_slug = $1 ORDER BY l.product_id
        """,
        brand.slug,
    )
    return [(row[0], row[1]) for row in rows]


async def _refuse_taken(tx: Tx, name: str, slug: str, but: int | None) -> None:
    taken = await tx.fetchval(
        "SELECT EXISTS (SELECT FROM brand WHERE (slug = $1 OR lower(name) = lower($2)) AND id IS DISTINCT FROM $3)",
        slug,
        name,
        but,
    )
    if taken:
        raise BrandExists(name)
