"""The role of the service: it reads and writes rows of every table, owns none, and can switch off no guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from tests.shop import open_shop
from voucherd.db import Pool, open_pool, owns_tables
from voucherd.migrate import SERVICE, migrate, service_url


@pytest.fixture
async def service(database_url: str) -> AsyncIterator[Pool]:
    """Connections as the service has them."""
    url = await service_url(database_url)
    if url == database_url:
        pytest.skip("this server has no role for the service")
    pool = await open_pool(url)
    yield pool
    await pool.close()


FORBIDDEN: Final = (
    "ALTER TABLE {} DISABLE TRIGGER USER",
    "ALTER TABLE {} ADD COLUMN more integer",
    "TRUNCATE {} CASCADE",
    "DROP TABLE {} CASCADE",
    "CREATE TRIGGER more BEFORE INSERT ON {} EXECUTE FUNCTION refuse_change()",
)


async def test_the_service_owns_no_table_and_can_alter_none(pool: Pool, service: Pool) -> None:
    """OP-105: of every table that there is, a new one included; nor can it pass over triggers or make a table."""
    tables = [
        row[0]
        for row in await pool.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
        )
    ]
    assert len(tables) > 60
    assert await service.fetchval("SELECT current_user") == SERVICE
    assert not await service.fetchval(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = $1", SERVICE
    )
    changes = [change.format(table) for table in tables for change in FORBIDDEN]
    for change in (
        *changes,
        "SET session_replication_role = replica",
        "CREATE TABLE more (id integer)",
        "ALTER FUNCTION tie_payment() RENAME TO untie",
        "SET ROLE voucherd",
        "UPDATE schema_migration SET checksum = 'x'",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await service.execute(change)


async def test_the_service_reads_and_writes_every_table(pool: Pool, service: Pool) -> None:
    """OP-105: the rights come with the migrations, so a table that a later one adds can't be forgotten."""
    missing = await service.fetch(
        """
        SELECT relname, wanted FROM pg_class CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS wanted
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v')
          AND NOT has_table_privilege(oid, wanted)
        """
    )
    assert {row["relname"] for row in missing} == {"schema_migration", "archived_blocks"}
    async with service.acquire() as conn:
        assert not await owns_tables(conn)
    async with pool.acquire() as conn:
        assert await owns_tables(conn)


async def test_a_migration_grants_what_it_adds(pool: Pool, service: Pool, database_url: str) -> None:
    """OP-105: after a table was added the next run of the migrations lets the service use it."""
    await pool.execute("CREATE TABLE later (id bigint GENERATED ALWAYS AS IDENTITY, text text)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await service.execute("INSERT INTO later (text) VALUES ('x')")
    assert await migrate(database_url) == []
    await service.execute("INSERT INTO later (text) VALUES ('x')")


async def test_a_shop_runs_as_the_service(
    pool: Pool, service: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-105: what the other scenarios do they do in this role, so a right that is missing shows there."""
    assert service is not None
    async with open_shop(pool, database_url, tmp_path) as shop:
        assert await shop.program.services.pool.fetchval("SELECT current_user") == SERVICE
