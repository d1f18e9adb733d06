"""The context of a command: the settings, the database and the master key that it works with."""

from __future__ import annotations

import io
import os
import pwd
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import BinaryIO, Final

from voucherd import bootstrap
from voucherd.actors import Actor, ActorKind
from voucherd.cli.output import CommandRefused, Output, show
from voucherd.cli.signals import InterruptibleStream, Signals
from voucherd.connections import COMMAND, LONG
from voucherd.db import Connection, Pool, Tx, close, open_pool, transaction
from voucherd.ids import Identifiers
from voucherd.migrate import migrate, newer, pending, refusal_of_newer, service_url
from voucherd.recovery.signs import refuse_unrecovered
from voucherd.settings import Settings
from voucherd.setup.store import stored
from voucherd.vault.key_ring import KeyRing, open_key_ring
from voucherd.vault.seal import Sealer

CONNECTIONS_MAX: Final = 2


class CommandContext:
    """Where a command does its work; opens what is asked for, and closes it again."""

    def __init__(self, flags: Mapping[str, object], *, as_json: bool) -> None:
        self._flags = dict(flags)
        self.as_json = as_json
        self.settings = Settings.load(flags)
        self.ending = Signals()

    def with_flags(self, **flags: object) -> Settings:
        """The settings with more flags of the command's own."""
        return Settings.load(self._flags | flags)

    @property
    def actor(self) -> Actor:
        """The account that runs the command."""
        return operator()

    def stream(self, file: BinaryIO) -> io.BufferedReader:
        """A file whose reader gives up when the command is told to stop."""
        return io.BufferedReader(InterruptibleStream(file.fileno(), self.ending))

    def say(self, answer: Output) -> None:
        """Show an answer now, for a command that goes on."""
        show(answer, as_json=self.as_json)

    @asynccontextmanager
    async def database(self, *, exclusive: bool = False, wait: bool = False) -> AsyncIterator[str]:
        """The address of the database; with `wait` one that is away is given time to come."""
        async with bootstrap.database(self.settings, exclusive=exclusive) as url:
            if self.settings.database_url is not None:
                if wait:
                    await bootstrap.until_it_answers(url, self.settings.database_wait_s, warn)
                await bootstrap.refuse_transaction_pooling(url)
                yield url
                return
            await migrate(url)
            yield await service_url(url)

    @asynccontextmanager
    async def pool(self) -> AsyncIterator[Pool]:
        """A few connections; refused while an operator's own database has another schema than this program's."""
        async with self.database() as url, pool_of(url, CONNECTIONS_MAX) as pool:
            await refuse_pending(pool)
            yield pool

    @asynccontextmanager
    async def owner_pool(self, *, exclusive: bool = False) -> AsyncIterator[Pool]:
        """A connection of the tables' owner, for what the role of the service may not do."""
        async with bootstrap.database(self.settings, exclusive=exclusive) as url:
            if self.settings.database_url is None:
                await migrate(url)
            async with pool_of(self.settings.migration_url or url) as pool:
                await refuse_pending(pool)
                yield pool

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """One connection, to read."""
        async with self.pool() as pool, pool.acquire() as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        """One transaction: one command, one use case."""
        async with self.pool() as pool, transaction(pool) as tx:
            yield tx

    async def running_settings(self, connection: Connection) -> Settings:
        """The settings with what was chosen in the console."""
        return self.settings.changed(await stored(connection))[0]

    async def identifiers(self, connection: Connection) -> Identifiers:
        """What turns order ids into what clients know."""
        return (await self.key_ring(connection)).identifiers()

    async def sealer(self, connection: Connection) -> Sealer:
        """What opens and seals codes."""
        return (await self.key_ring(connection)).sealer

    async def key_ring(self, connection: Connection) -> KeyRing:
        """All keys of this database."""
        return await open_key_ring(connection, self.settings)


@asynccontextmanager
async def pool_of(url: str, size_max: int = 1, *, patient: bool = False) -> AsyncIterator[Pool]:
    """Connections to a database, closed afterwards; patient ones, for work that holds no row that a sale wants."""
    pool = await open_pool(url, size_max=size_max, limits=LONG if patient else COMMAND)
    try:
        yield pool
    finally:
        await close(pool)


def warn(line: str) -> None:
    """Say something beside the answer, on stderr."""
    sys.stderr.write(f"voucherd: {line}\n")
    sys.stderr.flush()


def operator() -> Actor:
    """The account that runs the command, as the system knows it; the environment could tell anything."""
    number = os.getuid()
    try:
        account = pwd.getpwuid(number).pw_name
    except KeyError:
        account = str(number)
    return Actor(ActorKind.COMMAND, f"{account}@{socket.gethostname()}", number)


async def refuse_pending(pool: Pool) -> None:
    """Refuse to work on a schema that is not this program's."""
    async with pool.acquire() as connection:
        unknown = await newer(connection)
        missing = await pending(connection)
    if unknown:
        raise CommandRefused(refusal_of_newer(unknown))
    if missing:
        count = "1 migration" if len(missing) == 1 else f"{len(missing)} migrations"
        raise CommandRefused(f"the database waits for {count}: run `voucherd migrate` first")


async def refuse_restored(pool: Pool, settings: Settings) -> None:
    """Refuse to sell from a database that was restored before `voucherd recover` has made it safe (OP-119)."""
    async with pool.acquire() as connection:
        await refuse_unrecovered(connection, settings.data)
