"""The migrations: once each, in order, whatever starts at once; and schema.sql says what they make."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tests.patience import HANG_S, until_blocked, until_true
from tools.schema import write_schema
from voucherd import migrate as runner
from voucherd.connections import MIGRATION, Session
from voucherd.db import Pool
from voucherd.migrate import Migration, MigrationRefused, migrate, migrations, pending

SCHEMA_SQL = Path(__file__).parents[2] / "schema.sql"
PROCESSES = 10

# Everything a schema consists of, as text that is the same for the same thing on any one server. Constraints of
# type n are NOT NULL again, which newer servers list twice; and a condition that was read back from its own text has
# fewer parentheses than the one that a person wrote, so those don't count.
CATALOGUE = """
WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema()),
     relation AS (SELECT c.* FROM pg_class c, here WHERE c.relnamespace = here.oid)
SELECT 'relation', relname, relkind::text, coalesce(array_to_string(reloptions, ' '), '') FROM relation
UNION ALL
SELECT 'column', r.relname, a.attnum || ' ' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
                 pg_get_expr(d.adbin, d.adrelid))
FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum WHERE r.relkind IN ('r', 'p', 'v')
UNION ALL
SELECT 'constraint', r.relname, k.conname, translate(pg_get_constraintdef(k.oid), '()', '')
FROM relation r JOIN pg_constraint k ON k.conrelid = r.oid WHERE k.contype <> 'n'
UNION ALL
SELECT 'index', t.relname, r.relname, pg_get_indexdef(r.oid)
FROM relation r JOIN pg_index i ON i.indexrelid = r.oid JOIN pg_class t ON t.oid = i.indrelid
UNION ALL
SELECT 'trigger', r.relname, t.tgname, translate(pg_get_triggerdef(t.oid), '()', '')
FROM relation r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'function', p.proname, pg_get_function_identity_arguments(p.oid), pg_get_functiondef(p.oid)
FROM pg_proc p, here WHERE p.pronamespace = here.oid
UNION ALL
SELECT 'view', relname, '', pg_get_viewdef(oid) FROM relation WHERE relkind = 'v'
UNION ALL
SELECT 'storage', r.relname, a.attname, a.attstorage::text || r.relpersistence::text
FROM relation r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE r.relkind = 'r'
UNION ALL
SELECT 'policy', r.relname, p.polname, concat_ws(' ', p.polpermissive, p.polroles::regrole[], r.relrowsecurity,
       pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
FROM relation r JOIN pg_policy p ON p.polrelid = r.oid
UNION ALL
SELECT 'right', r.relname, g.grantee::regrole::text, g.privilege_type
FROM relation r CROSS JOIN LATERAL aclexplode(r.relacl) AS g WHERE g.grantee <> r.relowner
UNION ALL
SELECT 'sequence', sequencename, data_type::text, concat_ws(' ', start_value, min_value, max_value, increment_by)
FROM pg_sequences WHERE schemaname = current_schema()
ORDER BY 1, 2, 3, 4
"""


def schema_of(url: str) -> str:
    """The schema that a test's URL carries."""
    return parse_qs(urlsplit(url).query)["search_path"][0]


async def catalogue(url: str) -> list[tuple[str, ...]]:
    """Everything in the schema, with nothing that names it."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(CATALOGUE)
    finally:
        await connection.close()
    return [tuple(text.replace(schema_of(url) + ".", "") for text in row) for row in rows]


def written(number: int, sql: str) -> Migration:
    """A migration that is not in the folder."""
    return Migration(number, "written", sql, hashlib.sha256(sql.encode()).hexdigest())


async def test_a_second_run_finds_nothing_to_do(empty_schema_url: str) -> None:
    """Migrations run once each."""
    labels = [migration.label for migration in migrations()]

    assert await migrate(empty_schema_url) == labels
    assert await migrate(empty_schema_url) == []


async def test_ten_processes_that_start_at_once_migrate_once(empty_schema_url: str) -> None:
    """One advisory lock around the whole run: the others wait and find everything done."""
    program = "import asyncio, sys; from voucherd.migrate import migrate; print(len(asyncio.run(migrate(sys.argv[1]))))"
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, empty_schema_url, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(PROCESSES)
    ]
    answers = await asyncio.gather(*(process.communicate() for process in started))

    assert [process.returncode for process in started] == [0] * PROCESSES
    counts = sorted(int(output) for output, _ in answers)
    assert counts == [0] * (PROCESSES - 1) + [len(migrations())]


async def test_a_file_that_changed_after_it_ran_is_refused(database_url: str, pool: Pool) -> None:
    """Forward only: what ran is history, and history does not change."""
    await pool.execute("UPDATE schema_migration SET checksum = 'another' WHERE version = 1")

    with pytest.raises(MigrationRefused, match=r"^0001_companies_keys\.sql was changed: .*that ran here$"):
        await migrate(database_url)


async def test_a_database_from_before_the_first_release_is_refused(database_url: str, pool: Pool) -> None:
    """Nothing carries over from before 0.1.0: one sentence says so, and nothing runs."""
    await pool.execute(
        "UPDATE schema_migration SET name = 'foundation', checksum = 'another' WHERE version = 1"
    )
    await pool.execute("DELETE FROM schema_migration WHERE version = 6")

    with pytest.raises(
        MigrationRefused,
        match=r"^no release made this database: it has 0001_foundation and not 0001_companies_keys; "
        r"start with an empty one$",
    ):
        await migrate(database_url)

    assert not await pool.fetchval("SELECT count(*) FROM schema_migration WHERE version = 6")
    async with pool.acquire() as connection:
        assert await pending(connection) == ["0001_companies_keys", "0006_purchasing"]


async def test_a_database_newer_than_the_program_is_refused(database_url: str, pool: Pool) -> None:
    """An old program must not write into a schema that it does not know."""
    await pool.execute("INSERT INTO schema_migration (version, name, checksum) VALUES (9999, 'later', '')")

    with pytest.raises(MigrationRefused, match="newer than this program: it has 9999_later"):
        await migrate(database_url)


async def test_a_migration_that_fails_leaves_nothing_behind(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and its row are one transaction; those before it stay."""
    number = migrations()[-1].version + 1
    good = written(number, "CREATE TABLE first_half (n int)")
    bad = written(number + 1, "CREATE TABLE second_half (n int); SELECT 1 / 0")
    known = (*migrations(), good, bad)
    monkeypatch.setattr(runner, "migrations", lambda: known)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(database_url)

    assert await pool.fetchval("SELECT to_regclass('first_half') IS NOT NULL")
    assert await pool.fetchval("SELECT to_regclass('second_half') IS NULL")
    async with pool.acquire() as connection:
        assert await pending(connection) == [bad.label]


async def test_a_migration_does_not_keep_everybody_waiting(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-116: sales queue up behind it, so it gives up soon, tries again, says for whom it waits, and ends at last."""
    change = written(migrations()[-1].version + 1, "ALTER TABLE orders ADD COLUMN note text")
    known = (*migrations(), change)
    monkeypatch.setattr(runner, "migrations", lambda: known)
    monkeypatch.setattr(runner, "TRIES_MAX", 3)
    told: list[str] = []
    async with pool.acquire() as report, report.transaction():
        await report.execute("LOCK TABLE orders IN ACCESS SHARE MODE")
        with pytest.raises(
            MigrationRefused,
            match=r"_written waited too long for the table orders, which voucherd \(process \d+\) has used for .* s: "
            r"it changed nothing, run it again$",
        ):
            await migrate(database_url, told.append)
        assert await pending(report) == [change.label]
    assert len(told) == 2
    assert told[0].startswith(f"{change.label} waits for the table orders, which voucherd (process ")
    assert told[0].endswith(" s; it tries again in 0.2 s")

    assert await migrate(database_url) == [change.label]


@pytest.mark.parametrize("first", ["orders", "wallet"])
async def test_a_migration_and_a_sale_never_wait_for_each_other(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """OP-116: in whichever order a sale comes to its tables, it gets them; the file gives way, and runs afterwards."""
    sql = "ALTER TABLE wallet ADD COLUMN note text; ALTER TABLE orders ADD COLUMN note text"
    change = written(migrations()[-1].version + 1, sql)
    known = (*migrations(), change)
    monkeypatch.setattr(runner, "migrations", lambda: known)
    second = {"orders": "wallet", "wallet": "orders"}[first]
    async with pool.acquire() as sale, sale.transaction():
        await sale.execute(f"LOCK TABLE {first} IN ROW EXCLUSIVE MODE")
        migrating = asyncio.create_task(migrate(database_url))
        await until_blocked(pool)
        await sale.execute(f"LOCK TABLE {second} IN ROW EXCLUSIVE MODE")

    assert await migrating == [change.label]


async def test_a_migration_whose_process_is_frozen_gives_its_tables_back(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-116: the server ends the transaction of a process that says nothing more, and sales go on."""
    monkeypatch.setattr(runner, "MIGRATION", MIGRATION._replace(idle_s=0.1))
    async with runner.connected(database_url) as frozen:
        await frozen.execute("BEGIN; LOCK TABLE orders")

        assert await pool.fetchval("SELECT count(*) FROM orders") == 0


@pytest.fixture
def standing_still(monkeypatch: pytest.MonkeyPatch) -> Migration:
    """A migration in which the process stands still until the server has ended its session."""
    change = written(migrations()[-1].version + 1, "ALTER TABLE orders ADD COLUMN note text")
    known, note, short = (*migrations(), change), runner._note, MIGRATION._replace(idle_s=0.1)

    async def note_late(connection: Session, migration: Migration) -> None:
        if vars(runner)["MIGRATION"] is short:
            await until_true(connection.is_closed)
        await note(connection, migration)

    monkeypatch.setattr(runner, "migrations", lambda: known)
    monkeypatch.setattr(runner, "MIGRATION", short)
    monkeypatch.setattr(runner, "_note", note_late)
    return change


async def test_a_migration_whose_session_is_ended_runs_again_in_another(
    database_url: str, monkeypatch: pytest.MonkeyPatch, standing_still: Migration
) -> None:
    """OP-116: a machine that stands still for a while costs a migration its session, not the program its start."""
    told = []

    def tell(line: str) -> None:
        told.append(line)
        monkeypatch.setattr(runner, "MIGRATION", MIGRATION._replace(idle_s=HANG_S))

    assert await migrate(database_url, tell) == [standing_still.label]
    assert told == [f"the server ended the session of {standing_still.label}; it runs again"]
    assert await migrate(database_url) == []


async def test_a_migration_whose_sessions_are_all_ended_gives_up_and_changes_nothing(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch, standing_still: Migration
) -> None:
    """OP-116: every file is whole or not there, and nobody tries for ever."""
    monkeypatch.setattr(runner, "SESSIONS_MAX", 2)
    told = list[str]()

    with pytest.raises(asyncpg.InterfaceError):
        await migrate(database_url, told.append)
    assert len(told) == 1
    async with pool.acquire() as connection:
        assert await pending(connection) == [standing_still.label]
    assert not await pool.fetchval(
        "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attname = 'note')"
    )


async def test_an_index_is_built_while_sales_go_on(
    database_url: str, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that want to migrate do not hold it up, and an index that a failed run left half-built is replaced."""
    sql = "-- For a test.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS vat_rate_note ON vat_rate (country)"
    change = written(migrations()[-1].version + 1, sql)
    known = (*migrations(), change)
    monkeypatch.setattr(runner, "migrations", lambda: known)
    with pytest.raises(asyncpg.UniqueViolationError):
        await pool.execute("CREATE UNIQUE INDEX CONCURRENTLY vat_rate_note ON vat_rate (country)")
    state = "SELECT indisvalid, indisunique FROM pg_index WHERE indexrelid = 'vat_rate_note'::regclass"
    assert tuple(await pool.fetchrow(state) or ()) == (False, True)

    ran = await asyncio.gather(*(migrate(database_url) for _ in range(3)))

    assert sorted(ran) == [[], [], [change.label]]
    assert tuple(await pool.fetchrow(state) or ()) == (True, False)


async def test_pending_lists_what_a_server_waits_for(empty_schema_url: str) -> None:
    """A server is ready only when every migration has run."""
    connection = await asyncpg.connect(empty_schema_url)
    try:
        assert await pending(connection) == [migration.label for migration in migrations()]
        await migrate(empty_schema_url)
        assert await pending(connection) == []
    finally:
        await connection.close()


async def test_a_server_that_is_too_old_is_refused(
    empty_schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SQL needs PostgreSQL 15; an older server is refused in one line, before anything runs."""
    monkeypatch.setattr(runner, "SERVER_VERSION_MIN", 990_000)

    with pytest.raises(MigrationRefused, match="needs PostgreSQL 15 or newer, this server is "):
        await migrate(empty_schema_url)


async def test_a_schema_that_does_not_exist_is_refused(server_url: str) -> None:
    """A mistyped search_path must not end in somebody else's schema."""
    url = f"{server_url}{'&' if '?' in server_url else '?'}search_path=t_nowhere"

    with pytest.raises(MigrationRefused, match="no schema of the search_path exists: t_nowhere"):
        await migrate(url)


async def test_a_lock_that_is_never_given_back_is_waited_for_only_so_long(
    empty_schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait has a maximum."""
    monkeypatch.setattr(runner, "LOCK_WAIT_S_MAX", 1)
    async with runner.connected(empty_schema_url) as other, runner.alone(other):
        with pytest.raises(MigrationRefused, match="another process has been migrating for 1 s"):
            await migrate(empty_schema_url)


async def test_schema_sql_makes_what_the_migrations_make(database_url: str, another_schema_url: str) -> None:
    """schema.sql is read by people, so it must be true: same columns, guards, triggers and all."""
    async with runner.connected(another_schema_url) as connection:
        await connection.execute(SCHEMA_SQL.read_text())

    assert await catalogue(another_schema_url) == await catalogue(database_url)


async def test_schema_sql_is_what_the_generator_writes(pool: Pool) -> None:
    """Nobody edits schema.sql by hand."""
    if await pool.fetchval("SELECT current_setting('server_version_num')::int / 10000 <> 18"):
        pytest.skip("another PostgreSQL spells the same schema in another way")

    async with pool.acquire() as connection:
        assert await write_schema(connection) == SCHEMA_SQL.read_text()


async def test_every_table_says_what_a_row_is(pool: Pool) -> None:
    """A stranger reads the schema: no table, view or function is without words."""
    silent = await pool.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v')"
        " AND coalesce(obj_description(oid, 'pg_class'), '') !~ '^(One row|The only row) .*[.]$'"
        " UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
        " AND obj_description(oid, 'pg_proc') IS NULL"
    )
    assert [row[0] for row in silent] == []
