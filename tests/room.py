"""Where the tests put what they don't keep."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

ROOM_BYTES_MIN: Final = 2 * 1024**3


def roomy_folder() -> str:
    """In memory if there is room, since hundreds of databases are made and none is kept."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free >= ROOM_BYTES_MIN else "/tmp"
