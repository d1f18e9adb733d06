"""Lists of what waits for a second person, and of what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voucherd.approvals.model import Approval
from voucherd.approvals.store import approval_of, rows_of
from voucherd.db import Connection, Pool
from voucherd.ids import State

PAGE_MAX: Final = 100
LOOKED_AT_MAX: Final = 500
"""The newest requests, from which a page is taken; those of a company last as long as a price."""


async def of_order(connection: Connection | Pool, company_id: int, order_id: int) -> Approval | None:
    """The newest request for an order."""
    # The sum: found by the order alone, or the server may walk all requests of the company.
    newest = "SELECT * FROM approval WHERE order_id = $1 AND company_id + 0 = $2 OFFSET 0"
    row = await connection.fetchrow(
        f"{rows_of(f'({newest})')} ORDER BY a.id DESC LIMIT 1", order_id, company_id
    )
    return None if row is None else approval_of(row)


async def asked_for(connection: Connection | Pool, order_ids: Sequence[int]) -> set[int]:
    """Those of these orders that wait for a second person."""
    rows = await connection.fetch(
        "SELECT order_id FROM approval WHERE order_id = ANY($1::bigint[]) AND status = 0 AND ends_at > now()",
        order_ids,
    )
    return {row[0] for row in rows}


async def of_company(connection: Connection | Pool, company_id: int, state: State) -> list[Approval]:
    """The company's newest requests for orders, the open ones first."""
    # As the index of the newest has them, so that no other way is taken.
    newest = """SELECT * FROM approval WHERE (company_id, state) >= ($1, $2) AND (company_id, state) <= ($1, $2)
                  AND kind = 1 ORDER BY company_id, state, id DESC LIMIT $4"""
    rows = await connection.fetch(_open_first(newest, "$3"), company_id, int(state), PAGE_MAX, LOOKED_AT_MAX)
    return [approval_of(row) for row in rows]


async def of_operator(connection: Connection | Pool, most: int = LOOKED_AT_MAX) -> list[Approval]:
    """The newest requests about money, of all companies, the open ones first."""
    newest = """SELECT * FROM approval WHERE status = 0 AND kind <> 1 UNION ALL
                (SELECT * FROM approval WHERE status <> 0 AND kind <> 1 ORDER BY id DESC LIMIT $1)"""
    rows = await connection.fetch(_open_first(newest, "$1"), most)
    return [approval_of(row) for row in rows]


def _open_first(newest: str, limit: str) -> str:
    """The statement for a page of these requests; whoever asked and decided is looked up for that page alone."""
    order = "(a.status = 0 AND a.ends_at > now()) DESC, a.id DESC"
    return f"{rows_of(f'(SELECT * FROM ({newest}) a ORDER BY {order} LIMIT {limit})')} ORDER BY {order}"  # noqa: S608 - Ours.


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
