"""The program before and this one sell from one database while it is migrated: servers are replaced one by one.

The program before is that of the newest release that has a dump, out of the history of this clone.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import secrets
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.faults.processes import (
    WALLET_IS_ENDLESS,
    Client,
    Ledger,
    Server,
    codes_of,
    environment,
    running,
)
from tests.patience import HANG_S, PATIENT
from tests.release.dump import MASTER, Release, releases
from tests.release.rules import broken_rules
from tests.shop import Company, Shop, open_shop
from voucherd import migrate as runner
from voucherd.catalogue import store as catalogue
from voucherd.db import open_pool
from voucherd.migrate import Migration, migrate, migrations
from voucherd.vault.master_key import write_master

ROOT = Path(__file__).parents[2]
GIT_S_MAX = 30.0
SOLD_MIN = 10
"""Orders that each program finishes before and after the migrations."""
CLIENTS = 4
"""So many that a sale is always under way while a table is wanted."""
SERVER_AND_WORKER = ("-m", "voucherd.cli", "serve", "--json")
SAMPLES = (
    "ALTER TABLE orders ADD COLUMN gift_note text, ADD COLUMN wrapped boolean NOT NULL DEFAULT false",
    "CREATE TABLE gift_card (order_id bigint PRIMARY KEY REFERENCES orders, words text NOT NULL);"
    " CREATE INDEX gift_card_words ON gift_card (words)",
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS orders_gift_note ON orders (gift_note)",
)
"""Migrations that this test makes, so that there is always one that came after the program before."""


def program_before(release: Release, folder: Path) -> Path:
    """The sources of the release: those of its tag, or of the commit before the first migration that came after it."""
    newer = [one for one in migrations() if one.version > release.last_migration]
    if not newer:
        return ROOT / "src"
    path = f"src/voucherd/migrations/{newer[0].label}.sql"
    added = _git("log", "--diff-filter=A", "--format=%H", "--reverse", "--", path).decode().split()
    for commit in (f"v{release.version}", f"{added[0]}^" if added else "HEAD"):
        packed = _git("archive", "--format=tar", commit, "src")
        if packed:
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(folder)  # noqa: S202 - Of our own history.
            return folder / "src"
    pytest.skip("this clone has no history: the program before this one was NOT run beside it")


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, timeout=GIT_S_MAX, check=False).stdout


def sample(number: int, sql: str) -> Migration:
    """A migration that is not in the folder."""
    assert broken_rules(sql) == []
    return Migration(number, f"sample_{number}", sql, hashlib.sha256(sql.encode()).hexdigest())


async def sell(servers: list[Server], company: Company, ledger: Ledger, stop: asyncio.Event) -> None:
    """Clients that buy at all of these servers until they are told to stop."""
    clients = [
        Client(servers, company, ledger, seed, slugs=("gift-10", "gift-10", "slow-20"))
        for seed in range(CLIENTS)
    ]
    await asyncio.gather(*(client.buy_until(stop) for client in clients))


async def sold(ledger: Ledger, count: int) -> None:
    """Wait until that many more orders are finished."""
    wanted = len(ledger.promised) + count
    async with asyncio.timeout(HANG_S):
        while len(ledger.promised) < wanted:  # noqa: ASYNC110 - The clients know nobody to tell.
            await asyncio.sleep(0.05)


async def opened_shop(shop: Shop, company: Company) -> None:
    """Money and stock for all that the clients may buy."""
    async with shop.pool.acquire() as connection:
        listings = await catalogue.current(connection, ["gift-10", "slow-20"])
    shop.products = {slug: listing.version for slug, listing in listings.items()}
    await shop.top_up(company, WALLET_IS_ENDLESS)
    for slug in shop.products:
        # Without serials, for which the release has no table yet.
        await shop.stock_codes(slug, [(f"CODE-{secrets.token_hex(8)}", "") for _ in range(2_000)])


@pytest.mark.parametrize("release", releases()[-1:], ids=lambda release: release.version)
async def test_the_program_before_sells_beside_this_one_while_the_database_is_migrated(
    released_url: str, release: Release, company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-116: no call fails, none is in a deadlock, no answer is lost, before, during and after; the books balance."""
    first = migrations()[-1].version + 1
    samples = [sample(number, sql) for number, sql in enumerate(SAMPLES, first)]
    known = (*migrations(), *samples)
    write_master(tmp_path / "master.key", MASTER)
    now = environment(released_url, tmp_path, confirm_wait_s=0.3, **PATIENT)
    before = now | {"PYTHONPATH": os.pathsep.join([str(program_before(release, tmp_path)), str(ROOT)])}
    old = Server(SERVER_AND_WORKER, before, tmp_path / "old.log")
    new = Server(SERVER_AND_WORKER, now, tmp_path / "new.log")
    ledger, stop = Ledger(), asyncio.Event()
    async with (
        await open_pool(released_url) as pool,
        open_shop(pool, released_url, tmp_path, with_worker=False) as shop,
    ):
        await opened_shop(shop, company)
        async with running(old), asyncio.TaskGroup() as group:
            at_old = group.create_task(sell([old], company, ledger, stop))
            await sold(ledger, SOLD_MIN)
            newer = [one.label for one in migrations() if one.version > release.last_migration]
            assert await migrate(released_url) == newer
            async with running(new):
                at_both = group.create_task(sell([old, new], company, ledger, stop))
                await sold(ledger, SOLD_MIN)
                monkeypatch.setattr(runner, "migrations", lambda: known)
                assert await migrate(released_url) == [one.label for one in samples]
                await sold(ledger, SOLD_MIN)
                stop.set()
                await asyncio.gather(at_old, at_both)
                for trx, codes in ledger.promised.items():
                    for server in (old, new):
                        answer = await shop.client.get(
                            f"{server.url}/api/1.03/order/{trx}", headers=company.bearer()
                        )
                        assert (answer.status_code, codes_of(answer.json())) == (200, codes)
        failed = [answer for answer in ledger.answers if answer == "lost" or answer.split()[1] >= "500"]
        assert failed == [], ledger.answers
        for log in (tmp_path / "old.log", tmp_path / "new.log"):
            assert "deadlock" not in log.read_text(), log.name
        await shop.assert_books_balance()
