"""Quotes: suppliers are asked for prices in the background, before the last ones are too old to be used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from voucherd.catalogue import store as catalogue
from voucherd.db import Pool
from voucherd.money import MINOR_MAX, Money
from voucherd.purchasing import routing
from voucherd.suppliers.protocol import REASON_CHARS_MAX, QuoteFailed, Sku, Supplier, SupplierQuote
from voucherd.suppliers.store import FreshQuote, OfferRow, SupplierRow, note_call, offers, save_quotes

STOCK_MAX: Final = 2_000_000_000
REFRESH_S_MAX: Final = 120.0
"""A whole round of prices may take this long, whatever a single call may take."""

logger = structlog.get_logger(__name__)

# Half of the age is for asking again: an offer disappears only if that fails. In the order of their numbers, so that no
# two workers wait for each other.
_DUE: Final = """
    WITH due AS (
        SELECT h.supplier_id FROM supplier_health h JOIN supplier s ON s.id = h.supplier_id
        WHERE s.active AND h.quoting_until < now() AND (h.open_until IS NULL OR h.open_until <= now())
          AND EXISTS (SELECT FROM offer o WHERE o.supplier_id = s.id AND o.active
                      AND (o.quoted_at IS NULL OR o.quoted_at < now() - make_interval(secs => s.quote_age_s / 2.0)))
        ORDER BY h.supplier_id FOR UPDATE OF h)
    UPDATE supplier_health h SET quoting_until = now() + make_interval(secs => $1)
    FROM due WHERE h.supplier_id = due.supplier_id
    RETURNING h.supplier_id
"""


async def take_due(pool: Pool) -> list[int]:
    """The suppliers whose prices this worker is to ask for now; nobody else asks them meanwhile."""
    return [row[0] for row in await pool.fetch(_DUE, REFRESH_S_MAX)]


async def refresh(pool: Pool, row: SupplierRow, adapter: Supplier) -> int:
    """Ask a supplier for all its prices and remember them; how many it gave."""
    async with pool.acquire() as conn:
        sold = [offer for offer in await offers(conn, row.id) if offer.active]
    try:
        async with asyncio.timeout(REFRESH_S_MAX):
            quotes = await adapter.quote(_asked(sold))
        problem = None
    except (QuoteFailed, TimeoutError) as error:
        quotes, problem = [], str(error) or "the prices took too long"
    except Exception as error:
        logger.exception("adapter_failed", supplier=row.name)
        quotes, problem = [], f"the adapter failed: {type(error).__name__}"
    if problem is not None:
        await _failed(pool, row, problem)
        return 0
    return await _remember(pool, row, sold, quotes)


def _asked(sold: Sequence[OfferRow]) -> list[Sku]:
    """The products to ask for: an offer over a range of face values is asked for at both ends."""
    faces = [(one, face) for one in sold for face in (one.face_minor, one.face_to_minor) if face is not None]
    return [Sku(one.sku, Money(face, one.face_currency)) for one, face in faces]


async def _failed(pool: Pool, row: SupplierRow, problem: str) -> None:
    logger.warning("no_quotes", supplier=row.name, error=problem)
    async with pool.acquire() as conn, conn.transaction():
        await note_call(conn, row.id, failed=True)
        await conn.execute(
            "UPDATE supplier_health SET quote_error = $2 WHERE supplier_id = $1",
            row.id,
            problem[:REASON_CHARS_MAX],
        )


async def _remember(
    pool: Pool, row: SupplierRow, sold: Sequence[OfferRow], quotes: Sequence[SupplierQuote]
) -> int:
    said = {(quote.sku, quote.face): quote for quote in quotes}
    async with pool.acquire() as conn, conn.transaction():
        rates = await catalogue.rates(conn, {quote.price.currency for quote in quotes})
        fresh: list[FreshQuote] = []
        gone: list[OfferRow] = []
        for offer in sold:
            quote = _fresh(offer, said, rates)
            if quote is None:
                gone.append(offer)
            else:
                fresh.append(quote)
        await save_quotes(conn, row, fresh, gone)
        # Its health last: a hundred thousand prices take a while, and meanwhile claims would pass it over and answers
        # would wait for it with their orders in hand. Claims pass over offers that are being written.
        await note_call(conn, row.id, failed=False)
        await conn.execute(
            "UPDATE supplier_health SET quote_error = NULL, quoting_until = now() WHERE supplier_id = $1",
            row.id,
        )
    await _wake(pool, row, sold, fresh)
    return len(fresh)


async def _wake(pool: Pool, row: SupplierRow, sold: Sequence[OfferRow], fresh: Sequence[FreshQuote]) -> None:
    """Wake waits whose product can be had again, shelf by shelf; the next prices wake those that a crash left."""
    by_place = {(offer.product_id, offer.face_minor): offer for offer in sold}
    async with pool.acquire() as conn:
        for quote in fresh:
            if quote.stock > 0:
                offer = by_place[quote.product_id, quote.face_minor]
                last = offer.face_to_minor or offer.face_minor
                faces = await routing.waiting_faces(
                    conn, int(row.state), offer.product_id, offer.face_minor, last
                )
                await routing.wake(conn, faces)


def _fresh(
    offer: OfferRow, said: dict[tuple[str, Money], SupplierQuote], rates: dict[str, int]
) -> FreshQuote | None:
    """What a supplier said about an offer; None if it said nothing that can be used."""
    first = said.get((offer.sku, Money(offer.face_minor, offer.face_currency)))
    last = first
    if offer.face_to_minor is not None:
        last = said.get((offer.sku, Money(offer.face_to_minor, offer.face_currency)))
    if first is None or last is None or first.price.currency not in rates:
        return None
    prices = (first.price.minor, last.price.minor)
    if first.price.currency != last.price.currency or not 0 <= prices[0] <= prices[1] <= MINOR_MAX:
        return None
    return FreshQuote(
        offer.product_id,
        offer.face_minor,
        max(0, min(first.stock, last.stock, STOCK_MAX)),
        prices[0],
        None if offer.face_to_minor is None else prices[1],
        first.price.currency,
        rates[first.price.currency],
    )
