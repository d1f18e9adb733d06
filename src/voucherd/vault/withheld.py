"""Codes that may have been sold in a time that a restored database does not know: withheld, and released later.

A lot sells forwards, so the codes that the lost database sold are the first ones behind the restored cursor: how many
they were is what nobody here knows. They are passed over. A range that is found unsold goes to a new lot (OP-120).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.money import Money
from voucherd.vault.seal import Sealer

GENERATED_STEP: Final = 1_000_000
"""How many codes of a computed lot are passed over; it has two thousand such steps."""
RELEASE_CODES_MAX: Final = 100_000
"""Codes of one release, which is one transaction."""
SERIALS_MAX: Final = 100_000


class AtRisk(Struct, frozen=True):
    """The rest of a lot, which the lost database may have sold."""

    lot: int
    product: str
    face: Money
    state: State
    supplier: str
    generated: bool
    cursor: int
    size: int
    purchase: Money
    expires_at: datetime | None

    @property
    def left(self) -> int:
        """How many codes there are behind the cursor."""
        return self.size - self.cursor

    def end(self, sold_max: int | None) -> int:
        """The position after the last that is withheld; None for a bound that nobody knows."""
        if self.generated:
            sold_max = GENERATED_STEP
        return self.size if sold_max is None else min(self.size, self.cursor + sold_max)


class Withheld(Struct, frozen=True):
    """A range of withheld codes, and how many of them were released since."""

    id: int
    lot: int
    product: str
    face: Money
    supplier: str
    seq_from: int
    seq_to: int
    released: int
    withheld_at: datetime

    @property
    def count(self) -> int:
        """How many codes are still withheld."""
        return self.seq_to - self.seq_from - self.released


class Serials(NamedTuple):
    """The serials of the first and the last code of a range."""

    first: str
    last: str


class ReleaseRefused(Exception):
    """Nothing was released; the one line of text says why."""


_AT_RISK: Final = """
    SELECT l.id, p.slug, l.face_minor, v.face_currency, l.state, l.supplier, l.generated, l.cursor, l.size,
           l.purchase_minor, l.purchase_currency, l.expires_at
    FROM lot l JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id
    WHERE NOT l.exhausted AND (l.expires_at IS NULL OR l.expires_at > now())
    ORDER BY l.id
"""


async def at_risk(conn: Connection, *, lock: bool = False) -> list[AtRisk]:
    """Every lot that could sell on, live and sandbox; locked until the transaction ends if told so."""
    rows = await conn.fetch(_AT_RISK + ("FOR UPDATE OF l" if lock else ""))
    return [
        AtRisk(
            lot=row[0],
            product=row[1],
            face=Money(row[2], row[3]),
            state=State(row[4]),
            supplier=row[5],
            generated=row[6],
            cursor=row[7],
            size=row[8],
            purchase=Money(row[9], row[10]),
            expires_at=row[11],
        )
        for row in rows
    ]


async def withhold(tx: Tx, recovery_id: int, ends: Mapping[int, tuple[int, int]]) -> None:
    """Pass over these (from, to) of lots that the caller has locked."""
    lots, firsts = list(ends), [seq_from for seq_from, _ in ends.values()]
    lasts = [seq_to for _, seq_to in ends.values()]
    await tx.execute(
        """
        UPDATE lot SET cursor = w.seq_to FROM unnest($1::bigint[], $2::int[]) AS w (id, seq_to) WHERE lot.id = w.id
        """,
        lots,
        lasts,
    )
    await tx.execute(
        """
        INSERT INTO withheld (recovery_id, lot_id, seq_from, seq_to)
        SELECT $1, w.lot_id, w.seq_from, w.seq_to
        FROM unnest($2::bigint[], $3::int[], $4::int[]) AS w (lot_id, seq_from, seq_to)
        """,
        recovery_id,
        lots,
        firsts,
        lasts,
    )


_WITHHELD: Final = """
    SELECT w.id, w.lot_id, p.slug, l.face_minor, v.face_currency, l.supplier, w.seq_from, w.seq_to,
           coalesce((SELECT sum(r.seq_to - r.seq_from) FROM withheld_release r WHERE r.withheld_id = w.id), 0)::int,
           y.recovered_at
    FROM withheld w JOIN recovery y ON y.id = w.recovery_id JOIN lot l ON l.id = w.lot_id
    JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id
