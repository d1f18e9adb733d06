"""Migrations: plain SQL files, forward only, each run once and in order, however many processes start.

A file runs while sales go on. It takes all tables that it changes before its first statement, or none: it gives up long
before the server would look for a deadlock, lets the calls that waited behind it through, and tries again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import asyncpg

from voucherd.connections import MIGRATION, connect
from voucherd.db import UNAVAILABLE, Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SERVER_VERSION_MIN: Final = 150_000
"""PostgreSQL 15, as the server counts."""

LOCK_WAIT_S_MAX: Final = 120
"""How long a process waits while another one migrates."""

SERVICE: Final = "voucherd_service"
"""The role that serves: it reads and writes rows, and owns nothing."""

LOOK_EVERY_S: Final = 0.05

TABLES_WAIT_MS_MAX: Final = 400
"""How long a file waits for all its tables together: calls wait behind it meanwhile. The server looks for a deadlock
when somebody has waited for a second, so nobody is ever found to be in one with a migration."""
VACUUM_WAIT_MS_MAX: Final = 10_000
"""How long it waits before that for a vacuum, which the server stops after a second; no call waits behind it then."""
TRIES_MAX: Final = 25
SESSIONS_MAX: Final = 5
PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 5.0

LOCK_ORDER: Final = ("orders", "order_item", "wallet", "spend", "lot", "waiting", "outcome", "entry", "event")
"""A sale comes to its tables in this order, so a file that takes them in the same order waits for sales in turn."""

_CONCURRENT: Final = re.compile(
    r"(?:--.*\n|\s)*CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS ([a-z_]+)"
)
# Bodies of functions, texts and comments: what is in them does not happen when the file runs.
_NOT_RUN: Final = re.compile(r"\bAS \$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|--[^\n]*", re.DOTALL)
# Nobody may even read a table while its form changes; while it gets a trigger, an index or rows, nobody may write it.
_FORM: Final = "ACCESS EXCLUSIVE"
_CONTENT: Final = "SHARE ROW EXCLUSIVE"
_CHANGED: Final = {
    _CONTENT: re.compile(
        r"\b(?:(?:TRIGGER|INDEX)\b[^;]*?\bON |REFERENCES |INSERT INTO |DELETE FROM |UPDATE "
        r"|COMMENT ON (?:TABLE|COLUMN) )(\w+)",
        re.IGNORECASE,
    ),
    _FORM: re.compile(
        r"\b(?:ALTER TABLE (?:IF EXISTS )?(?:ONLY )?|DROP (?:INDEX|TABLE|VIEW|CONSTRAINT) (?:IF EXISTS )?"
        r"|(?:DROP TRIGGER|POLICY)\b[^;]*?\bON )(\w+)",
        re.IGNORECASE,
    ),
}
_FILE_NAME: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


def _label(version: int, name: str) -> str:
    return f"{version:04d}_{name}"


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
        return _label(self.version, self.name)

    @property
    def concurrent_index(self) -> str | None:
        """The index that it builds concurrently, for which it runs outside of a transaction; None for all others."""
        found = _CONCURRENT.match(self.sql)
        return None if found is None else found[1]

    @property
    def changed(self) -> dict[str, str]:
        """What it changes, by name, with the mode of the lock for it; among them words that name nothing."""
        runs = _NOT_RUN.sub(" ", self.sql)
        # The stronger mode comes last, and stays.
        return {found[1].lower(): mode for mode, words in _CHANGED.items() for found in words.finditer(runs)}


Tell = Callable[[str], None]
"""Told in one line what a migration waits for."""


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


async def migrate(url: str, tell: Tell = lambda _line: None) -> list[str]:
    """Run what has not run yet, in another session if the server ends one; the labels of the migrations that ran."""
    begun: list[str] = []
    sessions = 0
    while True:
        sessions += 1
        async with connected(url) as connection:
            try:
                async with alone(connection):
                    await _run_missing(connection, begun, tell)
                return begun
            except UNAVAILABLE:
                # This process stood still, say, and the server gave its tables to others.
                if sessions == SESSIONS_MAX or not connection.is_closed():
                    raise
                what = begun[-1] if begun else "the migrations"
                tell(f"the server ended the session of {what}; it runs again")


async def _run_missing(connection: Connection, begun: list[str], tell: Tell) -> None:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migration ("
        " version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )
    for migration in _missing(await _applied(connection)):
        if migration.label not in begun:
            begun.append(migration.label)
        await _run(connection, migration, tell)
    await _arrange(connection, tell)


async def service_url(url: str) -> str:
    """The address for the service, whose role owns nothing; the owner's own where no such role was let in here."""
    async with connected(url) as connection:
        let_in = await connection.fetchval(
            "SELECT has_table_privilege(to_regrole($1), to_regclass('entry'), 'INSERT')", SERVICE
        )
    return url.replace("://voucherd:", f"://{SERVICE}:", 1) if let_in else url


async def _run(connection: Connection, migration: Migration, tell: Tell) -> None:
    """Run one file and note it, both or neither."""
    if migration.concurrent_index is not None:
        await _drop_half_built(connection, migration.concurrent_index)
        await connection.execute(migration.sql)
        await _note(connection, migration)
        return

    async def run() -> None:
        await connection.execute(migration.sql)
        await _note(connection, migration)

    await _alone_with(connection, migration.label, await _tables(connection, migration.changed), run, tell)


