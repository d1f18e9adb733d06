"""Orders that have left the tables: read from the archive, and as whole as any other (OP-129)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from voucherd.archive.model import ArchivedRow
from voucherd.archive.reader import ArchiveReader
from voucherd.catalogue.cache import VersionCache
from voucherd.companies import store as company_store
from voucherd.db import Connection, Pool
from voucherd.orders import reading
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import INLINE_LINES_MAX, Order, Outcome
from voucherd.orders.rules import decide
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.ruling import CompanyStanding, Facts


async def whole(conn: Connection, row: ArchivedRow, cache: VersionCache) -> Order:
    """The order as it was when it left, with what recipients saw of it since."""
    order_id = row["id"]
    order = (await reading.assemble(conn, _rows(row), cache))[order_id]
    outcomes = tuple(
        Outcome(one["line_from"], one["line_to"], one["lot_id"], one["seq_from"], one["at"])
        for one in row["outcomes"]
    )
    views = await reading.views(conn, order_id, 0, order.lines) if order.lines_finished else ()
    return replace(order, outcomes=outcomes, views=views if order.lines <= INLINE_LINES_MAX else views[:1])


async def read_anywhere(
    pool: Pool, archive: ArchiveReader, order_id: int, cache: VersionCache
) -> Order | None:
    """The order from the tables, or else from the archive, whose files are read without a connection."""
    async with pool.acquire() as conn:
        found = (await reading.read(conn, [order_id], cache)).get(order_id)
    return await read(pool, archive, order_id, cache) if found is None else found


async def read(pool: Pool, archive: ArchiveReader, order_id: int, cache: VersionCache) -> Order | None:
    """The order, if it is in the archive."""
    row = await archive.find(pool, order_id)
    if row is None:
        return None
    async with pool.acquire() as conn:
        return await whole(conn, row, cache)


async def refusal(
    pool: Pool, archive: ArchiveReader, command: Finalise | Cancel, caches: OrderCaches
) -> Refusal:
    """Why an order that is in no table can't be confirmed, resolved or cancelled: by the rules for all orders."""
    # A made-up trx is looked for as well, and takes as long to refuse.
    order_id = reading.NOWHERE if command.order_id is None else command.order_id
    order = await read(pool, archive, order_id, caches.versions)
    if order is None:
        return OrderNotFound()
    async with pool.acquire() as conn:
        company = (await company_store.companies(conn, [order.company_id]))[order.company_id]
    standing = {company.id: CompanyStanding(company.active, company.verified)}
    facts = Facts(order.updated_at, caches.windows, {order.id: order}, standing)
    ruling = (
        decide.cancel(facts, [command]) if isinstance(command, Cancel) else decide.finalise(facts, [command])
    )
    (answer,) = ruling.answers
    assert isinstance(answer, Refusal), "only orders that are over are in the archive"
    return answer


def _rows(row: ArchivedRow) -> list[tuple[Any, ...]]:
    """The columns that an order is assembled from, a row for each item."""
    return [
        tuple(
            row[name] if table == "o" else item[name]
            for table, _, name in (column.partition(".") for column in reading.COLUMNS)
        )
        for item in row["items"]
    ]
