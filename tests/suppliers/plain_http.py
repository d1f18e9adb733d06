"""Just enough HTTP to sell something, and to break off at any point."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeAlias

HEAD_BYTES_MAX = 65_536
BODY_BYTES_MAX = 1_048_576


class Reset(Exception):
    """Hang up without an answer."""


class Response(Exception):
    """An answer that ends the handling of a request."""

    def __init__(self, status: int, body: Any, *, raw: bytes | None = None, cut: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.body = json.dumps(body).encode() if raw is None else raw
        self.type = "application/json" if raw is None else "text/html"
        self.cut = cut


Answer: TypeAlias = Callable[[str, str, dict[str, str], bytes], Awaitable[Response]]
"""From method, path, headers and body to a response."""


async def serve(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, request after request."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")[:-2]
            method, target, _ = first.split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            size = int(headers.get("content-length", 0))
            assert size <= BODY_BYTES_MAX
            body = await reader.readexactly(size)
            response = await answer(method, target.partition("?")[0], headers, body)
            writer.write(_head(response) + response.body[: len(response.body) // 2 if response.cut else None])
            await writer.drain()
            if response.cut or headers.get("connection", "").lower() == "close":
                return
    except Reset:
        linger = struct.pack("ii", 1, 0)  # Close sends a reset instead of a goodbye.
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _head(response: Response) -> bytes:
    lines = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"content-type: {response.type}",
        f"content-length: {len(response.body)}",
    )
    return "\r\n".join((*lines, "", "")).encode()
