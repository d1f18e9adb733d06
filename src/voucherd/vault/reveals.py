"""Reveals: every time that codes are shown is a row, written before they leave (OP-94).

A handler that shows codes calls `Recorder.record` and waits for it, or writes the row in a transaction of its own with
`write`. One row for an order and an answer, however many codes. A crash in between leaves a row for codes that nobody
saw, never the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import asyncpg
from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.batcher import BatchBounds, Batcher
from voucherd.db import Connection, Pool, Tx
from voucherd.statements import ADDRESS, BIGINT, BIGINT_OR_NULL, ENUM, INT, RowSet, statement
from voucherd.trail import archived, plain_address
from voucherd.trail.chain import REVEAL
from voucherd.vault.model import Reveal, Via


class RevealRow(Struct, frozen=True):
    """A reveal as it was written down."""

    id: int
    at: datetime
    company_id: int
    line_from: int
    lines: int
    via: Via
    actor_kind: ActorKind
    actor_id: int | None
    address: str | None


class OrderReveals(NamedTuple):
    """Who has seen codes of an order, newest first."""

    rows: list[RevealRow]
    archived_until: datetime | None
    """Those up to this moment may be in the archive; None if none of the order is there."""


REVEALS: Final = RowSet(
    "seen",
    order_id=BIGINT,
    company_id=INT,
    line_from=INT,
    lines=INT,
    via=ENUM,
    actor_kind=ENUM,
    actor_id=BIGINT_OR_NULL,
    address=ADDRESS,
)
INSERT: Final = f"INSERT INTO reveal ({REVEALS.names}) SELECT seen.* FROM {REVEALS}"  # noqa: S608 - Constants only.
"""Write reveals, as part of a larger statement."""
_INSERT: Final = statement(INSERT, REVEALS)


def values(reveals: Sequence[Reveal]) -> list[Any]:
    """The parameters of `INSERT`."""
    if not reveals:
        return REVEALS.values(reveals)
    return REVEALS.values(
        reveals,
        actor_kind=[one.viewer.kind for one in reveals],
        actor_id=[one.viewer.id for one in reveals],
        address=[plain_address(one.viewer.address) or "NULL" for one in reveals],
    )


async def write(tx: Tx | Pool, reveals: Sequence[Reveal]) -> None:
    """Write these reveals down: in a transaction that commits before a code leaves."""
    if reveals:
        await tx.execute(_INSERT, *values(reveals))


class Recorder:
    """Writes reveals of answers that only read: those that come while a write is under way share the next one."""

    def __init__(self, pool: Pool, bounds: BatchBounds) -> None:
        self._pool = pool
        self._writes: Batcher[Sequence[Reveal], None] = Batcher(self._write, **bounds, in_flight_max=1)

    async def record(self, reveals: Sequence[Reveal]) -> None:
        """Come back when these reveals are on disk; raises if they can't be written, and then nothing may be shown."""
        if reveals:
            await self._writes.submit(reveals[0].company_id, reveals)

    async def drain(self) -> None:
        """Finish the writes that are under way."""
        await self._writes.drain()

    async def _write(self, calls: Sequence[Sequence[Reveal]]) -> list[None]:
        await write(self._pool, [one for reveals in calls for one in reveals])
        return [None] * len(calls)


async def of_order(
    conn: Connection, order_id: int, limit: int, *, created_at: datetime | None = None
) -> OrderReveals:
    """Who has seen codes of an order, newest first; nobody saw any before it was created, if that is known."""
    rows = await conn.fetch(
        """
        SELECT id, at, company_id, line_from, lines, via, actor_kind, actor_id, host(address) AS address
        -- An order was seen a few times: OFFSET has them found first, or the server walks all reveals from the newest.
        FROM (SELECT * FROM reveal WHERE order_id = $1 OFFSET 0) own ORDER BY id DESC LIMIT $2
        """,
        order_id,
        limit,
    )
    until = await archived.until(conn, REVEAL.name)
    if until is not None and created_at is not None and created_at > until:
        until = None
    return OrderReveals([row_of(row) for row in rows], until)


def row_of(row: asyncpg.Record | Mapping[str, Any]) -> RevealRow:
    """A reveal from its columns."""
    return RevealRow(
        row["id"],
        row["at"],
        row["company_id"],
        row["line_from"],
        row["lines"],
        Via(row["via"]),
        ActorKind(row["actor_kind"]),
        row["actor_id"],
        row["address"],
    )
