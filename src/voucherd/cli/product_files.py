"""`voucherd product export` and `import`: the catalogue, or its prices, as a file to work on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from rich.progress import Progress

from voucherd.catalogue import files, product_deeds, search
from voucherd.catalogue.files import ImportPlan, ProductFileChange
from voucherd.cli.context import CommandContext
from voucherd.cli.files import FormatOption, InFile, OutFile, name_of, read_rows, save
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
        columns, rows = await search.sheet(connection, prices=prices)
    return save(context, file, format_, "products", columns, rows)


async def import_(
    context: CommandContext,
    file: InFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> Output:
    """Add and change products as a file says: all of it, or nothing if it has an error."""
    rows = files.read(await read_rows(context, file))
    if dry_run:
        async with context.connection() as connection:
            plan = files.plan(rows, *await product_deeds.planned_from(connection, rows))
    else:
        async with context.transaction() as tx:
            with _progress() as step:
                plan = await product_deeds.import_file(tx, context.actor, name_of(file), rows, step)
    if plan.error_count:
        cells = "1 cell is" if plan.error_count == 1 else f"{plan.error_count} cells are"
        raise CommandRefused(f"{cells} wrong; nothing was changed", _answer(plan, dry_run=dry_run))
    return _answer(plan, dry_run=dry_run)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing elsewhere."""
    console = screen(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("products")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _answer(plan: ImportPlan, *, dry_run: bool) -> Output:
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


def _errors(plan: ImportPlan) -> RenderableType:
    more = plan.error_count - len(plan.errors)
    lines = [str(bad) for bad in plan.errors]
    return "\n".join(lines + ([f"… and {more} more"] if more else []))


def _changes(plan: ImportPlan) -> RenderableType:
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


def _summary(change: ProductFileChange) -> str:
    told = {field.column: field.after for field in change.fields}
    face = (
        f"{told['face-value']} {told['face-currency']}" if "face-value" in told else told["face-value-range"]
    )
    paid = f"for {told['price']} {told['price-currency']}" if "price" in told else f"at ×{told['fee']}"
    return f"{change.draft.name}: {face} {paid}" + ("" if change.active else ", inactive")


def _document(change: ProductFileChange) -> dict[str, Any]:
    fields = [
        {"column": name, "from": before or None, "to": after or None} for name, before, after in change.fields
    ]
    return {
        "row": change.row,
        "slug": change.draft.slug,
        "action": "add" if change.added else "change",
        "fields": fields,
    }
