"""Routing: waits that pause are sent to a supplier that can serve them, and away from one that can't."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx, numbers
from voucherd.orders import wait_store
from voucherd.orders.rules.waits import Wait, failed_at, go_on
from voucherd.orders.wait_store import COLUMNS, wait_of
from voucherd.suppliers.offer_book import OfferBook
from voucherd.vault.model import Shelf

ROUTE_MAX: Final = 500
"""Waits that are routed in one round."""
WAKE_MAX: Final = 1_000
"""Waits that a fresh quote wakes from their pause; the others come when their pause ends."""

_chance: Final = random.SystemRandom().random

_DUE: Final = f"""
    SELECT {COLUMNS} FROM waiting w WHERE ask_at <= now() ORDER BY ask_at LIMIT $1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - Constants only.
_STRANDED: Final = f"""
    SELECT {COLUMNS} FROM waiting w WHERE supplier_id = $2 AND urgent = $3 ORDER BY company_id, order_id, line_from
    LIMIT $1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - Constants only.


class Routed(Struct, frozen=True):
    """How many waits were looked at, and the orders among them that must not wait for what nobody sells any more."""

    count: int = 0
    unserved: frozenset[int] = frozenset()
    exhausted: frozenset[tuple[Shelf, int]] = frozenset()
    """The shelves, and how many codes of each nobody sells."""


async def route(pool: Pool, book: OfferBook) -> Routed:
    """Send waits whose pause is over to the best supplier."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await conn.fetch(_DUE, ROUTE_MAX)
        return await _send(conn, book, [wait_of(row) for row in rows])


async def leave(pool: Pool, book: OfferBook, supplier_id: int) -> Routed:
    """Send waits away from a supplier that is switched off or fails: to another one, or into a pause."""
    async with pool.acquire() as conn, conn.transaction():
        # One look for Resolves and one for others: in one look all that waits there would have to be sorted.
        rows = [
            row
            for urgent in (True, False)
            for row in await conn.fetch(_STRANDED, ROUTE_MAX, supplier_id, urgent)
        ]
        # It counts as tried, or a supplier that can't be used but still has offers would get them back at once.
        return await _send(conn, book, [failed_at(wait_of(row), supplier_id) for row in rows])


async def _send(tx: Tx, book: OfferBook, waits: Sequence[Wait]) -> Routed:
    if not waits:
        return Routed()
    offers = await book.look(tx, {wait.shelf for wait in waits})
    now = await tx.fetchval("SELECT now()")
    sent = [go_on(wait, offers[wait.shelf], now, _chance()) for wait in waits]
    await wait_store.move(tx, sent)
    stuck = [wait for wait in sent if wait.supplier_id is None]
    exhausted = await book.exhausted(tx, {wait.needs for wait in stuck}) if stuck else frozenset()
    unserved = [wait for wait in stuck if wait.needs in exhausted]
    return Routed(
        len(waits), frozenset(await _impatient(tx, unserved) if unserved else ()), frozenset(exhausted)
    )


async def _impatient(tx: Tx, waits: Sequence[Wait]) -> list[int]:
    """The orders of those waits that must not last: of a Resolve, or of a product that can't come later."""
    patient = [wait for wait in waits if not wait.urgent]
    rows = await tx.fetch(
        """
        SELECT DISTINCT w.order_id FROM unnest($1::text::bigint[], $2::text::int[]) AS w (order_id, line)
        JOIN order_item i ON i.order_id = w.order_id AND w.line >= i.first_line AND w.line < i.first_line + i.amount
        JOIN product_version v ON v.id = i.version_id WHERE NOT v.async_delivery
        """,
        numbers([wait.order_id for wait in patient]),
        numbers([wait.line_from for wait in patient]),
    )
    return [*(wait.order_id for wait in waits if wait.urgent), *(row[0] for row in rows)]


async def wake(conn: Connection, shelves: Sequence[Shelf]) -> None:
    """Wake waits for these shelves: a supplier has just said that it can serve them."""
    for product_id, face_minor, state in shelves:
        await conn.execute(
            """
            UPDATE waiting SET ask_at = greatest(now(), not_before) WHERE (order_id, line_from) IN (
                (SELECT order_id, line_from FROM waiting
                 WHERE state = $1 AND product_id = $2 AND face_minor = $3 AND ask_at > now()
                 ORDER BY ask_at LIMIT $4 FOR UPDATE SKIP LOCKED))
            """,
            state,
            product_id,
            face_minor,
            WAKE_MAX,
        )
        await conn.execute(
            """
            UPDATE waiting SET ask_at = greatest(now(), not_before) WHERE (order_id, line_from) IN (
                (SELECT order_id, line_from FROM waiting
                 WHERE state = $1 AND product_id = $2 AND face_minor = $3 AND supplier_id IS NULL
                   AND attempt_id IS NULL AND ask_at IS NULL LIMIT $4 FOR UPDATE SKIP LOCKED))
            """,
            state,
            product_id,
            face_minor,
            WAKE_MAX,
        )


async def waiting_faces(
    conn: Connection, state: int, product_id: int, face_from: int, face_to: int
) -> list[Shelf]:
    """The face values of a product in this range that somebody waits for."""
    rows = await conn.fetch(
        """
        WITH RECURSIVE faces AS (
            (SELECT face_minor FROM waiting WHERE state = $1 AND product_id = $2 AND face_minor BETWEEN $3 AND $4
             ORDER BY face_minor LIMIT 1)
            UNION ALL
            SELECT next.face_minor FROM faces f CROSS JOIN LATERAL (
                SELECT face_minor FROM waiting WHERE state = $1 AND product_id = $2 AND face_minor > f.face_minor
                AND face_minor <= $4 ORDER BY face_minor LIMIT 1) next
        )
        SELECT face_minor FROM faces LIMIT 100
        """,
        state,
        product_id,
        face_from,
        face_to,
    )
    return [(product_id, row[0], state) for row in rows]
