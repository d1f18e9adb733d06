"""What every test may ask for: a real PostgreSQL, with a fresh schema of its own for each test."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from tests.patience import be_patient
from tests.plain_logs import use_plain_logs
from tests.room import roomy_folder
from voucherd.db import Pool, open_pool
from voucherd.embedded import throwaway
from voucherd.migrate import SERVICE, migrate

SMALL = {
    "max_wal_size": "256MB",
    "wal_compression": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
}
"""The server's log may be in memory, and nobody replays it; databases are small, and all of them are in memory, too. On
a slow machine connections that were given up are there for a while, beside those that take their place."""
DAY_S = 86_400
LAST_S = 150.0
TEMPLATE = "migrated"
SCHEMA = "shop"


def pytest_configure() -> None:
    """Let everything temporary be where there is most room for it, and be cleared away however the run ends."""
    tempfile.tempdir = os.environ.setdefault("TMPDIR", roomy_folder())
    # Who stops a run from outside says SIGTERM, which would leave its server running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # How long an example takes says nothing about what is tested.
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")
    use_plain_logs()
    be_patient()


def pytest_runtest_setup() -> None:
    """Wait for the next day of UTC where this one is nearly over: reports and limits count by the day."""
    left_s = DAY_S - time.time() % DAY_S
    if left_s < LAST_S:
        time.sleep(left_s + 1.0)


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """An empty database: the one of VOUCHERD_TEST_DATABASE_URL, else an embedded server for this run."""
    url = os.environ.get("VOUCHERD_TEST_DATABASE_URL", "")
    if url:
        yield url
        return
    with throwaway(settings=SMALL) as embedded_url:
        yield embedded_url


@pytest.fixture
async def empty_schema_url(server_url: str) -> AsyncIterator[str]:
    """A schema with nothing in it."""
    async with _schema(server_url) as url:
        yield url


@pytest.fixture
async def another_schema_url(server_url: str) -> AsyncIterator[str]:
    """A second schema with nothing in it, for tests that compare two."""
    async with _schema(server_url) as url:
        yield url


@pytest.fixture(scope="session")
async def migrated_url(server_url: str) -> str | None:
    """A migrated database to copy, where the server is ours; a copy takes a tenth of the time of the migrations."""
    if os.environ.get("VOUCHERD_TEST_DATABASE_URL"):
        return None
    await _shorten_sign_ins(server_url)
    async with _connected(server_url) as connection:
        await connection.execute(f"CREATE DATABASE {TEMPLATE}")
    url = _of_database(server_url, TEMPLATE)
    async with _connected(url) as connection:
        await connection.execute(f"CREATE SCHEMA {SCHEMA}")
    await migrate(_in_schema(url, SCHEMA))
    return url


@pytest.fixture
async def database_url(server_url: str, migrated_url: str | None) -> AsyncIterator[str]:
    """A migrated schema of this test's own."""
    if migrated_url is None:
        async with _schema(server_url) as url:
            await migrate(url)
            yield url
        return
    name = f"t_{secrets.token_hex(6)}"
    async with _connected(server_url) as connection:
        # Files are copied, not logged: nobody replays this server's log.
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY file_copy")
        try:
            yield _in_schema(_of_database(server_url, name), SCHEMA)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """Connections to this test's schema."""
    opened = await open_pool(database_url)
    yield opened
    await opened.close()


@pytest.fixture
def master() -> bytes:
    """The master key; the same in every test, so that sealed forms can be written down in them."""
    return bytes(range(32))


@asynccontextmanager
async def _schema(server_url: str) -> AsyncIterator[str]:
    """The URL of a new schema, dropped afterwards; it carries the schema into subprocesses too."""
    # A schema and not a database: any empty database will do, whatever rights its user has beyond it.
    schema = f"t_{secrets.token_hex(6)}"
    async with _connected(server_url) as connection:
        await connection.execute(f"CREATE SCHEMA {schema}")
        yield _in_schema(server_url, schema)
        # A test that left a transaction open is told so, instead of hanging here.
        await connection.execute(f"SET lock_timeout = '10s'; DROP SCHEMA {schema} CASCADE")


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    # The drop's "drop cascades to …" notice is no news.
    connection = await asyncpg.connect(url, server_settings={"client_min_messages": "warning"})
    try:
        yield connection
    finally:
        await connection.close()


async def _shorten_sign_ins(url: str) -> None:
    """Let a password be hashed once and not 4,096 times by whoever signs in: every test does so about ten times."""
    for role in ("voucherd", SERVICE):
        async with _connected(url.replace("://voucherd:", f"://{role}:", 1)) as connection:
            await connection.execute("SET scram_iterations = 1")
            await connection.execute(f"ALTER ROLE CURRENT_USER PASSWORD '{urlsplit(url).password}'")


def _in_schema(url: str, schema: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}search_path={schema}"


def _of_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
