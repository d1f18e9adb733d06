"""Claiming: a worker takes waiting lines for a supplier, in fair turns by company, and writes the purchases down.

Each look is a few index probes however many lines wait: companies are found by a loose index scan from the one that
was served last, and each gives its oldest waits. Claims for one supplier follow one another (they lock its row of
health), so the limit of calls at once holds across all workers on all machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import uuid4

from msgspec.structs import replace

from voucherd.db import Connection, Pool, Tx
from voucherd.orders import wait_store
from voucherd.orders.rules.waits import Wait
from voucherd.orders.wait_store import COLUMNS, wait_of
from voucherd.purchasing import attempts
from voucherd.purchasing.attempts import Attempt, NewAttempt
from voucherd.purchasing.turns import FIRST, CompanyTurn, PlannedPurchase, TurnRound, cut, purchases
from voucherd.suppliers.breaker import Health, room
from voucherd.suppliers.offer_book import OfferBook
from voucherd.suppliers.offers import Offer, price_ceiling
from voucherd.suppliers.store import SupplierRow
from voucherd.vault.model import Shelf

COMPANIES_MAX: Final = 64
"""Companies that one claim looks at; the next one goes on behind them."""
WAITS_MAX: Final = 8
"""Waits of one company that one claim looks at."""
CLOSING_S: Final = 0.2
"""Nothing is bought for lines whose time is up that soon."""

# A loose index scan: one probe for each supplier.
_WANTED: Final = """
    WITH RECURSIVE asked AS (
        (SELECT supplier_id FROM waiting WHERE supplier_id IS NOT NULL ORDER BY supplier_id LIMIT 1)
        UNION ALL
        SELECT next.supplier_id FROM asked a CROSS JOIN LATERAL (
            SELECT supplier_id FROM waiting WHERE supplier_id > a.supplier_id ORDER BY supplier_id LIMIT 1) next
    )
    SELECT supplier_id FROM asked
"""
# The companies with something to ask this supplier for, from the one whose turn it is on, and then from the first.
_COMPANIES: Final = """
    WITH RECURSIVE behind AS (
        (SELECT company_id FROM waiting WHERE supplier_id = $1 AND urgent = $2 AND company_id > $3
         ORDER BY company_id LIMIT 1)
        UNION ALL
        SELECT next.company_id FROM behind b CROSS JOIN LATERAL (
            SELECT company_id FROM waiting WHERE supplier_id = $1 AND urgent = $2 AND company_id > b.company_id
            ORDER BY company_id LIMIT 1) next
    )
    SELECT company_id FROM behind LIMIT $4
"""
# Cut waits become other rows, which a transaction that waits for the old ones would not see. So an order that is being
# decided about is passed over, and a later decision about one of these waits at the order and then sees the new rows.
# Nothing is bought for an order that was cancelled.
_WAITS: Final = f"""
    SELECT {COLUMNS}
    FROM unnest($3::int[]) WITH ORDINALITY AS c (company_id, place) CROSS JOIN LATERAL (
        SELECT q.* FROM waiting q JOIN orders o ON o.id = q.order_id
        WHERE q.supplier_id = $1 AND q.urgent = $2 AND q.company_id = c.company_id AND NOT o.cancelling
        ORDER BY q.order_id, q.line_from LIMIT $4
        FOR SHARE OF o SKIP LOCKED FOR UPDATE OF q SKIP LOCKED) w
    WHERE w.deadline_at > now() + make_interval(secs => $5)
    ORDER BY row_number() OVER (PARTITION BY w.company_id ORDER BY w.order_id, w.line_from), c.place
"""  # noqa: S608 - Constants only.


class Turns:
    """Whose turn is next at each supplier."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, bool], CompanyTurn] = {}

    def next(self, supplier_id: int, *, urgent: bool) -> CompanyTurn:
        """Whose turn is next, among Resolves or among others."""
        return self._next.get((supplier_id, urgent), FIRST)

    def served(self, supplier_id: int, made: TurnRound) -> None:
        """Remember whose turn is next."""
        for urgent, turn in made.next_turns.items():
            self._next[supplier_id, urgent] = turn


async def wanted_suppliers(conn: Connection) -> list[int]:
    """The suppliers that somebody waits to ask."""
    return [row[0] for row in await conn.fetch(_WANTED)]


async def claim(
    pool: Pool, book: OfferBook, supplier: SupplierRow, *, bulk_max: int, worker: str, turns: Turns
) -> list[Attempt]:
    """Purchases to make at this supplier now, written down and leased to this worker."""
    async with pool.acquire() as conn, conn.transaction():
        free = await _room(conn, supplier)
        if free == 0:
            return []
        waits = await _waits(conn, supplier.id, turns, urgent=True, limit=free * bulk_max)
        if len(waits) < free:
            waits += await _waits(conn, supplier.id, turns, urgent=False, limit=free * bulk_max)
        if not waits:
            return []
        quoted = await _quoted(conn, book, supplier, {wait.shelf for wait in waits})
        await _look_elsewhere(conn, [wait for wait in waits if not _can_serve(quoted, wait)])
        waits = [wait for wait in waits if _can_serve(quoted, wait)]
        stocks = {shelf: offer.stock for shelf, offer in quoted.items()}
        turn = turns.next(supplier.id, urgent=False)
        made = purchases(waits, stocks, room=free, bulk_max=bulk_max, turn=turn)
        turns.served(supplier.id, made)
        return await _write_down(conn, supplier, waits, made.purchases, quoted, worker)


