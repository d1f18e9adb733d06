"""Every migration since a release, run on a database of that release; and this program at work on it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import asyncpg
import pytest

from tests.release.dump import FOLDER, MASTER, Release, kinds, read
from tests.release.fill import filled
from tests.shop import Company, Shop
from tests.store.test_migrations import catalogue
from voucherd import migrate as runner
from voucherd.audit import audit
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.migrate import Migration, migrate, migrations, pending
from voucherd.vault.master_key import write_master
from voucherd.vault.seal import Sealer

SANDBOX = State.SANDBOX
BYTES_MAX = 300_000


async def findings(url: str) -> list[str]:
    """What the audit finds, with every code opened by the master key of the dumps."""
    connection = await asyncpg.connect(url)
    try:
        return [str(finding) for finding in await audit(connection, Sealer(MASTER))]
    finally:
        await connection.close()


async def test_the_dump_migrates_to_the_schema_of_a_new_database(
    released_url: str, release: Release, database_url: str
) -> None:
    """What ran is not run again, the rest runs, and nobody can tell the database from one that is new."""
    newer = [migration.label for migration in migrations() if migration.version > release.last_migration]
    connection = await asyncpg.connect(released_url)
    try:
        assert await pending(connection) == newer
    finally:
        await connection.close()

    assert await migrate(released_url) == newer

    assert await catalogue(released_url) == await catalogue(database_url)
    assert await findings(released_url) == []


CHANGES_OF_PRODUCTS = {"product_change", "product_count", "product_listing"}
"""Only who changes products comes to these, and waits for the table of products first."""
MODES = (
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
)
MODES_OF = {"SHARE ROW EXCLUSIVE": MODES[:-1], "ACCESS EXCLUSIVE": (*MODES, "AccessExclusiveLock")}
"""By the mode of a lock that is taken at the beginning: those that are not stronger."""
_HELD = """
    SELECT DISTINCT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND c.relkind IN ('r', 'p')
      AND c.relnamespace = current_schema()::regnamespace AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
"""


async def test_a_migration_takes_no_table_that_it_did_not_take_at_its_beginning(
    released_url: str, release: Release
) -> None:
    """OP-116: a file that comes to a table later, with others in its hands, may be in a deadlock with a sale."""
    newer = [migration for migration in migrations() if migration.version > release.last_migration]
    async with runner.connected(released_url) as connection:
        for migration in newer:
            if migration.concurrent_index is not None:
                await connection.execute(migration.sql)
                continue
            there = {row[0] for row in await connection.fetch("SELECT relname FROM pg_class")}
            tables = await runner._tables(connection, migration.changed)
            async with connection.transaction():
                await connection.execute(migration.sql)
                held = {tuple(row) for row in await connection.fetch(_HELD) if row[0] in there}
            late = [
                (table, mode)
                for table, mode in held
                if mode not in MODES_OF.get(tables.get(table, ""), ()) and table not in CHANGES_OF_PRODUCTS
            ]
            assert late == [], (migration.label, tables)


async def test_a_migration_that_loses_something_is_noticed(
    released_url: str, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof can fail: a file that removes what was delivered breaks the books."""
    sql = "ALTER TABLE outcome DISABLE TRIGGER USER; DELETE FROM outcome WHERE lot_id IS NOT NULL"
    number = migrations()[-1].version + 1
    lossy = Migration(number, "lossy", sql, hashlib.sha256(sql.encode()).hexdigest())
    known = (*migrations(), lossy)
    monkeypatch.setattr(runner, "migrations", lambda: known)

    assert (await migrate(released_url))[-1] == lossy.label

    assert await findings(released_url) != []


