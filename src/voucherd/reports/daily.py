"""What was sold on each day: added up by a worker from the events of orders, so that a page reads sums.

An order tells with an event that lines of it were delivered, and both carry the time of their transaction. The events
are read in the order of the feed, and the place in it moves in the same commit as the sums: nothing is counted twice.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Pool
from voucherd.events import feed, kinds
from voucherd.ids import State
from voucherd.money import Money
from voucherd.reports.model import exact, rounded

EVENTS_MAX: Final = 2_000
"""Events of one step."""
DAYS_MAX: Final = 100
"""Days that one look sums up."""
DELIVERING: Final = frozenset(
    {kinds.ORDER_PENDING, kinds.ORDER_LINE_FINISHED, kinds.ORDER_FINISHED, kinds.ORDER_CANCELLED}
)
"""Events that lines may have been delivered with."""

_PRICE_EUR: Final = rounded("i.pay_price_minor", "o.payment_currency", "o.payment_fx_e8")
_MARGIN_EUR: Final = (
    f"round({exact('i.price_minor', 'i.price_currency', 'i.price_fx_e8')}"
    f" - {exact('l.purchase_minor', 'l.purchase_currency', 'l.purchase_fx_e8')})"
)
# OFFSET: from the order to its lines, or the server may look at all lines that were ever delivered.
_ADD: Final = f"""
    WITH moved AS MATERIALIZED (
        SELECT DISTINCT order_id, at FROM event
        WHERE id > $1 AND id <= $2 AND order_id IS NOT NULL AND type = ANY($3))
    INSERT INTO sales_day AS d (state, day, product_id, codes, price_eur_minor, margin_eur_minor)
    SELECT (m.order_id & 1)::smallint, (m.at AT TIME ZONE 'UTC')::date, l.product_id, sum(n.codes),
           sum(n.codes * ({_PRICE_EUR})), sum(n.codes * ({_MARGIN_EUR}))
    FROM moved m
    JOIN orders o ON o.id = m.order_id
    CROSS JOIN LATERAL (
        SELECT * FROM outcome WHERE order_id = m.order_id AND at = m.at AND lot_id IS NOT NULL OFFSET 0) s
    JOIN order_item i ON i.order_id = s.order_id AND s.line_from < i.first_line + i.amount
                     AND s.line_to > i.first_line
    CROSS JOIN LATERAL (
        SELECT least(s.line_to, i.first_line + i.amount) - greatest(s.line_from, i.first_line) AS codes) n
    JOIN lot l ON l.id = s.lot_id
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (state, day, product_id) DO UPDATE
    SET codes = d.codes + excluded.codes, price_eur_minor = d.price_eur_minor + excluded.price_eur_minor,
        margin_eur_minor = d.margin_eur_minor + excluded.margin_eur_minor
"""  # noqa: S608 - Constants of ours.


class DaySales(Struct, frozen=True):
    """What was sold on a day; amounts in euro cents before VAT."""

    day: date
    codes: int
    price_eur_minor: int
    margin_eur_minor: int


class ProductSales(Struct, frozen=True):
    """What was sold of a product in some days."""

    product_id: int
    slug: str
    name: str
    codes: int
    price_eur_minor: int
    margin_eur_minor: int

    @property
    def price(self) -> Money:
        """What they were sold for, before VAT."""
        return Money(self.price_eur_minor, "EUR")

    @property
    def margin(self) -> Money:
        """What was earned by them."""
        return Money(self.margin_eur_minor, "EUR")


async def add_up(pool: Pool) -> int:
    """Add the sales of the next events to their days; how many events. One at a time over all workers."""
    async with pool.acquire() as conn:
        head = await feed.head(conn)
        place = await upto(conn)
        if head.place <= place:
            return 0
        ids = await conn.fetch(
            "SELECT id FROM event WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",
            place,
            head.place,
            EVENTS_MAX,
        )
        stop = ids[-1][0] if len(ids) == EVENTS_MAX else head.place
        async with conn.transaction():
            free = await conn.fetchval(
                "SELECT pg_try_advisory_xact_lock(hashtext('sales/' || current_schema()))"
            )
            if not free or place != await upto(conn):
                return 0
            if ids:
                await conn.execute(_ADD, place, stop, list(DELIVERING))
            await conn.execute("UPDATE sales_cursor SET upto = $1", stop)
    return len(ids)


async def upto(conn: Connection) -> int:
    """The event up to which sales are added up: whoever kept sums of the same place has all of them."""
    return int(await conn.fetchval("SELECT upto FROM sales_cursor"))


async def by_day(conn: Connection, state: State, since: date) -> list[DaySales]:
    """The sums of each day on which something was sold, oldest first."""
    rows = await conn.fetch(
        """
        SELECT day, sum(codes)::bigint, sum(price_eur_minor)::bigint, sum(margin_eur_minor)::bigint
        FROM sales_day WHERE state = $1 AND day >= $2 GROUP BY day ORDER BY day DESC LIMIT $3
        """,
        int(state),
        since,
        DAYS_MAX,
    )
    return [DaySales(*row) for row in reversed(rows)]


async def by_product(conn: Connection, state: State, since: date, limit: int) -> list[ProductSales]:
    """The products of which most was sold since a day, by amount."""
    rows = await conn.fetch(
        """
        SELECT p.id, p.slug, v.name, s.codes, s.price, s.margin
        FROM (SELECT product_id, sum(codes)::bigint AS codes, sum(price_eur_minor)::bigint AS price,
                     sum(margin_eur_minor)::bigint AS margin
              FROM sales_day WHERE state = $1 AND day >= $2 GROUP BY product_id
              ORDER BY price DESC, codes DESC, product_id LIMIT $3) s
        JOIN product p ON p.id = s.product_id JOIN product_version v ON v.id = p.version_id
        ORDER BY s.price DESC, s.codes DESC, p.id
        """,
        int(state),
        since,
        limit,
    )
    return [ProductSales(*row) for row in rows]
