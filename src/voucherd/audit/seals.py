"""Whether the master key opens what is in the vault: a sample of codes, never shown."""

from __future__ import annotations

from typing import Any, Final

from voucherd.db import Connection
from voucherd.vault.seal import SealBroken, Sealer

LOTS_OPENED_MAX: Final = 500

# Of each lot the next code to be sold and one by chance: what was swapped or restored from elsewhere is a whole lot.
_SAMPLE: Final = """
    SELECT c.lot_id, c.seq, c.sealed
    FROM (SELECT id, size, cursor FROM lot WHERE NOT generated ORDER BY random() LIMIT $1) l
    CROSS JOIN LATERAL (
        SELECT DISTINCT seq FROM (VALUES (least(l.cursor, l.size - 1)), (floor(random() * l.size)::int)) AS p (seq)) p
    JOIN code c ON c.lot_id = l.id AND c.seq = p.seq
"""


async def broken_seals(conn: Connection, sealer: Sealer) -> list[dict[str, Any]]:
    """The places of the sample whose code can't be opened."""
    broken = []
    for lot_id, seq, sealed in await conn.fetch(_SAMPLE, LOTS_OPENED_MAX):
        try:
            sealer.open(lot_id, seq, sealed)
        except SealBroken:
            broken.append({"lot_id": lot_id, "seq": seq})
    return broken
