"""`voucherd product export` and `import`: the catalogue, or its prices, as a file to work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from rich.progress import Progress

from voucherd.catalogue import changes, files, store
from voucherd.catalogue.changes import every_product
from voucherd.catalogue.columns import COLUMNS, PRICE_COLUMNS, values
from voucherd.catalogue.files import Change, Plan
from voucherd.catalogue.products import draft_of
from voucherd.cli.context import CommandContext
from voucherd.cli.files import FormatOption, InFile, OutFile, read_rows, save
from voucherd.cli.output import CommandRefused, Output, screen, stacked, table

TEXT_CHARS_SHOWN: Final = 60
"""Of a long text, on a terminal; `--json` has all of it."""


async def export(
    context: CommandContext,
    file: OutFile,
    format_: FormatOption = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Only slug, price, price-currency and fee.")
    ] = False,
) -> Output | None:
    """Write all products to a file that `product import` reads."""
    async with context.connection() as connection:
        listings = await every_product(connection)
        leaflets = await store.leaflets(connection, [listing.version.version_id for listing in listings])
    columns = PRICE_COLUMNS if prices else COLUMNS
    rows = [
        values(draft_of(listing.version, leaflets[listing.version.version_id]), listing.active)
        for listing in listings
    ]
    return save(
        context, file, format_, "products", columns, [[row[column] for column in columns] for row in rows]
    )


async def import_(
    context: CommandContext,
    file: InFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> Output:
    """Add and change products as a file says: all of it, or nothing if it has an error."""
    rows = files.read(await read_rows(context, file))
    async with context.transaction() as tx:
        listings = await store.lock(tx, [row.slug for row in rows if row.slug])
        leaflets = await store.leaflets(tx, [listing.version.version_id for listing in listings.values()])
        plan = files.plan(rows, listings, leaflets)
        if plan.error_count:
            cells = "1 cell is" if plan.error_count == 1 else f"{plan.error_count} cells are"
            raise CommandRefused(f"{cells} wrong; nothing was changed", _answer(plan, dry_run=dry_run))
        if not dry_run:
            with _progress(len(plan.changes)) as step:
                await changes.carry_out(tx, plan, listings, step)
    return _answer(plan, dry_run=dry_run)


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar on a terminal; nothing elsewhere."""
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("products", total=total)
        yield lambda: bar.advance(task)


def _answer(plan: Plan, *, dry_run: bool) -> Output:
    failed = plan.error_count > 0
    document = {
        "dryRun": dry_run,
        "added": 0 if failed else plan.added,
        "changed": 0 if failed else plan.changed,
        "unchanged": 0 if failed else plan.unchanged,
        "changes": [] if failed else [_document(change) for change in plan.changes],
        "errorCount": plan.error_count,
        "errors": [{"row": bad.row, "column": bad.column, "rule": bad.rule} for bad in plan.errors],
    }
    if failed:
        return Output(document, _errors(plan))
    counts = f"{plan.added} added, {plan.changed} changed, {plan.unchanged} unchanged"
    if not dry_run:
        return Output(document, f"{counts}.")
    said = f"This would be {counts}. Nothing was changed."
    return Output(document, stacked(_changes(plan), "", said) if plan.changes else said)


def _errors(plan: Plan) -> RenderableType:
    more = plan.error_count - len(plan.errors)
    lines = [str(bad) for bad in plan.errors]
    return "\n".join(lines + ([f"… and {more} more"] if more else []))


def _changes(plan: Plan) -> RenderableType:
    rows: list[tuple[object, ...]] = []
    for change in plan.changes:
        if change.added:
            rows.append((change.row, change.draft.slug, "new", "", _summary(change)))
        else:
            rows += [
                (change.row, change.draft.slug, column, _short(before), _short(after))
                for column, before, after in change.fields
            ]
    return table([">row", "slug", "what", "~from", "~to"], rows, empty="")


def _short(text: str) -> str:
    return shorten(text, TEXT_CHARS_SHOWN, placeholder=" …")


def _summary(change: Change) -> str:
    told = {field.column: field.after for field in change.fields}
    face = (
        f"{told['face-value']} {told['face-currency']}" if "face-value" in told else told["face-value-range"]
    )
    paid = f"for {told['price']} {told['price-currency']}" if "price" in told else f"at ×{told['fee']}"
    return f"{change.draft.name}: {face} {paid}" + ("" if change.active else ", inactive")


def _document(change: Change) -> dict[str, Any]:
    fields = [
        {"column": name, "from": before or None, "to": after or None} for name, before, after in change.fields
    ]
    return {
        "row": change.row,
        "slug": change.draft.slug,
        "action": "add" if change.added else "change",
        "fields": fields,
    }
