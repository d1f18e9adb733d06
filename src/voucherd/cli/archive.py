"""`voucherd archive`: closed months of orders and old blocks of the audit trail go from the database to files."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from voucherd.archive import blocks, deeds, store
from voucherd.archive.blocks import ArchivedBook
from voucherd.archive.deeds import Archived
from voucherd.archive.model import ArchiveMonth, ArchiveRefused, folder_of, start_of
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, progress, stacked, table_of
from voucherd.cli.words import read_day
from voucherd.clock import iso
from voucherd.db import Connection, owns_tables
from voucherd.trail import archived
from voucherd.trail.archived import BlockFile
from voucherd.trail.chain import BOOKS
from voucherd.vault.master_key import has_master

app = noun()


class What(StrEnum):
    """What to do with the archive, other than to fill it."""

    LIST = "list"
    VERIFY = "verify"


@command(app, "archive")
async def archive(
    context: CommandContext,
    what: Annotated[What | None, Argument(help="Show the months, or read every file again.")] = None,
    before: Annotated[
        date | None,
        Option(
            parser=read_day,
            metavar="DAY",
            help="Months before this one, the first of a month; else all that are old enough.",
        ),
    ] = None,
) -> Output:
    """Move the orders of closed months to files, and the audit trail of that time.

    Orders are found by their trx as before, and are in no list.
    """
    if what is not None and before is not None:
        raise typer.BadParameter(f"--before is not for {what}")
    if what is What.LIST:
        return await _list(context)
    if what is What.VERIFY:
        return await _verify(context)
    return await _fill(context, before)


async def _fill(context: CommandContext, before: date | None) -> Output:
    async with context.owner_pool() as pool, pool.acquire() as connection:
        settings = await context.running_settings(connection)
        if not await owns_tables(connection):
            raise CommandRefused(
                "only the owner of the tables may take orders out of them: give his address as VOUCHERD_MIGRATION_URL"
            )
        months = await deeds.closed_months(connection, before, settings.archive_months)
        folder = settings.archive_folder
        with progress("archive") as move:

            def told(words: str, done: int, total: int) -> None:
                move(description=words, completed=done, total=total)

            done = await deeds.archive(connection, context.actor, folder, months, told)
            key, note = await _trail_key(context, connection)
            books = []
            if key is not None:
                until = await deeds.latest(connection, before, settings.archive_months)
                books = await blocks.archive_books(
                    connection, context.actor, folder, key, start_of(until), told
                )
    return _filled(folder, done, books, note)


async def _trail_key(context: CommandContext, connection: Connection) -> tuple[bytes | None, str | None]:
    """The key that seals the audit trail; or that its blocks stay, and why."""
    if has_master(context.settings):
        return (await context.sealer(connection)).trail_key, None
    file = context.settings.master_key_file
    return None, f"No master key at {file}: no block of the audit trail could be checked."


def _filled(folder: Path, done: list[Archived], books: list[ArchivedBook], note: str | None) -> Output:
    months = [{"month": folder_of(one.month), "orders": one.orders, "removed": one.removed} for one in done]
    trail = [{"book": one.book, "blocks": one.blocks, "removed": one.removed} for one in books]
    view = table_of(
        months,
        ["month", ">orders", (">left the database", "removed")],
        empty="No month is closed and old enough that is not in the archive.",
    )
    moved = [one for one in trail if one["blocks"] or one["removed"]]
    more = [table_of(moved, ["book", ">blocks", (">rows that left", "removed")])] if moved else []
    document = {"folder": str(folder), "months": months, "books": trail, "note": note}
    return Output(document, stacked(view, *more, *filter(None, [note])))


async def _list(context: CommandContext) -> Output:
    async with context.connection() as connection:
        found = await store.months(connection)
        begins = await store.begins_at(connection)
        books = [_book(await archived.files(connection, book.name)) for book in BOOKS]
    rows = [_document(one) for one in found]
    filed = [one for one in books if one is not None]
    document = {"before": None if begins is None else iso(begins), "months": rows, "books": filed}
    view = table_of(rows, ["month", ">orders", "written", "removed"], empty="The archive has no month.")
    line = [] if begins is None else [f"Orders created before {begins:%Y-%m-%d} are in the archive."]
    trail = [table_of(filed, ["book", ">files", ">blocks", ">rows", "until"])] if filed else []
    return Output(document, stacked(*line, view, *trail))


def _book(files: list[BlockFile]) -> dict[str, Any] | None:
    """What the archive has of a book."""
    if not files:
        return None
    return {
        "book": files[-1].book,
        "files": len(files),
        "blocks": files[-1].last_block,
        "rows": sum(one.rows for one in files),
        "until": iso(files[-1].last_at),
    }


def _document(one: ArchiveMonth) -> dict[str, Any]:
    return {
        "month": folder_of(one.month),
        "orders": one.orders,
        "written": iso(one.written_at),
        "removed": None if one.removed_at is None else iso(one.removed_at),
    }


async def _verify(context: CommandContext) -> Output:
    """Hash every file again, read every order and every row in it, and compare with what the database knows."""
    months, orders, sealed = 0, 0, 0
    async with context.connection() as connection:
        for one in await store.months(connection):
            files = await store.files(connection, one.month)
            sums = deeds.read_back(context.settings.archive_folder, files)
            last_at = sums.last_at or start_of(one.month)
            if (sums.orders, last_at) != (one.orders, one.last_at):
                raise ArchiveRefused(f"{folder_of(one.month)} does not hold what was written")
            months, orders = months + 1, orders + sums.orders
        key, note = await _trail_key(context, connection)
        for book in BOOKS:
            for file in await archived.files(connection, book.name):
                await blocks.check_file(connection, context.settings.archive_folder, book, file, key)
                sealed += file.blocks
    document = {"ok": True, "months": months, "orders": orders, "blocks": sealed, "note": note}
    words = f"{months} months with {orders:,} orders are as they were written"
    words += f", and {sealed:,} blocks of the audit trail." if sealed else "."
    return Output(document, "\n".join([words, *filter(None, [note])]))
