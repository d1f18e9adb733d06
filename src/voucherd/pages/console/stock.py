"""Codes from a file: uploaded, checked, and imported in whole or not at all."""

from __future__ import annotations

import io
from typing import Any, Final

from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.texts import face_text, read_amount
from voucherd.http import Response
from voucherd.pages.console.pickers import (
    NotPicked,
    currency_options,
    pick_product,
    product_options,
    shown,
    with_currency,
)
from voucherd.pages.console.uploads import Far, FilePages, chosen_file
from voucherd.pages.forms import sentence
from voucherd.pages.render import amount
from voucherd.pages.visit import Visit
from voucherd.suppliers import stocking
from voucherd.suppliers import store as supplier_store
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
    values = {name: given.get(name) for name in _FIELDS}
    async with visit.pool.acquire() as conn:
        products = await product_options(conn)
        suppliers = [(one.name, one.name) for one in await supplier_store.suppliers(conn)]
    values["slug"] = shown(products, values["slug"])
    return await FILES.form(
        visit,
        values=values | {"purchase_currency": given.get("purchase_currency") or "EUR"},
        products=[("", "Choose …"), *products],
        suppliers=suppliers,
        currencies=currency_options(["EUR"]),
    )


async def upload(visit: Visit) -> Response:
    """Keep the file, and check what an import of it would do."""
    form = visit.form
    values = {name: form.get(name) for name in _FIELDS}
    values["purchase"] = with_currency(values["purchase"], form.get("purchase_currency"))
    terms = await read_terms(visit, values)
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
        text = "Some lines are wrong. Correct the file, or tick that they are left out."
        return visit.go(back, text, "bad")
    terms = await read_terms(visit, {name: str(row.terms.get(name, "")) for name in _FIELDS})
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


async def read_terms(visit: Visit, values: dict[str, str]) -> StockTerms | None:
    """The product and the cost of the codes; None, and a problem beside the field that is wrong.

    The values are then as they are kept with the file: the product's slug, and amounts with their currency.
    """
    problems = visit.problems
    try:
        async with visit.pool.acquire() as conn:
            version = (await pick_product(conn, values["slug"])).version
            values["slug"] = version.slug
            values["face"] = with_currency(values["face"], version.face_currency)
            purchase = read_amount("purchase", values["purchase"])
            face = read_amount("face", values["face"]) if values["face"] else None
            return await stocking.terms(conn, version.slug, values["supplier"], face, purchase)
    except NotPicked as wrong:
        problems["slug"] = str(wrong)
    except BadProduct as bad:
        problems[bad.field] = "Must be an amount, such as 46.90."
    except BadSupplierName as bad_name:
        problems["supplier"] = sentence(bad_name)
    except FaceMissing as needed:
        problems["face"] = (
            f"Is needed: the product’s face value is variable, {face_text(needed.version, amount)}."
        )
    except NoSuchFace as other:
        problems["face"] = f"The product has {face_text(other.version, amount)}."
    except NoRateFor as unrated:
        problems["purchase"] = f"There is no exchange rate for {unrated.currency}."
    return None
