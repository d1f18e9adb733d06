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
) -> list[LotLine]:
    """Lots with something left, those that expire first at the top, and those that never do at the end."""
    # Two statements, because one for both would be planned for neither.
    whose = "$2::int IS NULL" if product_id is None else "l.product_id = $2"
    since, last = (None, 0) if after is None else after
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM lot l {_JOINS}
        WHERE l.state = $1 AND NOT l.exhausted AND {whose}
          AND (coalesce(l.expires_at, 'infinity'::timestamptz), l.id)
              > (CASE WHEN $3 THEN coalesce($4::timestamptz, 'infinity') ELSE '-infinity' END, $5::bigint)
        ORDER BY coalesce(l.expires_at, 'infinity'::timestamptz), l.id LIMIT $6
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
