"""A receiver in a process of its own: writes each message down before it answers, so that it can be killed."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

FAILS = 0.1
"""How often it answers 500 to what it has written down."""


async def run(port: int, file: Path) -> None:
    """Receive until killed."""
    with file.open("ab", buffering=0) as written:

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                    path = head[0].split(" ")[1]
                    headers = {
                        name.lower(): value.strip()
                        for name, _, value in (one.partition(":") for one in head[1:])
                    }
                    body = await reader.readexactly(int(headers["content-length"]))
                    signed = "\t".join(
                        headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")
                    )
                    written.write(f"{path}\t{signed}\t".encode() + body + b"\n")
                    status = b"500 Oops" if random.random() < FAILS else b"200 OK"
                    writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port, reuse_port=True)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), Path(sys.argv[2])))
