"""Orders that have left the tables: read from the archive, and as whole as any other (OP-129)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from voucherd.archive.model import ArchivedRow
from voucherd.archive.reader import ArchiveReader
from voucherd.catalogue.cache import VersionCache
from voucherd.db import Connection
from voucherd.orders import reading
from voucherd.orders.model import INLINE_LINES_MAX, Order, Outcome


async def whole(conn: Connection, row: ArchivedRow, cache: VersionCache) -> Order:
    """The order as it was when it left, with what recipients saw of it since."""
    order_id = row["id"]
    order = (await reading.assemble(conn, _rows(row), cache))[order_id]
    outcomes = tuple(
        Outcome(one["line_from"], one["line_to"], one["lot_id"], one["seq_from"]) for one in row["outcomes"]
    )
    views = await reading.views(conn, order_id, 0, order.lines) if order.lines_finished else ()
    return replace(order, outcomes=outcomes, views=views if order.lines <= INLINE_LINES_MAX else views[:1])


async def read_anywhere(
    conn: Connection, archive: ArchiveReader, order_id: int, cache: VersionCache
) -> Order | None:
    """The order from the tables, or else from the archive."""
    found = (await reading.read(conn, [order_id], cache)).get(order_id)
    if found is not None:
        return found
    row = await archive.find(conn, order_id)
    return None if row is None else await whole(conn, row, cache)


def _rows(row: ArchivedRow) -> list[tuple[Any, ...]]:
    """The columns that an order is assembled from, a row for each item."""
    return [
        tuple(
            row[name] if table == "o" else item[name]
            for table, _, name in (column.partition(".") for column in reading.COLUMNS)
        )
        for item in row["items"]
    ]
