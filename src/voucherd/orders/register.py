"""The register: every company's orders, and what happened to one of them, for the operator. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import ORDER_BLOCK_SIZE, State, state_of
from voucherd.orders.rules.states import Payment, Status
from voucherd.statements import Where

PAGE_MAX: Final = 1_000
SCAN_MAX: Final = 5_000
"""Orders that one page looks at where filters may pass over most of them; the next page goes on behind."""
PAGES_MAX: Final = 10_000
"""Pages that a list is gathered from."""
SLACK: Final = 4 * ORDER_BLOCK_SIZE
"""Ids are handed out in blocks, so their order is that of creation to within a few of these."""
HALVINGS_MAX: Final = 64
ID_MAX: Final = 2**63 - 1
DELIVERY_STATUSES: Final = ("waiting", "delivered", "failed")


class Registered(Struct, frozen=True):
    """One order of the register, without its items."""

    id: int
    company: str
    status: Status
    payment_status: Payment
    payment_currency: str
    total_minor: int
    lines: int
    lines_finished: int
    lines_cancelled: int
    created_at: datetime
    reference: str | None

    @property
    def state(self) -> State:
        """Live or sandbox."""
        return state_of(self.id)


class OrderSearch(Struct, frozen=True):
    """Which orders are asked for; those of a company are of one state."""

    state: State | None
    company_id: int | None = None
    status: Status | None = None
    reference: str | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None


class OrderSearchPage(Struct, frozen=True):
    """Orders, and the id behind which more may be found."""

    rows: list[Registered]
    before: int | None


class Leading(Struct, frozen=True):
    """What an order is told by: its first product, how many of it, and how many items there are in all."""

    name: str
    amount: int
    items: int


class Happened(Struct, frozen=True):
    """One event of an order."""

    id: int
    at: datetime
    type: str
    seq: int


class Notification(Struct, frozen=True):
    """One delivery of an event to an endpoint, and how it went the last time that it was tried."""

    url: str
    type: str
    status: str
    tries: int
    http: int | None
    error: str | None
    next_at: datetime | None


# By the field that it fills, in the order of the fields.
_COLUMNS: Final = ", ".join(
    {"company": "c.name", "total_minor": "o.price_minor + o.vat_minor"}.get(name, f"o.{name}")
    for name in Registered.__struct_fields__
)


def _registered(rows: Sequence[Any]) -> list[Registered]:
    return [
        Registered(order_id, company, Status(status), Payment(payment_status), *others)
        for order_id, company, status, payment_status, *others in rows
    ]


async def newest(
    conn: Connection,
    *,
    company_id: int | None = None,
    state: State | None = None,
    status: Status | None = None,
    limit: int = PAGE_MAX,
) -> list[Registered]:
    """The newest orders that fit, deleted ones included (OP-53); page by page, so that no statement is long."""
    size, found = min(limit, PAGE_MAX), []
    # The index of companies has the state in it; the orders of all companies are walked, whatever state they are of.
    for one in State if state is None and company_id is not None else (state,):
        filters = OrderSearch(one, company_id=company_id, status=status)
        own: list[Registered] = []
        before = None
        for _ in range(PAGES_MAX):
            page = await search(conn, filters, size=size - len(own), before=before)
            own += page.rows
            before = page.before
            if before is None or len(own) == size:
                break
        found += own
    # Ids are handed out in blocks, so their order is that of creation to within a block.
    return sorted(found, key=lambda order: order.id, reverse=True)[:size]


async def search(
    conn: Connection, filters: OrderSearch, *, size: int, before: int | None = None, oldest: bool = False
) -> OrderSearchPage:
    """One page, deleted orders included (OP-53), behind the last one of the page before; newest or oldest first."""
    if filters.reference is not None:
        return OrderSearchPage(await _by_reference(conn, filters, size, oldest), None)
    if filters.company_id is not None:
        return await _of_company(conn, filters, size, before, oldest)
    return await (_oldest_of_all if oldest else _of_all)(conn, filters, size, before)


async def _by_reference(conn: Connection, filters: OrderSearch, size: int, oldest: bool) -> list[Registered]:
    """A look-up for each company: the index of references begins with it."""
    where = _where(filters)
    company, reference = where.parameter(filters.company_id), where.parameter(filters.reference)
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM (SELECT id, name FROM company WHERE {company}::int IS NULL OR id = {company}) c
        CROSS JOIN LATERAL (
            -- OFFSET: found first and by their reference alone, whatever else is asked of them.
            SELECT * FROM orders WHERE company_id = c.id AND reference IS NOT NULL
               AND hashtextextended(reference, 0) = hashtextextended({reference}::text, 0)
               AND reference = {reference} OFFSET 0) o
        WHERE {where} ORDER BY o.id {"ASC" if oldest else "DESC"} LIMIT {size:d}
        """,  # noqa: S608 - Constants of ours.
        *where.values,
    )
    return _registered(rows)


