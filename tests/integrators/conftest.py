"""A real voucherd at a port, for the clients that integrators use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.shop import Shop, open_shop
from voucherd.db import Pool


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A running shop with a worker, on a schema of this test's own."""
    async with open_shop(pool, database_url, tmp_path / "shop") as opened:
        yield opened
