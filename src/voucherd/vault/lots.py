"""Lots as the operator looks at them: by expiry, and the rest of a product. Reads only, never a code."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.money import Money
from voucherd.vault.store import LotLine, lot_line

PAGE_MAX: Final = 100
FACES_MAX: Final = 200
ID_MAX: Final = 2**63 - 1

_COLUMNS: Final = """
    l.id, p.slug, l.face_minor, v.face_currency, l.state, l.supplier, l.size, l.size - l.cursor AS left,
    l.purchase_minor, l.purchase_currency, l.expires_at, l.imported_at
"""
_JOINS: Final = "JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id"


class OnShelf(Struct, frozen=True):
    """The unsold codes of one face value of a product."""

    face: Money
    left: int
    lots: int
    first_expiry: datetime | None


async def by_expiry(
    conn: Connection,
    state: State,
    *,
    product_id: int | None = None,
    after: tuple[datetime | None, int] | None = None,
    size: int = PAGE_MAX,
    last_first: bool = False,
) -> list[LotLine]:
    """Lots with something left by their expiry, those that never expire at the end; or the other way round."""
    # Two statements, because one for both would be planned for neither.
    whose = "$2::int IS NULL" if product_id is None else "l.product_id = $2"
    since, last = (None, ID_MAX if last_first else 0) if after is None else after
    less, start, way = ("<", "infinity", "DESC") if last_first else (">", "-infinity", "ASC")
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM lot l {_JOINS}
        WHERE l.state = $1 AND NOT l.exhausted AND {whose}
          AND (coalesce(l.expires_at, 'infinity'::timestamptz), l.id)
              {less} (CASE WHEN $3 THEN coalesce($4::timestamptz, 'infinity') ELSE '{start}' END, $5::bigint)
        ORDER BY coalesce(l.expires_at, 'infinity'::timestamptz) {way}, l.id {way} LIMIT $6
        """,  # noqa: S608 - Constants of ours.
        int(state),
        product_id,
        after is not None,
        since,
        last,
        size,
    )
    return [lot_line(row) for row in rows]


async def on_shelf(conn: Connection, product_id: int, state: State) -> list[OnShelf]:
    """The unsold codes of a product, by face value."""
    rows = await conn.fetch(
        """
        SELECT l.face_minor, v.face_currency, sum(l.size - l.cursor)::bigint, count(*)::int, min(l.expires_at)
        FROM lot l JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id
        WHERE l.product_id = $1 AND l.state = $2 AND NOT l.exhausted
          AND (l.expires_at IS NULL OR l.expires_at > now())
        GROUP BY 1, 2 ORDER BY 1 LIMIT $3
        """,
        product_id,
        int(state),
        FACES_MAX,
    )
    return [OnShelf(Money(row[0], row[1]), row[2], row[3], row[4]) for row in rows]
