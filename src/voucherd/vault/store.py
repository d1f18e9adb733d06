"""The vault's tables: lots, and the sealed codes in them."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from voucherd.db import Connection, Tx
from voucherd.ids import State
from voucherd.money import Money
from voucherd.statements import BIGINT, INT, RowSet, statement
from voucherd.vault.model import GENERATED_LASTS, GENERATED_SIZE
from voucherd.vault.seal import BLIND_BYTES, KeyNotKnown, Sealer

READ_CODES_MAX: Final = 100_000
"""Codes of one read; a caller that needs more reads in pieces, and holds no gigabytes of secrets."""
LOTS_PAGE_MAX: Final = 1000
LOTS_KEPT_MAX: Final = 50_000
GENERATED_SUPPLIER: Final = "sandbox"

# Advisory locks live in one room for the whole database: the first number is ours, the second what it guards.
_IMPORT_LOCK: Final = 0x76_61_75_6C
_GENERATED_LOCK: Final = 0x76_61_75_6D

# A binary COPY: a mark, flags and an empty header, then rows, then -1 columns. Every value has its length before it.
_COPY_START: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END: Final = struct.pack(">h", -1)
_ROW_START: Final = struct.Struct(">hiqiii")
"""The number of columns, the lot, the position, and the length of the sealed code."""
_BLIND_START: Final = struct.pack(">i", BLIND_BYTES)

Range: TypeAlias = tuple[int, int, int]
"""A lot, the first position in it, and the position after the last."""
CodeRow: TypeAlias = tuple[int, int, bytes, bytes]
"""Lot, position, sealed code, blinded code."""


class VaultHole(Exception):
    """A position that should hold a code holds none."""


class LotInfo(Struct, frozen=True):
    """What never changes about a lot."""

    product_id: int
    face_minor: int
    supplier: str
    purchase_minor: int
    purchase_currency: str
    purchase_fx_e8: int
    expires_at: datetime | None
    external_id: str | None = None
    """The supplier's own name for the purchase."""


class LotLine(Struct, frozen=True):
    """A lot as the operator sees it."""

    id: int
    slug: str
    face: Money
    state: State
    supplier: str
    size: int
    left: int
    purchase: Money
    value_left: Money
    expires_at: datetime | None
    imported_at: datetime


class LotTerms(Struct, frozen=True):
    """What the lots of one purchase share."""

    product_id: int
    face_minor: int
    supplier: str
    purchase: Money
    purchase_fx_e8: int


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────


RANGES: Final = RowSet("r", lot_id=BIGINT, seq_from=INT, seq_to=INT)
# A subquery a range keeps the plan at one index scan each, however large the table and its statistics.
SEALED: Final = f"""
    SELECT ARRAY(SELECT sealed FROM code c
                 WHERE c.lot_id = r.lot_id AND c.seq >= r.seq_from AND c.seq < r.seq_to ORDER BY c.seq)
    FROM {RANGES.numbered} ORDER BY place
"""  # noqa: S608 - Constants only.
"""The sealed codes of each range of `RANGES`, as part of a larger statement."""
_SEALED: Final = statement(SEALED, RANGES)


def range_values(ranges: Sequence[Range]) -> list[Any]:
    """The parameters of `RANGES`."""
    lot_ids, firsts, ends = zip(*ranges, strict=True) if ranges else ((), (), ())
    return RANGES.values((), lot_id=lot_ids, seq_from=firsts, seq_to=ends)


async def read_codes(
    conn: Connection,
    sealer: Sealer,
    ranges: Sequence[Range],
    at_hand: Mapping[Range, list[bytes]] = MappingProxyType({}),
) -> list[list[tuple[str, str]]]:
    """The codes and serials of each range, in order; refused if a single one is missing.

    Sealed codes that are `at_hand` are not read again.
    """
    if sum(seq_to - seq_from for _, seq_from, seq_to in ranges) > READ_CODES_MAX:
        raise ValueError(f"more than {READ_CODES_MAX} codes in one read")
    generated = await _generated_lots(conn, {lot_id for lot_id, _, _ in ranges if lot_id & State.SANDBOX})
    missing = [one for one in ranges if one[0] not in generated and one not in at_hand]
    sealed = at_hand
    if missing:
        rows = await conn.fetch(_SEALED, *range_values(missing))
        sealed = {**at_hand, **{one: row[0] for one, row in zip(missing, rows, strict=True)}}
    try:
        return _opened(sealer, ranges, generated, sealed)
    except KeyNotKnown:
        if sealer.refresh is None:
            raise
        # The key is newer than what this process has last seen.
        await sealer.refresh(conn)
        return _opened(sealer, ranges, generated, sealed)


