"""The database: a pool of connections and the one way to open a transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool

Tx: TypeAlias = Connection
"""A connection inside a transaction that its caller opened and will end."""

CONNECT_S_MAX: Final = 10.0
COMMAND_S_MAX: Final = 60.0


async def _keep(_connection: Any) -> None:
    """Nothing to reset: no code of ours leaves session state behind, and a reset is a round trip a call."""


async def open_pool(url: str, *, size_max: int = 10, size_min: int = 1) -> Pool:
    """A pool of connections; each keeps its prepared statements."""
    return await asyncpg.create_pool(
        url,
        min_size=size_min,
        max_size=size_max,
        timeout=CONNECT_S_MAX,
        command_timeout=COMMAND_S_MAX,
        max_inactive_connection_lifetime=300,
        reset=_keep,
        server_settings={"application_name": "voucherd", "timezone": "UTC", "jit": "off"},
    )


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Tx]:
    """One use case, one transaction: committed when the block ends, undone when it raises."""
    async with pool.acquire() as connection, connection.transaction():
        yield connection
