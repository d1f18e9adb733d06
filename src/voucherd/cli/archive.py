"""`voucherd archive`: closed months of orders go from the database to files, and can be looked at there."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer import Argument, Option

from voucherd.archive import deeds, store
from voucherd.archive.model import ArchiveMonth, ArchiveRefused, folder_of, start_of
from voucherd.cli.command import command, noun
from voucherd.cli.context import CommandContext
from voucherd.cli.output import CommandRefused, Output, progress, stacked, table_of
from voucherd.cli.words import read_day
from voucherd.clock import iso
from voucherd.db import owns_tables

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
    """Move the orders of closed months to files. They are found by their trx as before, and are in no list."""
    if what is not None and before is not None:
        raise typer.BadParameter(f"--before is not for {what}")
    if what is What.LIST:
        return await _list(context)
    if what is What.VERIFY:
        return await _verify(context)
    return await _fill(context, before)


async def _fill(context: CommandContext, before: date | None) -> Output:
    settings = context.settings
    async with context.owner_pool() as pool, pool.acquire() as connection:
        if not await owns_tables(connection):
            raise CommandRefused(
                "only the owner of the tables may take orders out of them: give his address as VOUCHERD_MIGRATION_URL"
            )
        months = await deeds.closed_months(connection, before, settings.archive_months)
        with progress("archive") as move:

            def told(words: str, done: int, total: int) -> None:
                move(description=words, completed=done, total=total)

            done = await deeds.archive(connection, context.actor, settings.archive_folder, months, told)
    rows = [{"month": folder_of(one.month), "orders": one.orders, "removed": one.removed} for one in done]
    view = table_of(
        rows,
        ["month", ">orders", (">left the database", "removed")],
        empty="No month is closed and old enough that is not in the archive.",
    )
    return Output({"folder": str(settings.archive_folder), "months": rows}, view)


async def _list(context: CommandContext) -> Output:
    async with context.connection() as connection:
        found = await store.months(connection)
        begins = await store.begins_at(connection)
    rows = [_document(one) for one in found]
    document = {"before": None if begins is None else iso(begins), "months": rows}
    view = table_of(rows, ["month", ">orders", "written", "removed"], empty="The archive is empty.")
    line = "" if begins is None else f"Orders created before {begins:%Y-%m-%d} are in the archive."
    return Output(document, stacked(line, view) if line else view)


def _document(one: ArchiveMonth) -> dict[str, Any]:
    return {
        "month": folder_of(one.month),
        "orders": one.orders,
        "written": iso(one.written_at),
        "removed": None if one.removed_at is None else iso(one.removed_at),
    }


async def _verify(context: CommandContext) -> Output:
    """Hash every file again, read every order in it, and compare the sums of the months that have left whole."""
    months, orders = 0, 0
    async with context.connection() as connection:
        for one in await store.months(connection):
            files = await store.files(connection, one.month)
            sums = deeds.read_back(context.settings.archive_folder, files)
            last_at = sums.last_at or start_of(one.month)
            if (sums.orders, last_at) != (one.orders, one.last_at):
                raise ArchiveRefused(f"{folder_of(one.month)} does not hold what was written")
            months, orders = months + 1, orders + sums.orders
    document = {"ok": True, "months": months, "orders": orders}
    return Output(document, f"{months} months with {orders:,} orders are as they were written.")
