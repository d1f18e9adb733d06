"""The alert of a low balance: once when it falls below its owner's amount, and again only after it was above.

A round of the worker looks, so that a sale pays nothing for it; the owner of a low balance is told within a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct

from voucherd.db import Connection, Pool, Tx
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.money import Money, plain
from voucherd.money import digits as digits_of
from voucherd.wallet import store as wallets

ALERTS_MAX: Final = 500
"""Wallets of one round."""


async def set_alert(tx: Tx, company_id: int, state: State, below: Money) -> None:
    """Say so when what is available falls below this."""
    wallet_id = await wallets.ensure(tx, company_id, below.currency, state)
    await tx.execute(
        """
        INSERT INTO wallet_alert (wallet_id, low_minor) VALUES ($1, $2)
        ON CONFLICT (wallet_id) DO UPDATE SET low_minor = excluded.low_minor, told = false
        """,
        wallet_id,
        below.minor,
    )


async def remove_alert(tx: Tx, company_id: int, state: State, currency: str) -> bool:
    """Say nothing any more; whether there was an alert."""
    gone = await tx.fetchval(
        """
        DELETE FROM wallet_alert a USING wallet w
        WHERE w.id = a.wallet_id AND w.company_id = $1 AND w.currency = $2 AND w.state = $3 RETURNING true
        """,
        company_id,
        currency,
        int(state),
    )
    return bool(gone)


async def alerts(connection: Connection, wallet_ids: Sequence[int]) -> dict[int, int]:
    """Below how much each of these wallets is low, for those that have an alert."""
    rows = await connection.fetch(
        "SELECT wallet_id, low_minor FROM wallet_alert WHERE wallet_id = ANY($1::bigint[])", wallet_ids
    )
    return {row[0]: row[1] for row in rows}


async def announce(pool: Pool) -> int:
    """Append `wallet.low_balance` for every wallet that fell below its alert; how many."""
    async with pool.acquire() as conn, conn.transaction():
        rows = await conn.fetch(
            """
            SELECT w.id, w.company_id, w.currency, w.state, w.balance_minor - w.held_minor AS available, a.low_minor,
                   a.told
            -- From the alerts to their wallets, of which most have none: OFFSET keeps the server from the other way.
            FROM wallet_alert a CROSS JOIN LATERAL (SELECT * FROM wallet WHERE id = a.wallet_id OFFSET 0) w
            WHERE a.told <> (w.balance_minor - w.held_minor < a.low_minor)
            ORDER BY a.wallet_id LIMIT $1 FOR UPDATE OF a SKIP LOCKED
            """,
            ALERTS_MAX,
        )
        await conn.execute(
            "UPDATE wallet_alert SET told = NOT told WHERE wallet_id = ANY($1::bigint[])",
            [row["id"] for row in rows],
        )
        low = [row for row in rows if not row["told"]]
        for row in low:
            places = digits_of(row["currency"])
            await log.append(
                conn,
                kinds.WALLET_LOW_BALANCE,
                company_id=row["company_id"],
                state=row["state"],
                data={
                    "currency": row["currency"],
                    "availableAmount": Raw(plain(row["available"], places).encode()),
                    "thresholdAmount": Raw(plain(row["low_minor"], places).encode()),
                },
            )
    return len(low)


class Low(Struct, frozen=True):
    """A wallet below what its owner chose."""

    company_id: int
    company: str
    available: Money
    below: Money


async def low(conn: Connection, state: State) -> list[Low]:
    """The wallets that are below their alert now, those of one state, by company."""
    rows = await conn.fetch(
        """
        SELECT c.id, c.name, w.currency, w.balance_minor - w.held_minor, a.low_minor
        FROM wallet_alert a JOIN wallet w ON w.id = a.wallet_id JOIN company c ON c.id = w.company_id
        WHERE w.state = $1 AND w.balance_minor - w.held_minor < a.low_minor AND c.active
        ORDER BY c.name, w.currency LIMIT $2
        """,
        int(state),
        ALERTS_MAX,
    )
    return [Low(row[0], row[1], Money(row[3], row[2]), Money(row[4], row[2])) for row in rows]
