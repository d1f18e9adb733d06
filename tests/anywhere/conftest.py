"""What the tests of other machines share: the wheel's own environment, and a shop that is open."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from tests.anywhere import installed, programs
from tests.anywhere.installed import Installed
from tests.anywhere.programs import OpenShop


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return installed.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """voucherd as production installs it."""
    return installed.install(wheel, tmp_path_factory.mktemp("environment") / "voucherd")


@pytest.fixture(scope="session")
async def open_shop(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OpenShop]:
    """The demo's shop on a schema of its own, in a process of its own, behind a proxy on 127.0.0.1."""
    schema = f"t_{secrets.token_hex(6)}"
    connection = await asyncpg.connect(server_url, server_settings={"client_min_messages": "warning"})
    try:
        await connection.execute(f"CREATE SCHEMA {schema}")
        url = f"{server_url}{'&' if '?' in server_url else '?'}options=-csearch_path%3D{schema}"
        with programs.demo(tmp_path_factory.mktemp("shop") / "data", url) as shop:
            yield shop
        await connection.execute(f"SET lock_timeout = '10s'; DROP SCHEMA {schema} CASCADE")
    finally:
        await connection.close()