"""


async def ranges(conn: Connection) -> list[Withheld]:
    """What is withheld of live lots, oldest first."""
    rows = await conn.fetch(f"{_WITHHELD} WHERE l.state = 0 ORDER BY w.id")
    return [one for one in map(_withheld, rows) if one.count]


def _withheld(row: Any) -> Withheld:
    number, lot, product, face_minor, face_currency, *rest = row
    return Withheld(number, lot, product, Money(face_minor, face_currency), *rest)


async def ends_of(
    conn: Connection, sealer: Sealer, places: Sequence[tuple[int, int, int]]
) -> dict[int, Serials]:
    """The first and the last serial of a range of each lot."""
    found: dict[int, Serials] = {}
    for lot_id, seq_from, seq_to in places:
        rows = await conn.fetch(
            "SELECT seq, sealed FROM code WHERE lot_id = $1 AND seq IN ($2, $3) ORDER BY seq",
            lot_id,
            seq_from,
            seq_to - 1,
        )
        opened = [sealer.open(lot_id, row[0], row[1])[1] for row in rows]
        if opened:
            found[lot_id] = Serials(opened[0], opened[-1])
    return found


async def serials(conn: Connection, sealer: Sealer, lot_id: int) -> list[str]:
    """The serials of a lot's withheld codes in their order, never a code; of each that is still here."""
    rows = await conn.fetch(
        """
        SELECT c.seq, c.sealed FROM withheld w
        JOIN code c ON c.lot_id = w.lot_id AND c.seq >= w.seq_from AND c.seq < w.seq_to
        WHERE w.lot_id = $1 ORDER BY c.seq LIMIT $2
        """,
        lot_id,
        SERIALS_MAX,
    )
    return [sealer.open(lot_id, row[0], row[1])[1] for row in rows]


# ── releasing ────────────────────────────────────────────────────────────────────────────────────────


async def release(tx: Tx, actor: Actor, sealer: Sealer, lot_id: int, sold: int) -> tuple[int, int]:
    """Put what is behind the first `sold` withheld codes of the lot back on the shelf: the new lot, and how many."""
    await tx.execute("SELECT FROM lot WHERE id = $1 FOR UPDATE", lot_id)
    rows = await tx.fetch(f"{_WITHHELD} WHERE w.lot_id = $1 AND l.state = 0 ORDER BY w.id DESC", lot_id)
    one = next((found for found in map(_withheld, rows) if found.count), None)
    if one is None:
        raise ReleaseRefused(f"no code of lot {lot_id} is withheld")
    # What was released before lies behind: each release says that fewer were sold.
    seq_from, seq_to = one.seq_from + sold, one.seq_to - one.released
    if seq_from >= seq_to:
        raise ReleaseRefused(
            f"lot {lot_id} has {one.count} withheld codes: none is left behind the first {sold}"
        )
    seq_from = max(seq_from, seq_to - RELEASE_CODES_MAX)
    new_lot = await _new_lot(tx, lot_id, seq_to - seq_from, sealer.version)
    await tx.execute(
        "INSERT INTO withheld_release (lot_id, withheld_id, seq_from, seq_to) VALUES ($1, $2, $3, $4)",
        new_lot,
        one.id,
        seq_from,
        seq_to,
    )
    await _move(tx, sealer, (lot_id, seq_from, seq_to), new_lot)
    await trail.record(
        tx,
        actor,
        "stock.release",
        f"lot {lot_id}",
        {"to": new_lot, "codes": seq_to - seq_from, "sold": sold},
    )
    return new_lot, seq_to - seq_from


async def _new_lot(tx: Tx, lot_id: int, size: int, key_version: int) -> int:
    made: int = await tx.fetchval(
        """
        INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,
                         purchase_fx_e8, expires_at, key_version, size)
        SELECT nextval('lot_number') * 2, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,
               purchase_fx_e8, expires_at, $3, $2
        FROM lot WHERE id = $1
        RETURNING id
        """,
        lot_id,
        size,
        key_version,
    )
    return made


async def _move(tx: Tx, sealer: Sealer, place: tuple[int, int, int], new_lot: int) -> None:
    """Seal the codes for their places in the new lot, and move them there."""
    lot_id, seq_from, seq_to = place
    rows = await tx.fetch(
        "SELECT seq, sealed FROM code WHERE lot_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq FOR UPDATE",
        *place,
    )
    if len(rows) != seq_to - seq_from:
        raise ReleaseRefused(f"lot {lot_id} lacks codes: run `voucherd audit`")
    seqs = [row[0] for row in rows]
    sealed = [
        sealer.seal(new_lot, seq - seq_from, *sealer.open(lot_id, seq, blob))
        for seq, blob in map(tuple, rows)
    ]
    await tx.execute(
        """
        UPDATE code c SET lot_id = $2, seq = c.seq - $3, sealed = m.sealed
        FROM unnest($4::int[], $5::bytea[]) AS m (seq, sealed) WHERE c.lot_id = $1 AND c.seq = m.seq
        """,
        lot_id,
        new_lot,
        seq_from,
        seqs,
        sealed,
    )
