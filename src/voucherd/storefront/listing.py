"""The products that are for sale: filtered, sorted, by page or by cursor. Company and prices play no part here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection
from voucherd.ids import State
from voucherd.money import DIGITS, BadAmount, to_minor
from voucherd.storefront import search
from voucherd.storefront.sorting import AMOUNTS, KEYS, Sort, SortPosition, lane

CURRENCIES_MAX: Final = len(DIGITS)
SORTED_MAX: Final = 20_000
"""So many products of a search are sorted at once; of more, the order's index is walked until a page is full."""

_WITHOUT_DIGITS: Final = [currency for currency, places in DIGITS.items() if places == 0]
_WITH_THREE: Final = [currency for currency, places in DIGITS.items() if places == 3]


class ProductFilters(Struct, frozen=True):
    """Which products are asked for."""

    slug: str | None = None
    brand_slug: str | None = None
    category: str | None = None
    product_type: str | None = None
    redeem_type: str | None = None
    region: str | None = None
    currency: str | None = None
    face_value: Decimal | None = None
    variable: bool | None = None
    stocked: bool | None = None
    words: tuple[str, ...] = ()


class ProductOrder(Struct, frozen=True):
    """In which order."""

    sort: Sort = Sort.NAME
    descending: bool = False


class ListingRow(Struct, frozen=True):
    """One product of a page, and its place in the order."""

    product_id: int
    version_id: int
    updated_at: datetime
    place: SortPosition


async def plan_for_values(conn: Connection) -> None:
    """Let this transaction's statements be planned for their values: the filters decide which index is best."""
    await conn.execute("SET LOCAL plan_cache_mode = force_custom_plan")


async def page_of_products(
    conn: Connection,
    state: State,
    filters: ProductFilters,
    order: ProductOrder,
    *,
    size: int,
    skip: int = 0,
    after: SortPosition | None = None,
) -> list[ListingRow]:
    """One page. From a cursor its cost is the same at any depth: the index is entered where the last page ended."""
    source = await _source(conn, filters)
    if order.sort in KEYS:
        return await _by_words(conn, source, _where(state, filters), order, size=size, skip=skip, after=after)
    return await _by_worth(conn, source, _where(state, filters), order, size=size, skip=skip, after=after)


async def count_products(conn: Connection, state: State, filters: ProductFilters) -> int:
    """How many products the filters let through. What is counted all the time need not be counted again."""
    for kind, slug, kept in (
        ("all", "", ProductFilters()),
        ("brand", filters.brand_slug, ProductFilters(brand_slug=filters.brand_slug)),
        ("category", filters.category, ProductFilters(category=filters.category)),
    ):
        if filters == kept:
            query = "SELECT count FROM product_count WHERE kind = $1 AND slug = $2"
            return await conn.fetchval(query, kind, slug) or 0
    where, values = _where(state, filters)
    return int(
        await conn.fetchval(f"SELECT count(*) FROM product_listing p WHERE {where}", *values)  # noqa: S608 - Constants of ours.
    )


async def listed(conn: Connection, slug: str) -> ListingRow | None:
    """The product with this slug, if it is for sale."""
    if not is_slug(slug):
        return None  # Whatever it is, the database need not see it.
    row = await conn.fetchrow(
        "SELECT product_id, version_id, updated_at FROM product_listing WHERE slug = $1", slug
    )
    return None if row is None else ListingRow(row[0], row[1], row[2], SortPosition((), 0, row[0]))


async def _source(conn: Connection, filters: ProductFilters) -> tuple[str, str]:
    """A part to begin the statement with, and where its rows come from: the table, or the few that a search found.

    The server has no idea how rare the beginning of a word is. Left to itself it walks a whole index for a word that
    three products have, or sorts half the catalogue for one that half of it has.
    """
    if not filters.words:
        return "", "product_listing"
    found = await conn.fetchval(
        "SELECT count(*) FROM (SELECT FROM product_listing WHERE words @@ $1::text::tsquery LIMIT $2) found",
        search.prefix_query(filters.words),
        SORTED_MAX + 1,
    )
    if found > SORTED_MAX:
        return "", "product_listing"
    # The first parameter of every statement with words is their query.
    return (
        "WITH found AS MATERIALIZED (SELECT * FROM product_listing WHERE words @@ $1::text::tsquery) ",
        "found",
    )


async def _by_words(
    conn: Connection,
    source: tuple[str, str],
    condition: tuple[str, list[Any]],
    order: ProductOrder,
    *,
    size: int,
    skip: int,
    after: SortPosition | None,
) -> list[ListingRow]:
    (start, table), (where, values) = source, condition
    keys = [f"p.{key}" for key in (*KEYS[order.sort], "product_id")]
    direction, beyond = _direction(order)
    if after is not None:
        values += (*after.words, after.product_id)
        first = len(values) - len(keys) + 1
        marks = ", ".join(f"${at}" for at in range(first, len(values) + 1))
        where += f" AND ({', '.join(keys)}) {beyond} ({marks})"
    rows = await conn.fetch(
        f"{start}SELECT p.version_id, p.updated_at, {', '.join(keys)} FROM {table} p WHERE {where} "  # noqa: S608 - Constants of ours.
        f"ORDER BY {', '.join(f'{key} {direction}' for key in keys)} LIMIT {size:d} OFFSET {skip:d}",
        *values,
    )
    return [ListingRow(row[-1], row[0], row[1], SortPosition(tuple(row[2:-1]), 0, row[-1])) for row in rows]


