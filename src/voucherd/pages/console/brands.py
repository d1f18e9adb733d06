"""Brands: their names and logos (OP-159)."""

from __future__ import annotations

from typing import Final

from voucherd.catalogue import brand_deeds, brand_store, logos
from voucherd.catalogue.brand_store import SORTS, BrandExists
from voucherd.catalogue.logos import BadLogo
from voucherd.catalogue.rules import BadProduct
from voucherd.http import Response
from voucherd.pages.console.inputs import number_of
from voucherd.pages.forms import sentence
from voucherd.pages.render import in_pages, qualified, render, sheet
from voucherd.pages.visit import Visit
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen

PATH: Final = "/console/brands"
PAGE_SIZE: Final = 48
PAGES_MAX: Final = 200
FORM_BYTES_MAX: Final = logos.BYTES_MAX + 64 * 1024
_FILE_ROWS_MAX: Final = 10_000
_TAKEN: Final = "There is a brand of that name already."


async def brands(visit: Visit) -> Response:
    """The brands, or those that are looked for."""
    given, sort = _search(visit)
    page = number_of(visit.query.get("page"), PAGES_MAX) or 1
    found = await visit.look(brand_store.search, given["q"], sort, PAGE_SIZE + 1, (page - 1) * PAGE_SIZE)
    more = len(found) > PAGE_SIZE and page < PAGES_MAX
    return render(
        "console/brands.html",
        visit,
        rows=found[:PAGE_SIZE],
        given=given,
        sort=sort,
        before=qualified(PATH, given | {"page": page - 1}) if page > 1 else "",
        after=qualified(PATH, given | {"page": page + 1}) if more else "",
    )


async def brands_file(visit: Visit) -> Response:
    """The same as a file."""
    given, sort = _search(visit)
    found = await visit.look(brand_store.search, given["q"], sort, _FILE_ROWS_MAX)
    rows: list[list[Value]] = [[one.slug, one.name, one.products, one.logo is not None] for one in found]
    return await sheet(visit, "brands", ("slug", "name", "products", "logo"), in_pages(rows), title="brands")


async def new_page(visit: Visit) -> Response:
    """The form for a new brand."""
    return render(
        "console/brand.html", visit, brand=None, name=visit.form.get("name"), kilobytes=_kilobytes()
    )


async def add(visit: Visit) -> Response:
    """Add a brand, with its logo if there is one."""
    upload = visit.files.get("file")
    try:
        if upload is not None and upload.content:
            logos.name_of(upload.content)
        brand = await visit.do(brand_deeds.add, visit.form.get("name"))
        if upload is not None and upload.content:
            await visit.do(brand_deeds.set_logo, brand.slug, upload.content)
    except BadProduct as bad:
        visit.problems["name"] = sentence(bad.rule)
    except BrandExists:
        visit.problems["name"] = _TAKEN
    except BadLogo as bad_logo:
        visit.problems["file"] = sentence(bad_logo)
    if visit.problems:
        return await new_page(visit)
    return visit.go(f"{PATH}/{brand.slug}", f"{brand.name} is added.")


async def brand(visit: Visit) -> Response:
    """One brand: its name, its logo, its products."""
    found = await visit.look(brand_store.find, visit.parameters["slug"])
    name = visit.form.get("name") if "name" in visit.problems else found.name
    return render("console/brand.html", visit, brand=found, name=name, kilobytes=_kilobytes())


async def rename(visit: Visit) -> Response:
    """Give a brand another name."""
    slug = visit.parameters["slug"]
    try:
        found = await visit.do(brand_deeds.rename, slug, visit.form.get("name"))
    except BadProduct as bad:
        visit.problems["name"] = sentence(bad.rule)
    except BrandExists:
        visit.problems["name"] = _TAKEN
    if visit.problems:
        return await brand(visit)
    return visit.go(f"{PATH}/{slug}", f"It is called {found.name} now.")


async def set_logo(visit: Visit) -> Response:
    """Give a brand a logo, in place of the one it had."""
    slug, upload = visit.parameters["slug"], visit.files.get("file")
    try:
        if upload is None or not upload.content:
            raise BadLogo("choose a file first")
        await visit.do(brand_deeds.set_logo, slug, upload.content)
    except BadLogo as bad:
        visit.problems["file"] = sentence(bad)
        return await brand(visit)
    return visit.go(f"{PATH}/{slug}", "The logo is set.")


async def remove_logo(visit: Visit) -> Response:
    """Take a brand's logo away."""
    slug = visit.parameters["slug"]
    await visit.do(brand_deeds.remove_logo, slug)
    return visit.go(f"{PATH}/{slug}", "The logo is removed.", "note")


def _search(visit: Visit) -> tuple[dict[str, str], str]:
    sort = chosen(visit.query.get("sort"), SORTS, "name")
    return {"q": visit.query.get("q")[:200], "sort": sort}, sort


def _kilobytes() -> int:
    return logos.BYTES_MAX // 1024
