"""The shop of the webhook tests: receivers on loopback may be sent to, and nothing is sent but what the test sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.shop import Shop, open_shop
from tests.webhooks.postman import Postman
from tests.webhooks.receiver import Receiver, receiving
from voucherd.db import Pool


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop without a worker."""
    async with open_shop(
        pool, database_url, tmp_path, with_worker=False, webhook_networks="127.0.0.0/8", confirm_wait_s=0
    ) as opened:
        yield opened


@pytest.fixture
async def postman(shop: Shop) -> AsyncIterator[Postman]:
    """Who sends what is due, when he is told to."""
    hired = Postman(shop)
    yield hired
    await hired.stop()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that takes everything."""
    async with receiving() as opened:
        yield opened
