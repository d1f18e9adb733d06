"""Orders as they stand, read without locks; and how their rows become orders, for those that lock them, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.pricing import UnitPrice
from voucherd.db import Connection
from voucherd.ids import State
from voucherd.orders.model import INLINE_LINES_MAX, Item, Order, Outcome, Viewed
from voucherd.orders.rules.states import Payment, Status
from voucherd.statements import picker

STATUSES: Final = tuple(Status)
PAYMENTS: Final = tuple(Payment)

# A column is named by the field of the struct that it fills, in the order of its fields.
_ORDER: Final = [
    f"o.{name}" for name in Order.__struct_fields__ if name not in {"items", "outcomes", "views"}
]
_UNIT: Final = [
    "o.payment_fx_e8" if name == "pay_fx_e8" else f"i.{name}" for name in UnitPrice.__struct_fields__
]
_ITEM: Final = ["i.item_no", "i.version_id", "i.amount", "i.first_line", "i.offers"]
COLUMNS: Final = [*_ORDER, *_ITEM, *_UNIT]
"""What `assemble` needs of each item of an order: the order's own columns, the item's, and its price's."""

_ORDER_PART: Final = slice(0, len(_ORDER))
_UNIT_PART: Final = slice(len(_ORDER) + len(_ITEM), len(COLUMNS))
_STATUS: Final = _ORDER.index("o.status")
_PAYMENT: Final = _ORDER.index("o.payment_status")
ID: Final = COLUMNS.index("o.id")
"""Where the order's id stands in a row."""
_VERSION: Final = COLUMNS.index("i.version_id")
_item_of: Final = picker(COLUMNS, *_ITEM)

NOWHERE: Final = -1
"""The number of no order: a made-up trx takes as long to refuse as the trx of another company."""


class OrderCommand(Protocol):
    """A call about an order, if it is one."""

    @property
    def order_id(self) -> int | None:
        """The order."""

    @property
    def company_id(self) -> int:
        """Whose it has to be."""

    @property
    def state(self) -> State:
        """Where it has to be."""


def owned(asked: Iterable[OrderCommand]) -> tuple[list[int], list[int]]:
    """The orders that are asked for, each once, and the companies that must own them."""
    pairs = {
        (
            NOWHERE if one.order_id is None or one.order_id & 1 != one.state else one.order_id,
            one.company_id,
        )
        for one in asked
    }
    return [order_id for order_id, _ in pairs], [company_id for _, company_id in pairs]


WANTED: Final = "WHERE o.id = ANY($1::bigint[])"
# The sum keeps the owner out of the search: with both columns at hand the server of a young database takes the index of
# companies, which ends in the id, and walks all orders that the company ever made for each one that is asked for.
OWNED: Final = (
    "JOIN unnest($1::bigint[], $2::int[]) AS a (id, owner) ON o.id = a.id AND o.company_id + 0 = a.owner"
)
"""For a company's own calls: an order of another company is never locked, nor waited for."""


def _reading(*, owned: bool) -> str:
    return f"""
        SELECT {", ".join(COLUMNS)}
        FROM orders o {OWNED if owned else ""} JOIN order_item i ON i.order_id = o.id
        {"" if owned else WANTED}
        ORDER BY o.id, i.item_no
    """  # noqa: S608 - Constants only.


_READ: Final = _reading(owned=False)
_READ_OWN: Final = _reading(owned=True)

# The server plans a statement anew whenever it is run under other policies than the last time. So tenants have texts of
# their own, and a page of orders does not slow down the next Find on its connection.
_TENANTS = "-- A tenant's."


async def read(
    conn: Connection,
    order_ids: Sequence[int],
    cache: VersionCache,
    *,
    owners: Sequence[int] | None = None,
    as_tenant: bool = False,
) -> dict[int, Order]:
    """The orders, each as it stood at one moment, with all that became of its lines; with `owners` only theirs."""
    if not order_ids:
        return {}
    mark = _TENANTS if as_tenant else ""
    orders = await _read(conn, order_ids, cache, mark, owners)
    moved = [order.id for order in orders.values() if not _is_whole(order)]
    if moved:
        # They moved between the look at the order and the look at its lines, which is rare: one snapshot shows both.
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            again = await _read(conn, moved, cache, mark)
        # One that left for the archive in between is no longer here.
        orders = {number: order for number, order in orders.items() if number not in moved} | again
    return orders


async def _read(
    conn: Connection,
    order_ids: Sequence[int],
    cache: VersionCache,
    mark: str,
    owners: Sequence[int] | None = None,
) -> dict[int, Order]:
    orders = await heads(conn, order_ids, cache, owners=owners, mark=mark)
    return await with_outcomes(conn, orders, mark)


async def heads(
    conn: Connection,
    order_ids: Sequence[int],
    cache: VersionCache,
    *,
    owners: Sequence[int] | None = None,
    mark: str = "",
) -> dict[int, Order]:
    """The orders without what became of their lines; with `owners` only theirs."""
    if owners is None:
        rows = await conn.fetch(_READ + mark, order_ids)
    else:
        rows = await conn.fetch(_READ_OWN + mark, order_ids, owners)
    return await assemble(conn, rows, cache)


