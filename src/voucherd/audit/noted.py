"""When the books were last audited and what was found: a file in the data folder, for the metrics."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

FILE: Final = "audit.json"
BYTES_MAX: Final = 4_096


class LastAudit(Struct, frozen=True):
    """An audit that ran to its end."""

    at: datetime
    broken: int
    """How many promises did not hold."""


def write(folder: Path, last: LastAudit) -> None:
    """Note the audit; the file is replaced as a whole."""
    half = folder / f".{FILE}.{os.getpid()}"
    try:
        half.write_bytes(msgspec.json.encode(last) + b"\n")
        half.replace(folder / FILE)
    finally:
        half.unlink(missing_ok=True)


def read(folder: Path) -> LastAudit | None:
    """The last one; None where there was none, or where nobody can read of it."""
    try:
        with (folder / FILE).open("rb") as file:
            found = msgspec.json.decode(file.read(BYTES_MAX), type=LastAudit)
    except (OSError, ValueError):
        return None
    return None if found.at.tzinfo is None else found
