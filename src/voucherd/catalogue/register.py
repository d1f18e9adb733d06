"""The register of products, for the operator: those that are not for sale too, and what each was before. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.store import Listing
from voucherd.catalogue.store import versions as read_versions
from voucherd.db import Connection

PAGE_MAX: Final = 100
CATEGORIES_MAX: Final = 500


class Filters(Struct, frozen=True):
    """Which products are asked for."""

    queries: Sequence[str] = ()
    """One query for each word that is looked for in names, slugs and brands."""
    brand_slug: str | None = None
    category: str | None = None
    product_type: str | None = None
    active: bool | None = None


class Edition(Struct, frozen=True):
    """A version of a product, and since when it was in force."""

    version: ProductVersion
    since: datetime


# One word: it begins a word of the name, of the slug or of the brand. Each arm has an index of its own.
_WITH_WORD: Final = """
    SELECT p.id FROM product_version v JOIN product p ON p.version_id = v.id WHERE words_of(v.name) @@ ?::text::tsquery
    UNION ALL SELECT id FROM product WHERE words_of(slug) @@ ?::text::tsquery
    UNION ALL SELECT p.id FROM brand b JOIN product_version v ON v.brand_id = b.id JOIN product p ON p.version_id = v.id
              WHERE words_of(b.name) @@ ?::text::tsquery
"""


async def page_of_products(
    conn: Connection, filters: Filters, *, after: str = "", before: str = "", size: int = PAGE_MAX
) -> list[Listing]:
    """Products in the order of their slugs: those behind `after`, or else those right before `before`."""
    values: list[Any] = [size]
    conditions = ["true"]

    def also(condition: str, value: object) -> None:
        if value is not None and value != "":
            values.append(value)
            conditions.append(condition.replace("?", f"${len(values)}"))

    for query in filters.queries:
        also(f"p.id IN ({_WITH_WORD})", query)
    also(
        "p.version_id IN (SELECT v.id FROM product_version v JOIN brand b ON b.id = v.brand_id WHERE b.slug = ?)",
        filters.brand_slug,
    )
    also("v.category = ?", filters.category)
    also("v.product_type = ?", filters.product_type)
    also("p.active = ?", filters.active)
    also("p.slug > ?", after)
    also("p.slug < ?", before)
    backwards = bool(before) and not after
    rows = await conn.fetch(
        f"""SELECT p.version_id, p.active, p.allow_loss FROM product p JOIN product_version v ON v.id = p.version_id
            WHERE {" AND ".join(conditions)} ORDER BY p.slug {"DESC" if backwards else "ASC"} LIMIT $1""",  # noqa: S608 - Constants of ours.
        *values,
    )
    known = await read_versions(conn, [row[0] for row in rows])
    found = [Listing(known[row[0]], row[1], row[2]) for row in rows]
    return found[::-1] if backwards else found


async def categories(conn: Connection) -> list[str]:
    """The categories of everything that is for sale."""
    rows = await conn.fetch(
        "SELECT slug FROM product_count WHERE kind = 'category' AND count > 0 ORDER BY slug LIMIT $1",
        CATEGORIES_MAX,
    )
    return [row[0] for row in rows]


async def editions(
    conn: Connection, product_id: int, *, before: int | None = None, size: int = PAGE_MAX
) -> list[Edition]:
    """What a product was, newest first."""
    rows = await conn.fetch(
        """SELECT id, created_at FROM product_version WHERE product_id = $1 AND ($2::int IS NULL OR id < $2)
           ORDER BY id DESC LIMIT $3""",
        product_id,
        before,
        size,
    )
    known = await read_versions(conn, [row[0] for row in rows])
    return [Edition(known[row[0]], row[1]) for row in rows]
