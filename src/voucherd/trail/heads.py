"""Heads that are published: a line of the log and a file beside the database, so that cutting the chain shows.

Whoever can write to the database can't write to this file, unless he is on the machine, too. A head that is in it and
no longer in the chain stays there, whatever is sealed afterwards: the audit compares.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import structlog

from voucherd import clock
from voucherd.db import Connection, Pool
from voucherd.trail import chain
from voucherd.trail.chain import Head

FILE: Final = "trail.heads"
"""In the data folder."""
LOG_EVERY_S: Final = 60.0
FILE_CHARS_MAX: Final = 10_000

_HEAD: Final = re.compile(r"(trail|reveal):([1-9][0-9]{0,17}):([0-9a-f]{64})")

logger = structlog.get_logger(__name__)


class NoHead(ValueError):
    """The text is no head."""


def read_head(text: str) -> Head:
    """The head in a text such as trail:17:9f3a…"""
    match = _HEAD.fullmatch(text.strip().lower())
    if match is None:
        raise NoHead(text[:100])
    return Head(match[1], int(match[2]), bytes.fromhex(match[3]))


def read_file(path: Path) -> list[Head]:
    """The heads in a file: the first word of each line; none if there is no file."""
    return [head for head, _ in read_notes(path)]


def read_notes(path: Path) -> list[tuple[Head, datetime | None]]:
    """The heads in a file, and when each was noted if its line says so."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace")[:FILE_CHARS_MAX].splitlines()
    except FileNotFoundError:
        return []
    return [(read_head(words[0]), _moment(words[1:])) for words in map(str.split, lines) if words]


def _moment(words: Sequence[str]) -> datetime | None:
    try:
        return datetime.fromisoformat(words[0])
    except (IndexError, ValueError):
        return None


async def missing(conn: Connection, notes: Sequence[tuple[Head, datetime | None]]) -> list[Head]:
    """Those that the chain lacks; a head that was noted before a recovery is of the time that was lost (OP-119)."""
    recovered_at = await conn.fetchval("SELECT max(recovered_at) FROM recovery")
    return [
        head
        for head, noted_at in notes
        if not await chain.holds(conn, head)
        and (recovered_at is None or noted_at is None or noted_at > recovered_at)
    ]


class HeadPublisher:
    """Writes the newest heads down where the database does not reach."""

    def __init__(self, pool: Pool, folder: Path) -> None:
        self._pool = pool
        self._path = folder / FILE
        self._logged_at = -LOG_EVERY_S

    async def publish(self) -> None:
        """Write the heads into the file and, now and then, into the log; what was noted and is lost stays noted."""
        async with self._pool.acquire() as conn:
            found = {head.book: head for head in await chain.heads(conn)}
            notes = self._noted()
            lost = await missing(conn, notes)
            noted = {head.book: head for head, _ in notes if head in lost or await chain.holds(conn, head)}
        due = time.monotonic() - self._logged_at >= LOG_EVERY_S
        if due:
            self._logged_at = time.monotonic()
            logger.info("trail_heads", heads=[str(head) for head in found.values()])
        for head in lost:
            if due:
                logger.error("trail_cut", noted=str(head), file=str(self._path))
            found[head.book] = head
        # Another process may have written a later one meanwhile.
        newer = [head for head in noted.values() if head.block > found[head.book].block] if not lost else []
        found |= {head.book: head for head in newer}
        if found != noted:
            self._write(list(found.values()), tell=due)

    def _noted(self) -> list[tuple[Head, datetime | None]]:
        try:
            return read_notes(self._path)
        except (OSError, NoHead) as problem:
            logger.error("trail_heads_unreadable", file=str(self._path), error=repr(problem))
            return []

    def _write(self, heads: Sequence[Head], *, tell: bool) -> None:
        moment = clock.written(clock.now())
        text = "".join(f"{head} {moment}\n" for head in heads)
        half = self._path.with_name(f".{FILE}.{os.getpid()}")
        try:
            half.unlink(missing_ok=True)
            with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
            half.replace(self._path)
        except OSError as problem:
            # The log and the metrics tell the head all the same.
            if tell:
                logger.warning("trail_heads_not_written", file=str(self._path), error=problem.strerror)
