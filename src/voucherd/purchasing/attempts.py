"""The table of purchase attempts: each is committed before its supplier is called, and its id is our reference."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.money import Money
from voucherd.suppliers.protocol import EXTERNAL_ID_CHARS_MAX, REASON_CHARS_MAX, WantedCodes

LEASE_MARGIN_S: Final = 10
"""A lease lasts this much longer than the longest call."""
LOOK_UPS_MAX: Final = 1_000
"""After so many look-ups a person is asked."""
RETRIED_MAX: Final = 10
"""So many look-ups a person's retry is worth, before the person is asked again."""
LOOK_UP_S_MIN: Final = 0.5
LOOK_UP_S_MAX: Final = 300.0
TAKEN_MAX: Final = 50


class AttemptPhase(IntEnum):
    """How far an attempt is; the number is what the database keeps."""

    CALLING = 0
    ASKING = 1
    UNKNOWN = 2
    BOUGHT = 3
    FAILED = 4


LIVE: Final = (AttemptPhase.CALLING, AttemptPhase.ASKING)
"""Somebody, or somebody's successor, is still at the supplier with these."""


class Attempt(Struct, frozen=True):
    """A purchase, as its owner needs it."""

    id: UUID
    supplier_id: int
    state: int
    product_id: int
    face_minor: int
    face_currency: str
    sku: str
    count: int
    urgent: bool
    price_max_minor: int
    price_minor: int
    """What one code was quoted at."""
    currency: str
    fx_e8: int
    fence: int
    look_ups: int
    settles_in_s: float
    """How long until a request can't be on its way any more, so that "not found" means "never bought"."""
    orphaned: bool
    """Whether nobody waits for it any more but orders that were cancelled: it may be taken back."""

    @property
    def settled(self) -> bool:
        """Whether "not found" means "never bought", and what has come is all that will."""
        return self.settles_in_s <= 0

    @property
    def reference(self) -> str:
        """Our name for it at the supplier."""
        return str(self.id)

    @property
    def wanted(self) -> WantedCodes:
        """The codes to buy."""
        return WantedCodes(
            self.sku,
            Money(self.face_minor, self.face_currency),
            self.count,
            Money(self.price_max_minor, self.currency),
        )


class AttemptStanding(Struct, frozen=True):
    """Where an attempt stands, under its lock."""

    phase: AttemptPhase
    fence: int
    codes: int
    quarantined: int
    now: datetime


_SELECT: Final = """
    SELECT a.id, a.supplier_id, a.state, a.product_id, a.face_minor, v.face_currency, a.sku, a.count, a.urgent,
           a.price_max_minor, a.price_minor, q.currency, q.fx_e8, a.fence, a.look_ups,
           extract(epoch FROM a.settles_at - now())::float8,
           NOT EXISTS (SELECT FROM waiting w JOIN orders o ON o.id = w.order_id
                       WHERE w.attempt_id = a.id AND NOT o.cancelling)
    FROM {source} a JOIN quote q ON q.id = a.quote_id JOIN product p ON p.id = a.product_id
    JOIN product_version v ON v.id = p.version_id
"""


_TAKE_ASKING: Final = """
    WITH due AS (
        SELECT id FROM attempt WHERE status = 1 AND ask_at <= now() ORDER BY ask_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE attempt SET fence = fence + 1, worker = $1, look_ups = look_ups + 1,
               lease_until = now() + make_interval(secs => $2), ask_at = now() + make_interval(secs => $2)
        FROM due WHERE attempt.id = due.id RETURNING attempt.*)
""" + _SELECT.format(source="taken")  # noqa: S608 - Constants only.

_TAKE_OVER: Final = """
    WITH lost AS (
        SELECT id FROM attempt WHERE status = 0 AND lease_until < now() LIMIT $3 FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE attempt SET status = 1, fence = fence + 1, worker = $1, look_ups = look_ups + 1,
               reason = left('lost during the call: ' || worker, 300),
               lease_until = now() + make_interval(secs => $2), ask_at = now() + make_interval(secs => $2)
        FROM lost WHERE attempt.id = lost.id RETURNING attempt.*)
""" + _SELECT.format(source="taken")  # noqa: S608 - Constants only.


async def take_asking(pool: Pool, worker: str, lease_s: float) -> list[Attempt]:
    """Attempts whose outcome is to be looked up now, each leased to this worker."""
    return [Attempt(*row) for row in await pool.fetch(_TAKE_ASKING, worker, lease_s, TAKEN_MAX)]


async def take_over(pool: Pool, worker: str, lease_s: float) -> list[Attempt]:
    """Attempts whose worker died during the call: nobody knows what became of them, so they are looked up."""
    return [Attempt(*row) for row in await pool.fetch(_TAKE_OVER, worker, lease_s, TAKEN_MAX)]