async def _by_worth(
    conn: Connection,
    source: tuple[str, str],
    condition: tuple[str, list[Any]],
    order: ProductOrder,
    *,
    size: int,
    skip: int,
    after: SortPosition | None,
) -> list[ListingRow]:
    """A merge of all currencies, each from its own place on; no more of each is read than the page could need."""
    currency_column, amount = AMOUNTS[order.sort]
    currencies = await _currencies(conn, currency_column)
    rates = await catalogue.rates(conn, currencies)
    lanes = [lane(currency, rates, after, descending=order.descending) for currency in currencies]
    (start, table), (where, values) = source, condition
    at = len(values)
    direction, beyond = _direction(order)
    rows = await conn.fetch(
        f"""{start}SELECT o.version_id, o.updated_at, o.{amount} * lane.factor AS worth, o.product_id
            FROM unnest(${at + 1}::text[], ${at + 2}::text[]::numeric[], ${at + 3}::bigint[], ${at + 4}::int[])
                 AS lane (currency, factor, minor, product_id)
            CROSS JOIN LATERAL (
                SELECT p.version_id, p.updated_at, p.{amount}, p.product_id FROM {table} p
                WHERE {where} AND p.{currency_column} = lane.currency
                  AND (p.{amount}, p.product_id) {beyond} (lane.minor, lane.product_id)
                ORDER BY p.{amount} {direction}, p.product_id {direction} LIMIT {size + skip:d}) o
            ORDER BY worth {direction}, o.product_id {direction} LIMIT {size:d} OFFSET {skip:d}""",  # noqa: S608 - Constants of ours.
        *values,
        [one.currency for one in lanes],
        [str(one.factor) for one in lanes],
        [one.minor for one in lanes],
        [one.product_id for one in lanes],
    )
    return [ListingRow(row[3], row[0], row[1], SortPosition((), int(row[2]), row[3])) for row in rows]


async def _currencies(conn: Connection, column: str) -> Sequence[str]:
    """The currencies that occur, each found by one step into the index."""
    rows = await conn.fetch(
        f"""WITH RECURSIVE found (currency) AS (
                (SELECT {column} FROM product_listing ORDER BY {column} LIMIT 1)
                UNION ALL
                SELECT (SELECT {column} FROM product_listing WHERE {column} > found.currency
                        ORDER BY {column} LIMIT 1) FROM found WHERE found.currency IS NOT NULL)
            SELECT currency FROM found WHERE currency IS NOT NULL LIMIT {CURRENCIES_MAX:d}"""  # noqa: S608 - Constants of ours.
    )
    return [row[0] for row in rows]


def _direction(order: ProductOrder) -> tuple[str, str]:
    return ("DESC", "<") if order.descending else ("ASC", ">")


def _where(state: State, filters: ProductFilters) -> tuple[str, list[Any]]:
    """The conditions and their values."""
    conditions: list[str] = []
    values: list[Any] = []

    def also(condition: str, value: Any) -> None:
        if value is not None:
            values.append(value)
            conditions.append(condition.replace("?", f"${len(values)}"))

    also("p.words @@ ?::text::tsquery", search.prefix_query(filters.words) or None)
    also("p.slug = ?", filters.slug)
    also("p.brand_slug = ?", filters.brand_slug)
    also("p.category = ?", filters.category)
    also("p.product_type = ?", filters.product_type)
    also("p.redeem_type = ?", filters.redeem_type)
    also("p.region = ?", filters.region)
    also("p.face_currency = ?", filters.currency)
    also("p.variable = ?", filters.variable)
    if state is State.LIVE:
        also("p.stocked = ?", filters.stocked)
    elif filters.stocked is False:
        conditions.append("false")  # Sandbox shelves are never empty (OP-49).
    if filters.face_value is not None:
        conditions.append(_face_condition(filters.face_value, values))
    return " AND ".join(conditions) or "true", values


def _face_condition(face_value: Decimal, values: list[Any]) -> str:
    """That the face value can be had, in whatever currency: an amount is as many minor units as its digits say."""
    first = len(values) + 1
    values += [
        _WITHOUT_DIGITS,
        _minor(face_value, "JPY"),
        _WITH_THREE,
        _minor(face_value, "KWD"),
        _minor(face_value, "EUR"),
    ]
    none, of_none, three, of_three, of_two = (f"${at}" for at in range(first, first + 5))
    return (
        f"CASE WHEN p.face_currency = ANY({none}::text[]) THEN {of_none}::bigint "
        f"WHEN p.face_currency = ANY({three}::text[]) THEN {of_three}::bigint ELSE {of_two}::bigint END "
        "BETWEEN p.face_low AND p.face_high"
    )


def _minor(face_value: Decimal, currency: str) -> int | None:
    try:
        return to_minor(face_value, currency)
    except BadAmount:
        return None  # No code of such a currency has this value.
