"""Find all: a company's orders, newest first, by page or by cursor. Company and state are in every query (OP-03)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.orders.rules.states import Status
from voucherd.statements import Where

SCAN_MAX: Final = 10_000
"""Orders that one page looks at where filters may pass over most of them; the next page goes on behind."""
COUNTED_MAX: Final = 10_000
"""Orders that are counted; beyond that a total means "at least so many"."""
SORTED_MAX: Final = 1_000
"""Orders of one reference that are found by it; where there are more the list is walked, which is quicker then."""
ID_MAX: Final = 2**63 - 1


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

    @property
    def place(self) -> tuple[datetime, int]:
        """Where it stands in the list."""
        return self.created_at, self.id


class FoundPage(Struct, frozen=True):
    """Orders, and the place to go on behind if more may follow."""

    rows: list[Found]
    after: tuple[datetime, int] | None
    whole: bool = True
    """Whether all orders were looked at that could be on the page."""


class _Search:
    """The statement of a page: where its orders come from, in their order, and the conditions on them."""

    def __init__(self, company_id: int, state: State, filters: OrderFilters, *, by_reference: bool) -> None:
        self._filters = filters
        self._by_reference = by_reference
        self._span = Where()
        self._span.also("company_id = :company_id", company_id=company_id)
        self._span.also("(id & 1) = :state", state=int(state))
        # Pairs lead to the index of companies alone, whatever the server knows of the table.
        self._span.also("(created_at, id) >= (:date_from, 0)", date_from=filters.date_from)
        self._span.also("(created_at, id) <= (:date_to, :id_max)", date_to=filters.date_to, id_max=ID_MAX)
        direction = "ASC" if filters.oldest_first else "DESC"
        self.order = f"created_at {direction}, id {direction}"

    def go_on(self, after: tuple[datetime, int]) -> None:
        """Begin behind this place."""
        beyond = ">" if self._filters.oldest_first else "<"
        self._span.also(f"(created_at, id) {beyond} (:created_at, :id)", created_at=after[0], id=after[1])

    def wanted(self, scanned: int) -> tuple[str, list[Any]]:
        """The orders that fit, among the first so many, and the values of the statement."""
        found = Where(f"o.status <> {Status.DELETED:d}")
        found.values = list(self._span.values)
        source = f"SELECT * FROM orders WHERE {self._span} ORDER BY {self.order} LIMIT {scanned:d}"  # noqa: S608 - Ours.
        filters = self._filters
        if filters.order_id is not None:
            # OFFSET: found first and by the key alone; so are those of a reference.
            number = found.parameter(filters.order_id)
            source = (
                f"SELECT * FROM (SELECT * FROM orders WHERE id = {number} OFFSET 0) own WHERE {self._span}"  # noqa: S608 - Ours.
            )
        elif self._by_reference:
            source = f"SELECT * FROM ({_of_reference(found, filters)}) own WHERE {self._span}"  # noqa: S608 - Ours.
        else:
            found.also("o.reference = :reference", reference=filters.reference)
        statuses = [int(status) for status in filters.statuses]
        found.also("o.status = ANY(:statuses::smallint[])", statuses=statuses or None)
        found.also("o.type = :type", type=filters.type)
        found.also(
            "EXISTS (SELECT FROM order_item i JOIN product_version v ON v.id = i.version_id JOIN product p "
            "ON p.id = v.product_id WHERE i.order_id = o.id AND p.slug = :slug)",
            slug=filters.product_slug,
        )
        found.also("o.payment_currency = :currency", currency=filters.payment_currency)
        return f"SELECT o.id, o.created_at FROM ({source}) o WHERE {found}", found.values  # noqa: S608 - Ours.

    async def last_of(self, conn: Connection, scanned: int) -> tuple[datetime, int] | None:
        """The last of the first so many orders; None if there are fewer."""
        if self._filters.order_id is not None or self._by_reference:
            return None
        row = await conn.fetchrow(
            f"SELECT created_at, id FROM orders WHERE {self._span} ORDER BY {self.order} "  # noqa: S608 - Ours.
            f"OFFSET {scanned - 1:d} LIMIT 1",
            *self._span.values,
        )
        return None if row is None else (row[0], row[1])


def _of_reference(where: Where, filters: OrderFilters) -> str:
    """The company's orders of a reference, by the index of those; the company is the first parameter."""
    text = where.parameter(filters.reference)
    return (
        f"SELECT * FROM orders WHERE company_id = $1 AND reference = {text} "  # noqa: S608 - Ours.
        f"AND hashtextextended(reference, 0) = hashtextextended({text}::text, 0) OFFSET 0"
    )


async def _search(conn: Connection, company_id: int, state: State, filters: OrderFilters) -> _Search:
    by_reference = False
    if filters.reference is not None and filters.order_id is None:
        where = Where()
        where.parameter(company_id)
        own = _of_reference(where, filters)
        count = await conn.fetchval(
            f"SELECT count(*) FROM (SELECT FROM ({own}) own LIMIT {SORTED_MAX + 1:d}) few",  # noqa: S608 - Ours.
            *where.values,
        )
        by_reference = count <= SORTED_MAX
    return _Search(company_id, state, filters, by_reference=by_reference)


async def page_of_orders(
    conn: Connection,
    company_id: int,
    state: State,
    filters: OrderFilters,
    *,
    size: int,
    skip: int = 0,
    after: tuple[datetime, int] | None = None,
) -> FoundPage:
    """One page. From a cursor its cost is the same at any depth: the index is entered where the last page ended."""
    search = await _search(conn, company_id, state, filters)
    if after is not None:
        search.go_on(after)
    scanned = SCAN_MAX + skip
    sql, values = search.wanted(scanned)
    # One more than a page tells whether another follows.
    rows = await conn.fetch(f"{sql} ORDER BY {search.order} LIMIT {size + 1:d} OFFSET {skip:d}", *values)
    found = [Found(*row) for row in rows[:size]]
    if len(rows) > size:
        return FoundPage(found, found[-1].place)
    # The page is short: it ends where it looked last, unless that was everything.
    last = await search.last_of(conn, scanned)
    return FoundPage(found, last, whole=last is None)


async def count_orders(conn: Connection, company_id: int, state: State, filters: OrderFilters) -> int:
    """How many orders the filters let through: among the first `SCAN_MAX`, and counted up to `COUNTED_MAX`."""
    search = await _search(conn, company_id, state, filters)
    sql, values = search.wanted(SCAN_MAX)
    return int(
        await conn.fetchval(f"SELECT count(*) FROM ({sql} LIMIT {COUNTED_MAX:d}) counted", *values)  # noqa: S608 - Ours.
    )


async def count_waiting(conn: Connection, company_id: int, state: State) -> int:
    """How many orders are pending: those with a line that waits. They are few, however many orders there are."""
    count = await conn.fetchval(
        "SELECT count(DISTINCT order_id) FROM waiting WHERE state = $1 AND company_id = $2",
        int(state),
        company_id,
    )
    return int(count)
