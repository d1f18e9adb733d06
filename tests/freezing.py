"""A proxy before the database that freezes on command: what is sent meanwhile waits, and nothing is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.patience import usual_limits

PIECE_BYTES = 65_536


class FreezingProxy:
    """Hands bytes on between clients and a server, each way for as long as it is open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._host = query.pop("host", parts.hostname or "127.0.0.1")
        self._port = int(query.pop("port", parts.port or 5432))
        self._parts = parts
        self._query = urlencode(query)
        self._asked, self._answered = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.thaw()

    @property
    def url(self) -> str:
        """The address of the database behind the proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        return self._parts._replace(netloc=f"{user}@127.0.0.1:{port}", query=self._query).geturl()

    def freeze(self) -> None:
        """Hand nothing on any more."""
        self._asked.clear()
        self._answered.clear()

    def hold_answers(self) -> None:
        """Hand on what is asked, and keep the answers."""
        self._answered.clear()

    def thaw(self) -> None:
        """Hand on everything, also what was kept."""
        self._asked.set()
        self._answered.set()

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)

    async def stop(self) -> None:
        """Hang up."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, until both sides have hung up."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        try:
            if self._host.startswith("/"):
                path = f"{self._host}/.s.PGSQL.{self._port}"
                back, forth = await asyncio.open_unix_connection(path)
            else:
                back, forth = await asyncio.open_connection(self._host, self._port)
            writers.append(forth)
            await asyncio.gather(
                self._pump(reader, forth, self._asked), self._pump(back, writer, self._answered)
            )
        except asyncio.CancelledError:
            return  # A server's callback that ends so is taken for an error.
        finally:
            for one in writers:
                one.transport.abort()
            self._tasks.discard(task)

    @staticmethod
    async def _pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                await is_open.wait()
                writer.write(piece)
                await writer.drain()
            writer.close()


@asynccontextmanager
async def freezing(url: str) -> AsyncIterator[FreezingProxy]:
    """A proxy before this database, open at first."""
    proxy = FreezingProxy(url)
    await proxy.start()
    try:
        with usual_limits():
            yield proxy
    finally:
        proxy.thaw()
        await proxy.stop()
