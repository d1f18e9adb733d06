"""The offers that can serve now, and the quotes that orders remember.

Availability is asked for on the money path, so products that no supplier sells must cost nothing: which ones have
offers at all is remembered, and one row tells when that has changed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from voucherd.db import Connection, numbers
from voucherd.suppliers.offers import Offer, QuoteTerms, cheapest_first
from voucherd.vault.model import Shelf

EPOCH_AGE_S_MAX: Final = 1.0
"""A supplier's first offer for a product is seen by every process after this long."""
QUOTES_KEPT_MAX: Final = 50_000


class QuoteInfo(Struct, frozen=True):
    """What never changes about a quote."""

    supplier: str
    terms: QuoteTerms
    currency: str
    fx_e8: int


# A stale quote, a supplier whose breaker is open and one that was switched off are no offers. Of what a supplier has
# refused for good no more counts than it may still have.
_LOOK: Final = """
    SELECT w.product_id, w.face_minor, w.state, o.supplier_id, q.id, o.sku, least(o.stock, r.stock),
           q.face_minor AS quoted_minor, q.price_minor, q.face_to_minor, q.price_to_minor, q.currency, q.fx_e8
    FROM unnest($1::text::int[], $2::text::bigint[], $3::text::smallint[]) AS w (product_id, face_minor, state)
    JOIN offer o ON o.product_id = w.product_id AND o.state = w.state
         AND w.face_minor BETWEEN o.face_minor AND coalesce(o.face_to_minor, o.face_minor)
    JOIN supplier s ON s.id = o.supplier_id
    JOIN supplier_health h ON h.supplier_id = o.supplier_id
    JOIN quote q ON q.id = o.quote_id
    LEFT JOIN refused_offer r ON r.supplier_id = o.supplier_id AND r.product_id = w.product_id
         AND r.face_minor = w.face_minor AND r.refused_until > now()
    WHERE o.active AND s.active AND least(o.stock, r.stock) > 0
      AND o.quoted_at > now() - make_interval(secs => s.quote_age_s) AND (h.open_until IS NULL OR h.open_until <= now())
"""

# Every offer of the product that counts was refused for good, or its supplier says itself that it has too few: neither
# a quote that is to be renewed, nor a breaker that will close, nor what we have bought of it ourselves is in the way.
_EXHAUSTED: Final = """
    SELECT w.product_id, w.face_minor, w.state, w.needed
    FROM unnest($1::text::int[], $2::text::bigint[], $3::text::smallint[], $4::text::int[])
         AS w (product_id, face_minor, state, needed)
    JOIN offer o ON o.product_id = w.product_id AND o.state = w.state
         AND w.face_minor BETWEEN o.face_minor AND coalesce(o.face_to_minor, o.face_minor)
    JOIN supplier s ON s.id = o.supplier_id
    LEFT JOIN refused_offer r ON r.supplier_id = o.supplier_id AND r.product_id = w.product_id
         AND r.face_minor = w.face_minor AND r.refused_until > now()
    WHERE o.active AND s.active
    GROUP BY w.product_id, w.face_minor, w.state, w.needed
    HAVING bool_and(coalesce(o.quoted_at > now() - make_interval(secs => s.quote_age_s)
                             AND least(o.quoted_stock, r.stock) < w.needed, false))
"""


class OfferBook:
    """Who else sells what we sell."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._checked_at = -EPOCH_AGE_S_MAX
        self._sold: frozenset[tuple[int, int]] = frozenset()
        self._quotes: OrderedDict[int, QuoteInfo] = OrderedDict()

    async def sold_elsewhere(self, conn: Connection, shelves: Iterable[Shelf]) -> list[Shelf]:
        """Those of these shelves whose product has an offer of any supplier, whether it can serve now or not."""
        if time.monotonic() - self._checked_at >= EPOCH_AGE_S_MAX:
            await self._refresh(conn)
        return [shelf for shelf in shelves if (shelf[0], shelf[2]) in self._sold] if self._sold else []

    async def _refresh(self, conn: Connection) -> None:
        checked_at = time.monotonic()
        epoch = await conn.fetchval("SELECT epoch FROM offer_epoch")
        if epoch != self._epoch:
            rows = await conn.fetch(
                "SELECT DISTINCT o.product_id, o.state FROM offer o JOIN supplier s ON s.id = o.supplier_id "
                "WHERE o.active AND s.active"
            )
            self._sold = frozenset((row[0], row[1]) for row in rows)
            self._epoch = epoch
        self._checked_at = checked_at

    async def look(self, conn: Connection, shelves: Collection[Shelf]) -> dict[Shelf, list[Offer]]:
        """What suppliers can serve of these shelves now, cheapest first."""
        found: dict[Shelf, list[Offer]] = {shelf: [] for shelf in shelves}
        if not found:
            return found
        rows = await conn.fetch(
            _LOOK,
            numbers([product_id for product_id, _, _ in found]),
            numbers([face_minor for _, face_minor, _ in found]),
            numbers([state for _, _, state in found]),
        )
        for row in rows:
            price_minor = QuoteTerms(*row[7:11]).price_at(row[1])
            offer = Offer(row[3], row[4], row[5], row[6], price_minor, row[11], row[12])
            found[row[0], row[1], row[2]].append(offer)
        return {shelf: cheapest_first(offers) for shelf, offers in found.items()}

    async def exhausted(
        self, conn: Connection, wanted: Collection[tuple[Shelf, int]]
    ) -> frozenset[tuple[Shelf, int]]:
        """Those of these shelves that nobody sells so many codes of any more (OP-140)."""
        rows = await conn.fetch(
            _EXHAUSTED,
            numbers([shelf[0] for shelf, _ in wanted]),
            numbers([shelf[1] for shelf, _ in wanted]),
            numbers([shelf[2] for shelf, _ in wanted]),
            numbers([needed for _, needed in wanted]),
        )
        return frozenset(((row[0], row[1], row[2]), row[3]) for row in rows)

    async def quotes(self, conn: Connection, quote_ids: Iterable[int]) -> dict[int, QuoteInfo]:
        """The facts of these quotes; a KeyError for one that does not exist."""
        wanted = set(quote_ids)
        found = {quote_id: self._quotes[quote_id] for quote_id in wanted & self._quotes.keys()}
        if missing := wanted - found.keys():
            rows = await conn.fetch(
                """
                SELECT q.id, s.name, q.face_minor, q.price_minor, q.face_to_minor, q.price_to_minor, q.currency, q.fx_e8
                FROM quote q JOIN supplier s ON s.id = q.supplier_id WHERE q.id = ANY($1::bigint[])
                """,
                list(missing),
            )
            fetched = {row[0]: QuoteInfo(row[1], QuoteTerms(*row[2:6]), row[6], row[7]) for row in rows}
            found |= {quote_id: fetched[quote_id] for quote_id in missing}
            self._quotes.update(fetched)
            while len(self._quotes) > QUOTES_KEPT_MAX:
                self._quotes.popitem(last=False)
        return found
