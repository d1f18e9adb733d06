"""What is for sale changes: each change of a product with the event that tells of it, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from voucherd.catalogue import store
from voucherd.catalogue.files import Plan
from voucherd.catalogue.products import Listing, ProductChanges, ProductDraft
from voucherd.catalogue.store import UnknownProduct
from voucherd.db import Connection, Tx
from voucherd.events import kinds, log


async def tell_updated(tx: Tx, listing: Listing) -> None:
    """Append the event that a product is new or has changed."""
    data = {"slug": listing.version.slug, "active": listing.active}
    await log.append(tx, kinds.PRODUCT_UPDATED, data=data)


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


async def find(connection: Connection, slug: str) -> Listing:
    """The product as it stands now, or UnknownProduct."""
    found = await store.current(connection, [slug])
    if slug not in found:
        raise UnknownProduct(slug)
    return found[slug]


async def add(tx: Tx, draft: ProductDraft, *, active: bool) -> Listing:
    """A new product."""
    added = Listing(await store.add_product(tx, draft, active=active), active)
    await tell_updated(tx, added)
    return added


async def change(tx: Tx, slug: str, changes: ProductChanges) -> Listing:
    """The product after the changes; the world is told if it sees a difference."""
    before = await find(tx, slug)
    version = await store.set_product(tx, slug, changes)
    after = (await store.current(tx, [slug]))[slug]
    if (version, after.active) != (before.version, before.active):
        await tell_updated(tx, after)
    return after


async def carry_out(
    tx: Tx, plan: Plan, listings: Mapping[str, Listing], step: Callable[[], None] = lambda: None
) -> None:
    """Add and change what a file says; `listings` are those that it was planned with, locked."""
    for one in plan.changes:
        slug = one.draft.slug
        if one.added:
            version = await store.add_product(tx, one.draft, active=one.active)
        else:
            version = await store.set_product(tx, slug, one.changes())
        before = listings.get(slug)
        if before is None or (before.version, before.active) != (version, one.active):
            await tell_updated(tx, Listing(version, one.active))
        step()
