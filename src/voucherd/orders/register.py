"""The register: every company's orders, for the operator. Reads only."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from voucherd.db import Connection
from voucherd.ids import State, state_of
from voucherd.orders.rules.states import Payment, Status

PAGE_MAX: Final = 1_000


class Registered(Struct, frozen=True):
    """One order of the register, without its items."""

    id: int
    company: str
    status: Status
    payment_status: Payment
    payment_currency: str
    total_minor: int
    lines: int
    lines_finished: int
    lines_cancelled: int
    created_at: datetime
    reference: str | None

    @property
    def state(self) -> State:
        """Live or sandbox."""
        return state_of(self.id)


async def newest(
    conn: Connection,
    *,
    company_id: int | None = None,
    state: State | None = None,
    status: Status | None = None,
    limit: int = PAGE_MAX,
) -> list[Registered]:
    """The newest orders that fit, deleted ones included (OP-53)."""
    # Ids are handed out in blocks, so their order is that of creation to within a block; it needs no sort.
    rows = await conn.fetch(
        """
        SELECT o.id, c.name, o.status, o.payment_status, o.payment_currency, o.price_minor + o.vat_minor,
               o.lines, o.lines_finished, o.lines_cancelled, o.created_at, o.reference
        FROM orders o JOIN company c ON c.id = o.company_id
        WHERE ($1::int IS NULL OR o.company_id = $1) AND ($2::smallint IS NULL OR (o.id & 1) = $2)
          AND ($3::smallint IS NULL OR o.status = $3)
        ORDER BY o.id DESC LIMIT $4
        """,
        company_id,
        state,
        status,
        min(limit, PAGE_MAX),
    )
    return [registered(row) for row in rows]


def registered(row: Any) -> Registered:
    """An order of the register, from a row that has these columns in this order."""
    return Registered(row[0], row[1], Status(row[2]), Payment(row[3]), *row[4:])
