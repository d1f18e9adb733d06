"""The record of purchases, for the operator: what became of each, and which ones need a hand. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State
from voucherd.money import Money
from voucherd.purchasing.attempts import AttemptPhase

PAGE_MAX: Final = 1_000
LINES_MAX: Final = 1_000
"""Ranges of lines, lots and deeds of one purchase that are read."""
ID_DIGITS: Final = 32
ID_DIGITS_MIN: Final = 8
"""So many first digits name a purchase, if no other begins like it."""


class PurchaseProblem(StrEnum):
    """The reason why a purchase needs a person."""

    UNKNOWN = "unknown"  # Nobody knows what became of it.
    LATE = "late"  # Codes came that no line wanted any more.
    SHORT = "short"  # Fewer codes came than were asked for.
    SURPLUS = "surplus"  # More codes came than were asked for.
    QUARANTINED = "quarantined"  # Codes came that can't be sold.


# Each implies the condition of the index attempt_problem.
_PROBLEMS: Final = {
    PurchaseProblem.UNKNOWN: "a.status = 2",
    PurchaseProblem.LATE: "a.spare > 0 AND a.spare > a.codes - a.count",
    PurchaseProblem.SHORT: "(a.status = 3 AND a.codes < a.count)",
    PurchaseProblem.SURPLUS: "a.codes > a.count",
    PurchaseProblem.QUARANTINED: "a.quarantined > 0",
}
_INDEXED: Final = frozenset(
    {AttemptPhase.CALLING, AttemptPhase.ASKING, AttemptPhase.UNKNOWN, AttemptPhase.FAILED}
)


class Record(Struct, frozen=True):
    """A purchase as the operator sees it."""

    id: UUID
    supplier: str
    state: State
    slug: str
    face_minor: int
    face_currency: str
    sku: str
    phase: AttemptPhase
    count: int
    codes: int
    spare: int
    quarantined: int
    urgent: bool
    price_minor: int
    price_max_minor: int
    currency: str
    placed_at: datetime
    settles_at: datetime
    ask_at: datetime | None
    ended_at: datetime | None
    look_ups: int
    call_ms: int | None
    worker: str
    external_id: str | None
    reason: str | None
    settled_by: str | None
    cost_currency: str | None
    """What its codes were bought in; None while there are none."""
    cost_minor: int
    spare_cost_minor: int
    """Of the codes that no line took."""
    waiting: int
    """Lines that wait for it."""

    @property
    def cost(self) -> Money | None:
        """What its codes cost; None while there are none."""
        return None if self.cost_currency is None else Money(self.cost_minor, self.cost_currency)

    @property
    def spare_cost(self) -> Money | None:
        """What the codes cost that no line took."""
        return None if self.cost_currency is None else Money(self.spare_cost_minor, self.cost_currency)

    @property
    def problems(self) -> list[PurchaseProblem]:
        """Why it needs a person."""
        found = {
            PurchaseProblem.UNKNOWN: self.phase is AttemptPhase.UNKNOWN,
            PurchaseProblem.LATE: self.spare > max(self.codes - self.count, 0),
            PurchaseProblem.SHORT: self.phase is AttemptPhase.BOUGHT and self.codes < self.count,
            PurchaseProblem.SURPLUS: self.codes > self.count,
            PurchaseProblem.QUARANTINED: self.quarantined > 0,
        }
        return [problem for problem, has in found.items() if has]


class BoughtFor(Struct, frozen=True):
    """A range of lines that a purchase was made for."""

    order_id: int
    company: str
    line_from: int
    line_to: int
    waiting: int
    """How many of them still wait for it."""


class BoughtLot(Struct, frozen=True):
    """Codes that a purchase brought."""

    id: int
    size: int
    spare: int
    purchase_minor: int
    currency: str
    expires_at: datetime | None
    imported_at: datetime


class Deed(Struct, frozen=True):
    """What a person did about a purchase."""

    at: datetime
    type: str
    data: dict[str, Any]


_COLUMNS: Final = """
    a.id, s.name, a.state, p.slug, a.face_minor, v.face_currency, a.sku, a.status, a.count, a.codes, a.spare,
    a.quarantined, a.urgent, a.price_minor, a.price_max_minor, q.currency, a.placed_at, a.settles_at, a.ask_at,
    a.ended_at, a.look_ups, a.call_ms, a.worker, a.external_id, a.reason, a.settled_by, c.currency,
    coalesce(c.cost_minor, 0)::bigint, coalesce(c.spare_minor, 0)::bigint,
    coalesce((SELECT sum(line_to - line_from) FROM waiting WHERE attempt_id = a.id), 0)::int
