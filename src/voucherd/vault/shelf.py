"""The shelf: which lots can sell a product now. Selling moves a lot's cursor; no code row is touched."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from voucherd.db import Connection, Tx
from voucherd.statements import BIGINT, INT, RowSet
from voucherd.vault.model import Lot, Shelf, selling_order

_COLUMNS = """
    l.id, l.product_id, l.face_minor, l.state, l.cursor, l.size, l.expires_at,
    l.purchase_minor, l.purchase_currency, l.purchase_fx_e8, l.generated
"""
_ON_SHELF = f"""
    SELECT {_COLUMNS}
    FROM unnest($1::int[], $2::bigint[], $3::smallint[]) AS wanted (product_id, face_minor, state)
    JOIN lot l ON l.product_id = wanted.product_id AND l.face_minor = wanted.face_minor AND l.state = wanted.state
    WHERE NOT l.exhausted AND (l.expires_at IS NULL OR l.expires_at > now())
"""  # noqa: S608 - Constants only.
_LOOK = _ON_SHELF
_LOCK = _ON_SHELF + " ORDER BY l.id FOR UPDATE OF l"


async def look(conn: Connection, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    """The lots on these shelves, in selling order, as a reader sees them."""
    return await _fetch(conn, _LOOK, shelves)


async def lock(tx: Tx, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    """The same lots, locked in the order of their ids until the transaction ends."""
    return await _fetch(tx, _LOCK, shelves)


async def _fetch(conn: Connection, query: str, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    found: dict[Shelf, list[Lot]] = {shelf: [] for shelf in shelves}
    columns = list(zip(*shelves, strict=True)) if shelves else [(), (), ()]
    for row in await conn.fetch(query, *columns):
        lot = Lot(*row)
        found[lot.product_id, lot.face_minor, lot.state].append(lot)
    for lots in found.values():
        if len(lots) > 1:
            lots.sort(key=selling_order)
    return found


CURSORS: Final = RowSet("sold", id=BIGINT, cursor=INT)
MOVE_CURSORS: Final = f"""
    UPDATE lot SET cursor = sold.cursor FROM {CURSORS} WHERE lot.id = sold.id
"""  # noqa: S608 - Constants only.
"""Move lots' cursors forward, as part of a larger statement; the caller holds their locks."""
