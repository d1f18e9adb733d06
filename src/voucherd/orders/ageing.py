"""Ageing: what a company's sandbox orders wait for comes closer, as if the time between had passed (OP-146).

Their deadlines move and nothing else does: every sweep, every rule and every index goes on by the database's clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from voucherd.db import Tx
from voucherd.orders.sweeps import SWEEP_MAX, tell_expired

OPEN_MAX: Final = 10_000
"""Open orders of a sandbox that one step of its clock moves; with more it does not move at all."""

DELIVERED_WITHIN: Final = timedelta(minutes=1)
"""How long a delivery that a step of the clock brings about may take."""


class TooManyOpen(Exception):
    """The company has more open orders in its sandbox than one step of its clock moves."""

    def __init__(self) -> None:
        super().__init__(f"more than {OPEN_MAX:,} orders of the sandbox are open")


class Aged(Struct, frozen=True):
    """How many orders came closer to their deadline, and how many expired by it."""

    orders: int
    expired: int


# A company's orders of one window are a range of its index; waits have an index by company.
_OPEN: Final = """
    SELECT id, status FROM orders WHERE company_id = $1 AND (id & 1) = 1 AND status = 0 AND expires_at > now()
      AND (created_at, id) >= (now() - $2::interval, 0)
    UNION
    SELECT order_id, 1 FROM waiting WHERE company_id = $1 AND state = 1
    LIMIT $3
"""
# Under the locks: what was finalised or ended in between stays as it is.
_SHORTEN: Final = """
    UPDATE orders SET expires_at = expires_at - $2::interval
    WHERE id = ANY($1::bigint[]) AND status = 0 AND expires_at > now()
"""
# A delivery that lies between now and then comes before the deadline that lies behind it: the worker is given a moment
# for it, as it would have had.
_HASTEN: Final = """
    WITH moved AS (
        SELECT o.id, CASE
            WHEN bool_or(w.not_before > now() AND w.not_before <= now() + $2::interval AND w.not_before < o.deadline_at)
            THEN greatest(o.deadline_at - $2, least(o.deadline_at, now() + $3::interval))
            ELSE o.deadline_at - $2::interval END AS deadline_at
        FROM orders o JOIN waiting w ON w.order_id = o.id
        WHERE o.id = ANY($1::bigint[]) AND o.status = 1 GROUP BY o.id
    ), hastened AS (
        UPDATE orders o SET deadline_at = m.deadline_at FROM moved m WHERE o.id = m.id
    )
    UPDATE waiting w SET not_before = w.not_before - $2, deadline_at = m.deadline_at, ask_at = w.ask_at - $2
    FROM moved m WHERE w.order_id = m.id
"""
_SHORTENED: Final = """
    FROM orders WHERE company_id = $1 AND (id & 1) = 1 AND (created_at, id) >= (now() - $2::interval, 0)
      AND status = 0 AND expires_at < created_at + $2::interval
"""
_EXPIRED: Final = f"""
    SELECT id {_SHORTENED} AND expires_at <= now()
      AND NOT EXISTS (SELECT FROM event e WHERE e.order_id = orders.id AND e.type = 'order.expired')
    ORDER BY id LIMIT $3
"""  # noqa: S608 - Constants only.


async def age(tx: Tx, company_id: int, by: timedelta, window: timedelta) -> Aged:
    """Bring the deadlines of the company's open sandbox orders closer; refused if there are too many of them."""
    rows = await tx.fetch(_OPEN, company_id, window, OPEN_MAX + 1)
    if len(rows) > OPEN_MAX:
        raise TooManyOpen
    order_ids = sorted({row["id"] for row in rows})
    # Orders first, in the order of their ids, and their waits afterwards: as every decision about them does.
    await tx.execute(
        "SELECT FROM orders WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE", order_ids
    )
    await tx.execute(
        "SELECT FROM waiting WHERE order_id = ANY($1::bigint[]) ORDER BY order_id, line_from FOR UPDATE",
        order_ids,
    )
    await tx.execute(_SHORTEN, order_ids, by)
    await tx.execute(_HASTEN, order_ids, by, DELIVERED_WITHIN)
    return Aged(len(order_ids), await expire(tx, company_id, window))


async def expire(tx: Tx, company_id: int, window: timedelta) -> int:
    """Announce the company's sandbox orders whose shortened window is over, some at a time; how many."""
    told = 0
    for _ in range(1 + OPEN_MAX // SWEEP_MAX):
        rows = await tx.fetch(_EXPIRED, company_id, window, SWEEP_MAX)
        told += await tell_expired(tx, [row["id"] for row in rows])
        if len(rows) < SWEEP_MAX:
            break
    return told


async def expire_one(tx: Tx, order_id: int) -> bool:
    """Let one sandbox order expire now; whether it was still to be confirmed."""
    assert order_id & 1, "real orders expire by themselves"
    await tx.execute(
        "UPDATE orders SET expires_at = now() WHERE id = $1 AND status = 0 AND expires_at > now()", order_id
    )
    return bool(await tell_expired(tx, [order_id]))


async def next_expiry(tx: Tx, company_id: int, window: timedelta) -> datetime | None:
    """When the first of the company's sandbox orders with a shortened window expires."""
    found: datetime | None = await tx.fetchval(
        f"SELECT min(expires_at) {_SHORTENED} AND expires_at > now()",
        company_id,
        window,
    )
    return found