"""
# Codes of one purchase in two currencies are next to impossible; the larger sum is shown.
_JOINS: Final = """
    JOIN product p ON p.id = a.product_id JOIN product_version v ON v.id = p.version_id
    JOIN quote q ON q.id = a.quote_id
    LEFT JOIN LATERAL (
        SELECT purchase_currency AS currency, sum(size * purchase_minor) AS cost_minor,
               sum(spare * purchase_minor) AS spare_minor
        FROM lot WHERE attempt_id = a.id GROUP BY 1 ORDER BY 2 DESC LIMIT 1) c ON true
"""
_OLDEST: Final = "ORDER BY a.placed_at, a.id LIMIT $2"
_NEWEST: Final = "ORDER BY a.placed_at DESC, a.id DESC LIMIT $2"


def _record(row: Any) -> Record:
    values = list(row)
    values[2], values[7] = State(values[2]), AttemptPhase(values[7])
    return Record(*values)


async def by_age(
    conn: Connection,
    *,
    supplier: str | None = None,
    phase: AttemptPhase | None = None,
    problem: PurchaseProblem | None = None,
    state: State | None = None,
    before: Record | None = None,
    limit: int = PAGE_MAX,
    oldest: bool = False,
) -> list[Record]:
    """The newest or the oldest purchases that fit, those behind `before` in the list."""
    less, start, way, order = (
        (">", "-infinity", "ASC", _OLDEST) if oldest else ("<", "infinity", "DESC", _NEWEST)
    )
    # Few purchases are in the index of a problem: one that is passed over costs less than a search by time, which
    # leads to those of all.
    few = supplier is None and (problem is not None or phase in _INDEXED)
    first = "$3::timestamptz IS NULL OR " if few else ""
    wanted = [f"({first}(a.placed_at, a.id) {less} (coalesce($3::timestamptz, '{start}'), $4::uuid))"]
    # Written out, not a parameter: only so can the server use an index that holds nothing else.
    wanted += [] if phase is None else [f"a.status = {int(phase)}"]
    wanted += [] if problem is None else [_PROBLEMS[problem]]
    wanted += [] if state is None else [f"a.state = {int(state)}"]
    where = " AND ".join(wanted)
    if few:
        source = f"(SELECT a.* FROM attempt a WHERE $1::text IS NULL AND {where} {order}) a JOIN supplier s ON s.id = a.supplier_id"  # noqa: S608, E501 - Constants only.
    else:
        # There is an index by supplier and time: a few of each supplier, and the first of these. Its whole order is
        # asked for, which no other way gives.
        source = f"""(SELECT * FROM supplier WHERE $1::text IS NULL OR name = $1) s CROSS JOIN LATERAL (
            SELECT a.* FROM attempt a WHERE a.supplier_id >= s.id AND a.supplier_id <= s.id AND {where}
            ORDER BY a.supplier_id {way}, a.placed_at {way} FETCH FIRST $2 ROWS WITH TIES) a"""  # noqa: S608 - Constants only.
    rows = await conn.fetch(
        f"SELECT {_COLUMNS} FROM {source} {_JOINS} {order}",  # noqa: S608 - Constants only.
        supplier,
        min(limit, PAGE_MAX),
        None if before is None else before.placed_at,
        None if before is None else before.id,
    )
    return [_record(row) for row in rows]


async def find(conn: Connection, digits: str) -> list[Record]:
    """The purchases whose id begins with these hexadecimal digits: none, one, or the first two."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM (SELECT * FROM attempt WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT 2) a
        JOIN supplier s ON s.id = a.supplier_id {_JOINS} ORDER BY a.id
        """,  # noqa: S608 - Constants only.
        UUID(digits.ljust(ID_DIGITS, "0")),
        UUID(digits.ljust(ID_DIGITS, "f")),
    )
    return [_record(row) for row in rows]


async def by_external_id(conn: Connection, external_id: str, limit: int) -> list[Record]:
    """The purchases that a supplier calls by this name, newest first."""
    rows = await conn.fetch(
        f"""
        SELECT {_COLUMNS} FROM supplier s
        -- The index of these names begins with the supplier.
        CROSS JOIN LATERAL (SELECT * FROM attempt WHERE supplier_id = s.id AND external_id = $1 LIMIT $2) a
        {_JOINS} {_NEWEST}
        """,  # noqa: S608 - Constants only.
        external_id,
        limit,
    )
    return [_record(row) for row in rows]


async def of_order(conn: Connection, order_id: int, limit: int) -> list[Record]:
    """The purchases that were made for lines of an order, newest first."""
    rows = await conn.fetch(
        f"""
        -- OFFSET: from the order's lines to their purchases, or the server may look at every purchase there was.
        SELECT {_COLUMNS} FROM (SELECT DISTINCT attempt_id FROM attempt_line WHERE order_id = $1 OFFSET 0) l
        CROSS JOIN LATERAL (SELECT * FROM attempt WHERE id = l.attempt_id OFFSET 0) a
        JOIN supplier s ON s.id = a.supplier_id {_JOINS} {_NEWEST}
        """,  # noqa: S608 - Constants only.
        order_id,
        limit,
    )
    return [_record(row) for row in rows]


async def bought_for(conn: Connection, attempt_id: UUID) -> list[BoughtFor]:
    """The lines that it was made for."""
    rows = await conn.fetch(
        """
        SELECT l.order_id, c.name, l.line_from, l.line_to,
               coalesce((SELECT sum(least(w.line_to, l.line_to) - greatest(w.line_from, l.line_from)) FROM waiting w
                         WHERE w.attempt_id = $1 AND w.order_id = l.order_id AND w.line_from < l.line_to
                           AND w.line_to > l.line_from), 0)::int
        FROM attempt_line l JOIN orders o ON o.id = l.order_id JOIN company c ON c.id = o.company_id
        WHERE l.attempt_id = $1 ORDER BY l.order_id, l.line_from LIMIT $2
        """,
        attempt_id,
        LINES_MAX,
    )
    return [BoughtFor(*row) for row in rows]


async def lots(conn: Connection, attempt_id: UUID) -> list[BoughtLot]:
    """The lots that its codes lie in."""
    rows = await conn.fetch(
        """
        SELECT id, size, spare, purchase_minor, purchase_currency, expires_at, imported_at
        -- OFFSET: found by the purchase alone, or the server may walk all lots.
        FROM (SELECT * FROM lot WHERE attempt_id = $1 OFFSET 0) own ORDER BY id LIMIT $2
        """,
        attempt_id,
        LINES_MAX,
    )
    return [BoughtLot(*row) for row in rows]


async def left_of(conn: Connection, attempt_ids: Sequence[UUID]) -> dict[UUID, int]:
    """How many codes of these purchases' lots are still on the shelf."""
    rows = await conn.fetch(
        "SELECT attempt_id, sum(size - cursor)::bigint FROM lot WHERE attempt_id = ANY($1::uuid[]) GROUP BY 1",
        list(attempt_ids),
    )
    return {row[0]: row[1] for row in rows}


async def deeds(conn: Connection, attempt_id: UUID) -> list[Deed]:
    """What people did about it, oldest first."""
    rows = await conn.fetch(
        """
        SELECT at, type, data::text FROM event
        WHERE type IN ('attempt.settled', 'attempt.retried', 'attempt.revealed') AND data ->> 'attempt' = $1
        ORDER BY id LIMIT $2
        """,
        str(attempt_id),
        LINES_MAX,
    )
    return [Deed(row[0], row[1], msgspec.json.decode(row[2])) for row in rows]
