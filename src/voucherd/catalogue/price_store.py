"""The tables price_list, price_list_company and price_entry: nothing else reads or writes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

import asyncpg
from msgspec import Struct

from voucherd.catalogue.price_list_files import ListedEntry
from voucherd.catalogue.terms import PriceEntry, PriceTerms
from voucherd.db import Connection, Tx

NAME_CHARS_MAX: Final = 100

_TERMS: Final = "e.discount_bp, e.price_minor, e.price_currency, e.fee_variable_e8, e.fee_fixed_minor"
_ENTRY: Final = f"{_TERMS}, e.face_currency, e.face_minor"
_IN_FORCE: Final = (
    "(e.valid_from IS NULL OR e.valid_from <= today.day) "
    "AND (e.valid_until IS NULL OR e.valid_until >= today.day)"
)


class PriceListExists(Exception):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a price list {name!a} already")


class UnknownPriceList(LookupError):
    """No price list has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no price list {name[:NAME_CHARS_MAX]!a}")


class PriceListInUse(Exception):
    """Companies still have the list."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the price list {name!a} is some company's: assign another, or none, first")


class PriceList(Struct, frozen=True):
    """A list and how much is in it."""

    id: int
    name: str
    companies: list[str]
    entries: int


class PriceTarget(Struct, frozen=True):
    """What an entry is about: a product, a brand, or (neither) everything; and from which day on."""

    product_id: int | None = None
    brand_id: int | None = None
    valid_from: date | None = None


async def add_list(tx: Tx, name: str) -> int:
    """A new list without entries."""
    list_id: int | None = await tx.fetchval(
        "INSERT INTO price_list (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id", name
    )
    if list_id is None:
        raise PriceListExists(name)
    return list_id


async def remove_list(tx: Tx, name: str) -> None:
    """Removes a list that no company has, with its entries."""
    try:
        if await tx.fetchval("DELETE FROM price_list WHERE name = $1 RETURNING id", name) is None:
            raise UnknownPriceList(name)
    except asyncpg.ForeignKeyViolationError:
        raise PriceListInUse(name) from None


async def find_list(conn: Connection, name: str) -> int:
    """The list of this name."""
    list_id: int | None = await conn.fetchval("SELECT id FROM price_list WHERE name = $1", name)
    if list_id is None:
        raise UnknownPriceList(name)
    return list_id


async def lists(conn: Connection) -> list[PriceList]:
    """Every list, by name."""
    rows = await conn.fetch(
        """SELECT l.id, l.name,
                  ARRAY(SELECT c.name FROM price_list_company a JOIN company c ON c.id = a.company_id
                        WHERE a.list_id = l.id ORDER BY c.name),
                  (SELECT count(*) FROM price_entry e WHERE e.list_id = l.id)
           FROM price_list l ORDER BY l.name"""
    )
    return [PriceList(*row) for row in rows]


async def assign(tx: Tx, company_id: int, list_id: int) -> None:
    """Gives the company this list, instead of the one that it may have had."""
    await tx.execute(
        """INSERT INTO price_list_company (company_id, list_id) VALUES ($1, $2)
           ON CONFLICT (company_id) DO UPDATE SET list_id = excluded.list_id, assigned_at = now()""",
        company_id,
        list_id,
    )


async def unassign(tx: Tx, company_id: int) -> bool:
    """Takes the company's list away; whether it had one."""
    query = "DELETE FROM price_list_company WHERE company_id = $1 RETURNING true"
    return await tx.fetchval(query, company_id) is not None


async def assigned(conn: Connection) -> dict[int, int]:
    """The list of every company that has one."""
    rows = await conn.fetch("SELECT company_id, list_id FROM price_list_company")
    return {row[0]: row[1] for row in rows}


