"""`voucherd archive`: closed months go to files, are listed and read again, and orders are shown from there."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.scenarios.test_archive import make_old, sold_in
from tests.scenarios.test_archived_blocks import seal_as_old
from tests.shop import open_shop
from voucherd.archive import files
from voucherd.archive.model import ArchiveRefused
from voucherd.db import Pool
from voucherd.migrate import service_url


async def test_a_closed_month_is_archived_listed_read_again_and_shown(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-129: the command says what it did; an order in the archive is shown as before; a changed file is found."""
    run = partial(asyncio.to_thread, terminal.json)

    async with open_shop(pool, database_url, terminal.data, with_worker=False, confirm_wait_s=0) as shop:
        sold = await sold_in(shop)
        month = await make_old(shop)
        line = (await sold.found())[1]["items"][0]["orderLines"][0]

        as_service = await service_url(database_url)
        if as_service != database_url:
            refused = await asyncio.to_thread(terminal.run, "archive", VOUCHERD_DATABASE_URL=as_service)
            assert_refused(refused, "only the owner of the tables may")
        told = await run("archive")

        assert told["months"] == [{"month": f"{month:%Y-%m}", "orders": 7, "removed": 7}]
        shown = await run("order", "show", sold.trx[0][0], "--reveal")
        assert shown["lines"][0]["voucherCode"] == line["voucherCode"]
        verified = {"ok": True, "months": 1, "orders": 7, "blocks": 0, "note": None}
        assert await run("archive", "verify") == verified
        _change(next(terminal.data.rglob("*.parquet")))
        said = await asyncio.to_thread(terminal.run, "archive", "verify")
        assert_refused(said, "is not the file that was written")
        listed = await run("archive", "list")
        assert [(one["month"], one["orders"]) for one in listed["months"]] == [(f"{month:%Y-%m}", 7)]
        await shop.assert_books_balance()


async def test_blocks_of_the_trail_are_archived_verified_audited_and_looked_through(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-134: looks at an order are found as before; the audit reads the files, or says that it did not."""
    run = partial(asyncio.to_thread, terminal.json)

    async with open_shop(pool, database_url, terminal.data, with_worker=False, confirm_wait_s=0) as shop:
        sold = await sold_in(shop)
        trx, _ = sold.trx[0]
        await sold.found()
        await make_old(shop)
        await seal_as_old(shop)
        seen = await run("trail", "reveals", trx)
        assert len(seen) == 3

        without = await asyncio.to_thread(
            terminal.run, "archive", "--json", VOUCHERD_MASTER_KEY_FILE=str(terminal.data / "nowhere")
        )
        assert without.document["books"] == []
        assert "no block of the audit trail could be checked" in without.document["note"]
        told = await run("archive")

        assert [(one["book"], one["blocks"]) for one in told["books"]] == [("trail", 1), ("reveal", 1)]
        assert await pool.fetchval("SELECT count(*) FROM reveal") == 0
        assert await run("trail", "reveals", trx) == seen
        assert await run("trail", "reveals", trx, "--limit", "2") == seen[:2]
        listed = await run("archive", "list")
        assert [(one["book"], one["blocks"]) for one in listed["books"]] == [("trail", 1), ("reveal", 1)]
        assert (await run("archive", "verify"))["blocks"] == 2
        deeds = await asyncio.to_thread(terminal.run, "trail", "list", "--json")
        assert "are in the archive, and in no list" in deeds.err
        assert (await run("audit"))["archiveUnread"] is None
        line = (await sold.found())[1]["items"][0]["orderLines"][0]["id"]
        assert (await run("order", "return", str(line)))["trx"] == trx
        folder = terminal.data / "archive"
        folder.rename(terminal.data / "elsewhere")
        assert (
            "2 blocks of the trail are in the archive and were not read"
            in (await run("audit"))["archiveUnread"]
        )
        away = await asyncio.to_thread(terminal.run, "trail", "reveals", trx)
        assert_refused(away, "can't be read")
        (terminal.data / "elsewhere").rename(folder)
        _change(next((folder / "reveal").glob("*.parquet")))
        for command in (("audit",), ("archive", "verify")):
            said = await asyncio.to_thread(terminal.run, *command)
            assert said.code == 1
            assert "not the file that was written" in " ".join((said.out + said.err).split())


def _change(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])


def test_without_the_library_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OP-127, OP-129: Parquet is an extra; a server whose database has an archive says at its start what is missing."""
    assert files.trouble(tmp_path) is None
    assert "is not there" in (files.trouble(tmp_path / "nowhere") or "")
    monkeypatch.setattr(files, "find_spec", lambda _name: None)
    assert files.trouble(tmp_path) == files.MISSING
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(ArchiveRefused, match=r"pip install 'voucherd\[archive\]'"):
        files.refuse_without_library()
