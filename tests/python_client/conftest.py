"""The Python client's own shop: the real service on a real port, and a road to it on which answers can be lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.shop import Shop, open_shop
from tests.wire.test_sockets import street
from voucherd.db import Pool

__all__ = ["street"]


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with a worker, in which Confirm does not wait, and which may send webhooks to this machine."""
    async with open_shop(
        pool, database_url, tmp_path, confirm_wait_s=0, webhook_networks="127.0.0.0/8"
    ) as opened:
        await opened.product("gift", stock=1_000)
        yield opened
