"""Migrations: plain SQL files, forward only, each run once and in order, however many processes start."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import asyncpg

from voucherd.connections import MIGRATION, connect
from voucherd.db import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVER_VERSION_MIN: Final = 150_000
"""PostgreSQL 15, as the server counts."""

LOCK_WAIT_S_MAX: Final = 120
"""How long a process waits while another one migrates."""

SERVICE: Final = "voucherd_service"
"""The role that serves: it reads and writes rows, and owns nothing."""

LOOK_EVERY_S: Final = 0.05

TABLE_WAIT_S_MAX: Final = 5
"""How long a migration waits for a table that a transaction holds: all later transactions wait behind it meanwhile."""

_CONCURRENT: Final = re.compile(
    r"(?:--.*\n|\s)*CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS ([a-z_]+)"
)
_FILE_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class MigrationRefused(Exception):
    """The database can't be brought to this program's schema; the message is one line for the operator."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of migrations/."""

    version: int
    name: str
    sql: str
    checksum: str

    @property
    def label(self) -> str:
        """The file's name without its ending, such as 0003_catalogue."""
        return f"{self.version:04d}_{self.name}"

    @property
    def concurrent_index(self) -> str | None:
        """The index that it builds concurrently, for which it runs outside of a transaction; None for all others."""
        found = _CONCURRENT.match(self.sql)
        return None if found is None else found[1]


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration this program knows, in order."""
    found = []
    for file in (files("voucherd") / "migrations").iterdir():
        if match := _FILE_NAME.fullmatch(file.name):
            # Text mode folds line ends, so a checkout on another system has the same checksum.
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], sql, hashlib.sha256(sql.encode()).hexdigest()))
    found.sort(key=lambda migration: migration.version)
    versions = [migration.version for migration in found]
    assert versions == list(range(1, len(found) + 1)), (
        f"the migrations are not numbered from 1 on: {versions}"
    )
    return tuple(found)


async def migrate(url: str) -> list[str]:
    """Run what has not run yet; the labels of the migrations that ran."""
    async with connected(url) as connection, alone(connection):
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migration ("
            " version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT now())"
        )
        missing = _missing(await _applied(connection))
        for migration in missing:
            await _run(connection, migration)
        # Where no role can be made the first lock holds alone; the start and the audit say so.
        await connection.execute("SELECT arrange_tenants()")
        await connection.execute("SELECT arrange_service()")
        return [migration.label for migration in missing]


async def service_url(url: str) -> str:
    """The address for the service, whose role owns nothing; the owner's own where no such role was let in here."""
    async with connected(url) as connection:
        let_in = await connection.fetchval(
            "SELECT has_table_privilege(to_regrole($1), to_regclass('entry'), 'INSERT')", SERVICE
        )
    return url.replace("://voucherd:", f"://{SERVICE}:", 1) if let_in else url


async def _run(connection: Connection, migration: Migration) -> None:
    """Run one file and note it, both or neither."""
    try:
        if migration.concurrent_index is not None:
            await _drop_half_built(connection, migration.concurrent_index)
            await connection.execute(migration.sql)
            await _note(connection, migration)
            return
        async with connection.transaction():
            await connection.execute(f"SET LOCAL lock_timeout = '{TABLE_WAIT_S_MAX}s'")
            await connection.execute(migration.sql)
            await _note(connection, migration)
    except asyncpg.LockNotAvailableError:
        raise MigrationRefused(
            f"{migration.label} waited too long for a table that another transaction holds: "
            "it changed nothing, run it again"
        ) from None


async def _drop_half_built(connection: Connection, index: str) -> None:
    """Drop the index if an earlier run was killed while it built it: IF NOT EXISTS would take it for a whole one."""
    if await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)", index
    ):
        await connection.execute(f"DROP INDEX CONCURRENTLY {index}")


async def _note(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO schema_migration (version, name, checksum) VALUES ($1, $2, $3)",
        migration.version,
        migration.name,
        migration.checksum,
    )


async def pending(connection: Connection) -> list[str]:
    """The labels of the migrations that have not run yet; a server is not ready while there are any."""
    if await connection.fetchval("SELECT to_regclass('schema_migration') IS NULL"):
        return [migration.label for migration in migrations()]
    names = {version: name for version, (name, _) in (await _applied(connection)).items()}
    return [migration.label for migration in migrations() if names.get(migration.version) != migration.name]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """One connection to a server that is new enough and has a schema to work in."""
    # Notices such as "already exists, skipping" are no news.
    quiet = {"client_min_messages": "warning"}
    connection = await connect(url, MIGRATION, quiet, name="voucherd migrate")
    try:
        await _check_server(connection)
        yield connection
    finally:
        await connection.close()


async def _check_server(connection: Connection) -> None:
    row = await connection.fetchrow(
        "SELECT current_setting('server_version_num')::int AS number, current_schema() AS schema,"
        " current_setting('server_version') AS version, current_setting('search_path') AS path"
    )
    assert row is not None, "a SELECT without FROM gives one row"
    if row["number"] < SERVER_VERSION_MIN:
        raise MigrationRefused(f"voucherd needs PostgreSQL 15 or newer, this server is {row['version']}")
    if row["schema"] is None:
        raise MigrationRefused(f"no schema of the search_path exists: {row['path']}")


@asynccontextmanager
async def alone(connection: Connection) -> AsyncIterator[None]:
    """Hold the advisory lock of this schema: the others wait, then find everything done."""
    # The key holds the schema's name, so that services that share a database don't wait for each other.
    key = "hashtextextended('voucherd/migrate/' || current_schema(), 0)"
    ends_at = time.monotonic() + LOCK_WAIT_S_MAX
    # Asked for again and again: a statement that waits for it has a snapshot, for which an index that another process
    # builds concurrently would wait in turn.
    while not await connection.fetchval(f"SELECT pg_try_advisory_lock({key})"):
        if time.monotonic() >= ends_at:
            raise MigrationRefused(f"another process has been migrating for {LOCK_WAIT_S_MAX} s")
        await asyncio.sleep(LOOK_EVERY_S)
    try:
        yield
    finally:
        # A connection that broke has given its lock back already.
        if not connection.is_closed():
            await connection.execute(f"SELECT pg_advisory_unlock({key})")


async def _applied(connection: Connection) -> dict[int, tuple[str, str]]:
    """What has run: version → (name, checksum)."""
    rows = await connection.fetch("SELECT version, name, checksum FROM schema_migration ORDER BY version")
    return {row["version"]: (row["name"], row["checksum"]) for row in rows}


def _missing(applied: dict[int, tuple[str, str]]) -> list[Migration]:
    """The migrations left to run, refused if the database's history is not this program's."""
    known = {migration.version: migration for migration in migrations()}
    for version, (name, checksum) in applied.items():
        migration = known.get(version)
        if migration is None:
            raise MigrationRefused(
                f"the database is newer than this program: it has {version:04d}_{name}, which is unknown here"
            )
        if migration.name != name:
            raise MigrationRefused(
                f"no release made this database: it has {version:04d}_{name} and not {migration.label}; "
                "start with an empty one"
            )
        if migration.checksum != checksum:
            raise MigrationRefused(f"{migration.label}.sql was changed: it is not the file that ran here")
    return [migration for migration in known.values() if migration.version not in applied]
