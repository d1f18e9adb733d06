"""Serials of codes, blinded: a code is found by its serial, written in full, and no serial can be read here."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.vault.seal import BLIND_BYTES, Sealer

FOUND_MAX: Final = 20
# A binary COPY, as vault.store writes codes: each row is its columns with their lengths before them.
_COPY_START: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END: Final = struct.pack(">h", -1)
_ROW: Final = struct.Struct(f">hiqiii{BLIND_BYTES}s")

Place: TypeAlias = tuple[int, int, bytes]
"""A lot, the position in it, and the serial in UTF-8, stripped."""


class FoundCode(Struct, frozen=True):
    """A code that has a serial: where it lies, and the line of an order that got it."""

    lot_id: int
    slug: str
    name: str
    sold: bool
    """Sold or put aside, and not on the shelf."""
    order_id: int | None
    line: int | None
    """None as well if its order is in the archive."""


def encoded(sealer: Sealer, codes: Iterable[Place]) -> bytes:
    """Rows of the codes that have a serial, in the form that a COPY reads; nothing if none has."""
    blind = sealer.blind_serial
    rows = b"".join(
        _ROW.pack(3, 8, lot_id, 4, seq, BLIND_BYTES, blind(serial)) for lot_id, seq, serial in codes if serial
    )
    return _COPY_START + rows + _COPY_END if rows else b""


async def note(tx: Tx, rows: bytes) -> None:
    """Let codes be found by their serials."""

    async def whole() -> AsyncIterator[bytes]:
        yield rows

    if rows:
        columns = ("lot_id", "seq", "blind")
        await tx.copy_to_table("code_serial", source=whole(), columns=columns, format="binary")


async def find(conn: Connection, sealer: Sealer, serial: str) -> list[FoundCode]:
    """The codes with this serial; brands may share one."""
    rows = await conn.fetch(
        """
        SELECT s.lot_id, p.slug, v.name, s.seq < l.cursor, o.order_id, o.line_from + s.seq - o.seq_from
        FROM (SELECT * FROM code_serial WHERE blind = $1 ORDER BY blind LIMIT $2) s
        JOIN lot l ON l.id = s.lot_id
        JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id
        LEFT JOIN LATERAL (
            SELECT * FROM (SELECT order_id, line_from, line_to, seq_from FROM outcome
                           WHERE lot_id = s.lot_id AND seq_from <= s.seq ORDER BY seq_from DESC LIMIT 1) last
            WHERE s.seq < last.seq_from + last.line_to - last.line_from) o ON true
        ORDER BY s.lot_id, s.seq
        """,
        sealer.blind_serial(serial.strip().encode()),
        FOUND_MAX,
    )
    return [FoundCode(*row) for row in rows]
