"""Suppliers to buy from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import _schema
from tests.shop import Shop, open_shop
from tests.suppliers.stalls import listening
from tests.suppliers.warehouse import Warehouse, warehouse
from voucherd.db import open_pool
from voucherd.migrate import migrate


@pytest.fixture(scope="session")
async def wholesaler(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Warehouse]:
    """One wholesaler for all tests: each sells products of its own."""
    async with warehouse(tmp_path_factory.mktemp("wholesale")) as opened:
        yield opened


@pytest.fixture(scope="session")
async def other_shop(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Another voucherd, for all tests: each makes a company and products of its own in it."""
    folder = tmp_path_factory.mktemp("other")
    async with _schema(server_url) as url:
        await migrate(url)
        pool = await open_pool(url, size_max=4)
        async with open_shop(pool, url, folder, confirm_wait_s=0.3) as opened:
            yield opened
        await pool.close()


@pytest.fixture(scope="session")
async def other_port(other_shop: Shop) -> AsyncIterator[int]:
    """Where the other voucherd listens."""
    async with listening(other_shop) as port:
        yield port
