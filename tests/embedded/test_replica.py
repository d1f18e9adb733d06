"""Lists and reports read from a real standby; what decides, and a client's own order, come from the primary."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.patience import HANG_S, until
from tests.room import roomy_folder
from tests.shop import Company, Shop, open_shop
from voucherd import replica
from voucherd.db import Pool, close, open_pool
from voucherd.embedded import EmbeddedPostgres, running
from voucherd.embedded.place import DataFolder
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.wallet import statement
from voucherd.wallet.statement import StatementFilters


@dataclass
class Pair:
    """A shop on a primary, and its standby."""

    shop: Shop
    standby: EmbeddedPostgres
    there: Pool

    @property
    def reads(self) -> dict[str, int]:
        """How many reads each server has answered."""
        return self.shop.program.services.lists.reads

    async def listed(self, company: Company) -> list[str]:
        """What Find all shows."""
        page = await self.shop.call("GET", "/api/1.03/order", company)
        assert page.status_code == 200, page.text
        return [order["trx"] for order in page.json()["data"]]


@pytest.fixture
async def pair(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """A primary, a copy of its files that follows its log, and a shop that knows both."""
    folder = _open_folder()
    one, other = folder / "one", folder / "other"
    monkeypatch.setattr(replica, "AWAY_S", 0.0)
    monkeypatch.setattr(replica, "LOOK_EVERY_S", 0.0)
    try:
        with running(one, exclusive=True) as url:
            await migrate(url)
        await asyncio.to_thread(subprocess.check_call, ["/bin/cp", "-a", str(one), str(other)])
        with running(one, exclusive=True) as url:
            standby = EmbeddedPostgres(other, {"primary_conninfo": _followed(url)})
            _make_standby(standby.place)
            standby.start(alone=True)
            try:
                pool, there = await open_pool(url), await open_pool(standby.dsn)
                async with open_shop(
                    pool, url, one, with_worker=False, replica_url=standby.dsn, replica_lag_s_max=HANG_S
                ) as shop:
                    yield Pair(shop, standby, there)
                await close(there)
                await pool.close()
            finally:
                standby.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _open_folder() -> Path:
    """A folder that everybody may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="vt-", dir=roomy_folder()))
    folder.chmod(0o755)
    return folder


def _followed(url: str) -> str:
    """Where the standby gets the log from."""
    parts = urlsplit(url)
    host = parse_qs(parts.query)["host"][0]
    return f"host={host} port=5432 user=voucherd_backup password={parts.password}"


def _make_standby(place: DataFolder) -> None:
    mark = place.cluster / "standby.signal"
    mark.touch()
    owner = place.cluster.stat()
    shutil.chown(mark, owner.st_uid, owner.st_gid)


async def test_lists_come_from_the_standby_while_it_keeps_up(pair: Pair) -> None:
    """OP-131: Find all reads there, Find here; one that lags or is away is not asked, and no call fails for it."""
    shop = pair.shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    order = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, order["trx"])

    await until(
        lambda: pair.there.fetchval("SELECT count(*) FROM orders WHERE status = 2"),
        "the standby never got the order",
    )
    assert await pair.listed(company) == [order["trx"]]
    movements = await shop.call("GET", "/api/1.03/account/EUR/entry", company)
    assert len(movements.json()["data"]) == 2
    assert pair.reads == {"primary": 0, "replica": 3}

    with await _replay_stopped(pair.there):
        second = await shop.create(company, ("gift-10", 1))
        assert (await shop.find(company, second["trx"]))["trx"] == second["trx"]
        assert await pair.listed(company) == [order["trx"]]
        shop.program.services.lists._lag_s_max = 0.0
        assert await pair.listed(company) == [second["trx"], order["trx"]]
        assert pair.reads == {"primary": 1, "replica": 4}
        shop.program.services.lists._lag_s_max = HANG_S

        # An account that was seen on the primary is ahead of the standby: its movements come from there, too.
        await shop.confirm(company, second["trx"])
        async with shop.pool.acquire() as conn:
            account = await statement.find(conn, company.id, "EUR", State.LIVE)
        assert account is not None
        part = await shop.program.services.statements.page(account, StatementFilters(), after=None, size=10)
        assert [line.seq for line in part.lines] == [3, 2, 1]
        assert pair.reads == {"primary": 2, "replica": 4}

    pair.standby.stop()
    assert await pair.listed(company) == [second["trx"], order["trx"]]
    assert pair.reads == {"primary": 3, "replica": 4}
    await shop.assert_books_balance()


async def _replay_stopped(there: Pool) -> AbstractContextManager[None]:
    """While it lasts, the standby stands still; asking its superuser for it would take a password that nobody has."""
    pid = await there.fetchval("SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'")

    @contextmanager
    def stopped() -> Iterator[None]:
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    return stopped()
