"""Readiness: a process that could not store a sale says so, and asks the database once a second at most."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.freezing import freezing
from tests.patience import until
from tests.shop import Shop, open_shop
from voucherd.api import readiness
from voucherd.api.readiness import Readiness
from voucherd.db import Pool, open_pool

TOKEN: Final = "s3cret-of-the-operator"
BUSY_S: Final = 20.0
"""A busy machine may take so long; without a bound a database that hangs keeps one waiting for a minute."""


async def ready(shop: Shop) -> tuple[int, str]:
    """What the operator is told, freshly looked up."""
    shop.program.system._readiness._asked_at = 0.0
    answer = await shop.client.get("/readyz", headers={"authorization": f"Bearer {TOKEN}"})
    return answer.status_code, answer.text


async def test_a_database_that_takes_no_writes_is_not_ready(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-110: read-only by default, as a standby is; alive it is all the same."""
    name = urlsplit(database_url).path[1:]
    async with open_shop(pool, database_url, tmp_path, with_worker=False, metrics_token=TOKEN) as shop:
        assert await ready(shop) == (200, "ready")
        await pool.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await shop.program.services.pool.expire_connections()
        assert await ready(shop) == (503, "database: ReadOnlySQLTransactionError")
        assert (await shop.client.get("/healthz")).text == "ok"
        async with pool.acquire() as conn, conn.transaction():
            await conn.execute(f'SET TRANSACTION READ WRITE; ALTER DATABASE "{name}" RESET ALL')
        await shop.program.services.pool.expire_connections()
        assert await ready(shop) == (200, "ready")


async def test_a_database_that_hangs_is_not_ready(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-110: and says so in time, however many ask."""
    async with (
        freezing(database_url) as proxy,
        open_shop(pool, proxy.url, tmp_path, with_worker=False, metrics_token=TOKEN) as shop,
    ):
        assert await ready(shop) == (200, "ready")
        proxy.freeze()
        began = time.monotonic()
        told = await asyncio.gather(*[ready(shop) for _ in range(50)])
        assert time.monotonic() - began < readiness.ANSWER_S_MAX + BUSY_S
        assert {status for status, _ in told} == {503}
        assert (await shop.client.get("/healthz")).text == "ok"
        proxy.thaw()

        async def is_back() -> bool:
            return await ready(shop) == (200, "ready")

        await until(is_back)


async def test_a_database_that_is_older_or_newer_than_the_program_is_not_ready(
    pool: Pool, empty_schema_url: str
) -> None:
    """OP-110: but who sells already goes on when the database was migrated for its successor."""
    bare = await open_pool(empty_schema_url)
    try:
        await bare.execute("CREATE TABLE access_epoch (epoch bigint)")
        assert "to run" in await Readiness(bare).missing()
    finally:
        await bare.close()
    running = Readiness(pool)
    assert await running.missing() == ""
    await pool.execute("INSERT INTO schema_migration (version, name, checksum) VALUES (9999, 'later', 'x')")
    assert await Readiness(pool).missing() == "migrations: the database is newer than this program"
    running._asked_at = 0.0
    assert await running.missing() == ""


async def test_the_database_is_asked_once_a_second_however_many_ask(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-110: readiness costs the database next to nothing."""
    asked = 0

    async def missing(_self: Readiness) -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return ""

    monkeypatch.setattr(Readiness, "_missing", missing)
    monkeypatch.setattr(readiness, "KEPT_S", 3600.0)
    one = Readiness(pool)
    assert set(await asyncio.gather(*[one.missing() for _ in range(100)])) == {""}
    await one.missing()
    assert asked == 1
    one._asked_at -= 3600.0
    await one.missing()
    assert asked == 2
