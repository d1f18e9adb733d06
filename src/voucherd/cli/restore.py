"""`voucherd restore`: a backup of the embedded database, put back into an empty data folder."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument

from voucherd import backups, bootstrap
from voucherd.actors import Actor
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.output import CommandRefused, Output
from voucherd.db import transaction
from voucherd.embedded import place, stop_now
from voucherd.migrate import migrate

app = noun()


@command(app, "restore")
async def restore(
    context: CommandContext,
    file: Annotated[Path, Argument(metavar="FILE", help="What `backup` wrote.")],
) -> Output:
    """Put a backup back into a data folder that has nothing in it but, perhaps, the master key."""
    settings = context.settings
    if settings.database_url is not None:
        raise CommandRefused(
            "this is for the embedded database; restore your own PostgreSQL with its own tools"
        )
    key_file = settings.master_key_file
    _refuse_used(settings.data, key_file)
    taken_at = await backups.taken_at(file)
    try:
        async with bootstrap.database(settings, exclusive=True) as url:
            await backups.put_back(url, file)
            ran = await migrate(url)
            orders = await _note(url, context.actor, file)
    except BaseException:
        # Half a database must not be taken for a whole one. Nothing was here before, so nothing else is lost.
        await asyncio.to_thread(_remove, settings.data)
        raise
    has_key = key_file.exists()
    document = {
        "data": str(settings.data.resolve()),
        "takenAt": taken_at,
        "orders": orders,
        "ran": ran,
        "masterKey": {"present": has_key, "file": str(key_file.resolve())},
    }
    lines = [f"Restored {file}, taken {taken_at:%Y-%m-%d %H:%M} UTC, into {settings.data}: {orders} orders."]
    lines += [f"ran {label}" for label in ran]
    if not has_key:
        lines.append(f"Now put the master key at {key_file}: without it no code can be opened.")
    lines.append("Then run `voucherd audit`. What was sold after the backup is unknown to it: see the guide.")
    return Output(document, "\n".join(lines))


def _refuse_used(data: Path, key_file: Path) -> None:
    """A folder with anything but the master key in it is somebody's."""
    if not data.exists():
        return
    if not data.is_dir():
        raise CommandRefused(f"{data} is not a folder")
    others = sorted(path.name for path in data.iterdir() if path.resolve() != key_file.resolve())
    if others:
        raise CommandRefused(f"{data} is not empty ({others[0]}): restore into a new folder, with --data")


async def _note(url: str, actor: Actor, file: Path) -> int:
    """Write down that this database was restored; how many orders it has."""
    async with pool_of(url) as pool, transaction(pool) as tx:
        await backups.record_restored(tx, actor, file)
        return int(await tx.fetchval("SELECT count(*) FROM orders"))


def _remove(data: Path) -> None:
    found = place.find(data)
    if found is None:
        return
    stop_now(data)
    shutil.rmtree(found.home, ignore_errors=True)
    (data / place.POINTER).unlink(missing_ok=True)
