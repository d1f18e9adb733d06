"""`voucherd backup`: the embedded database as one file, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.filesize import decimal as size_words
from rich.progress import Progress, SpinnerColumn, TextColumn

from voucherd import backups, trail
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.operator import operator
from voucherd.cli.output import CommandRefused, Output, screen
from voucherd.db import open_pool, transaction
from voucherd.embedded import place

app = noun()

KEY_NOTE: Final = (
    "The master key is not in it, and without it no code can be opened: keep a copy of it elsewhere."
)


@command(app, "backup")
async def backup(
    context: CommandContext, file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")]
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
    console = screen(stderr=True)
    async with context.database() as url:
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar:
            task = bar.add_task("backup")
            taken = await backups.take(
                url, file, lambda size: bar.update(task, description=f"backup: {size_words(size)}")
            )
        pool = await open_pool(url, size_max=1)
        try:
            async with transaction(pool) as tx:
                await backups.record(tx, taken)
                await trail.record(tx, operator(), "backup.take", f"file {file.name}", {"bytes": taken.bytes})
        finally:
            await pool.close()
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
