"""`voucherd archive`: closed months go to files, are listed and read again, and orders are shown from there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, assert_refused
from tests.scenarios.test_archive import make_old, sold_in
from tests.shop import open_shop
from voucherd.archive import files
from voucherd.archive.model import ArchiveRefused
from voucherd.db import Pool
from voucherd.migrate import service_url


async def test_a_closed_month_is_archived_listed_read_again_and_shown(
    terminal: Terminal, pool: Pool, database_url: str
) -> None:
    """OP-129: the command says what it did; an order in the archive is shown as before; a changed file is found."""

    async def run(*words: str) -> Any:
        return await asyncio.to_thread(terminal.json, *words)

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
        assert await run("archive", "verify") == {"ok": True, "months": 1, "orders": 7}
        _change(next(terminal.data.rglob("*.parquet")))
        said = await asyncio.to_thread(terminal.run, "archive", "verify")
        assert_refused(said, "is not the file that was written")
        listed = await run("archive", "list")
        assert [(one["month"], one["orders"]) for one in listed["months"]] == [(f"{month:%Y-%m}", 7)]
        await shop.assert_books_balance()


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