async def set_entry(
    tx: Tx, list_id: int, target: PriceTarget, entry: PriceEntry, valid_until: date | None
) -> None:
    """Sets what the list says of the target from that day on; it replaces what it said from the same day on."""
    terms = entry.terms
    await tx.execute(
        """INSERT INTO price_entry AS e (list_id, product_id, brand_id, valid_from, valid_until, discount_bp,
               price_minor, price_currency, fee_variable_e8, fee_fixed_minor, face_currency, face_minor)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
           ON CONFLICT ON CONSTRAINT price_entry_once DO UPDATE SET (valid_until, discount_bp, price_minor,
               price_currency, fee_variable_e8, fee_fixed_minor, face_currency, face_minor, set_at) =
               ($5, $6, $7, $8, $9, $10, $11, $12, now())""",
        list_id,
        target.product_id,
        target.brand_id,
        target.valid_from,
        valid_until,
        terms.discount_bp or None,
        terms.price_minor,
        terms.price_currency,
        terms.fee_variable_e8,
        terms.fee_fixed_minor,
        entry.face_currency,
        entry.face_minor,
    )


async def remove_entry(tx: Tx, list_id: int, target: PriceTarget) -> bool:
    """Removes what the list says of the target from exactly that day on; whether it said anything."""
    removed = await tx.fetchval(
        """DELETE FROM price_entry WHERE list_id = $1 AND product_id IS NOT DISTINCT FROM $2
           AND brand_id IS NOT DISTINCT FROM $3 AND valid_from IS NOT DISTINCT FROM $4 RETURNING true""",
        list_id,
        target.product_id,
        target.brand_id,
        target.valid_from,
    )
    return removed is not None


async def clear(tx: Tx, list_id: int) -> None:
    """Removes every entry of the list."""
    await tx.execute("DELETE FROM price_entry WHERE list_id = $1", list_id)


async def entries(conn: Connection, list_id: int) -> list[ListedEntry]:
    """All that the list says: of everything first, then of brands, then of products."""
    rows = await conn.fetch(
        f"""SELECT {_ENTRY}, p.slug, b.slug, e.valid_from, e.valid_until
            FROM price_entry e LEFT JOIN product p ON p.id = e.product_id LEFT JOIN brand b ON b.id = e.brand_id
            WHERE e.list_id = $1 ORDER BY p.slug NULLS FIRST, b.slug NULLS FIRST, e.valid_from NULLS FIRST""",  # noqa: S608 - Constants of ours.
        list_id,
    )
    return [ListedEntry(row[7], row[8], _entry(row), row[9], row[10]) for row in rows]


# Three look-ups in one index for each product, in the order of their precedence.
_LOOK: Final = f"""
    SELECT {_ENTRY}, w.list_id, w.product_id
    FROM unnest($1::int[], $2::int[], $3::text[]) AS w (list_id, product_id, brand_slug)
    JOIN brand b ON b.slug = w.brand_slug
    CROSS JOIN (SELECT (now() AT TIME ZONE 'UTC')::date AS day) today
    CROSS JOIN LATERAL (
        SELECT 1 AS rank, e.* FROM price_entry e
        WHERE e.list_id = w.list_id AND e.product_id = w.product_id AND {_IN_FORCE}
        UNION ALL
        SELECT 2, e.* FROM price_entry e
        WHERE e.list_id = w.list_id AND e.product_id IS NULL AND e.brand_id = b.id AND {_IN_FORCE}
        UNION ALL
        SELECT 3, e.* FROM price_entry e
        WHERE e.list_id = w.list_id AND e.product_id IS NULL AND e.brand_id IS NULL AND {_IN_FORCE}) e
    ORDER BY w.list_id, w.product_id, e.rank, e.valid_from DESC NULLS LAST
"""  # noqa: S608 - Constants of ours.


async def in_force(
    conn: Connection, wanted: Iterable[tuple[int, int, str]]
) -> dict[tuple[int, int], list[PriceEntry]]:
    """What applies today of these lists to these products (with their brands), in the order of precedence."""
    columns = list(zip(*set(wanted), strict=True))
    found: dict[tuple[int, int], list[PriceEntry]] = {}
    for row in await conn.fetch(_LOOK, *columns) if columns else ():
        found.setdefault((row[7], row[8]), []).append(_entry(row))
    return found


def _entry(row: Any) -> PriceEntry:
    return PriceEntry(PriceTerms(row[0] or 0, *row[1:5]), row[5], row[6])
