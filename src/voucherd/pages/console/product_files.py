"""The catalogue, or its prices, as a file to work on: out as CSV or XLSX, and in again after a dry run."""

from __future__ import annotations

import asyncio
import io
from typing import Any, Final

from voucherd.catalogue import files as product_rows
from voucherd.catalogue import product_deeds, search
from voucherd.catalogue.cells import RowCells
from voucherd.catalogue.files import ImportPlan, ProductFileChange
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.pages.console import uploads as files
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.sheets import reading
from voucherd.sheets.model import SheetRefused
from voucherd.sheets.writing import Format, write
from voucherd.vault import uploads
from voucherd.vault.uploads import UploadPhase, UploadRow

KIND: Final = "products"
PATH: Final = "/console/products/-/files"
CHANGES_SHOWN: Final = 200

_TYPES: Final = {
    Format.CSV: b"text/csv; charset=utf-8",
    Format.XLSX: b"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


async def files_page(visit: Visit) -> Response:
    """Files out, files in, and the last ones that came."""
    return await _page(visit)


async def export(visit: Visit) -> Response:
    """All products as a file that the import reads."""
    format_ = Format.XLSX if visit.query.get("format") == "xlsx" else Format.CSV
    prices = visit.query.get("prices") == "yes"
    async with visit.pool.acquire() as conn:
        columns, rows = await search.sheet(conn, prices=prices)
    stream = io.BytesIO()
    await asyncio.to_thread(write, stream, format_, "products", columns, rows)
    name = f"{'prices' if prices else 'products'}.{format_.value}"
    disposition = (b"content-disposition", f'attachment; filename="{name}"'.encode())
    return Response(200, stream.getvalue(), _TYPES[format_], [disposition])


async def upload(visit: Visit) -> Response:
    """Keep the file, and find out what it would change."""
    file = files.chosen_file(visit)
    if isinstance(file, str):
        return await _page(visit, file)
    upload_id = await files.keep(visit, KIND, file, {})

    async def try_out(_far: files.Far) -> None:
        try:
            rows = await asyncio.to_thread(_read, file.content)
        except SheetRefused as refused:
            await uploads.end(
                visit.pool, upload_id, UploadPhase.REFUSED, {"problem": _sentence(str(refused))}
            )
            return
        async with visit.pool.acquire() as conn:
            known = await product_deeds.planned_from(conn, rows)
        plan = await asyncio.to_thread(product_rows.plan, rows, *known)
        good = not plan.error_count and bool(plan.changes)
        await uploads.end(
            visit.pool, upload_id, UploadPhase.READY if good else UploadPhase.REFUSED, _told(plan)
        )

    files.run(visit.services, upload_id, try_out)
    return see_other(f"{PATH}/{upload_id}")


async def report(visit: Visit) -> Response:
    """What a file would change, how far it is, or what it changed."""
    row = await files.find(visit, KIND)
    return render("console/product_report.html", visit, row=row, phase=row.phase.name.lower(), path=PATH)


async def take(visit: Visit) -> Response:
    """Add and change products as the file says: all of it, or nothing."""
    row = await files.find(visit, KIND)
    content = await files.take_out(visit.services, row)
    if content is None:
        visit.tell("This file is being taken already, or was kept too long: upload it again.", "bad")
    else:
        files.run(visit.services, row.id, lambda far: _take(visit, row, content, far))
    return see_other(f"{PATH}/{row.id}")


async def _take(visit: Visit, row: UploadRow, content: bytes, far: files.Far) -> None:
    rows = await asyncio.to_thread(_read, content)
    async with transaction(visit.pool) as tx:
        # Planned anew: somebody may have changed a product since the dry run.
        plan = await product_deeds.import_file(tx, visit.actor, row.name, rows, far)
        await uploads.end(
            tx, row.id, UploadPhase.REFUSED if plan.error_count else UploadPhase.TAKEN, _told(plan)
        )


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


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


async def _page(visit: Visit, problem: str = "") -> Response:
    async with visit.pool.acquire() as conn:
        newest = await uploads.newest(conn, KIND)
    return render(
        "console/product_files.html",
        visit,
        status=422 if problem else 200,
        problem=problem,
        newest=newest,
        path=PATH,
    )
