"""The whole catalogue, and the event that tells of a change in it."""

from __future__ import annotations

from voucherd.catalogue import store
from voucherd.catalogue.store import Listing
from voucherd.db import Connection, Tx
from voucherd.events import log


async def tell_updated(tx: Tx, listing: Listing) -> None:
    """Append the event that a product is new or has changed."""
    data = {"slug": listing.version.slug, "active": listing.active}
    await log.append(tx, log.PRODUCT_UPDATED, data=data)


async def every_product(
    connection: Connection, *, brand: str | None = None, active: bool | None = None
) -> list[Listing]:
    """All products, in order of their slugs."""
    listings: list[Listing] = []
    while True:
        after = listings[-1].version.slug if listings else ""
        page = await store.list_products(connection, active=active, brand_slug=brand, after_slug=after)
        listings += page
        if len(page) < store.PAGE_MAX:
            return listings
