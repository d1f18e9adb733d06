"""The server's log: bounded in size, and the place to look for why it did not start."""

import os
import re
import shutil
from typing import IO, Final

from voucherd.embedded.place import DataFolder

LOG_BYTES_MAX: Final = 8 * 1024 * 1024
KEPT_BYTES: Final = 1024 * 1024
TAIL_BYTES_MAX: Final = 16 * 1024
# The least that a start needs: two segments of the write-ahead log.
FREE_BYTES_MIN: Final = 32 * 1024 * 1024

_FULL: Final = "No space left on device"
_COMPLAINT: Final = re.compile(r"(?:initdb: error|initdb: detail|PANIC|FATAL|ERROR): +(.*)")


def opened(place: DataFolder) -> IO[bytes]:
    """The log, to be appended to; each write goes to its end, also after it was trimmed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.fdopen(os.open(place.log, flags, 0o600), "ab")


def size(place: DataFolder) -> int:
    """How long the log is."""
    return place.log.stat().st_size if place.log.exists() else 0


def trim(place: DataFolder) -> None:
    """Sets the end of a log that has grown too long aside; the server writes on into the same file."""
    if size(place) <= LOG_BYTES_MAX:
        return
    with place.log.open("rb") as log:
        log.seek(max(0, size(place) - KEPT_BYTES))
        kept = log.read(KEPT_BYTES)
    place.log.with_suffix(".log.old").write_bytes(kept)
    os.truncate(place.log, 0)


def since(place: DataFolder, offset: int) -> str:
    """What the server logged after `offset`."""
    with place.log.open("rb") as log:
        log.seek(offset)
        return log.read(TAIL_BYTES_MAX).decode(errors="replace")


def reason(place: DataFolder, text: str) -> str:
    """Why a program failed: the last complaint in its output, or its last line."""
    found = [match[1].strip() for match in _COMPLAINT.finditer(text)]
    # Wherever it is said, a full disk is the cause and the rest is its consequence.
    full = [line for line in found if _FULL in line]
    free = shutil.disk_usage(place.home).free
    if free < FREE_BYTES_MIN and not full:
        # On a full disk a program may be unable even to say so.
        return f"the disk is full ({free // 1024} KiB free at {place.home})"
    lines = full or found or [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"
