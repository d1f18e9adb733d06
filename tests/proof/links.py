"""Wires between two programs that a test can cut, slow down or narrow, without either of them being told."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Final

PIECE_BYTES: Final = 65_536


class Link:
    """A TCP port that leads to another address, or to a socket in a folder."""

    def __init__(self, target: Path | tuple[str, int]) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.slow_s = 0.0
        """How long each piece takes, each way."""
        self.connections_max: int | None = None
        """More are accepted, and closed at once."""
        self.connections = 0
        self.port = 0

    async def start(self) -> None:
        """Listen on a port of its own, always the same."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Refuse connections, as a machine does where nobody listens; `start` listens again."""
        assert self._server is not None
        self._server.close()

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self) -> None:
        """From now on nothing arrives, and nobody is told: packets are dropped."""
        self._open.clear()

    def heal(self) -> None:
        """All is well again; what was sent meanwhile arrives late, as it does when packets are sent again."""
        self.slow_s, self.connections_max = 0.0, None
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            if self.connections_max is None or self.connections <= self.connections_max:
                await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.connections -= 1
            self._tasks.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        if isinstance(self._target, Path):
            there, back = await asyncio.open_unix_connection(str(self._target))
        else:
            there, back = await asyncio.open_connection(*self._target)
        ways = [
            asyncio.create_task(self._carry(reader, back)),
            asyncio.create_task(self._carry(there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            # The end of a connection is a message, too: it does not get through a wire that is cut.
            await self._open.wait()
        finally:
            # Before anything is waited for: whoever stops the link may cancel this, too.
            back.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                if self.slow_s:
                    await asyncio.sleep(self.slow_s)
                if not self._open.is_set():
                    await self._open.wait()
                writer.write(piece)
                await writer.drain()
