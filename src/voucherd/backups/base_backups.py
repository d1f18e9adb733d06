"""Base backups: copies of the server's files, to which the archive of its log adds everything since (OP-122).

A backup is a folder, or a file of `backups.take` where the server has no role for base backups. It gets its name when
it is whole and on the disk, so half a backup is never taken for one.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd import backups
from voucherd.backups import Backup, BackupFailed
from voucherd.embedded import EmbeddedError, archive, cluster, durable, place, running
from voucherd.embedded.place import DataFolder

ROLE: Final = "voucherd_backup"
ABOUT: Final = "backup.json"
HALF: Final = ".half-"
_NAME: Final = re.compile(r"(\d{8}T\d{6}Z)(\.backup)?")
_STAMP: Final = "%Y%m%dT%H%M%SZ"


class Kept(Struct, frozen=True):
    """A backup in the folder of backups."""

    path: Path
    at: datetime

    @property
    def is_base(self) -> bool:
        """Whether the archive can add to it what happened since."""
        return self.path.is_dir()


class About(Struct, frozen=True, rename="camel"):
    """What a base backup says of itself, in a file beside the copy."""

    at: datetime
    ended_at: datetime
    first_segment: str
    """The first segment of the log that a restore needs."""
    password: str
    """Of the server: the copy has its hash only."""


def kept(folder: Path) -> list[Kept]:
    """The backups in a folder, oldest first."""
    found = [
        Kept(path, datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC))
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (match := _NAME.fullmatch(path.name))
    ]
    return sorted(found, key=lambda one: one.at)


def about(one: Kept) -> About:
    """What a base backup says of itself."""
    try:
        return msgspec.json.decode((one.path / ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupFailed(f"{one.path} is not a whole backup: {error}") from None


async def take(url: str, folder: Path, *, as_base: bool) -> tuple[Kept, Backup]:
    """Take a backup into the folder: a base backup, or else one file."""
    began, started = datetime.now(UTC).replace(microsecond=0), time.monotonic()
    target = folder / began.strftime(_STAMP)
    if not as_base:
        file = target.with_suffix(".backup")
        return Kept(file, began), await backups.take(url, file)
    half = folder / f"{HALF}{secrets.token_hex(4)}"
    try:
        half.mkdir(mode=0o700)
        owner, _, password = url.removeprefix("postgresql://").partition("@")[0].partition(":")
        flags = ["--format=tar", "--gzip", "--wal-method=stream", "--checkpoint=fast", f"--pgdata={half}"]
        await backups.run("pg_basebackup", flags, url.replace(f"://{owner}:", f"://{ROLE}:", 1))
        size = await asyncio.to_thread(_finish, half, began, password)
        half.rename(target)
        durable.sync(folder)
    except OSError as error:
        raise BackupFailed(f"{target} can't be written: {error.strerror}") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return Kept(target, began), Backup(began, size, round(time.monotonic() - started, 3))


def _finish(half: Path, began: datetime, password: str) -> int:
    """Write down what a restore needs to know, and put all of it on the disk; its size."""
    manifest: dict[str, Any] = msgspec.json.decode((half / "backup_manifest").read_bytes())
    log = manifest["WAL-Ranges"][0]
    first = archive.segment(log["Timeline"], archive.read_position(log["Start-LSN"]))
    told = About(began, datetime.now(UTC), first, password)
    with os.fdopen(os.open(half / ABOUT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(told))
    durable.sync_tree(half)
    return sum(path.stat().st_size for path in half.iterdir())


def prune(folder: Path, keep: int) -> int:
    """Remove all but the newest backups, what killed ones left, and the log that none needs; how many backups."""
    found = kept(folder)
    old = found[:-keep] if keep else []
    for one in old:
        # Renamed first: half of one that is being removed must not be taken for a backup either.
        gone = folder / f"{HALF}{secrets.token_hex(4)}"
        one.path.rename(gone)
    for path in folder.glob(f"{HALF}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    bases = [one for one in found[len(old) :] if one.is_base]
    if bases:
        archive.remove_before(folder / archive.FOLDER, about(bases[0]).first_segment)
    return len(old)


# ── putting back ─────────────────────────────────────────────────────────────────────────────────────


def is_folder(path: Path) -> bool:
    """Whether it is a base backup, or a folder of backups, and not a file."""
    return path.is_dir()


def choose(path: Path, until: datetime | None) -> Kept:
    """The backup that a restore to this moment begins with; `path` is one, or a folder of them."""
    match = _NAME.fullmatch(path.name)
    if match and path.exists():
        found = [Kept(path, datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC))]
    else:
        found = kept(path)
    if not found:
        raise BackupFailed(f"{path} holds no backup")
    if until is None:
        return found[-1]
    early = [one for one in found if one.is_base and about(one).ended_at <= until]
    if not early:
        raise BackupFailed(f"no base backup in {path} ended before {until:%Y-%m-%d %H:%M:%S} UTC")
    return early[-1]


@contextmanager
def replayed(data: Path, one: Kept, until: datetime | None) -> Iterator[str]:
    """The address of a server in a new data folder, with the base backup and its log up to the moment."""
    told = about(one)
    found = place.settle(data)
    durable.write_once(found.home / "password", told.password)
    _unpack(found, one.path)
    copies = archive.copy_for(found, one.path.parent / archive.FOLDER, told.first_segment)
    try:
        with running(data, exclusive=True, settings=archive.replay_settings(copies, until)) as url:
            yield url
    except EmbeddedError as error:
        if "before configured recovery target" not in str(error):
            raise
        raise BackupFailed(
            "the archive ends before that moment: leave --at out to get all there is"
        ) from None
    finally:
        shutil.rmtree(copies, ignore_errors=True)


_FILTERED: Final[dict[str, Any]] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python has filters since 3.11.4."""


def _leads_away(member: tarfile.TarInfo) -> bool:
    """Whether it is neither a file nor a folder, or lies elsewhere than below the place that it is unpacked to."""
    path = PurePosixPath(member.name)
    return not (member.isfile() or member.isdir()) or path.is_absolute() or ".." in path.parts


def _unpack(found: DataFolder, source: Path) -> None:
    """The copy becomes the cluster of a new data folder, whole or not at all."""
    half = Path(tempfile.mkdtemp(prefix=cluster.HALF_MADE, dir=found.home))
    try:
        copy = half / "cluster"
        copy.mkdir(mode=0o700)
        for name, target in (("base.tar.gz", copy), ("pg_wal.tar.gz", copy / "pg_wal")):
            with tarfile.open(source / name) as packed:
                for member in packed:
                    if _leads_away(member):
                        raise BackupFailed(
                            f"{source / name} has a member that is not of a cluster: {member.name}"
                        )
                    packed.extract(member, target, **_FILTERED)
        (copy / "recovery.signal").touch(mode=0o600)
        if found.account.switches:
            durable.give_tree(copy, (found.account.uid, found.account.gid))
        durable.sync_tree(copy)
        copy.rename(found.cluster)
        durable.sync(found.home)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise BackupFailed(f"{source} can't be unpacked: {error}") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)