async def _arrange(connection: Connection, tell: Tell) -> None:
    """Give each role its rights. Where no role can be made the first lock holds alone; start and audit say so."""
    rows = await connection.fetch(
        """
        SELECT c.relname FROM tenant_rules() r JOIN pg_class c ON c.oid = r.relation
        WHERE NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = r.relation AND p.polname = 'tenant')
          AND (to_regrole('voucherd_tenant') IS NOT NULL
               OR (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user))
        """
    )

    async def arrange() -> None:
        await connection.execute("SELECT arrange_tenants(), arrange_service()")

    tables = await _tables(connection, {row[0]: _FORM for row in rows})
    await _alone_with(connection, "the rights of roles", tables, arrange, tell)


async def _tables(connection: Connection, changed: Mapping[str, str]) -> dict[str, str]:
    """The modes by table, in the order of locks: of these names, of indexes, and that constraints of them point at."""
    rows = await connection.fetch(
        """
        SELECT t.relname, array_agg(found.name) FROM pg_class t JOIN (
            SELECT coalesce(i.indrelid, c.oid) AS oid, c.relname AS name
            FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
            WHERE c.relname = ANY($1::text[]) AND c.relnamespace = current_schema()::regnamespace
            UNION ALL
            SELECT confrelid, conname FROM pg_constraint
            WHERE conname = ANY($1::text[]) AND connamespace = current_schema()::regnamespace) found USING (oid)
        WHERE t.relkind IN ('r', 'p') GROUP BY t.relname
        """,
        list(changed),
    )
    modes = {table: {changed[name] for name in names} for table, names in rows}
    place = {name: number for number, name in enumerate(LOCK_ORDER)}
    order = sorted(modes, key=lambda table: (place.get(table, len(place)), table))
    return {table: _FORM if _FORM in modes[table] else _CONTENT for table in order}


async def _alone_with(
    connection: Connection,
    label: str,
    tables: Mapping[str, str],
    work: Callable[[], Awaitable[None]],
    tell: Tell,
) -> None:
    """Do the work in a transaction that has taken these tables; tried again and again while others use them."""
    for number in range(1, TRIES_MAX + 1):
        try:
            async with connection.transaction():
                await _lock(connection, tables)
                await work()
            return
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as late:
            waits_for = await _user_of(connection, list(tables))
            if number == TRIES_MAX:
                raise MigrationRefused(
                    f"{label} waited too long for {waits_for}: it changed nothing, run it again"
                ) from late
            pause_s = min(PAUSE_S_MAX, PAUSE_S_MIN * 1.5**number)
            tell(f"{label} waits for {waits_for}; it tries again in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)


async def _lock(connection: Connection, tables: Mapping[str, str]) -> None:
    """Take all of the tables within the time for it."""
    # A vacuum is stopped for somebody who has waited for a second. In this mode nobody else is waited for.
    await connection.execute(f"SET LOCAL lock_timeout = {VACUUM_WAIT_MS_MAX}")
    for table in tables:
        await connection.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
    ends_at = time.monotonic() + TABLES_WAIT_MS_MAX / 1_000
    for table, mode in tables.items():
        left_ms = max(1, int(1_000 * (ends_at - time.monotonic())))
        await connection.execute(f"SET LOCAL lock_timeout = {left_ms}")
        await connection.execute(f"LOCK TABLE {table} IN {mode} MODE")
    await connection.execute(f"SET LOCAL lock_timeout = {TABLES_WAIT_MS_MAX}")


async def _user_of(connection: Connection, tables: Sequence[str]) -> str:
    """Who has used one of the tables for longest, in words."""
    row = await connection.fetchrow(
        """
        SELECT c.relname, a.application_name AS program, a.pid,
               extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS age_s
        FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid() AND c.relname = ANY($1::text[])
          AND c.relnamespace = current_schema()::regnamespace
        ORDER BY a.xact_start LIMIT 1
        """,
        tables,
    )
    if row is None:
        return "tables that were in use"
    age = "" if row["age_s"] is None else f" for {row['age_s']:.1f} s"
    user = f"{row['program'] or 'somebody'} (process {row['pid']})"
    return f"the table {row['relname']}, which {user} has used{age}"


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


async def newer(connection: Connection) -> list[str]:
    """The labels of the migrations that this program does not know; it must not begin to work on such a database."""
    if await connection.fetchval("SELECT to_regclass('schema_migration') IS NULL"):
        return []
    last = migrations()[-1].version
    return [
        _label(version, name) for version, (name, _) in (await _applied(connection)).items() if version > last
    ]


def refusal_of_newer(labels: Sequence[str]) -> str:
    """The line for the operator about a database that a newer program has migrated."""
    return f"the database is newer than this program: it has {labels[-1]}, which is unknown here"


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
            raise MigrationRefused(refusal_of_newer([_label(version, name)]))
        if migration.name != name:
            raise MigrationRefused(
                f"no release made this database: it has {_label(version, name)} and not {migration.label}; "
                "start with an empty one"
            )
        if migration.checksum != checksum:
            raise MigrationRefused(f"{migration.label}.sql was changed: it is not the file that ran here")
    return [migration for migration in known.values() if migration.version not in applied]
