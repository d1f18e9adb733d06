"""Databases of earlier releases, as this program finds them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.release.dump import MASTER, Release, load, releases
from tests.shop import Company, Shop, open_shop
from tests.store.test_migrations import schema_of
from voucherd.catalogue import store as catalogue
from voucherd.db import Pool, open_pool
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.vault.master_key import write_master


@pytest.fixture(params=releases(), ids=lambda release: release.version)
def release(request: pytest.FixtureRequest) -> Release:
    """Each release of which a dump is kept."""
    found = request.param
    assert isinstance(found, Release)
    return found


@pytest.fixture
async def released_url(empty_schema_url: str, release: Release) -> str:
    """A database that the program of that release left behind."""
    await load(empty_schema_url, release, schema_of(empty_schema_url))
    return empty_schema_url


@pytest.fixture
async def released_pool(released_url: str) -> AsyncIterator[Pool]:
    """Connections to it, after the migrations that came since."""
    await migrate(released_url)
    opened = await open_pool(released_url)
    yield opened
    await opened.close()


@pytest.fixture
async def shop(released_pool: Pool, released_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """This program's shop on it, without a worker."""
    write_master(tmp_path / "master.key", MASTER)
    async with open_shop(
        released_pool, released_url, tmp_path, with_worker=False, confirm_wait_s=0, resolve_limit_s=1
    ) as opened:
        async with released_pool.acquire() as connection:
            listings = await catalogue.current(connection, ["gift-10", "slow-20"])
        opened.products = {slug: listing.version for slug, listing in listings.items()}
        yield opened


@pytest.fixture
def company(release: Release) -> Company:
    """The company that the dump was made with."""
    keys = {State.LIVE: release.keys["live"], State.SANDBOX: release.keys["sandbox"]}
    return Company(release.company_id, release.company, keys)
