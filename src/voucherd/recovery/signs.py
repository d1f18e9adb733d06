"""Signs that a database was restored and nobody has recovered from it yet: then nothing may be sold (OP-119)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from voucherd.db import Connection
from voucherd.recovery import store
from voucherd.trail import heads
from voucherd.trail.chain import Head


class NotRecovered(Exception):
    """The database was restored to an earlier moment; the one line of text says how that is known."""


async def sign_of_restore(conn: Connection, data: Path) -> str | None:
    """How it is known that this database lacks what it once had; None if nothing tells so.

    A standby that takes over has everything that was acknowledged, so it has the heads that this machine has seen.
    """
    noted = await store.open_restore(conn)
    if noted is not None:
        return f"the database was restored from {noted.source}, as it was at {noted.moment:%Y-%m-%d %H:%M:%S} UTC"
    lost = await heads.missing(conn, _notes(data))
    if lost:
        block = f"block {lost[0].block} of the {lost[0].book}"
        return f"the database lacks {block}, which {data / heads.FILE} has noted: it is of an earlier moment"
    return None


def _notes(data: Path) -> list[tuple[Head, datetime | None]]:
    # A file that can't be read proves nothing; the worker says so in its log, and the audit refuses it.
    try:
        return heads.read_notes(data / heads.FILE)
    except (OSError, heads.NoHead):
        return []


async def refuse_unrecovered(conn: Connection, data: Path) -> None:
    """Refuse to sell from a restored database before `voucherd recover` has run."""
    sign = await sign_of_restore(conn, data)
    if sign is not None:
        raise NotRecovered(f"{sign}; codes and numbers could go out twice: run `voucherd recover` first")