def _opened(
    sealer: Sealer, ranges: Sequence[Range], generated: set[int], sealed: Mapping[Range, list[bytes]]
) -> list[list[tuple[str, str]]]:
    return [
        sealer.generated_range(*one) if one[0] in generated else _open_range(sealer, one, sealed[one])
        for one in ranges
    ]


async def _generated_lots(conn: Connection, lot_ids: set[int]) -> set[int]:
    """Those of these lots whose codes are computed."""
    if not lot_ids:
        return set()
    rows = await conn.fetch("SELECT id FROM lot WHERE id = ANY($1::bigint[]) AND generated", list(lot_ids))
    return {row[0] for row in rows}


def _open_range(sealer: Sealer, wanted: Range, sealed: list[bytes]) -> list[tuple[str, str]]:
    lot_id, seq_from, seq_to = wanted
    # Positions are unique, so as many rows as positions means that none is missing.
    if len(sealed) != seq_to - seq_from:
        raise VaultHole(f"lot {lot_id} lacks codes between {seq_from} and {seq_to}")
    return sealer.open_many([(lot_id, seq, blob) for seq, blob in enumerate(sealed, start=seq_from)])


class LotBook:
    """The facts of lots, remembered: they never change, and every delivered line asks for them."""

    def __init__(self, kept_max: int = LOTS_KEPT_MAX) -> None:
        self._kept: OrderedDict[int, LotInfo] = OrderedDict()
        self._kept_max = kept_max

    async def lots(self, conn: Connection, lot_ids: Iterable[int]) -> dict[int, LotInfo]:
        """The facts of these lots; a KeyError for one that does not exist."""
        wanted = set(lot_ids)
        found = {lot_id: self._kept[lot_id] for lot_id in wanted & self._kept.keys()}
        if missing := wanted - found.keys():
            fetched = await _fetch_lots(conn, missing)
            found |= {lot_id: fetched[lot_id] for lot_id in missing}
            self._kept.update(fetched)
            while len(self._kept) > self._kept_max:
                self._kept.popitem(last=False)
        return found


async def _fetch_lots(conn: Connection, lot_ids: Iterable[int]) -> dict[int, LotInfo]:
    rows = await conn.fetch(
        """
        SELECT id, product_id, face_minor, supplier, purchase_minor, purchase_currency, purchase_fx_e8,
               expires_at, external_id
        FROM lot WHERE id = ANY($1::bigint[])
        """,
        list(lot_ids),
    )
    return {row[0]: LotInfo(*row[1:]) for row in rows}


async def list_lots(
    conn: Connection,
    *,
    slug: str | None = None,
    state: State | None = None,
    sold_out: bool = False,
    before: int | None = None,
    limit: int = LOTS_PAGE_MAX,
    oldest: bool = False,
) -> list[LotLine]:
    """Lots, newest or oldest first, behind `before` in the list; those sold out only if asked for."""
    rows = await conn.fetch(
        f"""
        SELECT l.id, p.slug, l.face_minor, v.face_currency, l.state, l.supplier, l.size,
               l.size - l.cursor AS left, l.purchase_minor, l.purchase_currency, l.expires_at, l.imported_at
        FROM lot l JOIN product p ON p.id = l.product_id JOIN product_version v ON v.id = p.version_id
        WHERE ($1::text IS NULL OR p.slug = $1) AND ($2::smallint IS NULL OR l.state = $2)
          AND ($3 OR NOT l.exhausted) AND ($4::bigint IS NULL OR l.id {">" if oldest else "<"} $4)
        ORDER BY l.id {"ASC" if oldest else "DESC"} LIMIT $5
        """,  # noqa: S608 - Constants of ours.
        slug,
        state,
        sold_out,
        before,
        min(limit, LOTS_PAGE_MAX),
    )
    return [lot_line(row) for row in rows]


def lot_line(row: Any) -> LotLine:
    """A lot as the operator sees it, from a row that has these columns."""
    # Play money buys nothing, so the sandbox's endless lots are worth nothing.
    value_minor = 0 if row["state"] else row["purchase_minor"] * row["left"]
    return LotLine(
        id=row["id"],
        slug=row["slug"],
        face=Money(row["face_minor"], row["face_currency"]),
        state=State(row["state"]),
        supplier=row["supplier"],
        size=row["size"],
        left=row["left"],
        purchase=Money(row["purchase_minor"], row["purchase_currency"]),
        value_left=Money(value_minor, row["purchase_currency"]),
        expires_at=row["expires_at"],
        imported_at=row["imported_at"],
    )


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


async def begin_import(tx: Tx, brand_id: int, wait_s_max: int) -> datetime:
    """Be the brand's only import until the transaction ends, and get the time of the database."""
    # Two imports that hold codes of each other's files would wait for one another for ever.
    await tx.execute("SELECT set_config('lock_timeout', $1, true)", f"{wait_s_max}s")
    await tx.execute("SELECT pg_advisory_xact_lock($1, $2)", _IMPORT_LOCK, brand_id)
    now: datetime = await tx.fetchval("SELECT now()")
    return now


