"""What an order did to a wallet, for the operator. Reads only."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from voucherd.db import Connection
from voucherd.money import Money
from voucherd.wallet.ledger import EntryKind


class Movement(Struct, frozen=True):
    """One entry of an order's."""

    at: datetime
    kind: EntryKind
    amount: Money
    hold: Money
    balance_after: Money


async def movements(conn: Connection, order_id: int, limit: int) -> list[Movement]:
    """The entries of an order, oldest first."""
    rows = await conn.fetch(
        """
        SELECT e.at, e.kind, e.amount_minor, e.hold_minor, e.balance_after_minor, w.currency
        FROM entry e JOIN wallet w ON w.id = e.wallet_id WHERE e.order_id = $1 ORDER BY e.seq LIMIT $2
        """,
        order_id,
        limit,
    )
    return [
        Movement(row[0], EntryKind(row[1]), *(Money(minor, row[5]) for minor in tuple(row)[2:5]))
        for row in rows
    ]
