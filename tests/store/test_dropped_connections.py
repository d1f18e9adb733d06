"""A connection whose statement was abandoned is dropped: nobody waits for it, and the server stops the statement."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.freezing import freezing
from tests.patience import until
from voucherd.db import Pool, open_pool, transaction

BUSY_S = 20.0
"""A busy machine may take so long; the driver alone waits for its own limit of a minute."""


async def test_a_statement_of_a_server_that_hangs_is_left_at_once(database_url: str) -> None:
    """OP-109: the connection ends with it, inside of a transaction, too, and the pool has room for the next."""
    async with freezing(database_url) as proxy:
        pool = await open_pool(proxy.url, size_max=1)
        try:
            await pool.fetchval("SELECT 1")
            proxy.freeze()
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), transaction(pool) as tx:
                    await tx.fetchval("SELECT 1")
            assert time.monotonic() - began < BUSY_S
            assert pool.get_idle_size() == 0
            proxy.thaw()
            assert await pool.fetchval("SELECT 2") == 2
        finally:
            pool.terminate()


async def test_a_statement_that_takes_too_long_ends_its_connection(database_url: str, pool: Pool) -> None:
    """OP-109: also where the driver's own limit strikes; the next call gets another connection."""
    async with freezing(database_url) as proxy:
        one = await open_pool(proxy.url, size_max=1)
        try:
            before = await one.fetchval("SELECT pg_backend_pid()")
            proxy.freeze()
            with pytest.raises(TimeoutError):
                await one.fetchval("SELECT 1", timeout=0.1)
            proxy.thaw()
            assert await one.fetchval("SELECT pg_backend_pid()") != before
        finally:
            one.terminate()


async def test_a_server_that_lives_stops_what_nobody_waits_for(database_url: str, pool: Pool) -> None:
    """OP-109: an abandoned statement does not go on working."""
    one = await open_pool(database_url, size_max=1)
    try:
        with pytest.raises(TimeoutError):
            await one.fetchval("SELECT pg_sleep(3600)", timeout=0.1)

        async def is_stopped() -> bool:
            return not await pool.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%3600%'"
                " AND state = 'active' AND pid <> pg_backend_pid()"
            )

        await until(is_stopped)
    finally:
        one.terminate()


@pytest.mark.parametrize("hangs", [True, False], ids=["a server that hangs", "one that lives"])
async def test_who_is_cancelled_in_a_transaction_hears_nothing_else(database_url: str, hangs: bool) -> None:
    """OP-109: a round of the worker that took the end of its connection for a failure would never stop."""
    async with freezing(database_url) as proxy:
        pool = await open_pool(proxy.url, size_max=1)
        inside = asyncio.Event()

        async def work() -> None:
            async with transaction(pool) as tx, tx.transaction():
                await tx.fetchval("SELECT 1")
                inside.set()
                await tx.fetchval("SELECT pg_sleep(3600)")

        try:
            task = asyncio.create_task(work())
            await inside.wait()
            if hangs:
                proxy.freeze()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.thaw()
            assert await pool.fetchval("SELECT 2") == 2
        finally:
            pool.terminate()
