"""Using the server: the first user starts it, the last one stops it, and a crash in between is mended."""

import logging
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from voucherd.embedded import locks, place, serverlog, watcher
from voucherd.embedded.errors import EmbeddedError
from voucherd.embedded.programs import binaries
from voucherd.embedded.server import START_S_MAX, EmbeddedPostgres

WATCH_EVERY_S: Final = 0.5
WATCH_AGAIN_S: Final = 5.0
WATCH_LEAVES_S_MAX: Final = START_S_MAX + 60.0
ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

logger = logging.getLogger(__name__)


@contextmanager
def running(data: Path, *, exclusive: bool, settings: Mapping[str, str] = {}) -> Iterator[str]:
    """The address of a server that runs for as long as the block does; `exclusive` for its one owner."""
    with _running(data, exclusive, settings, throwaway=False) as address:
        yield address


@contextmanager
def throwaway(*, settings: Mapping[str, str] = {}) -> Iterator[str]:
    """The address of a server for tests and trials, in a new folder that goes with the block.

    Nothing in it outlives the block, so nothing is forced to the disk either.
    """
    with tempfile.TemporaryDirectory(prefix="voucherd-", ignore_cleanup_errors=True) as folder:
        # It is ours, and the server may run as another account; what lies in it is private by itself.
        Path(folder).chmod(0o711)
        with _running(Path(folder) / "data", True, settings, throwaway=True) as address:
            yield address


@contextmanager
def _running(data: Path, exclusive: bool, settings: Mapping[str, str], *, throwaway: bool) -> Iterator[str]:
    with ExitStack() as held:
        with _plainly(data):
            # Where the programs are not installed nothing is made: neither a folder nor a lock.
            binaries()
            server = EmbeddedPostgres(data, settings, throwaway=throwaway)
            if exclusive:
                held.enter_context(locks.ownership(server.place))
            use = held.enter_context(locks.use(server.place))
            with locks.start_stop_lock(server.place):
                use.begin()
        try:
            with _plainly(data), locks.start_stop_lock(server.place):
                server.start(alone=use.is_alone())
                address = server.dsn
                watcher.ensure(server.place)
            with _watched(server):
                yield address
        finally:
            with _plainly(data), locks.start_stop_lock(server.place):
                if use.is_alone():
                    server.stop()
                    watcher.dismiss(server.place)


def stop_now(data: Path) -> bool:
    """Stops the server even while others use it; False if none was running."""
    with _plainly(data):
        if place.find(data) is None:
            return False
        server = EmbeddedPostgres(data)
        with locks.start_stop_lock(server.place):
            stopped = server.stop()
            watcher.dismiss(server.place)
        return stopped


@contextmanager
def shutdown_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP leave the block as Ctrl-C does, once; further signals do not disturb the leaving."""
    leaving = False

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal leaving
        if leaving:
            return
        leaving = True
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    # A signal that is ignored already stays so: that is how nohup keeps a program running.
    before = {number: signal.getsignal(number) for number in ENDINGS}
    taken = [number for number in ENDINGS if before[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number] or signal.SIG_DFL)


@contextmanager
def _plainly(data: Path) -> Iterator[None]:
    """Says what the system refuses in the operator's words."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise EmbeddedError(f"cannot use the data folder {data}: {error.strerror or error}{where}") from error
    except subprocess.TimeoutExpired as error:
        raise EmbeddedError(
            f"cannot use the data folder {data}: {Path(error.cmd[0]).name} took too long"
        ) from error


@contextmanager
def _watched(server: EmbeddedPostgres) -> Iterator[None]:
    leaving = threading.Event()
    watch = threading.Thread(target=_watch, args=(server, leaving), name="embedded-postgres", daemon=True)
    watch.start()
    try:
        yield
    finally:
        leaving.set()
        watch.join(WATCH_LEAVES_S_MAX)


def _watch(server: EmbeddedPostgres, leaving: threading.Event) -> None:
    """Starts a server again that was killed under its users, and keeps its log short."""
    pause_s = WATCH_EVERY_S
    while not leaving.wait(pause_s):
        pause_s = WATCH_EVERY_S
        try:
            with _plainly(server.place.data):
                serverlog.trim(server.place)
                if server.has_crashed():
                    _revive(server)
        except EmbeddedError as error:
            logger.error("the embedded database is down: %s", error)
            pause_s = WATCH_AGAIN_S


def _revive(server: EmbeddedPostgres) -> None:
    with locks.start_stop_lock(server.place):
        # Another user may have been faster.
        if server.has_crashed():
            logger.warning("the embedded database has crashed and is started again")
            server.start(alone=False)
