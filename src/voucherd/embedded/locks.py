"""Locks between processes. The kernel drops them with their holder, so none is ever stale."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from voucherd.embedded.errors import AlreadyRunning, EmbeddedError
from voucherd.embedded.place import DataFolder

# The process that holds the lock may be creating the server, or replaying a long log after a power cut.
START_STOP_S_MAX: Final = 600.0
POLL_S: Final = 0.02


@contextmanager
def start_stop_lock(place: DataFolder) -> Iterator[None]:
    """Only one process at a time decides about starting and stopping."""
    # Earlier versions lock a file of this name, too.
    with _opened(place, "gate.lock") as handle:
        deadline_s = time.monotonic() + START_STOP_S_MAX
        while not _try(handle, fcntl.LOCK_EX):
            if time.monotonic() > deadline_s:
                raise EmbeddedError(
                    f"another voucherd has been starting or stopping {place.data} for too long"
                )
            time.sleep(POLL_S)
        yield


@contextmanager
def start_stop_lock_if_free(place: DataFolder) -> Iterator[bool]:
    """Whether this process decides now: it does not wait for another one that does."""
    with _opened(place, "gate.lock") as handle:
        yield _try(handle, fcntl.LOCK_EX)


@contextmanager
def ownership(place: DataFolder) -> Iterator[None]:
    """This process is the only owner; raises AlreadyRunning while there is another."""
    with _opened(place, "owner.lock") as handle:
        if not _try(handle, fcntl.LOCK_EX):
            pid = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise AlreadyRunning(f"another voucherd is already running on {place.data} (pid {pid})")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield


class Use:
    """That this process uses the server; taken and given up only under the start-stop lock."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def begin(self) -> None:
        """Counts this process among the users."""
        # Under the start-stop lock nobody holds it exclusively, so this never waits.
        if not _try(self._handle, fcntl.LOCK_SH):
            raise EmbeddedError("the lock of the database's users is held by a stranger")

    def is_alone(self) -> bool:
        """Whether there is no other user; the use goes on."""
        alone = _try(self._handle, fcntl.LOCK_EX)
        self.begin()
        return alone


def is_used(place: DataFolder) -> bool:
    """Whether any process uses the server; to be asked under the start-stop lock."""
    with _opened(place, "users.lock") as handle:
        return not _try(handle, fcntl.LOCK_EX)


@contextmanager
def use(place: DataFolder) -> Iterator[Use]:
    """A use that has not begun; it ends with the block or with the process."""
    with _opened(place, "users.lock") as handle:
        yield Use(handle)


@contextmanager
def _opened(place: DataFolder, name: str) -> Iterator[int]:
    path: Path = place.home / name
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _try(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
