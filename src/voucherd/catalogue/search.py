"""The register of products, for the operator: those that are not for sale too, and what each was before. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from voucherd.catalogue import places, store
from voucherd.catalogue.columns import Value, values
from voucherd.catalogue.places import Window
from voucherd.catalogue.products import Listing, ProductVersion, draft_of
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.store import versions as read_versions
from voucherd.db import Connection

PAGE_MAX: Final = 100
CATEGORIES_MAX: Final = 500
ID_MAX: Final = 2**31 - 1


class ProductSearch(Struct, frozen=True):
    """Which products are asked for."""

    words: Sequence[str] = ()
    """Folded; each begins a word of the name, the slug or the brand."""
    query: str = ""
    """The same as a query; empty for none."""
    brand_slug: str | None = None
    category: str | None = None
    product_type: str | None = None
    active: bool | None = None


class SheetPage(NamedTuple):
    """Rows of a file, and behind which slug the next ones are; None behind the last."""

    rows: list[list[Value]]
    after_slug: str | None


class Edition(Struct, frozen=True):
    """A version of a product, and since when it was in force."""

    version: ProductVersion
    since: datetime


# Products for sale have brand and kind in one table, and are found along their places by words. The others are few, and
# looked at row by row.
_FOR_SALE: Final = {
    "letters": "?::text[] IS NOT NULL",
    "words": "?::text IS NOT NULL",
    "brand": "l.brand_slug = ?",
    "category": "l.category = ?",
    "type": "l.product_type = ?",
}
_NOT_FOR_SALE: Final = {
    # A look at the letters is cheap, to make out the words is not.
    "letters": "(SELECT bool_and(strpos(said.text, word) > 0) FROM unnest(?::text[]) AS word)",
    "words": "words_of(said.text) @@ ?::text::tsquery",
    "brand": "b.slug = ?",
    "category": "v.category = ?",
    "type": "v.product_type = ?",
}
_FACE: Final = "coalesce(v.face_minor, v.face_min_minor)"
_PRICE: Final = f"""coalesce(v.price_minor,
    div(2 * {_FACE}::numeric * v.fee_variable_e8 + 100000000, 200000000)::bigint + v.fee_fixed_minor)"""
"""Of the smallest face value, as the table of products for sale has it."""
SORTS: Final = {
    "slug": {"p.slug": "l.slug"},
    "name": {'folded(v.name) COLLATE "C"': "l.name_key", "p.id": "l.product_id"},
    "brand": {
        'folded(b.name) COLLATE "C"': "l.brand_key",
        'folded(v.name) COLLATE "C"': "l.name_key",
        "p.id": "l.product_id",
    },
    "face": {"v.face_currency": "l.face_currency", _FACE: "l.face_low", "p.id": "l.product_id"},
    "price": {
        "coalesce(v.price_currency, v.face_currency)": "l.price_currency",
        _PRICE: "l.price_minor",
        "p.id": "l.product_id",
    },
}
"""How products can be sorted: by what, and the same of products for sale, along an index. Amounts by their currency."""
_PRODUCT: Final = (
    "FROM product p JOIN product_version v ON v.id = p.version_id JOIN brand b ON b.id = v.brand_id"
)


async def page_of_products(
    conn: Connection,
    filters: ProductSearch,
    *,
    after: str = "",
    before: str = "",
    size: int = PAGE_MAX,
    sort: str = "slug",
) -> list[Listing]:
    """Products in the order of a key of SORTS: those behind the slug `after`, or else those right before `before`."""
    by = sort.removeprefix("-")
    columns = SORTS[by]
    backwards = bool(before) and not after
    descending = backwards != sort.startswith("-")
    place = await _place(conn, list(columns), after or before)
    order = ", ".join(f"k{at} {'DESC' if descending else 'ASC'}" for at in range(len(columns)))
    order = f"ORDER BY {order} LIMIT $1"
    wanted = _wanted(filters)
    values: list[Any] = [size, *wanted.values(), *place]

    def all_of(conditions: dict[str, str], keys: Iterable[str]) -> str:
        chosen = [conditions[name].replace("?", f"${at}") for at, name in enumerate(wanted, start=2)]
        if place:
            ends = ", ".join(f"${at}" for at, _ in enumerate(place, start=len(wanted) + 2))
            chosen.append(f"({', '.join(keys)}) {'<' if descending else '>'} ({ends})")
        return " AND ".join(["true", *chosen])

    def named(keys: Iterable[str]) -> str:
        return ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))

    sources = []
    if filters.active is not False:
        keys = columns.values()
        where = all_of(_FOR_SALE, keys)
        for_sale = f"SELECT l.product_id AS id, {named(keys)} FROM product_listing l WHERE {where}"  # noqa: S608 - Constants of ours.
        if filters.words:
            terms = places.terms_of(filters.words, filters.brand_slug, filters.category)
            terms = await places.rarest_first(conn, by, terms)
            window = _window(by, place, descending=descending)
            for_sale, more = _along(for_sale, by, window, terms, len(values), descending=descending)
            values += more
        sources.append(f"({for_sale} {order})")
    if filters.active is not True:
        sources.append(
            f"""(SELECT p.id, {named(columns)} {_PRODUCT}
                 CROSS JOIN LATERAL (SELECT folded(v.name || ' ' || b.name || ' ' || p.slug) AS text OFFSET 0) said
                 WHERE NOT p.active AND {all_of(_NOT_FOR_SALE, columns)} {order})"""
        )
    rows = await conn.fetch(
        f"""SELECT p.version_id, p.active, p.allow_loss
            FROM ({" UNION ALL ".join(sources)}) found JOIN product p ON p.id = found.id
            {order}""",  # noqa: S608 - As above.
        *values,
    )
    known = await read_versions(conn, [row[0] for row in rows])
    found = [Listing(known[row[0]], row[1], row[2]) for row in rows]
    return found[::-1] if backwards else found


def _wanted(filters: ProductSearch) -> dict[str, Any]:
    """What is asked for, by the name of its condition."""
    given = {
        "letters": list(filters.words),
        "words": filters.query,
        "brand": filters.brand_slug,
        "category": filters.category,
        "type": filters.product_type,
    }
    return {name: value for name, value in given.items() if value}


async def _place(conn: Connection, keys: Sequence[str], slug: str) -> list[Any]:
    """What products are sorted by, of the one with this slug; nothing where none is named, or there is none."""
    if not slug or keys == ["p.slug"]:
        return [slug] if slug else []
    row = await conn.fetchrow(f"SELECT {', '.join(keys)} {_PRODUCT} WHERE p.slug = $1", slug)
    return [] if row is None else list(row)


def _window(by: str, place: Sequence[Any], *, descending: bool) -> Window:
    """The part of an order behind a place, as `product_place` has it."""
    if not place:
        return Window()
    *keys, number = place if by != "slug" else (*place, None)  # No two products have the same slug.
    key = f"{keys[0]}{keys[1]:019}" if by in ("face", "price") else "\x01".join(keys)
    if descending:
        return Window(high=key, high_id=number or 0)
    return Window(low=key, low_id=number or ID_MAX)


def _along(
    for_sale: str, by: str, window: Window, terms: Sequence[str], values_before: int, *, descending: bool
) -> tuple[str, list[str]]:
    """The products of this query that have the terms, walked in an order, and the values that it adds."""
    low, high, sort, whole, rarest = (f"${at}::text" for at in range(values_before + 1, values_before + 6))
    several = len(terms) > 1
    walk = places.walk(sort, whole, rarest if several else None, descending=descending)
    sql = f"""
        SELECT l.*
        FROM (SELECT {low} AS low, {window.low_id} AS low_id, {high} AS high, {window.high_id} AS high_id) lane
        CROSS JOIN LATERAL (
            SELECT l.* FROM {walk}
            CROSS JOIN LATERAL ({for_sale} AND l.product_id = found.product_id OFFSET 0) l LIMIT $1) l"""  # noqa: S608 - As above.
    return sql, [window.low, window.high, by, " & ".join(terms), *terms[:several]]


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


async def find(conn: Connection, slug: str) -> Listing:
    """The product as it stands now, or UnknownProduct."""
    found = await store.current(conn, [slug])
    if slug not in found:
        raise UnknownProduct(slug)
    return found[slug]


async def every_product(
    conn: Connection, *, brand: str | None = None, active: bool | None = None
) -> list[Listing]:
    """All products, in order of their slugs."""
    listings: list[Listing] = []
    while True:
        after = listings[-1].version.slug if listings else ""
        page = await store.list_products(conn, active=active, brand_slug=brand, after_slug=after)
        listings += page
        if len(page) < store.PAGE_MAX:
            return listings


async def sheet_page(conn: Connection, columns: Sequence[str], after_slug: str) -> SheetPage:
    """Some rows of a file of all products that an import reads, in order of their slugs."""
    listings = await store.list_products(conn, after_slug=after_slug)
    leaflets = await store.leaflets(conn, [one.version.version_id for one in listings])
    described = [
        values(draft_of(one.version, leaflets[one.version.version_id]), one.active) for one in listings
    ]
    rows = [[row[column] for column in columns] for row in described]
    return SheetPage(rows, listings[-1].version.slug if len(listings) == store.PAGE_MAX else None)
