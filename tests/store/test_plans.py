"""A hundred thousand lines that wait elsewhere cost nothing: each look of the dispatcher is a few index probes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.store.stalls import LINES, ground, stall
from voucherd.db import Pool, open_pool, transaction
from voucherd.orders import background
from voucherd.purchasing import attempts, claims, routing

PLACES: Final = {
    "with a supplier": "1, NULL, NULL",
    "being bought": "NULL, '00000000-0000-0000-0000-000000000001', NULL",
    "pausing": "NULL, NULL, now() + interval '1 hour' + n * interval '1 millisecond'",
    "for the shelf": "NULL, NULL, NULL",
}
EACH: Final = 25_000

PAGES_MAX: Final = 250
"""Pages that a look may touch that finds little; the table has some thousands, and so has each of its indexes."""


@pytest.fixture
async def crowded(database_url: str) -> AsyncIterator[Pool]:
    """A hundred thousand lines that wait, a quarter in each place, on a pool with the service's own settings."""
    pool = await open_pool(database_url, look_ups=True)
    await ground(pool)
    await stall(pool)
    await stall(pool, "two")
    async with transaction(pool) as tx:
        await tx.execute(
            "INSERT INTO attempt (id, supplier_id, state, product_id, face_minor, sku, quote_id, price_minor,"
            " price_max_minor, count, urgent, status, worker, lease_until, settles_at, ended_at)"
            " SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 1, 0, 1, 1000, 'P', 2, 900, 900, 1,"
            " false, CASE n WHEN 1 THEN 2 ELSE 4 END, 'w', now(), now(), CASE n WHEN 1 THEN NULL ELSE now() END"
            " FROM generate_series(1, 20000) n"
        )
        # What looks at every new row anew is right for a claim, and slow for a hundred thousand.
        await tx.execute("ALTER TABLE waiting DISABLE TRIGGER USER")
        for at, place in enumerate(PLACES.values()):
            await tx.execute(
                "INSERT INTO waiting (state, product_id, face_minor, company_id, order_id, line_from, line_to,"  # noqa: S608 - Ours.
                " not_before, deadline_at, supplier_id, attempt_id, ask_at)"
                f" SELECT 0, 1, 1000, o.company_id, o.id, n % {LINES}, n % {LINES} + 1, now(), o.deadline_at, {place}"
                f" FROM generate_series(0, {EACH - 1}) n JOIN orders o ON o.id = 2 * (1 + {at} * 3 + n / {LINES})"
            )
        await tx.execute("ALTER TABLE waiting ENABLE TRIGGER USER")
    await pool.execute("VACUUM ANALYZE waiting, attempt, orders")
    yield pool
    await pool.close()


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for below in plan.get("Plans", ()) for node in _nodes(below))]


async def look(pool: Pool, sql: str, *values: object) -> tuple[int, int]:
    """How many pages a statement touched and how many rows it gave; what it would change is undone."""
    async with pool.acquire() as conn:
        undone = conn.transaction()
        await undone.start()
        found = json.loads(
            await conn.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", *values)
        )
        await undone.rollback()
    nodes = _nodes(found[0]["Plan"])
    scanned = [node.get("Relation Name") for node in nodes if node["Node Type"] == "Seq Scan"]
    assert not {"waiting", "attempt", "orders"} & set(scanned), json.dumps(found, indent=1)
    top = nodes[0]
    return top["Shared Hit Blocks"] + top["Shared Read Blocks"], top["Actual Rows"]


async def test_no_look_of_the_dispatcher_grows_with_the_backlog(crowded: Pool) -> None:
    """Decision 12: a loose index scan, and an index for each place; no table is read from end to end."""
    pool = crowded
    pages: dict[str, int] = {}
    pages["suppliers"], found = await look(pool, claims._WANTED)
    assert found == 1
    pages["companies"], found = await look(pool, claims._COMPANIES, 1, False, 0, claims.COMPANIES_MAX)
    assert found == 3
    pages["companies of nobody"], found = await look(
        pool, claims._COMPANIES, 2, False, 0, claims.COMPANIES_MAX
    )
    assert found == 0
    pages["waits"], found = await look(pool, claims._WAITS, 1, False, [1, 2, 3], claims.WAITS_MAX, 0.2)
    assert found == 24
    pages["due"], found = await look(pool, routing._DUE, routing.ROUTE_MAX)
    assert found == 0
    pages["stranded"], found = await look(pool, routing._STRANDED, 20, 1, False)
    assert found == 20
    pages["asking"], found = await look(pool, attempts._TAKE_ASKING, "w", 5.0, attempts.TAKEN_MAX)
    assert found == 0
    pages["lost"], found = await look(pool, attempts._TAKE_OVER, "w", 5.0, attempts.TAKEN_MAX)
    assert found == 0
    pages["shelves"], found = await look(pool, background._SHELVES, background.SHELVES_MAX)
    assert found == 0

    assert {name: count for name, count in pages.items() if count > PAGES_MAX} == {}
