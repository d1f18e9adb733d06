"""How much is left of what sells, in a few numbers that cost the same however large the shop is."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from voucherd.db import Connection
from voucherd.money import Money

SALES_LOOKED_AT: Final = 1_000
"""Deliveries, newest first, that tell what sells."""
PRODUCTS_MAX: Final = 50
"""Products and face values with a figure of their own: those with the fewest codes."""
LOTS_COUNTED_MAX: Final = 200
"""Lots of one of them that are counted; beyond that a figure means "at least"."""
COUNTED_MAX: Final = 1_000

_CODES: Final = """
    WITH sold AS (SELECT DISTINCT lot_id FROM (
        SELECT lot_id FROM outcome ORDER BY order_id DESC, line_from DESC LIMIT $1) newest
        WHERE lot_id IS NOT NULL AND (lot_id & 1) = 0),
    shelf AS (SELECT DISTINCT lot.product_id, lot.face_minor FROM sold JOIN lot ON lot.id = sold.lot_id
        -- Codes that were bought for an order are gone when they come: of those there never are any left.
        WHERE lot.attempt_id IS NULL)
    SELECT l.slug, l.face_currency, shelf.face_minor, coalesce((
        SELECT sum(few.free) FROM (
            SELECT size - cursor AS free FROM lot
            WHERE lot.product_id = shelf.product_id AND lot.face_minor = shelf.face_minor AND lot.state = 0
              AND NOT lot.exhausted AND (lot.expires_at IS NULL OR lot.expires_at > now()) LIMIT $2) few), 0)::bigint
        AS codes
    FROM shelf JOIN product_listing l ON l.product_id = shelf.product_id
    ORDER BY codes, l.slug, shelf.face_minor LIMIT $3
"""


class StockFigures(Struct, frozen=True):
    """Codes left by product and face value, and how many products have none."""

    codes: dict[tuple[str, str], int] = field(default_factory=dict)
    out_of_stock: int = 0


async def take(conn: Connection) -> StockFigures:
    """The figures of now."""
    rows = await conn.fetch(_CODES, SALES_LOOKED_AT, LOTS_COUNTED_MAX, PRODUCTS_MAX)
    empty = await conn.fetchval(
        "SELECT count(*) FROM (SELECT FROM product_listing WHERE NOT stocked LIMIT $1) empty", COUNTED_MAX
    )
    codes = {(slug, str(Money(face, currency))): count for slug, currency, face, count in rows}
    return StockFigures(codes, empty)
