"""Tests that need the machine to themselves: the other workers wait while one of them runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# Files that are there anyway: a lock is the kernel's, so nothing is left behind and none is ever stale.
ROOM: Final = Path(__file__)
DOOR: Final = Path(__file__).parent


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Be in the room with the others, or by oneself."""
    with ROOM.open("rb") as room:
        # Whoever wants to be alone waits in the door, so that nobody new comes in meanwhile.
        with _locked(DOOR):
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
