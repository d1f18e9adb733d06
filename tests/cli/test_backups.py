"""Backups of the embedded database: taken under load, put back elsewhere, and as good as the first one."""

from __future__ import annotations

import asyncio
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.shop import open_shop
from voucherd import backups
from voucherd.actors import ActorKind
from voucherd.db import Pool, open_pool, tenants_locked
from voucherd.embedded import running
from voucherd.ids import State
from voucherd.migrate import migrate


async def _written(pool: Pool) -> list[tuple[object, ...]]:
    """What the trail says of backups."""
    rows = await pool.fetch("SELECT actor_kind, action, subject FROM trail WHERE action LIKE 'backup.%'")
    return [tuple(row) for row in rows]


async def _sell(data: Path, bare: Terminal, file: Path) -> tuple[str, str, str]:
    """Take a backup while orders are made and paid; the key, trx and code of an order from before it."""
    with running(data, exclusive=False) as url:
        await migrate(url)
        pool = await open_pool(url)
        async with open_shop(pool, url, data, with_worker=False) as shop:
            await shop.product("gift", stock=500)
            company = await shop.company(balance="100000.00 EUR")
            trx = (await shop.create(company, ("gift", 2)))["trx"]
            lines = (await shop.confirm(company, trx))["items"][0]["orderLines"]
            sold = 0

            async def sell() -> None:
                nonlocal sold
                while True:
                    await shop.confirm(company, (await shop.create(company, ("gift", 1)))["trx"])
                    sold += 1

            selling = asyncio.gather(*(sell() for _ in range(2)))
            document = await asyncio.to_thread(bare.json, "backup", str(file))
            selling.cancel()
            with suppress(asyncio.CancelledError):
                await selling
            assert sold > 0
            assert document["masterKey"]["included"] is False
            async with pool.acquire() as conn:
                last = await backups.last(conn)
            assert last is not None
            assert last.bytes == document["bytes"]
            assert await _written(pool) == [(ActorKind.COMMAND, "backup.take", f"file {file.name}")]
            await shop.assert_books_balance()
        await pool.close()
    return company.keys[State.LIVE], trx, lines[0]["voucherCode"]


async def test_a_backup_under_load_is_whole_when_it_is_put_back(bare_terminal: Terminal) -> None:
    """The command line: `backup` and `restore` of the embedded database; its books balance and its codes open."""
    first, folder = bare_terminal, bare_terminal.data.parent
    file, secret = folder / "shop.backup", first.data / "master.key"
    assert_refused(first.run("backup", str(file)), "there is no database in")
    key, trx, code = await _sell(first.data, first, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(word.encode() in file.read_bytes() for word in (key, code, secret.read_text().strip()))
    assert_refused(first.run("backup", str(file)), "exists already")
    assert_refused(first.run("restore", str(file)), "is not empty")

    second = Terminal(folder / "second")
    assert_refused(second.run("restore", str(secret)), "is not a backup")
    second.data.mkdir(mode=0o711)
    shutil.copy(secret, second.data / "master.key")
    said = second.view("restore", str(file))
    assert "Restored" in said
    assert "put the master key" not in said
    with running(second.data, exclusive=False) as url:
        assert second.json("audit")["ok"] is True
        pool = await open_pool(url)
        async with open_shop(pool, url, second.data, with_worker=False) as shop:
            answer = await shop.client.get(
                f"/api/1.03/order/{trx}", headers={"authorization": f"Bearer {key}"}
            )
            assert answer.json()["items"][0]["orderLines"][0]["voucherCode"] == code
            orders = await pool.fetchval("SELECT count(*) FROM orders WHERE status = 2")
            assert orders >= 1
            # The backup was taken before it could be written down that it was.
            assert await _written(pool) == [(ActorKind.COMMAND, "backup.restore", f"file {file.name}")]
            assert await tenants_locked(pool)  # type: ignore[arg-type]
        await pool.close()


@pytest.mark.soak
def test_half_a_backup_leaves_nothing_behind(bare_terminal: Terminal) -> None:
    """The command line: all of it is put back, or the folder is as it was."""
    folder = bare_terminal.data.parent
    file, cut = folder / "whole.backup", folder / "cut.backup"
    bare_terminal.json("company", "add", "Acme", "--country", "NL")
    bare_terminal.json("backup", str(file))
    cut.write_bytes(file.read_bytes()[:-20_000])
    second = Terminal(folder / "second")
    assert_refused(second.run("restore", str(cut)), "pg_restore")
    assert not (second.data / "postgres").exists()
    assert second.json("restore", str(file))["orders"] == 0


def test_a_server_of_your_own_is_left_to_its_own_tools(terminal: Terminal, tmp_path: Path) -> None:
    """The command line: both are of the embedded database."""
    for command in ("backup", "restore"):
        assert_refused(terminal.run(command, str(tmp_path / "x")), "this is for the embedded database")
