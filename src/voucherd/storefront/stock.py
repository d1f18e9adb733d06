"""What is available: whether a product could be bought now, and telling the world when that changes.

Sales pay nothing for it. A sweep of the worker compares what could be sold with what was last announced, a
slice of the catalogue at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx, transaction
from voucherd.events import kinds, log
from voucherd.ids import State

SLICE: Final = 2_000
"""Products that one round of the sweep looks at."""

FACES_MAX: Final = 100
"""Face values and ranges of them that are told of one variable product, the smallest first."""

# What the row `l` of product_listing could be sold from now: lots of ours and suppliers' offers, as Create would find
# them (`vault.shelf`, `suppliers.offer_book`). Another source of codes is to be added here, and nowhere else.
_LOTS: Final = """
    FROM lot
    WHERE lot.product_id = l.product_id AND lot.face_minor BETWEEN l.face_low AND l.face_high
      AND lot.state = 0 AND NOT lot.exhausted AND (lot.expires_at IS NULL OR lot.expires_at > now())
"""
_OFFERS: Final = """
    FROM offer o JOIN supplier s ON s.id = o.supplier_id JOIN supplier_health h ON h.supplier_id = o.supplier_id
    WHERE o.product_id = l.product_id AND o.state = 0
      AND o.face_minor <= l.face_high AND coalesce(o.face_to_minor, o.face_minor) >= l.face_low
      AND o.active AND s.active AND o.stock > 0 AND o.quote_id IS NOT NULL
      AND o.quoted_at > now() - make_interval(secs => s.quote_age_s)
      AND (h.open_until IS NULL OR h.open_until <= now())
      AND (o.face_to_minor IS NOT NULL OR NOT EXISTS (
          SELECT FROM refused_offer r WHERE r.supplier_id = o.supplier_id AND r.product_id = o.product_id
          AND r.face_minor = o.face_minor AND r.stock = 0 AND r.refused_until > now()))
"""
# Of a variable product any face value will do.
_AVAILABLE: Final = f"coalesce((SELECT true {_LOTS} LIMIT 1), (SELECT true {_OFFERS} LIMIT 1), false)"
_FACES: Final = f"""
    CASE WHEN l.variable THEN ARRAY(
        SELECT (face.low, face.high) FROM (
            (SELECT DISTINCT lot.face_minor AS low, lot.face_minor AS high {_LOTS})
            UNION
            (SELECT greatest(o.face_minor, l.face_low), least(coalesce(o.face_to_minor, o.face_minor), l.face_high)
             {_OFFERS})
            ORDER BY low, high LIMIT {FACES_MAX:d}) face) END
"""  # noqa: S608 - Constants only.

Faces: TypeAlias = tuple[tuple[int, int], ...]
"""Face values that sell now, each from one to another, which is often the same."""


class StockChange(Struct, frozen=True):
    """A product that came into stock or went out of it."""

    product_id: int
    stocked: bool


class Slice(Struct, frozen=True):
    """What one round of the sweep did, and behind which product the next one begins."""

    announced: int
    after: int


async def in_stock(conn: Connection, product_ids: Collection[int], state: State) -> dict[int, Faces | None]:
    """Which of these products that are for sale could be delivered now, and of variable ones which face values.

    None where every face value sells. Sandbox shelves are never empty (OP-49).
    """
    if state is State.SANDBOX:
        return dict.fromkeys(product_ids)
    rows = await conn.fetch(
        f"SELECT l.product_id, {_FACES} FROM product_listing l WHERE l.product_id = ANY($1::int[]) AND {_AVAILABLE}",  # noqa: S608 - Constants.
        list(product_ids),
    )
    return {row[0]: None if row[1] is None else tuple((low, high) for low, high in row[1]) for row in rows}


class Announcer:
    """Announces the stock of the whole catalogue, a slice at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._after = 0

    async def round(self) -> int:
        """Announce products that came into stock or went out of it, in the next slice; how many."""
        done = await announce(self._pool, self._after)
        self._after = done.after
        return done.announced


async def announce(pool: Pool, after: int, size: int = SLICE) -> Slice:
    """Announce what changed in the next slice of the catalogue; at its end the sweep begins anew."""
    async with pool.acquire() as conn:
        last, count = await conn.fetchrow(  # type: ignore[misc]
            """SELECT coalesce(max(product_id), 0), count(*) FROM (
                   SELECT product_id FROM product_listing WHERE product_id > $1 ORDER BY product_id LIMIT $2) slice""",
            after,
            size,
        )
        changes = await _changes(conn, after, last)
    then = last if count == size else 0
    if not changes:
        return Slice(0, then)
    async with transaction(pool) as tx:
        return Slice(await _announce(tx, changes), then)


async def _changes(conn: Connection, after: int, last: int) -> list[StockChange]:
    """What differs from what was announced."""
    rows = await conn.fetch(
        f"""SELECT product_id, available FROM (
                SELECT l.product_id, l.stocked, {_AVAILABLE} AS available FROM product_listing l
                WHERE l.product_id > $1 AND l.product_id <= $2) seen
            WHERE available <> stocked ORDER BY product_id""",  # noqa: S608 - Constants of ours.
        after,
        last,
    )
    return [StockChange(*row) for row in rows]


async def _announce(tx: Tx, changes: list[StockChange]) -> int:
    """Write down what changed, once: another worker may have seen the same."""
    await tx.execute("LOCK TABLE product_change IN SHARE ROW EXCLUSIVE MODE")
    rows = await tx.fetch(
        """WITH seen AS (SELECT * FROM unnest($1::int[], $2::boolean[]) AS seen (product_id, stocked)),
           moved AS (
               UPDATE product_listing l SET stocked = seen.stocked, updated_at = clock_timestamp() FROM seen
               WHERE l.product_id = seen.product_id AND l.stocked <> seen.stocked
               RETURNING l.product_id, l.version_id, l.slug, l.stocked, l.updated_at),
           told AS (
               INSERT INTO product_change (at, product_id, version_id, kind, active, stocked)
               SELECT updated_at, product_id, version_id, 'stock', true, stocked FROM moved ORDER BY product_id)
           SELECT slug, stocked FROM moved ORDER BY product_id""",
        [change.product_id for change in changes],
        [change.stocked for change in changes],
    )
    data = [{"slug": row["slug"], "active": True, "stocked": row["stocked"]} for row in rows]
    await log.append_all(tx, kinds.PRODUCT_UPDATED, data, state=State.LIVE)
    return len(rows)
