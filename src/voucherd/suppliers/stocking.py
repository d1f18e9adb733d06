"""Stock by hand: what the codes of a file are codes of, and what they cost."""

from __future__ import annotations

from msgspec import Struct

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import Connection
from voucherd.money import Money
from voucherd.vault.imports import StockTarget


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


class Terms(Struct, frozen=True):
    """What an import needs to know of the codes before it reads them."""

    target: StockTarget
    purchase: Money
    purchase_fx_e8: int


async def terms(conn: Connection, slug: str, face: Money | None, purchase: Money) -> Terms:
    """The terms of an import; refused if the product has no such face value, or the cost can't be compared."""
    listing = (await catalogue.current(conn, [slug])).get(slug)
    if listing is None:
        raise UnknownProduct(slug)
    version = listing.version
    face_minor = _face_minor(version, face)
    brand_id = await catalogue.brand_of(conn, version.product_id)
    rates = await catalogue.rates(conn, [purchase.currency])
    if purchase.currency not in rates:
        raise NoRateFor(purchase.currency)
    return Terms(StockTarget(version.product_id, brand_id, face_minor), purchase, rates[purchase.currency])


def _face_minor(version: ProductVersion, face: Money | None) -> int:
    if face is None:
        if version.face_minor is None:
            raise FaceMissing(version)
        return version.face_minor
    if face.currency != version.face_currency or not version.accepts_face(face.minor):
        raise NoSuchFace(version, face)
    return face.minor
