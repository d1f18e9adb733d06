"""The products that are for sale: filtered, sorted, by page or by cursor. Company and prices play no part here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct, structs

from voucherd.catalogue import places
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.places import Window
from voucherd.catalogue.rules import is_slug
from voucherd.db import Connection
from voucherd.ids import State
from voucherd.money import DIGITS, BadAmount, to_minor
from voucherd.storefront import search
from voucherd.storefront.sorting import AMOUNTS, KEYS, PLACES, Sort, SortLane, SortPosition, lane

CURRENCIES_MAX: Final = len(DIGITS)

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
    by = _by_search if filters.words else _by_words if order.sort in KEYS else _by_worth
    return await by(conn, state, filters, order, size=size, skip=skip, after=after)


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


async def _by_words(
    conn: Connection,
    state: State,
    filters: ProductFilters,
    order: ProductOrder,
    *,
    size: int,
    skip: int,
    after: SortPosition | None,
) -> list[ListingRow]:
    where, values = _where(state, filters)
    keys = [f"p.{key}" for key in (*KEYS[order.sort], "product_id")]
    direction, beyond = _direction(order)
    if after is not None:
        values += (*after.words, after.product_id)
        first = len(values) - len(keys) + 1
        marks = ", ".join(f"${at}" for at in range(first, len(values) + 1))
        where += f" AND ({', '.join(keys)}) {beyond} ({marks})"
    rows = await conn.fetch(
        f"SELECT p.version_id, p.updated_at, {', '.join(keys)} FROM product_listing p WHERE {where} "  # noqa: S608 - Constants of ours.
        f"ORDER BY {', '.join(f'{key} {direction}' for key in keys)} LIMIT {size:d} OFFSET {skip:d}",
        *values,
    )
    return [ListingRow(row[-1], row[0], row[1], SortPosition(tuple(row[2:-1]), 0, row[-1])) for row in rows]


async def _by_worth(
    conn: Connection,
    state: State,
    filters: ProductFilters,
    order: ProductOrder,
    *,
    size: int,
    skip: int,
    after: SortPosition | None,
) -> list[ListingRow]:
    """A merge of all currencies, each from its own place on; no more of each is read than the page could need."""
    currency_column, amount = AMOUNTS[order.sort]
    lanes = await _lanes(conn, order, after)
    where, values = _where(state, filters)
    at = len(values)
    direction, beyond = _direction(order)
    rows = await conn.fetch(
        f"""SELECT o.version_id, o.updated_at, o.{amount} * lane.factor AS worth, o.product_id
            FROM unnest(${at + 1}::text[], ${at + 2}::text[]::numeric[], ${at + 3}::bigint[], ${at + 4}::int[])
                 AS lane (currency, factor, minor, product_id)
            CROSS JOIN LATERAL (
                SELECT p.version_id, p.updated_at, p.{amount}, p.product_id FROM product_listing p
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


async def _by_search(
    conn: Connection,
    state: State,
    filters: ProductFilters,
    order: ProductOrder,
    *,
    size: int,
    skip: int,
    after: SortPosition | None,
) -> list[ListingRow]:
    """The order, or each of its currencies, walked along its stretches; words alone decide what is looked at there."""
    sort = PLACES[order.sort]
    terms = places.terms_of(filters.words, filters.brand_slug, filters.category)
    terms = await places.rarest_first(conn, sort, terms)
    if order.sort in KEYS:
        factors, windows = [0], [_window(order, after)]
        columns = tuple(f"p.{key}" for key in KEYS[order.sort])
    else:
        lanes = await _lanes(conn, order, after)
        factors, windows = [one.factor for one in lanes], [_part(order, one) for one in lanes]
        columns = (f"p.{AMOUNTS[order.sort][1]} * lane.factor",)
    where, values = _where(state, structs.replace(filters, words=()))
    at = len(values)
    direction, _ = _direction(order)
    names = [*(f"key_{n}" for n in range(len(columns))), "product_id"]
    shown = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=False))
    rarest = f"${at + 8}" if len(terms) > 1 else None
    walk = places.walk(f"${at + 6}", f"${at + 7}", rarest, descending=order.descending)
    rows = await conn.fetch(
        f"""SELECT o.version_id, o.updated_at, {", ".join(names)}
            FROM unnest(${at + 1}::text[]::numeric[], ${at + 2}::text[], ${at + 3}::int[], ${at + 4}::text[],
                        ${at + 5}::int[]) AS lane (factor, low, low_id, high, high_id)
            CROSS JOIN LATERAL (
                SELECT p.version_id, p.updated_at, {shown}, p.product_id FROM {walk}
                CROSS JOIN LATERAL (SELECT * FROM product_listing p
                                    WHERE p.product_id = found.product_id AND {where} OFFSET 0) p
                LIMIT {size + skip:d}) o
            ORDER BY {", ".join(f"{name} {direction}" for name in names)} LIMIT {size:d} OFFSET {skip:d}""",  # noqa: S608 - Constants of ours.
        *values,
        [str(one) for one in factors],
        [one.low for one in windows],
        [one.low_id for one in windows],
        [one.high for one in windows],
        [one.high_id for one in windows],
        sort,
        " & ".join(terms),
        *terms[: len(terms) > 1],
    )
    if order.sort in KEYS:
        return [
            ListingRow(row[-1], row[0], row[1], SortPosition(tuple(row[2:-1]), 0, row[-1])) for row in rows
        ]
    return [ListingRow(row[3], row[0], row[1], SortPosition((), int(row[2]), row[3])) for row in rows]


def _window(order: ProductOrder, after: SortPosition | None) -> Window:
    """What is left of an order by words."""
    if after is None:
        return Window()
    key = "\x01".join(after.words)
    if order.descending:
        return Window(high=key, high_id=after.product_id)
    return Window(low=key, low_id=after.product_id)


def _part(order: ProductOrder, lane: SortLane) -> Window:
    """What is left of one currency in an order by worth."""
    first, last = lane.currency, f"{lane.currency}:"
    key = first if lane.minor < 0 else f"{first}{lane.minor:019d}"
    if order.descending:
        return Window(first, 0, key, lane.product_id)
    return Window(key, lane.product_id, last, 0)


async def _lanes(conn: Connection, order: ProductOrder, after: SortPosition | None) -> list[SortLane]:
    """The currencies of an order by worth, each with its place to go on from."""
    currencies = await _currencies(conn, AMOUNTS[order.sort][0])
    rates = await catalogue.rates(conn, currencies)
    return [lane(currency, rates, after, descending=order.descending) for currency in currencies]


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
