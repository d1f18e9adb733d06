"""Codes from a file: uploaded, tried out, and taken in whole or not at all."""

from __future__ import annotations

import io
from typing import Any, Final

from voucherd.catalogue.rules import BadProduct, is_slug
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.texts import face_text, read_amount
from voucherd.http import Response
from voucherd.money import Money
from voucherd.pages.console import uploads as files
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.services import Services
from voucherd.suppliers import stocking
from voucherd.suppliers.stocking import BadSupplierName, FaceMissing, NoRateFor, NoSuchFace, StockTerms
from voucherd.vault import uploads
from voucherd.vault.dry_run import rehearse
from voucherd.vault.imports import ImportRefused, ImportReport
from voucherd.vault.lines import BadLine
from voucherd.vault.uploads import UploadPhase, UploadRow

KIND: Final = "stock"
PATH: Final = "/console/stock/import"
_FIELDS: Final = ("slug", "supplier", "purchase", "face")


class _Wrong(Exception):
    """A field of the form that can't be used."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field
        self.text = text


async def import_page(visit: Visit) -> Response:
    """The form for a file of codes, and the last files."""
    values = {name: visit.query.get(name) for name in _FIELDS}
    return await _form(visit, values)


async def upload(visit: Visit) -> Response:
    """Keep the file, and try out what an import of it would do."""
    values = {name: visit.form.get(name) for name in _FIELDS}
    try:
        terms = await _terms(visit.services, values)
    except _Wrong as wrong:
        return await _form(visit, values, {wrong.field: wrong.text})
    file = files.chosen_file(visit)
    if isinstance(file, str):
        return await _form(visit, values, {"file": file})
    upload_id = await files.keep(visit, KIND, file, values)

    async def try_out(far: files.Far) -> None:
        size = len(file.content)
        try:
            found = await rehearse(
                visit.pool,
                visit.services.sealer,
                io.BytesIO(file.content),
                terms.target.brand_id,
                lambda done, _codes: far(done, size),
            )
        except ImportRefused as refused:
            await uploads.end(visit.pool, upload_id, UploadPhase.REFUSED, _refusal(refused))
            return
        report = {
            "fresh": found.fresh,
            "known": found.already_there,
            "bad_count": found.bad_count,
            "bad": _bad(found.bad),
        }
        # With nothing new in it there is nothing to take.
        await uploads.end(
            visit.pool, upload_id, UploadPhase.READY if found.fresh else UploadPhase.REFUSED, report
        )

    files.run(visit.services, upload_id, try_out)
    return see_other(f"{PATH}/{upload_id}")


async def report(visit: Visit) -> Response:
    """What an import would do, how far it is, or what it did."""
    row = await files.find(visit, KIND)
    return render("console/stock_report.html", visit, row=row, phase=row.phase.name.lower(), path=PATH)


async def take(visit: Visit) -> Response:
    """Take the codes in: all that are new, or none."""
    row = await files.find(visit, KIND)
    skip_bad = "skip_bad" in visit.form
    back = see_other(f"{PATH}/{row.id}")
    if row.report is not None and row.report.get("bad_count") and not skip_bad:
        visit.tell("Some lines are bad. Correct the file, or say that they are to be left out.", "bad")
        return back
    try:
        terms = await _terms(visit.services, {name: str(row.terms.get(name, "")) for name in _FIELDS})
    except _Wrong as wrong:
        visit.tell(wrong.text, "bad")
        return back
    content = await files.take_out(visit.services, row)
    if content is None:
        visit.tell("This file is being taken already, or was kept too long: upload it again.", "bad")
        return back
    files.run(visit.services, row.id, lambda far: _take(visit, row, content, terms, skip_bad, far))
    return back


async def _take(
    visit: Visit,
    row: UploadRow,
    content: bytes,
    terms: StockTerms,
    skip_bad: bool,
    far: files.Far,
) -> None:
    async def note(tx: Any, done: ImportReport) -> None:
        await uploads.end(tx, row.id, UploadPhase.TAKEN, _taken(done))

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
        await uploads.end(visit.pool, row.id, UploadPhase.REFUSED, _refusal(refused))


def _taken(done: ImportReport) -> dict[str, Any]:
    return {
        "taken": done.taken,
        "known": done.already_there,
        "bad_count": done.bad_count,
        "bad": _bad(done.bad),
        "lots": done.lots,
    }


def _refusal(refused: ImportRefused) -> dict[str, Any]:
    text = str(refused)
    return {
        "problem": f"{text[:1].upper()}{text[1:]}.",
        "bad_count": refused.bad_count,
        "bad": _bad(refused.bad),
    }


def _bad(lines: list[BadLine]) -> list[tuple[int, str]]:
    return [(line.line, line.reason) for line in lines]


async def _terms(services: Services, values: dict[str, str]) -> StockTerms:
    """What the codes are codes of and cost, or the field that is wrong."""
    slug = values["slug"]
    try:
        purchase = _amount("purchase", values["purchase"])
        face = _amount("face", values["face"]) if values["face"] else None
        if not is_slug(slug):
            raise UnknownProduct(slug)
        async with services.pool.acquire() as conn:
            return await stocking.terms(conn, slug, values["supplier"], face, purchase)
    except BadSupplierName as bad:
        raise _Wrong("supplier", f"M{str(bad)[1:]}.") from None
    except UnknownProduct:
        raise _Wrong("slug", "There is no product of that slug.") from None
    except FaceMissing as missing:
        words = face_text(missing.version)
        raise _Wrong("face", f"Is needed: the product’s face value is variable, {words}.") from None
    except NoSuchFace as other:
        raise _Wrong("face", f"The product has {face_text(other.version)}.") from None
    except NoRateFor as missing_rate:
        raise _Wrong("purchase", f"There is no exchange rate for {missing_rate.currency}.") from None


def _amount(field: str, text: str) -> Money:
    try:
        return read_amount(field, text)
    except BadProduct:
        raise _Wrong(field, "Must be an amount and a currency, such as 46.90 EUR.") from None


async def _form(visit: Visit, values: dict[str, str], problems: dict[str, str] | None = None) -> Response:
    async with visit.pool.acquire() as conn:
        newest = await uploads.newest(conn, KIND)
    return render(
        "console/stock_import.html",
        visit,
        status=422 if problems else 200,
        values=values,
        problems=problems or {},
        newest=newest,
        path=PATH,
    )
