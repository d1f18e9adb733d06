"""The scenarios' shop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.shop import Shop, open_shop
from voucherd.db import Pool


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A running shop with a worker, on a schema of this test's own."""
    async with open_shop(pool, database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
async def quiet_shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop without a worker: nothing happens in it that the test does not do."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as opened:
        yield opened


@pytest.fixture
async def quick_shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop without a worker in which Confirm does not wait: for queues that the test serves itself."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as opened:
        yield opened