async def test_the_dump_has_orders_in_every_state(
    released_pool: Pool, released_url: str, database_url: str, pool: Pool, tmp_path: Path
) -> None:
    """It is what the program that makes it makes today: nothing is missing in it, and that program still works."""
    found = await kinds(released_url)
    assert found.keys() >= {
        *(f"order live status {status} payment {paid}" for status, paid in ((0, 0), (1, 0), (1, 1), (2, 1))),
        *(f"order live status {status} payment {paid}" for status, paid in ((3, 2), (3, 3), (4, 0))),
        *(
            f"order sandbox status {status} payment {paid}"
            for status, paid in ((0, 0), (1, 1), (2, 1), (3, 0))
        ),
        *(f"attempt {status}" for status in range(5)),
        *(f"entry {kind}" for kind in range(1, 5)),
        *("approval 1 0", "approval 2 0", "approval 2 1", "delivery 0", "delivery 1"),
        *("block of trail", "block of reveal"),
    }
    write_master(tmp_path / "master.key", MASTER)
    async with filled(pool, database_url, tmp_path):
        assert (await kinds(database_url)).keys() == found.keys()


async def test_codes_that_were_sold_then_are_shown_now(
    shop: Shop, company: Company, release: Release
) -> None:
    """A code is the buyer's for good, whatever program shows it."""
    assert release.codes.keys() >= {"finished", "bought", "finished by a limited key"}
    for kind, codes in release.codes.items():
        order = await shop.find(company, release.orders[kind])
        assert order["orderStatus"] == "finished", kind
        assert [line["voucherCode"] for item in order["items"] for line in item["orderLines"]] == codes, kind


async def test_orders_of_then_are_confirmed_cancelled_and_delivered_now(
    shop: Shop, company: Company, release: Release
) -> None:
    """Every order goes on from where it stood, and the books balance in the end."""
    orders = release.orders
    # The day in which a price is fixed was over long ago.
    await shop.pool.execute(
        "UPDATE orders SET created_at = now(), expires_at = now() + interval '1 day' WHERE id = ANY($1)",
        [shop.ids.order_id(orders[kind]) for kind in ("created", "created to cancel", "sandbox created")],
    )
    assert (await shop.confirm(company, orders["created"]))["orderStatus"] == "finished"
    assert (await shop.cancel(company, orders["created to cancel"])).status_code == 204
    tested = await shop.confirm(company, orders["sandbox created"], state=SANDBOX, outcome="finished")
    assert tested["orderStatus"] == "finished"
    assert (await shop.finalise("confirm", company, orders["expired"])).status_code == 400
    sold = await shop.create(company, ("gift-10", 2))
    assert (await shop.confirm(company, sold["trx"]))["orderStatus"] == "finished"

    # The Resolve whose process was gone ends without a charge, and the line that waits for stock gets a code.
    assert await shop.held(company) > 0
    held = shop.ids.order_id(orders["held"])
    await shop.pool.execute("UPDATE waiting SET deadline_at = now() WHERE order_id = $1", held)
    await shop.pool.execute("UPDATE orders SET deadline_at = now() WHERE id = $1", held)
    await shop.pool.execute("UPDATE attempt SET lease_until = now() WHERE status = 0")
    await shop.worker.run_once("end_waiting")
    await shop.worker.dispatcher.follow_up()
    await shop.worker.dispatcher.settled()
    await shop.worker.run_once("end_waiting")
    await shop.stock("slow-20", 2)
    await shop.worker.run_once("deliver")
    assert (await shop.find(company, orders["waiting"]))["orderStatus"] == "finished"
    assert (await shop.find(company, orders["held"]))["orderStatus"] == "cancelled"
    assert await shop.held(company) == 0
    for trx in orders.values():
        await shop.events(trx)
    await shop.worker.run_once("seal_trail")
    await shop.worker.dispatcher.stop()
    await shop.assert_books_balance()


def test_a_dump_is_small_and_in_order() -> None:
    """One file a release, named for it, that a person can read and a clone can bear."""
    files = sorted(FOLDER.glob("v*.sql"))
    assert files[0].name == "v0.1.0.sql"
    for file in files:
        assert file.stat().st_size < BYTES_MAX
        assert file.name == f"v{read(file).version}.sql"
