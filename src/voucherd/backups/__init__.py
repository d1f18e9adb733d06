"""Backups of the embedded database: one file, taken while the service runs, and put back into an empty folder.

The file is PostgreSQL's own archive of one snapshot, so it is whole or not there. Codes in it are sealed, and the key
that opens them is never in it.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.connections import Address
from voucherd.db import Connection, Tx
from voucherd.embedded import binaries

RUN_S_MAX: Final = 6 * 3600.0
LOOK_EVERY_S: Final = 0.2
STOP_S_MAX: Final = 10.0
SAID_CHARS_MAX: Final = 500
_MAGIC: Final = b"PGDMP"
_CREATED: Final = re.compile(r"^;\s+Archive created at (\S+ \S+)", re.MULTILINE)

Progress = Callable[[int], None]
"""Told how many bytes there are."""


class BackupFailed(Exception):
    """The backup could not be taken, read or put back; the one line of text says why."""


class Backup(Struct, frozen=True):
    """A backup that was taken."""

    at: datetime
    bytes: int
    seconds: float


class Drill(Struct, frozen=True):
    """A restore that was tried out, and what was wrong with it."""

    name: str
    backup_at: datetime
    said: str
    """Empty if nothing was wrong."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the backup is good."""
        return not self.said


class BackupState(Struct, frozen=True):
    """How backups are doing; None for what never happened."""

    backup_age_s: float | None
    drill_age_s: float | None
    drill_ok: bool | None


async def take(url: str, file: Path, progress: Progress = lambda _bytes: None) -> Backup:
    """Write the whole database to a new file that only its owner can read."""
    began, started = datetime.now(UTC), time.monotonic()
    half = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.close(descriptor)
        # The restoring account gives rights anew: the roles of this server mean nothing on another.
        flags = ["--format=custom", "--compress=gzip:5", "--no-owner", "--no-privileges", f"--file={half}"]
        await run("pg_dump", flags, url, lambda: progress(half.stat().st_size))
        size = _sync(half)
        # A link, unlike a rename, replaces nothing that is there.
        os.link(half, file)
    except FileExistsError:
        raise BackupFailed(f"{file} exists already") from None
    except OSError as error:
        raise BackupFailed(f"{file} can't be written: {error.strerror}") from None
    finally:
        half.unlink(missing_ok=True)
    return Backup(began, size, round(time.monotonic() - started, 3))


async def taken_at(file: Path) -> datetime:
    """When the backup in this file was taken; refuses what is none."""
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_MAGIC))
    except OSError as error:
        raise BackupFailed(f"{file} can't be read: {error.strerror}") from None
    if head != _MAGIC:
        raise BackupFailed(f"{file} is not a backup")
    listed = _CREATED.search(await run("pg_restore", ["--list", str(file)]))
    if listed is None:
        raise BackupFailed(f"{file} does not say when it was taken")
    return datetime.fromisoformat(listed[1]).replace(tzinfo=UTC)


async def put_back(url: str, file: Path) -> None:
    """Fill an empty database from the file: all of it, or nothing."""
    flags = ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", str(file)]
    await run("pg_restore", flags, url)


async def record_taken(tx: Tx, actor: Actor, file: Path, backup: Backup) -> None:
    """Write down that a backup was taken, in the database that it is of."""
    await tx.execute(
        "INSERT INTO backup (at, bytes, seconds) VALUES ($1, $2, $3)", backup.at, backup.bytes, backup.seconds
    )
    await trail.record(tx, actor, "backup.take", f"file {file.name}", {"bytes": backup.bytes})


async def record_drill(tx: Tx, actor: Actor, drill: Drill) -> None:
    """Write down how a restore ended that was tried out."""
    await tx.execute(
        "INSERT INTO drill (backup_at, ok, said, seconds) VALUES ($1, $2, $3, $4)",
        drill.backup_at,
        drill.ok,
        drill.said[:SAID_CHARS_MAX],
        drill.seconds,
    )
    await trail.record(tx, actor, "backup.verify", drill.name, {"ok": drill.ok})


async def state(connection: Connection) -> BackupState:
    """How old the last backup and the last drill are by the database's clock, for health and metrics."""
    row = await connection.fetchrow(
        """
        SELECT extract(epoch FROM now() - (SELECT at FROM backup ORDER BY id DESC LIMIT 1))::float8,
               extract(epoch FROM now() - d.at)::float8, d.ok
        FROM (SELECT) one LEFT JOIN (SELECT at, ok FROM drill ORDER BY id DESC LIMIT 1) d ON true
        """
    )
    assert row is not None, "a left join gives one row"
    return BackupState(*row)


async def last(connection: Connection) -> Backup | None:
    """The backup that was taken last, if any ever was."""
    row = await connection.fetchrow("SELECT at, bytes, seconds FROM backup ORDER BY id DESC LIMIT 1")
    return None if row is None else Backup(*row)


async def run(
    program: str,
    flags: Sequence[str],
    url: str | None = None,
    look: Callable[[], None] = lambda: None,
) -> str:
    """What a program of PostgreSQL's printed; its first complaint if it failed, and its end if we are told to end."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    target: list[str] = []
    if url is not None:
        address, password = _without_password(url)
        # On the command line everybody on the machine could read it.
        environment["PGPASSWORD"] = password
        target = [f"--dbname={address}"]
    child = await asyncio.create_subprocess_exec(
        binaries() / program,
        *target,
        *flags,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    talking = asyncio.create_task(child.communicate())
    try:
        async with asyncio.timeout(RUN_S_MAX):
            while not (await asyncio.wait({talking}, timeout=LOOK_EVERY_S))[0]:
                look()
            out, complaint = await talking
    except BaseException:
        if child.returncode is None:
            child.terminate()
        await asyncio.wait({talking}, timeout=STOP_S_MAX)
        raise
    if child.returncode != 0:
        raise BackupFailed(_first_line(complaint.decode(errors="replace")) or f"{program} failed")
    return out.decode(errors="replace")


def _without_password(url: str) -> tuple[str, str]:
    """The address as libpq reads it, and the password apart."""
    parts = Address.read(url)
    name, _, password = parts.user.partition(":")
    path, _, query = parts.rest.partition("?")
    # What libpq does not know, such as our tests' search_path, goes where it does.
    known = dict(parse_qsl(query))
    schema = known.pop("search_path", None)
    if schema is not None:
        known["options"] = f"-csearch_path={schema}"
    place = f"{parts.scheme}://{name}@{parts.hosts}{path}"
    return f"{place}?{urlencode(known)}" if known else place, unquote(password)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else "")


def _sync(file: Path) -> int:
    """Make sure that the file is on the disk; its size."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
    return file.stat().st_size
