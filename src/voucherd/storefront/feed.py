"""The feed of changes: every price, content, activation or stock change of a product, in order, without a gap."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State

KINDS: Final = ("activation", "price", "content", "stock")


class ListingChange(Struct, frozen=True):
    """One change, and how the product stood after it."""

    id: int
    at: datetime
    product_id: int
    version_id: int
    kind: str
    active: bool
    stocked: bool


async def changes_after(conn: Connection, after: int, state: State, size: int) -> list[ListingChange]:
    """The changes that follow one; the sandbox has no changes of stock (OP-49)."""
    but_stock = "" if state is State.LIVE else "AND kind <> 'stock'"
    rows = await conn.fetch(
        f"""SELECT id, at, product_id, version_id, kind, active, stocked FROM product_change
            WHERE id > $1 {but_stock} ORDER BY id LIMIT {size:d}""",  # noqa: S608 - Constants of ours.
        after,
    )
    return [ListingChange(*row) for row in rows]


async def newest(conn: Connection) -> int:
    """The number of the last change; 0 if there is none."""
    return int(await conn.fetchval("SELECT coalesce(max(id), 0) FROM product_change"))