async def _room(tx: Tx, supplier: SupplierRow) -> int:
    """How many purchases may be begun; none while another worker claims for the same supplier."""
    row = await tx.fetchrow(
        """
        SELECT h.failures, h.open_until, now()
        FROM supplier_health h JOIN supplier s ON s.id = h.supplier_id
        WHERE h.supplier_id = $1 AND s.active FOR UPDATE OF h SKIP LOCKED
        """,
        supplier.id,
    )
    if row is None:
        return 0
    # Counted after the lock was taken: the same statement would not see what the last claim has just begun.
    calling = await tx.fetchval(
        "SELECT count(*) FROM attempt WHERE supplier_id = $1 AND status = 0 AND lease_until > now()",
        supplier.id,
    )
    return room(Health(row[0], row[1]), row[2], calling=calling, calling_max=supplier.concurrency_max)


async def _waits(tx: Tx, supplier_id: int, turns: Turns, *, urgent: bool, limit: int) -> list[Wait]:
    """Waits in the order of their turns, locked."""
    first, most = turns.next(supplier_id, urgent=urgent).company_id, min(COMPANIES_MAX, limit)
    rows = await tx.fetch(_COMPANIES, supplier_id, urgent, first - 1, most)
    companies = [row[0] for row in rows]
    if len(companies) < most and first > 0:
        rows = await tx.fetch(_COMPANIES, supplier_id, urgent, 0, most - len(companies))
        companies += [row[0] for row in rows if row[0] < first]
    if not companies:
        return []
    found = await tx.fetch(_WAITS, supplier_id, urgent, companies, WAITS_MAX, CLOSING_S)
    return [wait_of(row) for row in found]


async def _quoted(tx: Tx, book: OfferBook, supplier: SupplierRow, shelves: set[Shelf]) -> dict[Shelf, Offer]:
    """This supplier's own offers for these shelves, as far as they can serve now."""
    looked = await book.look(tx, shelves)
    return {
        shelf: offer
        for shelf, offers in looked.items()
        for offer in offers
        if offer.supplier_id == supplier.id
    }


def _can_serve(quoted: Mapping[Shelf, Offer], wait: Wait) -> bool:
    """Whether the supplier has something for the wait; for a Resolve, all of it."""
    offer = quoted.get(wait.shelf)
    return offer is not None and offer.stock >= (wait.count if wait.urgent else 1)


async def _look_elsewhere(tx: Tx, waits: Sequence[Wait]) -> None:
    """Send waits away from a supplier that has nothing for them now."""
    if waits:
        now = await tx.fetchval("SELECT now()")
        await wait_store.move(tx, [replace(wait, supplier_id=None, ask_at=now) for wait in waits])


async def _write_down(
    tx: Tx,
    supplier: SupplierRow,
    waits: Sequence[Wait],
    made: Sequence[PlannedPurchase],
    quoted: dict[Shelf, Offer],
    worker: str,
) -> list[Attempt]:
    """The purchases as rows, and the waits that they are for moved from the supplier's queue to them."""
    rows = [_new_attempt(supplier, purchase, quoted[purchase.shelf]) for purchase in made]
    if not rows:
        return []
    await attempts.insert(
        tx,
        rows,
        worker=worker,
        lease_s=supplier.timeout_s + attempts.LEASE_MARGIN_S,
        settle_s=supplier.settle_s,
    )
    # Until the supplier is asked again, what we buy is not offered to others. Where its answer is being written just
    # now nobody waits for that: its writer waits for the row of health that this claim holds.
    await tx.executemany(
        """
        UPDATE offer SET stock = greatest(stock - $3, 0) WHERE (supplier_id, product_id, face_minor) IN (
            SELECT supplier_id, product_id, face_minor FROM offer WHERE supplier_id = $1 AND quote_id = $2
            FOR UPDATE SKIP LOCKED)
        """,
        [(supplier.id, row.quote_id, row.count) for row in rows],
    )
    pieces = [
        replace(piece, supplier_id=None, attempt_id=row.id)
        for row, purchase in zip(rows, made, strict=True)
        for piece in purchase.pieces
    ]
    over, rest = cut(waits, pieces)
    await wait_store.save(tx, [*pieces, *rest], over, ())
    return await attempts.read(tx, [row.id for row in rows])


def _new_attempt(supplier: SupplierRow, purchase: PlannedPurchase, offer: Offer) -> NewAttempt:
    product_id, face_minor, state = purchase.shelf
    return NewAttempt(
        uuid4(),
        supplier.id,
        state,
        product_id,
        face_minor,
        offer.sku,
        offer.quote_id,
        offer.price_minor,
        price_ceiling(offer.price_minor, supplier.price_slack_bp),
        purchase.count,
        purchase.urgent,
        tuple((piece.order_id, piece.line_from, piece.line_to) for piece in purchase.pieces),
    )
