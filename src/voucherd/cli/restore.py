"""`voucherd restore`: a backup of the embedded database, put back into an empty data folder."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from voucherd import backups
from voucherd.actors import Actor
from voucherd.backups import base_backups
from voucherd.backups.base_backups import Kept
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.output import CommandRefused, Output
from voucherd.cli.words import read_moment
from voucherd.db import transaction
from voucherd.embedded import place, running, stop_now
from voucherd.migrate import migrate
from voucherd.recovery import deeds

app = noun()


@command(app, "restore")
async def restore(
    context: CommandContext,
    file: Annotated[
        Path, Argument(metavar="FILE|FOLDER", help="What `backup` wrote, or the folder of backups.")
    ],
    at: Annotated[
        datetime | None,
        Option(parser=read_moment, metavar="TIME", help="The moment to go back to; else as far as there is."),
    ] = None,
) -> Output:
    """Put a backup back into a data folder that has nothing in it but, perhaps, the master key."""
    settings = context.settings
    if settings.database_url is not None:
        raise CommandRefused(
            "this is for the embedded database; restore your own PostgreSQL with its own tools"
        )
    key_file = settings.master_key_file
    _refuse_used(settings.data, key_file)
    chosen = await _chosen(file, at)
    try:
        async with _put_back(settings.data, chosen, at) as url:
            ran = await migrate(url)
            moment, orders = await _note(url, context.actor, chosen, at)
    except BaseException:
        # Half a database must not be taken for a whole one. Nothing was here before, so nothing else is lost.
        await asyncio.to_thread(_remove, settings.data)
        raise
    has_key = key_file.exists()
    document = {
        "data": str(settings.data.resolve()),
        "takenAt": chosen.at,
        "moment": moment,
        "orders": orders,
        "ran": ran,
        "masterKey": {"present": has_key, "file": str(key_file.resolve())},
    }
    lines = [
        f"Restored {chosen.path}, as of {moment:%Y-%m-%d %H:%M:%S} UTC, into {settings.data}: {orders} orders."
    ]
    lines += [f"ran {label}" for label in ran]
    if not has_key:
        lines.append(f"Now put the master key at {key_file}: without it no code can be opened.")
    lines.append(
        "What was sold after that moment is unknown to it: run `voucherd recover` before it sells again."
    )
    return Output(document, "\n".join(lines))


async def _chosen(path: Path, at: datetime | None) -> Kept:
    """The backup to begin with: a file is one, a folder may hold several."""
    if base_backups.is_folder(path):
        return base_backups.choose(path, at)
    if at is not None:
        raise CommandRefused("a file is of one moment: name the folder of backups to go back to another")
    return Kept(path, await backups.taken_at(path))


@asynccontextmanager
async def _put_back(data: Path, one: Kept, at: datetime | None) -> AsyncIterator[str]:
    if one.is_base:
        with base_backups.replayed(data, one, at) as url:
            yield url
        return
    # Without the archive: the log of a restore is of no use to anybody.
    with running(data, exclusive=True) as url:
        await backups.put_back(url, one.path)
        yield url


def _refuse_used(data: Path, key_file: Path) -> None:
    """A folder with anything but the master key in it is somebody's."""
    if not data.exists():
        return
    if not data.is_dir():
        raise CommandRefused(f"{data} is not a folder")
    others = sorted(path.name for path in data.iterdir() if path.resolve() != key_file.resolve())
    if others:
        raise CommandRefused(f"{data} is not empty ({others[0]}): restore into a new folder, with --data")


async def _note(url: str, actor: Actor, one: Kept, at: datetime | None) -> tuple[datetime, int]:
    """Write down that this database was restored; to which moment, and how many orders it has."""
    async with pool_of(url) as pool, transaction(pool) as tx:
        # A file is of the moment at which it was begun, a copy of the moment of the last change that was replayed.
        replayed = await tx.fetchval("SELECT pg_last_xact_replay_timestamp()") if one.is_base else None
        moment = at or replayed or one.at
        await deeds.record_restore(tx, actor, moment, f"file {one.path.name}")
        return moment, int(await tx.fetchval("SELECT count(*) FROM orders"))


def _remove(data: Path) -> None:
    found = place.find(data)
    if found is None:
        return
    stop_now(data)
    shutil.rmtree(found.home, ignore_errors=True)
    (data / place.POINTER).unlink(missing_ok=True)
