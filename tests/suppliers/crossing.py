"""A crossing on the way to a supplier: requests pass, or hang, or get lost, or are answered by somebody else."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal, TypeAlias

from tests.patience import HANG_S

HANG_S_MAX = 2 * HANG_S
Action: TypeAlias = Literal["pass", "hang", "reset", "lose", "say"]

_CLOSING = "connection: close"


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """A whole HTTP response."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", _CLOSING, *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Crossing:
    """An address that leads to another one, unless it is told otherwise."""

    def __init__(self, target: int | None) -> None:
        self.url = ""
        self.seen: list[str] = []
        """Method and path of every request that came by."""
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self._target = target
        self._rules: list[tuple[str, Action, bytes]] = []

    def open_up(self) -> None:
        """Let everything pass again."""
        self._rules.clear()

    def hang(self, where: str = "") -> None:
        """Requests whose method and path have this text in them never arrive, and are never answered."""
        self._rules.append((where, "hang", b""))

    def reset(self, where: str = "") -> None:
        """They never arrive, and the connection breaks."""
        self._rules.append((where, "reset", b""))

    def lose(self, where: str = "") -> None:
        """They arrive, and the connection breaks before the answer."""
        self._rules.append((where, "lose", b""))

    def say(self, response: bytes, where: str = "") -> None:
        """They never arrive, and are answered with these bytes."""
        self._rules.append((where, "say", response))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then goodbye."""
        with suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")[:-2]
            sizes = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
            body = await reader.readexactly(int(sizes[0]) if sizes else 0)
            asked = lines[0].rpartition(" ")[0]
            self.seen.append(asked)
            self.heads.append(head.decode("latin-1"))
            self.bodies.append(body)
            action, said = self._rule(asked)
            if action == "hang":
                await asyncio.wait_for(reader.read(), HANG_S_MAX)
            elif action == "say":
                writer.write(said)
                await writer.drain()
            if action in ("pass", "lose"):
                reply = await self._forward("\r\n".join([*lines, _CLOSING, "", ""]).encode("latin-1") + body)
                if action == "pass":
                    writer.write(reply)
                    await writer.drain()
            if action in ("lose", "reset"):
                linger = struct.pack("ii", 1, 0)  # Close sends a reset instead of a goodbye.
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
        writer.close()

    def _rule(self, asked: str) -> tuple[Action, bytes]:
        for where, action, said in reversed(self._rules):
            if where in asked:
                return action, said
        return "pass", b""

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def crossing(target: int | None = None) -> AsyncIterator[Crossing]:
    """A new address that leads to this port; nowhere, if none is given."""
    opened = Crossing(target)
    server = await asyncio.start_server(opened.serve, "127.0.0.1", 0, limit=1_048_576)
    opened.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield opened
    finally:
        server.close()
