"""Suppliers to buy from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.suppliers.warehouse import Warehouse, warehouse


@pytest.fixture(scope="session")
async def wholesaler(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Warehouse]:
    """One wholesaler for all tests: each sells products of its own."""
    folder: Path = tmp_path_factory.mktemp("wholesale")
    async with warehouse(folder) as opened:
        yield opened