async def _of_company(
    conn: Connection, filters: OrderSearch, size: int, before: int | None, oldest: bool
) -> OrderSearchPage:
    behind = (
        None if before is None else await conn.fetchval("SELECT created_at FROM orders WHERE id = $1", before)
    )
    assert filters.state is not None, "a company's orders are of one state"
    way, further = ("ASC", ">") if oldest else ("DESC", "<")
    order = f"o.created_at {way}, o.id {way}"
    span = Where(f"(o.id & 1) = {int(filters.state)}")
    span.also("o.company_id = :company_id", company_id=filters.company_id)
    # Pairs lead to the index of companies alone.
    span.also("(o.created_at, o.id) >= (:date_from, 0)", date_from=filters.date_from)
    span.also("(o.created_at, o.id) <= (:date_to, :id_max)", date_to=filters.date_to, id_max=ID_MAX)
    span.also(f"(o.created_at, o.id) {further} (:behind, :before)", behind=behind, before=before)
    walked = f"SELECT * FROM orders o WHERE {span} ORDER BY {order}"  # noqa: S608 - Ours.
    given = list(span.values)
    status = "true" if filters.status is None else f"o.status = {span.parameter(int(filters.status))}"
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM ({walked} LIMIT {SCAN_MAX:d}) o JOIN company c ON c.id = o.company_id
        WHERE {status} ORDER BY {order} LIMIT {size + 1:d}
        """,  # noqa: S608 - Constants of ours.
        *span.values,
    )
    page = _page(_registered(rows), size)
    if page.before is not None or filters.status is None:
        return page
    last = await conn.fetchrow(f"{walked} OFFSET {SCAN_MAX - 1:d} LIMIT 1", *given)
    return OrderSearchPage(page.rows, None if last is None else last["id"])


async def _oldest_of_all(
    conn: Connection, filters: OrderSearch, size: int, after: int | None
) -> OrderSearchPage:
    if after is None and filters.date_from is not None:
        first = await _first_after(conn, filters.date_from)
        after = None if first is None else first - 2 * SLACK
    since = 0 if after is None else after
    where = _where(filters)
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM (
            SELECT * FROM orders WHERE id > {where.parameter(since)} ORDER BY id LIMIT {SCAN_MAX:d}) o
        JOIN company c ON c.id = o.company_id WHERE {where} ORDER BY o.id LIMIT {size + 1:d}
        """,  # noqa: S608 - Constants of ours.
        *where.values,
    )
    page = _page(_registered(rows), size)
    if page.before is not None:
        return page
    last = await conn.fetchrow(
        "SELECT id, created_at FROM orders WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1", since, SCAN_MAX - 1
    )
    over = last is None or (filters.date_to is not None and last[1] > filters.date_to)
    return OrderSearchPage(page.rows, None if over or last is None else last[0])


