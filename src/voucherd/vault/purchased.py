"""Codes that a supplier sold us for somebody: lots of a purchase, and what of it can't be sold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.vault.model import Lot
from voucherd.vault.seal import Sealer


async def holders(tx: Tx, blinds: Sequence[bytes]) -> dict[bytes, UUID | None]:
    """Those of these blinded codes that the vault has, and the purchase that each came with."""
    rows = await tx.fetch(
        "SELECT c.blind, l.attempt_id FROM code c JOIN lot l ON l.id = c.lot_id WHERE c.blind = ANY($1::bytea[])",
        blinds,
    )
    return {row[0]: row[1] for row in rows}


async def draw_lot_ids(tx: Tx, count: int, state: int) -> list[int]:
    """The ids of lots that are about to be made."""
    rows = await tx.fetch("SELECT nextval('lot_number') * 2 + $2 FROM generate_series(1, $1)", count, state)
    return [row[0] for row in rows]


async def add_bought_lots(
    tx: Tx,
    lots: Sequence[Lot],
    spares: Sequence[int],
    *,
    supplier: str,
    attempt_id: UUID,
    external_id: str | None,
    key_version: int,
) -> None:
    """Lots of one purchase; `spares` are the codes of each that no line took."""
    await tx.executemany(
        """
        INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,
                         purchase_fx_e8, expires_at, key_version, size, attempt_id, external_id, spare)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        """,
        [
            (
                *(lot.id, lot.product_id, lot.face_minor, lot.state, supplier, lot.purchase_minor),
                *(lot.purchase_currency, lot.purchase_fx_e8, lot.expires_at, key_version, lot.size),
                *(attempt_id, external_id, spare),
            )
            for lot, spare in zip(lots, spares, strict=True)
        ],
    )


async def quarantine(
    tx: Tx, sealer: Sealer, attempt_id: UUID, codes: Sequence[tuple[bytes, str, str]]
) -> int:
    """Keep (blinded, text, reason) apart that can't be sold before a person has looked; how many are new there."""
    kept = 0
    for blind, text, reason in codes:
        place = await tx.fetchval("SELECT count(*) FROM quarantined_code WHERE attempt_id = $1", attempt_id)
        sealed = sealer.seal_text(quarantine_place(attempt_id, place), text)
        kept += len(
            await tx.fetch(
                """
                INSERT INTO quarantined_code (attempt_id, place, sealed, blind, reason) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (attempt_id, blind) DO NOTHING RETURNING 1
                """,
                attempt_id,
                place,
                sealed,
                blind,
                reason,
            )
        )
    return kept


class Quarantined(Struct, frozen=True):
    """A code that is kept apart, and why."""

    code: str
    serial: str
    reason: str
    at: datetime

    def __repr__(self) -> str:
        return "Quarantined(***)"


async def quarantined(conn: Connection, sealer: Sealer, attempt_id: UUID) -> list[Quarantined]:
    """The codes of a purchase that are kept apart, in the order in which they came."""
    rows = await conn.fetch(
        "SELECT place, sealed, reason, at FROM quarantined_code WHERE attempt_id = $1 ORDER BY place",
        attempt_id,
    )
    found = []
    for place, sealed, reason, at in rows:
        code, _, serial = sealer.open_text(quarantine_place(attempt_id, place), sealed).partition("\0")
        found.append(Quarantined(code, serial, reason, at))
    return found


def quarantine_place(attempt_id: UUID, place: int) -> bytes:
    """What binds a sealed code to its place in quarantine."""
    return b"quarantine/" + attempt_id.bytes + place.to_bytes(4, "big")