async def find(conn: Connection, attempt_id: UUID) -> Attempt | None:
    """The attempt with this id."""
    row = await conn.fetchrow(_SELECT.format(source="attempt") + "WHERE a.id = $1", attempt_id)
    return None if row is None else Attempt(*row)


async def lock(tx: Tx, attempt_id: UUID) -> AttemptStanding:
    """Where the attempt stands, locked until the transaction ends."""
    row = await tx.fetchrow(
        "SELECT status, fence, codes, quarantined, now() FROM attempt WHERE id = $1 FOR UPDATE", attempt_id
    )
    assert row is not None, "Attempts are never deleted."
    return AttemptStanding(AttemptPhase(row[0]), *row[1:])


async def orders_of(conn: Connection, attempt_id: UUID) -> list[int]:
    """The orders that it was to buy for."""
    rows = await conn.fetch(
        "SELECT DISTINCT order_id FROM attempt_line WHERE attempt_id = $1 ORDER BY order_id", attempt_id
    )
    return [row[0] for row in rows]


class AttemptChange(Struct, frozen=True):
    """The fields to write to an attempt."""

    phase: AttemptPhase
    reason: str | None = None
    external_id: str | None = None
    call_ms: int | None = None
    ask_in_s: float | None = None
    codes: int = 0
    spare: int = 0
    quarantined: int = 0
    settled_by: str | None = None


async def note(tx: Tx, attempt_id: UUID, change: AttemptChange) -> None:
    """Note where an attempt stands now; the caller holds its lock."""
    pause = None if change.ask_in_s is None else timedelta(seconds=change.ask_in_s)
    await tx.execute(
        """
        UPDATE attempt SET status = $2::smallint, reason = coalesce($3, reason),
               external_id = coalesce($4, external_id), call_ms = coalesce(call_ms, $5), ask_at = now() + $6::interval,
               ended_at = CASE WHEN $2::smallint >= 3 THEN coalesce(ended_at, now()) END, codes = codes + $7,
               spare = spare + $8, quarantined = quarantined + $9, settled_by = coalesce($10, settled_by)
        WHERE id = $1
        """,
        attempt_id,
        int(change.phase),
        None if change.reason is None else change.reason[:REASON_CHARS_MAX],
        None if change.external_id is None else change.external_id[:EXTERNAL_ID_CHARS_MAX],
        change.call_ms,
        pause,
        change.codes,
        change.spare,
        change.quarantined,
        change.settled_by,
    )


async def ask_anew(tx: Tx, attempt_id: UUID) -> None:
    """Look an unknown attempt up again, from now on and a few times; the caller holds its lock."""
    await tx.execute(
        "UPDATE attempt SET status = 1, ask_at = now(), look_ups = least(look_ups, $2) WHERE id = $1 AND status = 2",
        attempt_id,
        LOOK_UPS_MAX - RETRIED_MAX,
    )


class NewAttempt(Struct, frozen=True):
    """A purchase that is about to be made."""

    id: UUID
    supplier_id: int
    state: int
    product_id: int
    face_minor: int
    sku: str
    quote_id: int
    price_minor: int
    price_max_minor: int
    count: int
    urgent: bool
    lines: tuple[tuple[int, int, int], ...]
    """Order, first line, and the line after the last."""


async def insert(tx: Tx, made: Sequence[NewAttempt], *, worker: str, lease_s: float, settle_s: float) -> None:
    """Write purchases down before anybody is called."""
    await tx.executemany(
        """
        INSERT INTO attempt (id, supplier_id, state, product_id, face_minor, sku, quote_id, price_minor,
                             price_max_minor, count, urgent, status, worker, lease_until, settles_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, now() + make_interval(secs => $13),
                now() + make_interval(secs => $13 + $14))
        """,
        [
            (
                *(one.id, one.supplier_id, one.state, one.product_id, one.face_minor, one.sku, one.quote_id),
                *(one.price_minor, one.price_max_minor, one.count, one.urgent, worker, lease_s, settle_s),
            )
            for one in made
        ],
    )
    lines: list[tuple[Any, ...]] = [(one.id, *line) for one in made for line in one.lines]
    await tx.executemany(
        "INSERT INTO attempt_line (attempt_id, order_id, line_from, line_to) VALUES ($1, $2, $3, $4)", lines
    )


async def read(conn: Connection, ids: Sequence[UUID]) -> list[Attempt]:
    """These attempts."""
    rows = await conn.fetch(_SELECT.format(source="attempt") + "WHERE a.id = ANY($1::uuid[])", ids)
    return [Attempt(*row) for row in rows]


def look_up_pause_s(look_ups: int, jitter: float) -> float:
    """How long to wait before the next look-up: short at first, doubling up to a cap, a part left to chance."""
    whole = min(LOOK_UP_S_MIN * 2.0 ** min(look_ups, 20), LOOK_UP_S_MAX)
    return whole * (0.75 + jitter / 4)
