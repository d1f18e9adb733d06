"""Bootstrap: where the database is, whether it answers, and whether sessions are sessions there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from voucherd.connections import Session, connect
from voucherd.db import UNAVAILABLE
from voucherd.embedded import archive, running
from voucherd.settings import Settings, without_passwords

LOOK_EVERY_S: Final = 0.5
SAY_EVERY_S: Final = 10.0
POOLER_LOOKS: Final = 3


class DatabaseAway(Exception):
    """The database did not answer for as long as the start may wait."""


class TransactionPooling(Exception):
    """A pooler between us and the database gives each transaction another session."""

    def __init__(self) -> None:
        super().__init__(
            "a pooler hands this address out by the transaction, and voucherd needs sessions: set pool_mode = session "
            "for it in PgBouncer, or give the address of PostgreSQL itself"
        )


@asynccontextmanager
async def database(settings: Settings, *, exclusive: bool) -> AsyncIterator[str]:
    """The URL of the operator's server, or of the embedded one, which runs as long as someone needs it."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    # The same for every command: a server that ran without its archive would leave a gap in it.
    kept = archive.settings_for(settings.data, settings.backup_folder) if settings.backup_keep else {}
    # Starting blocks the loop, on purpose: nothing else runs yet, and a thread that outlives a cancelled
    # start would leave a server behind.
    with running(settings.data, exclusive=exclusive, settings=kept) as url:
        yield url


async def until_it_answers(url: str, s_max: float, say: Callable[[str], None]) -> None:
    """Wait for a database that is away, and say so now and then; refused when it stays away."""
    began = time.monotonic()
    said_at = float("-inf")
    while True:
        try:
            session = await connect(url, None)
        except asyncpg.ClientConfigurationError:
            raise
        except UNAVAILABLE as error:
            reason = without_passwords(" ".join(f"{type(error).__name__} {error}".split()))
        else:
            await session.close()
            return
        now = time.monotonic()
        if now - began >= s_max:
            raise DatabaseAway(f"the database did not answer for {s_max:g} seconds: {reason}")
        if now - said_at >= SAY_EVERY_S:
            said_at = now
            say(f"waiting for the database, {s_max - (now - began):.0f} seconds more: {reason}")
        await asyncio.sleep(min(LOOK_EVERY_S, s_max))


async def refuse_transaction_pooling(url: str) -> None:
    """Refuse an address where the next transaction may run in another session: statements are prepared in ours."""
    one = await connect(url, None)
    try:
        # A pooler has numbers of its own for its clients.
        if await _session_of(one) != one.get_server_pid():
            for _ in range(POOLER_LOOKS):
                await _compare(url, one)
    except asyncpg.PostgresError as error:
        if isinstance(error, _OTHER_SESSION) or isinstance(error.__cause__, _OTHER_SESSION):
            raise TransactionPooling from error
        raise
    finally:
        one.terminate()


_OTHER_SESSION: Final = (
    asyncpg.InvalidSQLStatementNameError,  # What we prepared is not there.
    asyncpg.DuplicatePreparedStatementError,  # What somebody else prepared is.
    asyncpg.ProtocolViolationError,  # Sessions change with every statement: no transaction is begun at all.
)


async def _compare(url: str, one: Session) -> None:
    """Refuse if a client changes its session, or two share one while both are connected."""
    other = await connect(url, None)
    try:
        # A pooler hands out the session that came back last, or else each in its turn. In the one case a second client
        # is given the session of the first; in the other the first one's changes.
        seen = {await _session_of(one), await _session_of(one)}
        async with other.transaction():
            if len(seen) > 1 or await other.fetchval(_SESSION) in seen:
                raise TransactionPooling
            seen.add(await _session_of(one))
        if len(seen) > 1:
            raise TransactionPooling
    finally:
        other.terminate()


async def _session_of(client: Session) -> int:
    async with client.transaction():
        return int(await client.fetchval(_SESSION))


_SESSION: Final = "SELECT pg_backend_pid()"
