"""`voucherd backup`: the embedded database as one file, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from rich.filesize import decimal as size_words
from rich.progress import SpinnerColumn, TextColumn
from typer import Argument

from voucherd import backups
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext, pool_of
from voucherd.cli.output import CommandRefused, Output, progress
from voucherd.db import transaction
from voucherd.embedded import place

app = noun()

KEY_NOTE: Final = (
    "The master key is not in it, and without it no code can be opened: keep a copy of it elsewhere."
)


@command(app, "backup")
async def backup(
    context: CommandContext, file: Annotated[Path, Argument(metavar="FILE", help="A new file.")]
) -> Output:
    """Write the embedded database to a new file; the service may run meanwhile."""
    if context.settings.database_url is not None:
        raise CommandRefused(
            "this is for the embedded database; back up your own PostgreSQL with its own tools"
        )
    if place.find(context.settings.data) is None:
        raise CommandRefused(f"there is no database in {context.settings.data}")
    if file.exists():
        raise CommandRefused(f"{file} exists already")
    async with context.database() as url:
        with progress("backup", SpinnerColumn(), TextColumn("{task.description}")) as move:
            taken = await backups.take(
                url, file, lambda size: move(description=f"backup: {size_words(size)}")
            )
        async with pool_of(url) as pool, transaction(pool) as tx:
            await backups.record_taken(tx, context.actor, file, taken)
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
