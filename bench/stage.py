"""The stage: a PostgreSQL of our own with durable settings, the server process, and processes that load it."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import machine
from bench.jobs import Job, Tally
from voucherd.db import Pool, open_pool
from voucherd.embedded import running
from voucherd.migrate import migrate, service_url

START_S_MAX: Final = 30.0
STOP_S_MAX: Final = 20.0
CHILD_S_MAX: Final = 300.0
SAID_MAX: Final = 2_000
"""Of what a process said, so many characters are shown, the last ones."""


class ChildFailed(Exception):
    """A process that we started ended badly; the text is the end of what it said."""


class Stage:
    """What every part measures on."""

    def __init__(
        self, folder: Path, database_url: str, serving_url: str, pool: Pool, database_pid: int
    ) -> None:
        self.folder = folder
        self.database_url = database_url
        self.serving_url = serving_url
        """Of the role that owns nothing, as in production."""
        self.pool = pool
        self.database_pid = database_pid

    @property
    def environment(self) -> dict[str, str]:
        """The settings of every process of ours; nobody else's VOUCHERD_ variables reach them."""
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("VOUCHERD_")}
        return foreign | {
            "VOUCHERD_DATABASE_URL": self.serving_url,
            "VOUCHERD_DATA": str(self.folder / "data"),
            "VOUCHERD_HOST": "127.0.0.1",
            "VOUCHERD_PORT": "0",
            "VOUCHERD_LOG_LEVEL": "warning",
            "VOUCHERD_CONNECTIONS_OF_ADDRESS_MAX": "100000",  # All clients are on this machine.
        }

    @asynccontextmanager
    async def server(self, *arguments: str, **settings: object) -> AsyncIterator[Server]:
        """A fresh server process, so that no part sees what another one left in its memory."""
        # What was written before is on the disk now, and its checkpoint not in anybody's measurement.
        await self.pool.execute("CHECKPOINT")
        said = {f"VOUCHERD_{name.upper()}": str(value) for name, value in settings.items()}
        with (self.folder / "server.log").open("w+b") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench.service", *arguments),
                env=self.environment | said,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
            try:
                assert process.stdout is not None
                line = await asyncio.wait_for(process.stdout.readline(), START_S_MAX)
                if not line:
                    raise ChildFailed("the server does not start")
                port = int(line.decode().strip().rpartition(":")[2])
                yield Server(self, process.pid, port)
                if process.returncode is not None:
                    raise ChildFailed("the server ended by itself")
            except Exception:
                # Its log, the access log among it, is of interest only where something went wrong.
                log.seek(0)
                sys.stderr.write(f"The server said:\n{log.read().decode()[-SAID_MAX:]}\n")
                raise
            finally:
                await end(process)

    async def child(self, arguments: Sequence[str], text: bytes = b"") -> bytes:
        """What another of our processes writes to stdout, given this on stdin."""
        process = await asyncio.create_subprocess_exec(
            *arguments,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, complaints = await asyncio.wait_for(process.communicate(text), CHILD_S_MAX)
        finally:
            await end(process)
        if process.returncode:
            raise ChildFailed(f"{Path(arguments[0]).name} {arguments[1:]}: {complaints.decode()[-SAID_MAX:]}")
        return said


class Server:
    """The server process."""

    def __init__(self, stage: Stage, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port
        self._stage = stage

    async def load(self, *, keys: Sequence[str], connections: int, **how: Any) -> Tally:
        """Load the server from another process."""
        job = Job(
            port=self.port,
            keys=list(keys),
            connections=connections,
            server_pid=self.pid,
            database_pid=self._stage.database_pid,
            **how,
        )
        said = await self._stage.child([sys.executable, "-m", "bench.load"], msgspec.json.encode(job))
        return msgspec.json.decode(said, type=Tally)


async def end(process: asyncio.subprocess.Process) -> None:
    """End one process of ours, by its own handle."""
    for stop in (process.terminate, process.kill):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_S_MAX)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """An empty, migrated database and all that is needed to serve from it; nothing of it stays."""
    with tempfile.TemporaryDirectory(prefix="voucherd-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The server may run as another account; what lies inside is private by itself.
        folder.chmod(0o711)  # noqa: ASYNC240 - Nothing else runs yet.
        with running(folder / "data", exclusive=True) as database_url:
            await migrate(database_url)
            pool = await open_pool(database_url, size_max=4)
            try:
                backend_pid = await pool.fetchval("SELECT pg_backend_pid()")
                serving_url = await service_url(database_url)
                yield Stage(folder, database_url, serving_url, pool, machine.parent(backend_pid))
            finally:
                await pool.close()
