"""Lists of what waits for a second person, and of what became of it."""

from __future__ import annotations

from typing import Final

from voucherd.approvals.model import Approval
from voucherd.approvals.store import ROWS, approval_of
from voucherd.db import Connection, Pool
from voucherd.ids import State

PAGE_MAX: Final = 100


async def of_order(connection: Connection | Pool, company_id: int, order_id: int) -> Approval | None:
    """The newest request for an order."""
    row = await connection.fetchrow(
        f"{ROWS} WHERE a.order_id = $1 AND a.company_id = $2 ORDER BY a.id DESC LIMIT 1",
        order_id,
        company_id,
    )
    return None if row is None else approval_of(row)


async def of_company(connection: Connection | Pool, company_id: int, state: State) -> list[Approval]:
    """The company's newest requests for orders, the open ones first."""
    rows = await connection.fetch(
        f"""
        {ROWS} WHERE a.company_id = $1 AND a.state = $2 AND a.kind = 1
        ORDER BY (a.status = 0 AND a.ends_at > now()) DESC, a.id DESC LIMIT $3
        """,
        company_id,
        int(state),
        PAGE_MAX,
    )
    return [approval_of(row) for row in rows]


async def of_operator(connection: Connection | Pool) -> list[Approval]:
    """The newest requests about money, of all companies, the open ones first."""
    rows = await connection.fetch(
        f"""
        {ROWS} WHERE a.kind <> 1 ORDER BY (a.status = 0 AND a.ends_at > now()) DESC, a.id DESC LIMIT $1
        """,
        PAGE_MAX,
    )
    return [approval_of(row) for row in rows]


async def waiting(connection: Connection | Pool, company_id: int | None, state: State, person: int) -> int:
    """How many requests wait for this person: open ones of others."""
    return int(
        await connection.fetchval(
            """
            SELECT count(*) FROM approval WHERE status = 0 AND ends_at > now() AND requested_by <> $3
              AND CASE WHEN $1::int IS NULL THEN kind <> 1 ELSE kind = 1 AND company_id = $1 AND state = $2 END
            """,
            company_id,
            int(state),
            person,
        )
    )
