"""`voucherd backup`: the embedded database, while the service runs; and whether a backup is good for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from rich.filesize import decimal as size_words
from rich.progress import SpinnerColumn, TextColumn
from typer import Argument

from voucherd import backups
from voucherd.backups import Backup, nightly
from voucherd.cli import backup_verify
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.output import CommandRefused, Output, progress
from voucherd.db import Pool, transaction
from voucherd.embedded import place

app = noun()

VERIFY: Final = Path("verify")
"""Instead of a file; one of this name is written ./verify."""
KEY_NOTE: Final = (
    "The master key is not in it, and without it no code can be opened: keep a copy of it elsewhere."
)


@command(app, "backup")
async def backup(
    context: CommandContext,
    file: Annotated[
        Path | None,
        Argument(metavar="[FILE|verify]", help="A new file; `verify` tries the newest backup out."),
    ] = None,
    tried: Annotated[
        Path | None, Argument(metavar="[BACKUP]", help="For `verify`: this one, or one of this folder.")
    ] = None,
) -> Output:
    """Back the embedded database up into its folder of backups, or to a new file; the service may run meanwhile."""
    if context.settings.database_url is not None:
        raise CommandRefused(
            "this is for the embedded database; back up your own PostgreSQL with its own tools"
        )
    if place.find(context.settings.data) is None:
        raise CommandRefused(f"there is no database in {context.settings.data}")
    if file == VERIFY:
        return await backup_verify.verify(context, tried or context.settings.backup_folder)
    if file is not None and file.exists():
        raise CommandRefused(f"{file} exists already")
    async with context.database() as url:
        with progress("backup", SpinnerColumn(), TextColumn("{task.description}")) as move:
            async with pool_of(url) as pool:
                if file is None:
                    file, taken = await _into_folder(context, pool)
                else:
                    taken = await backups.take(
                        url, file, lambda size: move(description=f"backup: {size_words(size)}")
                    )
                    async with transaction(pool) as tx:
                        await backups.record_taken(tx, context.actor, file, taken)
    return _told(context, file, taken)


async def _into_folder(context: CommandContext, pool: Pool) -> tuple[Path, Backup]:
    """What the nightly round does, now."""
    with nightly.alone(context.settings.backup_folder) as mine:
        if not mine:
            raise CommandRefused("another backup is being taken")
        kept, taken = await nightly.take(pool, context.actor, context.settings)
    return kept.path, taken


def _told(context: CommandContext, file: Path, taken: Backup) -> Output:
    key_file = context.settings.master_key_file
    document = {
        "file": str(file.resolve()),
        "bytes": taken.bytes,
        "seconds": taken.seconds,
        "takenAt": taken.at,
        "masterKey": {"included": False, "file": str(key_file.resolve())},
    }
    view = (
        f"Wrote {file}, {size_words(taken.bytes)}, in {taken.seconds:.1f} s.\n{KEY_NOTE}\nIt is {key_file}."
    )
    return Output(document, view)
