"""Stock by hand: a file of codes is taken in; the trail says by whom, codes of what, and at what cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import BinaryIO, Final

from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import Connection, Pool, Tx
from voucherd.money import Money
from voucherd.vault import imports
from voucherd.vault.imports import ImportReport, Progress, StockTarget
from voucherd.vault.seal import Sealer

SUPPLIER_CHARS_MAX: Final = 100


class BadSupplierName(ValueError):
    """The name can't be that of who sold the codes."""

    def __init__(self) -> None:
        super().__init__(f"must be 1 to {SUPPLIER_CHARS_MAX} characters")


class FaceMissing(Exception):
    """The product has a variable face value, and nobody said which one."""

    def __init__(self, version: ProductVersion) -> None:
        super().__init__(f"{version.slug} has a variable face value")
        self.version = version


class NoSuchFace(Exception):
    """The product has no such face value."""

    def __init__(self, version: ProductVersion, face: Money) -> None:
        super().__init__(f"{version.slug} has no face value of {face}")
        self.version = version
        self.face = face


class NoRateFor(Exception):
    """There is no exchange rate for the currency that was paid in."""

    def __init__(self, currency: str) -> None:
        super().__init__(f"no exchange rate for {currency}")
        self.currency = currency


class StockTerms(Struct, frozen=True):
    """What an import needs to know of the codes before it reads them."""

    slug: str
    supplier: str
    face: Money
    purchase: Money
    target: StockTarget
    purchase_fx_e8: int


async def terms(
    conn: Connection, slug: str, supplier: str, face: Money | None, purchase: Money
) -> StockTerms:
    """The terms of an import; refused if the product has no such face value, or the cost can't be compared."""
    supplier = supplier.strip()
    if not 1 <= len(supplier) <= SUPPLIER_CHARS_MAX:
        raise BadSupplierName
    listing = (await catalogue.current(conn, [slug])).get(slug)
    if listing is None:
        raise UnknownProduct(slug)
    version = listing.version
    face_minor = _face_minor(version, face)
    brand_id = await catalogue.brand_of(conn, version.product_id)
    rates = await catalogue.rates(conn, [purchase.currency])
    if purchase.currency not in rates:
        raise NoRateFor(purchase.currency)
    return StockTerms(
        slug,
        supplier,
        Money(face_minor, version.face_currency),
        purchase,
        StockTarget(version.product_id, brand_id, face_minor),
        rates[purchase.currency],
    )


async def import_file(
    pool: Pool,
    actor: Actor,
    sealer: Sealer,
    terms: StockTerms,
    name: str,
    stream: BinaryIO,
    *,
    skip_bad: bool,
    progress: Progress,
    note: Callable[[Tx, ImportReport], Awaitable[None]] | None = None,
) -> ImportReport:
    """Take in the codes of a file that the vault does not have yet: all of it or nothing, unless bad lines are skipped.

    It is one transaction, with the row of the trail and what `note` writes in it.
    """

    async def record(tx: Tx, done: ImportReport) -> None:
        detail = {
            "file": name[:200],
            "supplier": terms.supplier,
            "face": str(terms.face),
            "purchase": str(terms.purchase),
            "skip_bad": skip_bad,
            "taken": done.taken,
            "known": done.already_there,
            "bad": done.bad_count,
            "lots": done.lots,
        }
        if done.taken:
            await trail.record(tx, actor, "stock.import", f"product {terms.slug}", detail)
        if note is not None:
            await note(tx, done)

    return await imports.import_codes(
        pool,
        sealer,
        stream,
        target=terms.target,
        supplier=terms.supplier,
        purchase=terms.purchase,
        purchase_fx_e8=terms.purchase_fx_e8,
        skip_bad=skip_bad,
        progress=progress,
        note=record,
    )


def _face_minor(version: ProductVersion, face: Money | None) -> int:
    if face is None:
        if version.face_minor is None:
            raise FaceMissing(version)
        return version.face_minor
    if face.currency != version.face_currency or not version.accepts_face(face.minor):
        raise NoSuchFace(version, face)
    return face.minor
