"""Find all: a company's orders, newest first, by page or by cursor. Company and state are in every query (OP-03)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.orders.rules.states import Status
from voucherd.statements import Where

SCAN_MAX: Final = 10_000
"""Orders that one page looks at where filters may pass over most of them; the next page goes on behind."""


class OrderFilters(Struct, frozen=True):
    """Which orders are asked for."""

    order_id: int | None = None
    statuses: Sequence[Status] = ()
    type: int | None = None
    reference: str | None = None
    product_slug: str | None = None
    payment_currency: str | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
    oldest_first: bool = False


class Found(Struct, frozen=True):
    """One order of a page, by id."""

    id: int
    created_at: datetime


async def page_of_orders(
    conn: Connection,
    company_id: int,
    state: State,
    filters: OrderFilters,
    *,
    size: int,
    skip: int = 0,
    after: tuple[datetime, int] | None = None,
) -> list[Found]:
    """One page. From a cursor its cost is the same at any depth: the index is entered where the last page ended."""
    where = _where(company_id, state, filters)
    direction, beyond = ("ASC", ">") if filters.oldest_first else ("DESC", "<")
    if after is not None:
        created_at, order_id = after
        where.also(f"(o.created_at, o.id) {beyond} (:created_at, :id)", created_at=created_at, id=order_id)
    rows = await conn.fetch(
        f"SELECT o.id, o.created_at FROM orders o WHERE {where} "  # noqa: S608 - Every part is a constant of ours.
        f"ORDER BY o.created_at {direction}, o.id {direction} LIMIT {size:d} OFFSET {skip:d}",
        *where.values,
    )
    return [Found(*row) for row in rows]


async def count_orders(conn: Connection, company_id: int, state: State, filters: OrderFilters) -> int:
    """How many orders the filters let through."""
    where = _where(company_id, state, filters)
    return int(
        await conn.fetchval(f"SELECT count(*) FROM orders o WHERE {where}", *where.values)  # noqa: S608 - As above.
    )


def _where(company_id: int, state: State, filters: OrderFilters) -> Where:
    """The conditions. Deleted orders never appear."""
    where = Where()
    where.also("o.company_id = :company_id", company_id=company_id)
    where.also("(o.id & 1) = :state", state=int(state))
    where.also(f"o.status <> {Status.DELETED:d}")
    where.also("o.id = :id", id=filters.order_id)
    statuses = [int(status) for status in filters.statuses]
    where.also("o.status = ANY(:statuses::smallint[])", statuses=statuses or None)
    where.also("o.type = :type", type=filters.type)
    where.also(
        "hashtextextended(o.reference, 0) = hashtextextended(:reference::text, 0) AND o.reference = :reference",
        reference=filters.reference,
    )
    where.also(
        "EXISTS (SELECT FROM order_item i JOIN product_version v ON v.id = i.version_id JOIN product p "
        "ON p.id = v.product_id WHERE i.order_id = o.id AND p.slug = :slug)",
        slug=filters.product_slug,
    )
    where.also("o.payment_currency = :currency", currency=filters.payment_currency)
    where.also("o.created_at >= :date_from", date_from=filters.date_from)
    where.also("o.created_at <= :date_to", date_to=filters.date_to)
    return where


async def count_waiting(conn: Connection, company_id: int, state: State) -> int:
    """How many orders are pending: those with a line that waits. They are few, however many orders there are."""
    count = await conn.fetchval(
        "SELECT count(DISTINCT order_id) FROM waiting WHERE state = $1 AND company_id = $2",
        int(state),
        company_id,
    )
    return int(count)
