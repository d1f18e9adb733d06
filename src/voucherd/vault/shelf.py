"""The shelf: which lots can sell a product now. Selling moves a lot's cursor; no code row is touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from voucherd.db import Connection, Tx
from voucherd.statements import BIGINT, ENUM, INT, RowSet, statement
from voucherd.vault.model import Lot, Shelf, selling_order

_COLUMNS: Final = """
    l.id, l.product_id, l.face_minor, l.state, l.cursor, l.size, l.expires_at,
    l.purchase_minor, l.purchase_currency, l.purchase_fx_e8, l.generated
"""
SHELVES: Final = RowSet("wanted", product_id=INT, face_minor=BIGINT, state=ENUM)
_ON_SHELF: Final = f"""
    FROM {SHELVES}
    JOIN lot l ON l.product_id = wanted.product_id AND l.face_minor = wanted.face_minor AND l.state = wanted.state
    WHERE NOT l.exhausted AND (l.expires_at IS NULL OR l.expires_at > now())
"""
_LOCKED: Final = "ORDER BY l.id FOR UPDATE OF l"
_LOOK: Final = statement(f"SELECT {_COLUMNS} {_ON_SHELF}", SHELVES)
_LOCK: Final = statement(f"SELECT {_COLUMNS} {_ON_SHELF} {_LOCKED}", SHELVES)
LOOK_LOTS: Final = f"ARRAY(SELECT ({_COLUMNS}) {_ON_SHELF})"
"""The lots on the shelves of `SHELVES`, as one column of a larger statement, for `by_shelf`."""
LOCK_LOTS: Final = f"ARRAY(SELECT ({_COLUMNS}) {_ON_SHELF} {_LOCKED})"
"""The same lots, locked in the order of their ids until the transaction ends."""


async def look(conn: Connection, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    """The lots on these shelves, in selling order, as a reader sees them."""
    return await _fetch(conn, _LOOK, shelves)


async def lock(tx: Tx, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    """The same lots, locked in the order of their ids until the transaction ends."""
    return await _fetch(tx, _LOCK, shelves)


async def _fetch(conn: Connection, query: str, shelves: Collection[Shelf]) -> dict[Shelf, list[Lot]]:
    return by_shelf(shelves, await conn.fetch(query, *values(shelves)))


def values(shelves: Collection[Shelf]) -> list[Any]:
    """The parameters of `SHELVES`."""
    columns = zip(*shelves, strict=True) if shelves else ((), (), ())
    return SHELVES.values((), **dict(zip(("product_id", "face_minor", "state"), columns, strict=True)))


def by_shelf(shelves: Iterable[Shelf], rows: Iterable[Iterable[Any]]) -> dict[Shelf, list[Lot]]:
    """The lots of these rows on their shelves, in selling order."""
    found: dict[Shelf, list[Lot]] = {shelf: [] for shelf in shelves}
    for row in rows:
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
