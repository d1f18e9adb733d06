"""Find all: a company's orders, newest first, by page or by cursor. Company and state are in every query (OP-03)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.orders.rules.states import Payment, Status
from voucherd.statements import Where

SCAN_MAX: Final = 10_000
"""Orders that one page looks at where filters may pass over most of them; the next page goes on behind."""
SORTED_MAX: Final = 1_000
"""Orders of one reference, or pending ones, that are found as such; where there are more the list is walked instead."""
ID_MAX: Final = 2**63 - 1


class OrderFilters(Struct, frozen=True):
    """Which orders are asked for."""

    order_id: int | None = None
    statuses: Sequence[Status] = ()
    type: int | None = None
    reference: str | None = None
    reference_part: str | None = None
    """What the reference has to have in it, in any case; looked for among the first `SCAN_MAX` orders."""
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


class Total(Struct, frozen=True):
    """How many orders were counted, and whether there may be more: only so many are looked at."""

    count: int
    more: bool


class FoundPage(Struct, frozen=True):
    """Orders, and the place to go on behind if more may follow."""

    rows: list[Found]
    after: tuple[datetime, int] | None
    whole: bool = True
    """Whether all orders were looked at that could be on the page."""
    total: Total | None = None
    """How many there are, where the page itself tells."""


class _Search:
    """The statement of a page: where its orders come from, in their order, and the conditions on them."""

    def __init__(self, company_id: int, state: State, filters: OrderFilters) -> None:
        self._filters = filters
        self._few: str | None = None
        self._span = Where()
        self._span.also("company_id = :company_id", company_id=company_id)
        self._span.also("(id & 1) = :state", state=int(state))
        # Pairs lead to the index of companies alone, whatever the server knows of the table.
        self._span.also("(created_at, id) >= (:date_from, 0)", date_from=filters.date_from)
        self._span.also("(created_at, id) <= (:date_to, :id_max)", date_to=filters.date_to, id_max=ID_MAX)
        direction = "ASC" if filters.oldest_first else "DESC"
        self.order = f"created_at {direction}, id {direction}"

    async def look_for_few(self, conn: Connection) -> None:
        """Take the orders of a trx or a reference, or those that are pending, as such, if they are few."""
        filters = self._filters
        if filters.order_id is not None:
            self._few = _BY_KEY
        elif filters.reference is not None:
            self._few = _BY_REFERENCE
        elif list(filters.statuses) == [Status.PENDING]:
            self._few = _PENDING
        if self._few in (_BY_REFERENCE, _PENDING):
            found = Where()
            found.values = self._span.values[:2]
            own = self._few.format(value=self._own_value(found))
            count = await conn.fetchval(
                f"SELECT count(*) FROM (SELECT FROM ({own}) own WHERE (id & 1) = $2 LIMIT {SORTED_MAX + 1:d}) few",  # noqa: S608 - Ours.
                *found.values,
            )
            if count > SORTED_MAX:
                self._few = None

    def _own_value(self, where: Where) -> str:
        """The parameter by which the few are found; pending orders are found by company and state alone."""
        if self._few == _PENDING:
            return ""
        return where.parameter(
            self._filters.reference if self._few == _BY_REFERENCE else self._filters.order_id
        )

    def go_on(self, after: tuple[datetime, int]) -> None:
        """Begin behind this place."""
        beyond = ">" if self._filters.oldest_first else "<"
        self._span.also(f"(created_at, id) {beyond} (:created_at, :id)", created_at=after[0], id=after[1])

    def scanned(self, count: int) -> tuple[str, Where]:
        """The first so many orders of the span, or the few; and the conditions that those wanted fit."""
        fits = Where(f"o.status <> {Status.DELETED:d}")
        fits.values = list(self._span.values)
        filters = self._filters
        if self._few is None:
            source = f"SELECT * FROM orders WHERE {self._span} ORDER BY {self.order} LIMIT {count:d}"  # noqa: S608 - Ours.
        else:
            own = self._few.format(value=self._own_value(fits))
            source = f"SELECT * FROM ({own}) own WHERE {self._span}"  # noqa: S608 - Ours.
        if self._few != _BY_REFERENCE:
            fits.also("o.reference = :reference", reference=filters.reference)
        fits.also(
            "strpos(lower(o.reference), lower(:reference_part::text)) > 0",
            reference_part=filters.reference_part,
        )
        statuses = [int(status) for status in filters.statuses]
        fits.also(f"{_SHOWN_STATUS} = ANY(:statuses::smallint[])", statuses=statuses or None)
        fits.also("o.type = :type", type=filters.type)
        fits.also(
            "EXISTS (SELECT FROM order_item i JOIN product_version v ON v.id = i.version_id JOIN product p "
            "ON p.id = v.product_id WHERE i.order_id = o.id AND p.slug = :slug)",
            slug=filters.product_slug,
        )
        fits.also("o.payment_currency = :currency", currency=filters.payment_currency)
        return source, fits

    async def last_of(self, conn: Connection, scanned: int) -> tuple[datetime, int] | None:
        """The last of the first so many orders; None if no other follows."""
        if self._few is not None:
            return None
        rows = await conn.fetch(
            f"SELECT created_at, id FROM orders WHERE {self._span} ORDER BY {self.order} "  # noqa: S608 - Ours.
            f"OFFSET {scanned - 1:d} LIMIT 2",
            *self._span.values,
        )
        return (rows[0][0], rows[0][1]) if len(rows) > 1 else None


# As `Order.shown_status`: an order that a Resolve works on is not paid.
_SHOWN_STATUS: Final = (
    f"(CASE WHEN o.status = {Status.PENDING:d} AND o.payment_status = {Payment.UNPAID:d} THEN {Status.CREATED:d} "
    "ELSE o.status END)"
)

# Orders that are few however many the company has. OFFSET: found first and in this way alone. The company is the first
# parameter of all of them, and its state the second.
_BY_KEY: Final = "SELECT * FROM orders WHERE id = {value} OFFSET 0"
_BY_REFERENCE: Final = (
    "SELECT * FROM orders WHERE company_id = $1 AND reference = {value} "
    "AND hashtextextended(reference, 0) = hashtextextended({value}::text, 0) OFFSET 0"
)
# A pending order is one with a line that waits. Those are found by their company; all orders of it are not looked at.
_PENDING: Final = (
    "SELECT own.* FROM (SELECT DISTINCT order_id FROM waiting WHERE state = $2 AND company_id = $1) waits "
    "CROSS JOIN LATERAL (SELECT * FROM orders WHERE id = waits.order_id OFFSET 0) own"
)


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
    search = _Search(company_id, state, filters)
    await search.look_for_few(conn)
    if after is not None:
        search.go_on(after)
    scanned = SCAN_MAX + skip
    source, fits = search.scanned(scanned)
    # One more than a page tells whether another follows.
    rows = await conn.fetch(
        f"SELECT o.id, o.created_at FROM ({source}) o WHERE {fits} "  # noqa: S608 - Ours.
        f"ORDER BY {search.order} LIMIT {size + 1:d} OFFSET {skip:d}",
        *fits.values,
    )
    found = [Found(*row) for row in rows[:size]]
    if len(rows) > size:
        return FoundPage(found, found[-1].place)
    # The page is short: it ends where it looked last, unless that was everything.
    last = await search.last_of(conn, scanned)
    total = Total(len(found), more=last is not None) if after is None and skip == 0 else None
    return FoundPage(found, last, whole=last is None, total=total)


async def count_orders(
    conn: Connection, company_id: int, state: State, filters: OrderFilters, *, scan_max: int | None = None
) -> Total:
    """How many orders the filters let through, among the first so many (`SCAN_MAX`)."""
    scan_max = SCAN_MAX if scan_max is None else scan_max
    search = _Search(company_id, state, filters)
    await search.look_for_few(conn)
    # One more than that tells whether there are others.
    source, fits = search.scanned(scan_max + 1)
    row = await conn.fetchrow(
        f"SELECT count(*) FILTER (WHERE {fits}), count(*) FROM ({source}) o",  # noqa: S608 - Ours.
        *fits.values,
    )
    assert row is not None, "a count gives one row"
    return Total(min(row[0], scan_max), more=row[1] > scan_max)


async def count_waiting(conn: Connection, company_id: int, state: State) -> int:
    """How many orders are pending: those with a line that waits. They are few, however many orders there are."""
    count = await conn.fetchval(
        "SELECT count(DISTINCT order_id) FROM waiting WHERE state = $1 AND company_id = $2",
        int(state),
        company_id,
    )
    return int(count)
