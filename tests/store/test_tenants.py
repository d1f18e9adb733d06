"""Row-level security, the second lock: a query without a condition finds its own company's rows and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool, as_tenant, tenant, tenants_locked
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.migrate import migrate

OWNERS = ("company_id", "order_id", "wallet_id", "webhook_id")
HIDDEN = {"app_user", "attempt_line", "idempotency", "order_pin", "pin_try"}
FILLED = {
    *("company", "api_key", "orders", "order_item", "outcome", "wallet", "entry", "event", "spend"),
    *("webhook", "webhook_queue", "webhook_delivery"),
}
"""Tables that this shop fills for each company and state; the others have policies made by the same rules."""


async def _trade(shop: Shop, company: Company, state: State) -> None:
    trx = (await shop.create(company, ("gift", 2), state=state))["trx"]
    outcome = "finished" if state is State.SANDBOX else None
    await shop.confirm(company, trx, state=state, outcome=outcome)
    headers = {"idempotency-key": f"{company.id}"}
    made = await shop.call(
        "POST", "/api/1.03/webhook", company, state=state, headers=headers, json={"url": "https://a.com/"}
    )
    path = f"/api/1.03/webhook/{made.json()['id']}/test"
    assert (await shop.call("POST", path, company, state=state)).status_code == 202


async def _relations(pool: Pool) -> dict[str, str]:
    """The tables that belong to companies, each with the column that says to whom."""
    rows = await pool.fetch(
        """
        SELECT c.relname, (array_agg(a.attname ORDER BY array_position($1::name[], a.attname)))[1] AS owner
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped AND a.attname = ANY($1::name[])
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND (a.attnotnull OR a.attname = 'company_id')
        GROUP BY c.relname
        """,
        list(OWNERS),
    )
    return {row["relname"]: row["owner"] for row in rows} | {"company": "id"}


async def test_every_table_of_companies_has_a_policy_and_nobody_may_write(pool: Pool) -> None:
    """Part of every table's making: whoever adds one with a company can't forget the second lock."""
    relations = await _relations(pool)
    assert {"orders", "order_item", "outcome", "entry", "wallet", "event", "webhook", "api_key"} < set(
        relations
    )
    rows = await pool.fetch(
        """
        SELECT c.relname, c.relrowsecurity, array_agg(p.polname::text || p.polpermissive ORDER BY polname) AS policies,
               has_table_privilege('voucherd_tenant', c.oid, 'SELECT') AS reads,
               has_table_privilege('voucherd_tenant', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS writes
        FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace GROUP BY c.oid, c.relname, c.relrowsecurity
        """
    )
    found = {row["relname"]: row for row in rows}
    assert set(found) == set(relations)
    for name, row in found.items():
        assert (row["relrowsecurity"], row["policies"]) == (True, ["everybodytrue", "tenantfalse"]), name
        assert (row["reads"], row["writes"]) == (name not in HIDDEN, False), name
    others = await pool.fetch(
        """
        SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v')
           AND has_table_privilege('voucherd_tenant', oid, 'SELECT') AND relname <> ALL ($1::text[])
        """,
        list(relations),
    )
    assert {row[0] for row in others} == {
        *("brand", "event_mark", "fx_rate", "product", "product_change", "product_count", "product_listing"),
        *("product_version", "vat_rate"),
    }


async def _finds_only_its_own(shop: Shop, companies: list[Company]) -> None:
    """For each table, each company and each state; together they see all, each a part of it."""
    pool = shop.pool
    for name, owner in (await _relations(pool)).items():
        if name in HIDDEN:
            continue
        every = {repr(row) for row in await pool.fetch(f"SELECT * FROM {name}")}  # noqa: S608 - A name of ours.
        seen: set[str] = set()
        for company in companies:
            for state in State:
                async with tenant(pool, company.id, state) as conn:
                    rows = await conn.fetch(f"SELECT * FROM {name}")  # noqa: S608 - As above.
                mine = await _ids(pool, owner, company, state)
                for row in rows:
                    assert row[owner] in mine, (name, row)
                    assert row.get("state") in (None, int(state)), (name, row)
                own = {repr(row) for row in rows}
                assert not own & seen or name == "company", name
                assert own or name not in FILLED, name
                seen |= own
        assert seen == every or name not in FILLED, name


async def _ids(pool: Pool, owner: str, company: Company, state: State) -> set[int | None]:
    if owner in ("company_id", "id"):
        return {company.id, None}
    source = {
        "order_id": "orders WHERE (id & 1) = $2",
        "wallet_id": "wallet WHERE state = $2",
        "webhook_id": "webhook WHERE state = $2",
    }
    query = f"SELECT id FROM {source[owner]} AND company_id = $1"  # noqa: S608 - Words of ours.
    return {row[0] for row in await pool.fetch(query, company.id, int(state))}


async def _gets_nothing_by_forgery(shop: Shop, company: Company, other: Company) -> None:
    """Asked for another company by name, without a company, for secrets, and to write."""
    pool = shop.pool
    assert await tenants_locked(pool)  # type: ignore[arg-type]
    async with tenant(pool, company.id, State.LIVE) as conn:
        for query in (
            "SELECT FROM orders WHERE company_id = $1",
            "SELECT FROM outcome x JOIN orders o ON o.id = x.order_id WHERE o.company_id = $1",
            "SELECT FROM entry e JOIN wallet w ON w.id = e.wallet_id WHERE w.company_id = $1",
            "SELECT FROM api_key WHERE company_id = $1",
            "SELECT FROM event WHERE company_id = $1",
            "SELECT FROM company WHERE id = $1",
        ):
            assert await conn.fetch(query, other.id) == [], query
            assert await conn.fetch(query, company.id) != [], query
    refused: list[tuple[str, type[Exception]]] = [
        ("SELECT * FROM code", asyncpg.InsufficientPrivilegeError),
        ("SELECT * FROM vault_key", asyncpg.InsufficientPrivilegeError),
        ("SELECT * FROM idempotency", asyncpg.InsufficientPrivilegeError),
        ("SELECT * FROM app_user", asyncpg.InsufficientPrivilegeError),
        ("UPDATE orders SET reference = 'x'", asyncpg.PostgresError),
        ("DELETE FROM webhook", asyncpg.PostgresError),
        ("INSERT INTO price_list_company (company_id, list_id) VALUES (1, 1)", asyncpg.PostgresError),
    ]
    before = await shop.snapshot()
    for statement, kind in refused:
        with pytest.raises(kind):
            async with tenant(pool, company.id, State.LIVE) as conn:
                await conn.execute(statement)
    assert await shop.snapshot() == before
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SET LOCAL ROLE voucherd_tenant")
        assert await conn.fetchval("SELECT count(*) FROM orders") == 0


async def _never_stays_a_tenant(shop: Shop, company: Company) -> None:
    """However the block ends, the connection goes back as it came."""
    async with shop.pool.acquire() as conn:
        me = await conn.fetchval("SELECT current_user")

        async def ends(how: BaseException | None) -> None:
            async with as_tenant(conn, company.id, State.LIVE):
                assert await conn.fetchval("SELECT current_user") == "voucherd_tenant"
                if how is not None:
                    raise how

        for how in (None, ValueError(), asyncio.CancelledError()):
            if how is None:
                await ends(None)
            else:
                with pytest.raises(type(how)):
                    await ends(how)
            row = await conn.fetchrow(
                "SELECT current_user, tenant_company(), (SELECT count(DISTINCT company_id) FROM orders)"
            )
            assert tuple(row or ()) == (me, None, 2)


async def _works_without_the_role(shop: Shop, company: Company, database_url: str) -> None:
    """A server may let nobody make roles: then the first lock holds alone, and the audit tells."""
    await shop.pool.execute("CREATE OR REPLACE FUNCTION tenant_role() RETURNS text STABLE RETURN 'none'")
    assert not await tenants_locked(shop.pool)  # type: ignore[arg-type]
    for path in ("order", "account", "webhook", "event", "key"):
        answer = await shop.call("GET", f"/api/1.03/{path}", company)
        assert answer.status_code == 200
    assert await migrate(database_url) == []
    await shop.assert_books_balance()


async def _reads_along_the_index(shop: Shop, company: Company) -> None:
    """The policy adds a look at each row, and changes no way to it: a page costs the same among many as among few."""
    pool = shop.pool
    await pool.execute(
        "INSERT INTO event (at, company_id, state, type, data)"
        " SELECT now(), $1, 0, 'ping', '{}' FROM generate_series(1, 3000)",
        company.id,
    )
    await pool.execute("ANALYZE event")
    async with tenant(pool, company.id, State.LIVE) as conn:
        plan = await conn.fetch(
            "EXPLAIN SELECT * FROM event WHERE company_id = $1 AND state = 0 AND id > 0 AND id < 9000"
            " ORDER BY id LIMIT 50",
            company.id,
        )
    text = "\n".join(row[0] for row in plan)
    assert "Index Scan using event" in text, text
    assert "Sort" not in text, text


async def test_a_tenant_sees_its_own_rows_and_no_others(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Two companies have done everything in both states; no query, forgotten or forged, shows the other."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        await shop.product("gift", stock=50)
        companies = [await shop.company(scopes=frozenset(Scope)) for _ in range(2)]
        for company in companies:
            for state in State:
                await _trade(shop, company, state)
        await pool.execute(
            "INSERT INTO spend (company_id, key_id, state, day, spent_eur_minor)"
            " SELECT company_id, id, state, current_date, 1 FROM api_key"
        )
        await _finds_only_its_own(shop, companies)
        await _gets_nothing_by_forgery(shop, *companies)
        await _never_stays_a_tenant(shop, companies[0])
        await _reads_along_the_index(shop, companies[0])
        await _works_without_the_role(shop, companies[0], database_url)
