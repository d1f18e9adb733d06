"""Several server processes on one address: one Python process uses one core.

The parent keeps the address and starts the processes; the kernel spreads connections over them. They share nothing
but the database. A process that dies is started again; processes whose parent is gone stop by themselves, because the
pipe that it held open is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import structlog
import uvloop

from voucherd import app, logs
from voucherd.metrics.siblings import Siblings
from voucherd.server.listener import STOP_S_MAX, CannotListen, listen
from voucherd.settings import PREFIX, Settings

START_S_MAX: Final = 60
RESTART_PAUSE_S: Final = 1.0
READY: Final = b"ready\n"

logger = structlog.get_logger(__name__)


class CannotStart(Exception):
    """A server process ended before it answered its first call."""


async def run(
    settings: Settings,
    database_url: str,
    *,
    processes: int,
    with_worker: bool,
    on_ready: Callable[[str], None],
) -> None:
    """Serve with that many processes until cancelled; `on_ready` gets the base address once all answer."""
    logs.configure(settings.log_level, settings.log_format)
    with contextlib.closing(_reserved(settings)) as kept, _meeting_place() as folder:
        settings = settings.listening_on(kept.getsockname()[1])
        keepers = [
            _Keeper(settings, database_url, _Place(folder, at), with_worker=with_worker and at == 0)
            for at in range(processes)
        ]
        try:
            await asyncio.gather(*[keeper.start() for keeper in keepers])
            on_ready(settings.public_url)
            # Being told to stop is how this ends well.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*[keeper.keep() for keeper in keepers])
        finally:
            await asyncio.gather(*[keeper.stop() for keeper in keepers])


@contextlib.contextmanager
def _meeting_place() -> Iterator[str]:
    """A folder where the processes show each other their figures; empty where none can be made."""
    try:
        folder = tempfile.mkdtemp(prefix="voucherd-")
    except OSError as error:
        logger.warning("figures_not_shared", error=str(error))
        yield ""
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Place(NamedTuple):
    """Which of the processes it is, and where it meets the others."""

    folder: str
    number: int


def _reserved(settings: Settings) -> socket.socket:
    """A socket that holds the address without taking calls; refused if anyone else has it."""
    listen(settings).close()  # Without sharing, so that another server on this address is noticed.
    return _shared(settings)


def _shared(settings: Settings) -> socket.socket:
    if not hasattr(socket, "SO_REUSEPORT"):
        raise CannotListen("several processes can't share an address on this system")
    shared = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET, socket.SOCK_STREAM)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    shared.bind((settings.host, settings.port))
    return shared


class _Keeper:
    """Keeps one server process alive."""

    def __init__(self, settings: Settings, database_url: str, place: _Place, *, with_worker: bool) -> None:
        # The address of the embedded database changes with each start, so the processes are told this one.
        self._environment = settings.environment() | {PREFIX + "DATABASE_URL": database_url}
        self._words = [f"--number={place.number}", f"--folder={place.folder}"]
        if with_worker:
            self._words.append("--worker")
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process and wait until it answers."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "voucherd.processes", *self._words),
            env=others | self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # A Ctrl-C on the terminal is the parent's to hear.
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(START_S_MAX):
            if await self._process.stdout.readline() != READY:
                raise CannotStart("a server process ended before it was ready; its log says why")

    async def keep(self) -> None:
        """Start the process again whenever it dies."""
        while True:
            assert self._process is not None
            status = await self._process.wait()
            logger.error("server_process_died", status=status)
            await asyncio.sleep(RESTART_PAUSE_S)
            try:
                await self.start()
            except (CannotStart, TimeoutError) as error:
                logger.error("server_process_does_not_start", error=repr(error))

    async def stop(self) -> None:
        """Let the process finish its calls, then be sure that it is gone."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S_MAX + 1):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _child() -> None:
    """One server process: serve until the parent closes our stdin."""
    settings = Settings.load()
    assert settings.database_url is not None
    told = {name: value for name, _, value in (word.partition("=") for word in sys.argv[1:])}
    folder = Path(told["--folder"]) if told["--folder"] else None
    serving = asyncio.create_task(
        app.serve(
            settings,
            settings.database_url,
            with_worker="--worker" in told,
            on_ready=_say_ready,
            listening=_shared(settings),
            siblings=Siblings(folder, told["--number"]),
        )
    )
    loop = asyncio.get_running_loop()

    def parent_is_gone() -> None:
        loop.remove_reader(0)
        serving.cancel()

    loop.add_reader(0, parent_is_gone)  # Nothing is ever written there: it can only be closed.
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    if folder is not None:
        # Nobody else clears it away where the parent was killed; as long as others use it, it stays.
        with contextlib.suppress(OSError):
            folder.rmdir()


def _say_ready(_address: str) -> None:
    os.write(1, READY)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_child())
