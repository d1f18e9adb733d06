"""A link to the database that can go silent: it swallows whatever is sent, and closes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode, urlsplit

from voucherd.connections import addresses_of

PIECE = 65_536


class Link:
    """Listens on a port of this machine and passes everything on to the database, until it is told to be silent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(addresses_of(url)[0])
        query = dict(parse_qsl(parts.query))
        self._socket = None
        self._place = (parts.hostname or "", parts.port or 5432)
        if "host" in query:
            self._socket = f"{query.pop('host')}/.s.PGSQL.{query.pop('port', '5432')}"
        self._user = parts.netloc.rpartition("@")[0]
        self._rest = parts._replace(query=urlencode(query))
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._silent = False
        self._silences = 0
        self.port = 0
        self.asked = 0
        """How many connections were asked for here."""

    @property
    def password(self) -> str:
        """Of the database's user."""
        return self._user.partition(":")[2]

    @property
    def host(self) -> str:
        """As an address names it."""
        return f"127.0.0.1:{self.port}"

    def url(self, *others: str) -> str:
        """The address of the database by way of this link, and of other hosts after it."""
        hosts = ",".join([self.host, *others])
        return self._rest._replace(netloc=f"{self._user}@{hosts}").geturl()

    async def open(self, port: int = 0) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    def fall_silent(self) -> None:
        """From now on nothing passes: those who are connected hear nothing any more, and neither do those who come."""
        self._silent = True
        self._silences += 1

    def come_back(self) -> None:
        """New connections are served again; those from before stay lost."""
        self._silent = False

    async def close(self) -> None:
        """End, with everything that passes through."""
        for task in list(self._talks):
            task.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        if self._server is not None:
            self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)
        ends = [writer]
        try:
            if self._silent:
                await asyncio.Event().wait()
            there = await self._to_the_database()
            ends.append(there[1])
            now = self._silences
            ways = [self._pass_on(now, reader, there[1]), self._pass_on(now, there[0], writer)]
            await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # Whoever was connected is gone, or the test is over.
        finally:
            for end in ends:
                end.close()

    async def _to_the_database(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._socket is not None:
            return await asyncio.open_unix_connection(self._socket)
        return await asyncio.open_connection(*self._place)

    async def _pass_on(self, began: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE):
            if began == self._silences:
                writer.write(piece)
                await writer.drain()
        if began != self._silences:
            await asyncio.Event().wait()  # Not even its end is told to the other side.
        writer.close()


@asynccontextmanager
async def linked(url: str) -> AsyncIterator[Link]:
    """A link to this database, closed afterwards."""
    link = Link(url)
    await link.open()
    try:
        yield link
    finally:
        await link.close()