def _is_whole(order: Order) -> bool:
    """Whether the order counts as many lines as it shows."""
    finished = cancelled = 0
    for outcome in order.outcomes:
        if outcome.lot_id is None:
            cancelled += outcome.count
        else:
            finished += outcome.count
    return finished == order.lines_finished and cancelled == order.lines_cancelled


async def assemble(conn: Connection, rows: Sequence[Any], cache: VersionCache) -> dict[int, Order]:
    """The orders of these rows, which begin with `COLUMNS` and come in the order of order and item."""
    versions = await catalogue.versions(conn, {row[_VERSION] for row in rows}, cache)
    orders: dict[int, Order] = {}
    items: list[Item] = []
    last = len(rows) - 1
    for at, row in enumerate(rows):
        values = tuple(row)
        item_no, version_id, amount, first_line, offers = _item_of(values)
        unit = UnitPrice(*values[_UNIT_PART])
        items.append(Item(item_no, versions[version_id], amount, first_line, unit, tuple(offers)))
        if at == last or rows[at + 1][ID] != values[ID]:
            order: list[Any] = list(values[_ORDER_PART])
            order[_STATUS] = STATUSES[order[_STATUS]]
            order[_PAYMENT] = PAYMENTS[order[_PAYMENT]]
            made = Order(*order, items=tuple(items))  # type: ignore[misc]
            orders[made.id] = made
            items = []
    return orders


# What was viewed comes with the outcomes, so that it costs no round trip; of an order with many lines only whether
# anything was, because those lines are shown a few at a time.
_OUTCOMES = """
    SELECT order_id, line_from AS line, line_to, lot_id, seq_from, at, NULL::timestamptz, NULL::timestamptz
    FROM outcome WHERE order_id = ANY($1::bigint[])
    UNION ALL
    SELECT order_id, line, NULL, NULL, NULL, link_viewed_at, voucher_viewed_at, returned_at
    FROM line_view WHERE order_id = ANY($2::bigint[])
    UNION ALL
    SELECT o.id, v.line, NULL, NULL, NULL, v.link_viewed_at, v.voucher_viewed_at, v.returned_at
    FROM unnest($3::bigint[]) AS o (id)
    CROSS JOIN LATERAL (SELECT * FROM line_view WHERE order_id = o.id ORDER BY line LIMIT 1) v
    ORDER BY order_id, line
"""


async def with_outcomes(conn: Connection, orders: dict[int, Order], mark: str = "") -> dict[int, Order]:
    """The orders with all that became of their lines."""
    touched = [order.id for order in orders.values() if order.lines_finished or order.lines_cancelled]
    if not touched:
        return orders
    delivered = [order for order in orders.values() if order.lines_finished]
    rows = await conn.fetch(
        _OUTCOMES + mark,
        touched,
        [order.id for order in delivered if order.lines <= INLINE_LINES_MAX],
        [order.id for order in delivered if order.lines > INLINE_LINES_MAX],
    )
    grouped: dict[int, tuple[list[Outcome], list[Viewed]]] = {number: ([], []) for number in touched}
    for order_id, line, line_to, lot_id, seq_from, *dates in rows:
        made, seen = grouped[order_id]
        if line_to is None:
            seen.append(Viewed(line, *dates))
        else:
            made.append(Outcome(line, line_to, lot_id, seq_from, dates[0]))
    return orders | {
        number: replace(orders[number], outcomes=tuple(made), views=tuple(seen))
        for number, (made, seen) in grouped.items()
    }


async def views(conn: Connection, order_id: int, line_from: int, line_to: int) -> tuple[Viewed, ...]:
    """What recipients saw of these lines of an order."""
    rows = await conn.fetch(
        """
        SELECT line, link_viewed_at, voucher_viewed_at, returned_at FROM line_view
        WHERE order_id = $1 AND line >= $2 AND line < $3
        UNION ALL
        SELECT line, link_viewed_at, voucher_viewed_at, returned_at FROM archived_view
        WHERE order_id = $1 AND line >= $2 AND line < $3 ORDER BY line
        """,
        order_id,
        line_from,
        line_to,
    )
    return tuple([Viewed(*row) for row in rows])


class ViewCounts(NamedTuple):
    """How many links of an order were opened, codes shown and codes taken back; and when that was first."""

    opened: int
    first_opened: datetime | None
    shown: int
    first_shown: datetime | None
    returned: int
    first_returned: datetime | None


async def view_counts(conn: Connection, order_id: int) -> ViewCounts:
    """What recipients saw of an order, in all."""
    row = await conn.fetchrow(
        """
        SELECT count(link_viewed_at), min(link_viewed_at), count(voucher_viewed_at), min(voucher_viewed_at),
               count(returned_at), min(returned_at)
        FROM (SELECT link_viewed_at, voucher_viewed_at, returned_at FROM line_view WHERE order_id = $1
              UNION ALL
              SELECT link_viewed_at, voucher_viewed_at, returned_at FROM archived_view WHERE order_id = $1) seen
        """,
        order_id,
    )
    assert row is not None, "counts give one row"
    return ViewCounts(*row)