async def known_blinds(tx: Tx, blinds: Iterable[bytes]) -> list[bytes]:
    """Those of these blinded codes that are in the vault already."""
    rows = await tx.fetch("SELECT blind FROM code WHERE blind = ANY($1::bytea[])", list(blinds))
    return [row[0] for row in rows]


async def open_lots(
    tx: Tx, terms: LotTerms, expiries: Iterable[datetime | None], *, key_version: int
) -> dict[datetime | None, int]:
    """A new live lot for each expiry, of size 1 until `resize_lots` says better."""
    rows = await tx.fetch(
        """
        INSERT INTO lot (id, product_id, face_minor, state, supplier, purchase_minor, purchase_currency,
                         purchase_fx_e8, expires_at, key_version, size)
        SELECT nextval('lot_number') * 2, $1, $2, 0, $3, $4, $5, $6, e.expires_at, $7, 1
        FROM unnest($8::timestamptz[]) AS e (expires_at)
        RETURNING expires_at, id
        """,
        terms.product_id,
        terms.face_minor,
        terms.supplier,
        terms.purchase.minor,
        terms.purchase.currency,
        terms.purchase_fx_e8,
        key_version,
        list(expiries),
    )
    return {row[0]: row[1] for row in rows}


def encode_codes(
    lot_ids: Sequence[int], seqs: Sequence[int], sealed: Sequence[bytes], blinds: Sequence[bytes]
) -> bytes:
    """Rows of codes, given as columns, in the form that a binary COPY reads."""
    assert len(lot_ids) == len(seqs) == len(sealed) == len(blinds), "the columns of as many codes"
    # The driver would look at every value by itself, which takes longer than all the rest of this.
    starts = map(_ROW_START.pack, repeat(4), repeat(8), lot_ids, repeat(4), seqs, map(len, sealed))
    rows = zip(starts, sealed, repeat(_BLIND_START), blinds, strict=False)
    return b"".join(chain((_COPY_START,), chain.from_iterable(rows), (_COPY_END,)))


async def copy_codes(tx: Tx, encoded: bytes) -> None:
    """Store sealed codes; they never change afterwards."""

    async def whole() -> AsyncIterator[bytes]:
        yield encoded

    columns = ("lot_id", "seq", "sealed", "blind")
    await tx.copy_to_table("code", source=whole(), columns=columns, format="binary")


async def add_codes(tx: Tx, rows: Iterable[CodeRow]) -> None:
    """Store rows of sealed codes, at least one."""
    await copy_codes(tx, encode_codes(*zip(*rows, strict=True)))


async def resize_lots(tx: Tx, sizes: Mapping[int, int]) -> None:
    """Give lots that nobody else can see yet their final sizes."""
    await tx.execute(
        """
        UPDATE lot SET size = s.size FROM unnest($1::bigint[], $2::int[]) AS s (id, size) WHERE lot.id = s.id
        """,
        list(sizes),
        list(sizes.values()),
    )


async def ensure_generated_lot(
    tx: Tx, product_id: int, face_minor: int, purchase: Money, purchase_fx_e8: int
) -> int:
    """The sandbox's lot of a product and face value, made at the first call (OP-49) and anew long before it expires."""
    find = """
        SELECT id FROM lot WHERE product_id = $1 AND face_minor = $2 AND state = 1 AND NOT exhausted AND generated
          AND expires_at > now() + $3::interval
        ORDER BY id LIMIT 1
    """
    lot_id: int | None = await tx.fetchval(find, product_id, face_minor, GENERATED_LASTS)
    if lot_id is not None:
        return lot_id
    # One lock for all of them: callers that make several lots can't wait for one another in a circle.
    await tx.execute("SELECT pg_advisory_xact_lock($1, 0)", _GENERATED_LOCK)
    lot_id = await tx.fetchval(find, product_id, face_minor, GENERATED_LASTS)
    if lot_id is not None:
        return lot_id
    created: int = await tx.fetchval(
        """
        INSERT INTO lot (id, product_id, face_minor, state, generated, supplier, purchase_minor,
                         purchase_currency, purchase_fx_e8, size, expires_at)
        VALUES (nextval('lot_number') * 2 + 1, $1, $2, 1, true, $3, $4, $5, $6, $7,
                (date_trunc('year', now() AT TIME ZONE 'UTC') + interval '2 years') AT TIME ZONE 'UTC')
        RETURNING id
        """,
        product_id,
        face_minor,
        GENERATED_SUPPLIER,
        purchase.minor,
        purchase.currency,
        purchase_fx_e8,
        GENERATED_SIZE,
    )
    return created