async def _of_all(conn: Connection, filters: OrderSearch, size: int, before: int | None) -> OrderSearchPage:
    if before is None and filters.date_to is not None:
        before = await _first_after(conn, filters.date_to)
    upto = ID_MAX if before is None else before
    where = _where(filters)
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM (
            SELECT * FROM orders WHERE id < {where.parameter(upto)} ORDER BY id DESC LIMIT {SCAN_MAX:d}) o
        JOIN company c ON c.id = o.company_id WHERE {where} ORDER BY o.id DESC LIMIT {size + 1:d}
        """,  # noqa: S608 - Constants of ours.
        *where.values,
    )
    page = _page(_registered(rows), size)
    if page.before is not None:
        return page
    last = await conn.fetchrow(
        "SELECT id, created_at FROM orders WHERE id < $1 ORDER BY id DESC OFFSET $2 LIMIT 1",
        upto,
        SCAN_MAX - 1,
    )
    over = last is None or (filters.date_from is not None and last[1] < filters.date_from)
    return OrderSearchPage(page.rows, None if over or last is None else last[0])


async def _first_after(conn: Connection, moment: datetime) -> int | None:
    """An id behind which no order is older than this; found by halving, with the key alone."""
    found = await conn.fetchval(
        """
        WITH RECURSIVE half AS (
            SELECT min(id) AS low, max(id) AS high, 0 AS step FROM orders
            UNION ALL
            SELECT CASE WHEN o.created_at > $1 THEN h.low ELSE h.middle END,
                   CASE WHEN o.created_at > $1 THEN h.middle ELSE h.high END, h.step + 1
            FROM (SELECT low, high, step, (low + high) / 2 AS middle FROM half) h
            CROSS JOIN LATERAL (SELECT created_at FROM orders WHERE id >= h.middle ORDER BY id LIMIT 1) o
            WHERE h.high - h.low > 1 AND h.step < $2)
        SELECT high FROM half ORDER BY step DESC LIMIT 1
        """,
        moment,
        HALVINGS_MAX,
    )
    return None if found is None else int(found) + SLACK


def _page(rows: list[Registered], size: int) -> OrderSearchPage:
    return OrderSearchPage(rows[:size], rows[size - 1].id if len(rows) > size else None)


def _where(filters: OrderSearch) -> Where:
    """The conditions on an order."""
    where = Where("true" if filters.state is None else f"(o.id & 1) = {int(filters.state)}")
    where.also("o.status = :status", status=None if filters.status is None else int(filters.status))
    where.also("o.created_at >= :date_from", date_from=filters.date_from)
    where.also("o.created_at <= :date_to", date_to=filters.date_to)
    return where


async def leading(conn: Connection, order_ids: Sequence[int]) -> dict[int, Leading]:
    """What each of these orders is told by."""
    rows = await conn.fetch(
        """
        SELECT o.id, v.name, i.amount, i.items
        FROM unnest($1::bigint[]) AS o (id)
        CROSS JOIN LATERAL (
            SELECT version_id, amount, count(*) OVER ()::int AS items FROM order_item
            WHERE order_id = o.id ORDER BY item_no LIMIT 1) i
        JOIN product_version v ON v.id = i.version_id
        """,
        list(order_ids),
    )
    return {row[0]: Leading(*row[1:]) for row in rows}


async def newest_like(conn: Connection, state: State, text: str, limit: int) -> list[Registered]:
    """Orders whose reference holds the text, of the newest `SCAN_MAX`."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM (SELECT * FROM orders ORDER BY id DESC LIMIT {SCAN_MAX:d}) o
        JOIN company c ON c.id = o.company_id
        WHERE (o.id & 1) = $1 AND strpos(lower(o.reference), lower($2)) > 0 ORDER BY o.id DESC LIMIT $3
        """,  # noqa: S608 - Constants of ours.
        int(state),
        text,
        limit,
    )
    return _registered(rows)


async def newest_ids(conn: Connection, state: State, limit: int) -> list[int]:
    """The newest orders of a state among twice as many of both."""
    rows = await conn.fetch("SELECT id FROM orders ORDER BY id DESC LIMIT $1", 2 * limit)
    return [row[0] for row in rows if state_of(row[0]) is state][:limit]


async def these(conn: Connection, order_ids: Sequence[int]) -> list[Registered]:
    """These orders, newest first."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM orders o JOIN company c ON c.id = o.company_id
        WHERE o.id = ANY($1::bigint[]) ORDER BY o.id DESC
        """,  # noqa: S608 - Constants of ours.
        list(order_ids),
    )
    return _registered(rows)


async def happened(conn: Connection, order_id: int, limit: int) -> list[Happened]:
    """The events of an order, newest first."""
    rows = await conn.fetch(
        "SELECT id, at, type, seq FROM event WHERE order_id = $1 ORDER BY seq DESC LIMIT $2", order_id, limit
    )
    return [Happened(*row) for row in rows]


async def notifications(conn: Connection, event_ids: Sequence[int], limit: int) -> list[Notification]:
    """The deliveries of these events, newest first."""
    rows = await conn.fetch(
        """
        SELECT coalesce(d.url, w.url, '') AS url, d.type, d.status, d.tries, a.http, a.error, d.next_at
        FROM unnest($1::bigint[]) AS e (id)
        -- OFFSET: found by their event alone, or the server may walk all deliveries from the newest.
        CROSS JOIN LATERAL (SELECT * FROM webhook_delivery WHERE event_id = e.id OFFSET 0) d
        JOIN webhook w ON w.id = d.webhook_id
        LEFT JOIN LATERAL (
            SELECT http, error FROM webhook_attempt WHERE webhook_id = d.webhook_id AND event_id = d.event_id
            ORDER BY number DESC LIMIT 1) a ON true
        ORDER BY d.event_id DESC, d.webhook_id LIMIT $2
        """,
        list(event_ids),
        limit,
    )
    return [
        Notification(
            row["url"],
            row["type"],
            DELIVERY_STATUSES[row["status"]],
            row["tries"],
            row["http"],
            row["error"],
            row["next_at"],
        )
        for row in rows
    ]
