"""Codes from a file: uploaded, tried out, and taken in whole or not at all."""

from __future__ import annotations

import io
from typing import Any, Final

from voucherd.catalogue.rules import BadProduct, is_slug
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.texts import face_text, read_amount
from voucherd.http import Response
from voucherd.pages.console.uploads import Far, FilePages, chosen_file
from voucherd.pages.forms import sentence
from voucherd.pages.visit import Visit
from voucherd.suppliers import stocking
from voucherd.suppliers.stocking import BadSupplierName, FaceMissing, NoRateFor, NoSuchFace, StockTerms
from voucherd.vault import uploads
from voucherd.vault.imports import ImportRefused, ImportReport, rehearse
from voucherd.vault.lines import BadLine
from voucherd.vault.uploads import UploadPhase

FILES: Final = FilePages(
    "stock", "/console/stock/import", "console/stock_import.html", "console/stock_report.html"
)
_FIELDS: Final = ("slug", "supplier", "purchase", "face")


async def import_page(visit: Visit) -> Response:
    """The form for a file of codes, and the last files."""
    given = visit.form if visit.problems else visit.query
    return await FILES.form(visit, values={name: given.get(name) for name in _FIELDS})


async def upload(visit: Visit) -> Response:
    """Keep the file, and try out what an import of it would do."""
    values = {name: visit.form.get(name) for name in _FIELDS}
    terms = await _terms(visit, values)
    file = None if terms is None else chosen_file(visit)
    if terms is None or file is None:
        return await import_page(visit)
    stream, brand_id, size = io.BytesIO(file.content), terms.target.brand_id, len(file.content)

    async def try_out(far: Far) -> tuple[UploadPhase, dict[str, Any]]:
        try:
            found = await rehearse(
                visit.pool, visit.services.sealer, stream, brand_id, lambda done, _codes: far(done, size)
            )
        except ImportRefused as refused:
            return UploadPhase.REFUSED, _refusal(refused)
        # With nothing new in it there is nothing to take.
        return UploadPhase.READY if found.fresh else UploadPhase.REFUSED, {
            "fresh": found.fresh,
            "known": found.already_there,
            "bad_count": found.bad_count,
            "bad": _bad(found.bad),
        }

    return await FILES.keep(visit, file, values, try_out)


async def take(visit: Visit) -> Response:
    """Take the codes in: all that are new, or none."""
    row = await FILES.find(visit)
    skip_bad, back = "skip_bad" in visit.form, f"{FILES.path}/{row.id}"
    if row.report is not None and row.report.get("bad_count") and not skip_bad:
        text = "Some lines are bad. Correct the file, or say that they are to be left out."
        return visit.go(back, text, "bad")
    terms = await _terms(visit, {name: str(row.terms.get(name, "")) for name in _FIELDS})
    if terms is None:
        return visit.go(back, next(iter(visit.problems.values())), "bad")

    async def note(tx: Any, done: ImportReport) -> None:
        await uploads.end(tx, row.id, UploadPhase.TAKEN, _taken(done))

    async def take_in(content: bytes, far: Far) -> tuple[UploadPhase, dict[str, Any]] | None:
        try:
            await stocking.import_file(
                visit.pool,
                visit.actor,
                visit.services.sealer,
                terms,
                row.name,
                io.BytesIO(content),
                skip_bad=skip_bad,
                progress=lambda done, _codes: far(done, row.bytes),
                note=note,
            )
        except ImportRefused as refused:
            return UploadPhase.REFUSED, _refusal(refused)
        return None

    return await FILES.take(visit, row, take_in)


def _taken(done: ImportReport) -> dict[str, Any]:
    return {
        "taken": done.taken,
        "known": done.already_there,
        "bad_count": done.bad_count,
        "bad": _bad(done.bad),
        "lots": done.lots,
    }


def _refusal(refused: ImportRefused) -> dict[str, Any]:
    return {"problem": sentence(refused), "bad_count": refused.bad_count, "bad": _bad(refused.bad)}


def _bad(lines: list[BadLine]) -> list[tuple[int, str]]:
    return [(line.line, line.reason) for line in lines]


async def _terms(visit: Visit, values: dict[str, str]) -> StockTerms | None:
    """The product and the cost of the codes; None, and a problem beside the field that is wrong."""
    slug, problems = values["slug"], visit.problems
    try:
        purchase = read_amount("purchase", values["purchase"])
        face = read_amount("face", values["face"]) if values["face"] else None
        if not is_slug(slug):
            raise UnknownProduct(slug)
        async with visit.pool.acquire() as conn:
            return await stocking.terms(conn, slug, values["supplier"], face, purchase)
    except BadProduct as bad:
        problems[bad.field] = "Must be an amount and a currency, such as 46.90 EUR."
    except BadSupplierName as bad_name:
        problems["supplier"] = sentence(bad_name)
    except UnknownProduct:
        problems["slug"] = "There is no product of that slug."
    except FaceMissing as needed:
        words = face_text(needed.version)
        problems["face"] = f"Is needed: the product’s face value is variable, {words}."
    except NoSuchFace as other:
        problems["face"] = f"The product has {face_text(other.version)}."
    except NoRateFor as unrated:
        problems["purchase"] = f"There is no exchange rate for {unrated.currency}."
    return None
