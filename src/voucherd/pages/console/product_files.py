"""The catalogue, or its prices, as a file to work on: out as CSV or XLSX, and in again after a dry run."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from voucherd.catalogue import files as product_rows
from voucherd.catalogue import product_deeds, search
from voucherd.catalogue.cells import RowCells
from voucherd.catalogue.columns import COLUMNS, PRICE_COLUMNS, Value
from voucherd.catalogue.files import ImportPlan, ProductFileChange
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.pages.console.uploads import Far, FilePages, chosen_file
from voucherd.pages.forms import sentence
from voucherd.pages.render import sheet
from voucherd.pages.visit import Visit
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused
from voucherd.vault import uploads
from voucherd.vault.uploads import UploadPhase

FILES: Final = FilePages(
    "products", "/console/products/-/files", "console/product_files.html", "console/product_report.html"
)
CHANGES_SHOWN: Final = 200


async def export(visit: Visit) -> Response:
    """All products as a file that the import reads."""
    prices = visit.query.get("prices") == "yes"
    columns = PRICE_COLUMNS if prices else COLUMNS
    name = "prices" if prices else "products"
    return await sheet(visit, name, columns, _pages(visit, columns), title="products")


async def _pages(visit: Visit, columns: Sequence[str]) -> AsyncIterator[list[list[Value]]]:
    """The rows as they are read; no connection is held while the visitor takes them."""
    after: str | None = ""
    while after is not None:
        rows, after = await visit.look(search.sheet_page, columns, after)
        yield rows


async def upload(visit: Visit) -> Response:
    """Keep the file, and find out what it would change."""
    file = chosen_file(visit)
    if file is None:
        return await FILES.form(visit)

    async def try_out(_far: Far) -> tuple[UploadPhase, dict[str, Any]]:
        try:
            rows = await asyncio.to_thread(_read, file.content)
        except SheetRefused as refused:
            return UploadPhase.REFUSED, {"problem": sentence(refused)}
        known = await visit.look(product_deeds.planned_from, rows)
        plan = await asyncio.to_thread(product_rows.plan, rows, *known)
        good = not plan.error_count and bool(plan.changes)
        return UploadPhase.READY if good else UploadPhase.REFUSED, _told(plan)

    return await FILES.keep(visit, file, {}, try_out)


async def take(visit: Visit) -> Response:
    """Add and change products as the file says: all of it, or nothing."""
    row = await FILES.find(visit)

    async def take_in(content: bytes, far: Far) -> None:
        rows = await asyncio.to_thread(_read, content)
        async with transaction(visit.pool) as tx:
            # Planned anew: somebody may have changed a product since the dry run.
            plan = await product_deeds.import_file(tx, visit.actor, row.name, rows, far)
            phase = UploadPhase.REFUSED if plan.error_count else UploadPhase.TAKEN
            await uploads.end(tx, row.id, phase, _told(plan))

    return await FILES.take(visit, row, take_in)


def _read(content: bytes) -> list[RowCells]:
    return product_rows.read(reading.rows(io.BytesIO(content)))


def _told(plan: ImportPlan) -> dict[str, Any]:
    lines = [line for change in plan.changes[:CHANGES_SHOWN] for line in _lines(change)]
    return {
        "added": 0 if plan.error_count else plan.added,
        "changed": 0 if plan.error_count else plan.changed,
        "unchanged": plan.unchanged,
        "bad_count": plan.error_count,
        "bad": [(bad.row, f"{bad.column}: {bad.rule}") for bad in plan.errors],
        "lines": [] if plan.error_count else lines[:CHANGES_SHOWN],
        "more": not plan.error_count and len(plan.changes) > CHANGES_SHOWN,
    }


def _lines(change: ProductFileChange) -> list[tuple[int, str, str, str, str]]:
    if change.added:
        return [(change.row, change.draft.slug, "new", "", change.draft.name)]
    return [(change.row, change.draft.slug, *field) for field in change.fields]
