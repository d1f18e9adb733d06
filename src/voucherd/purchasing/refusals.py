"""What suppliers refuse for good: it is neither offered nor asked for until something changes there (OP-140)."""

from __future__ import annotations

from typing import Final

import asyncpg
import structlog

from voucherd.db import Pool, transaction
from voucherd.purchasing.attempts import Attempt

REFUSED_S: Final = 300
"""How long a refusal counts, unless the supplier names another price or stock before."""
NOTE_MS_MAX: Final = 1_000
"""Prices that are being written are waited for so long; they are newer than the refusal."""

logger = structlog.get_logger(__name__)


async def note_refusal(pool: Pool, attempt: Attempt) -> None:
    """Note that the supplier refused so many codes; a quarter of them may still be had there.

    It does not count against prices that came after the purchase was placed. No order is locked meanwhile: to write
    down all prices of a supplier takes a while.
    """
    try:
        async with transaction(pool) as tx:
            await tx.execute(f"SET LOCAL lock_timeout = {NOTE_MS_MAX}")
            await tx.execute(
                """
                INSERT INTO refused_offer (supplier_id, product_id, face_minor, stock, refused_until)
                SELECT a.supplier_id, a.product_id, a.face_minor, a.count / 4, now() + make_interval(secs => $2)
                FROM attempt a
                WHERE a.id = $1 AND EXISTS (
                    SELECT FROM offer o WHERE o.supplier_id = a.supplier_id AND o.product_id = a.product_id
                    AND a.face_minor BETWEEN o.face_minor AND coalesce(o.face_to_minor, o.face_minor)
                    AND o.quoted_at <= a.placed_at)
                ON CONFLICT (supplier_id, product_id, face_minor) DO UPDATE
                SET refused_until = excluded.refused_until,
                    stock = CASE WHEN refused_offer.refused_until > now()
                                 THEN least(refused_offer.stock, excluded.stock) ELSE excluded.stock END
                """,
                attempt.id,
                REFUSED_S,
            )
    except asyncpg.LockNotAvailableError:
        logger.info("refusal_not_noted", attempt=attempt.reference)
