"""The vault's key is rotated while two processes sell and codes come in, and the rotation itself is killed (OP-95)."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.faults.processes import WALLET_IS_ENDLESS, Client, Ledger, codes_of, environment, servers
from tests.faults.test_kill import shop_of
from tests.patience import until_true
from tests.shop import Shop
from voucherd.db import Pool
from voucherd.vault.key_ring import KeyRing, open_key_ring

CLIENTS = 2
ROTATE = ("-m", "voucherd.cli", "vault", "rotate", "--json")
PROMISES_MIN = 20
READ_AGAIN = 60
"""Of the orders that were promised, for each kill."""


@pytest.fixture
async def shop(pool: Pool, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with a product on the shelf."""
    async with shop_of(pool, tmp_path) as opened:
        await opened.product("now", price="9.50 EUR")
        await opened.product("later", price="9.90 EUR", async_delivery=True)
        yield opened


async def rotate(env: dict[str, str], until: Callable[[], Awaitable[bool]] | None = None) -> bool:
    """Run the real command; whether it came to its end, or was killed. Only this process is ever killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *ROTATE, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    ended = asyncio.create_task(process.communicate())
    while until is not None and not ended.done():
        if await until() and process.returncode is None:
            process.kill()
            break
        await asyncio.sleep(0.03)
    out, err = await ended
    if until is None:
        assert (process.returncode, b'"version"' in out) == (0, True), err.decode()
    return process.returncode == 0


async def sealed_again(shop: Shop) -> int:
    """How many codes the newest key has sealed."""
    return int(await shop.pool.fetchval("SELECT count(*) FROM code WHERE substring(sealed FOR 1) = '\\xe5'"))


async def _reached(shop: Shop, count: int) -> bool:
    return await sealed_again(shop) >= count


async def import_until(shop: Shop, key_ring: KeyRing, stop: asyncio.Event) -> None:
    """Codes come in all the time, sealed with whatever key is in use."""
    shop.sealer = key_ring.sealer
    while not stop.is_set():
        await shop.stock("now", 50)
        await asyncio.sleep(0.25)


@pytest.mark.parametrize(
    ("stock", "kills"),
    [pytest.param(2_000, 1), pytest.param(9_900, 12, marks=pytest.mark.soak)],
    ids=["1 kill", "12 kills"],
)
async def test_rotating_under_load_loses_and_breaks_nothing(
    shop: Shop, database_url: str, tmp_path: Path, stock: int, kills: int
) -> None:
    """OP-95: every code reads the same before, during and after, whatever process is asked."""
    chance = random.Random(kills)
    for _ in range(kills):
        await shop.stock("now", stock)
    lots = [row[0] for row in await shop.pool.fetch("SELECT id FROM lot ORDER BY id")]
    async with shop.pool.acquire() as conn:
        key_ring = await open_key_ring(conn, shop.settings)
    key_ring.start(shop.pool)
    env = environment(database_url, tmp_path) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ledger, stop = Ledger(), asyncio.Event()
    company = await shop.company(balance=WALLET_IS_ENDLESS)
    async with servers(2, database_url, tmp_path, resolve_limit_s=2.0, confirm_wait_s=0.3) as running:
        clients = [Client(running, company, ledger, at) for at in range(CLIENTS)]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.buy_until(stop))
            group.create_task(import_until(shop, key_ring, stop))
            for kill in range(1, kills + 1):
                half_done = kill * stock * kills // (kills + 1)
                lot_id = lots[min(half_done // stock + 1, kills - 1)]
                async with shop.pool.acquire() as conn, conn.transaction():
                    # It does not get further than this code, so that it is on its way when it is killed.
                    await conn.execute(
                        "SELECT FROM code WHERE lot_id = $1 AND seq = $2 FOR UPDATE", lot_id, stock - 1
                    )
                    assert not await rotate(env, partial(_reached, shop, half_done))
            assert await rotate(env)
            await until_true(lambda: len(ledger.promised) > PROMISES_MIN)
            stop.set()
        promised = chance.sample(
            sorted(ledger.promised.items()), min(READ_AGAIN * kills, len(ledger.promised))
        )
        for number, (trx, codes) in enumerate(promised):
            url = f"{running[number % 2].url}/api/1.03/order/{trx}"
            response = await shop.client.get(url, headers=company.bearer())
            assert (response.status_code, codes_of(response.json())) == (200, codes)
    await key_ring.stop()

    newest = await shop.pool.fetchval("SELECT max(version) FROM vault_key")
    marks = await shop.pool.fetch("SELECT DISTINCT substring(sealed FOR 3) FROM code")
    assert [row[0] for row in marks] == [b"\xe5" + newest.to_bytes(2, "big")]
    assert not [answer for answer in ledger.answers if answer.endswith(" 500")]
    await shop.assert_books_balance()
