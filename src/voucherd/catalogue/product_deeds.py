"""Deeds on products: each writes its event and its row of the trail, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import files, store
from voucherd.catalogue.cells import RowCells
from voucherd.catalogue.columns import TEXTS, text, values
from voucherd.catalogue.files import ImportPlan
from voucherd.catalogue.products import Leaflet, Listing, ProductChanges, ProductDraft, draft_of
from voucherd.db import Connection, Tx, take_long
from voucherd.events import kinds, log

TEXT_CHARS_TOLD_MAX: Final = 300
"""Of a value, in the trail."""


async def add(tx: Tx, actor: Actor, draft: ProductDraft, *, active: bool) -> Listing:
    """A new product; refused if its slug is taken."""
    added = Listing(await store.add_product(tx, draft, active=active), active)
    await _tell(tx, added)
    detail = _difference({}, values(draft, active))
    await trail.record(tx, actor, "product.add", f"product {draft.slug}", detail)
    return added


async def change(tx: Tx, actor: Actor, slug: str, changes: ProductChanges) -> Listing:
    """The product after the changes; the event is sent if clients see a difference."""
    before = (await store.lock(tx, [slug])).get(slug)
    if before is None:
        raise store.UnknownProduct(slug)
    told_before = await _told(tx, before)
    version = await store.set_product(tx, slug, changes)
    after = (await store.current(tx, [slug]))[slug]
    if (version, after.active) != (before.version, before.active):
        await _tell(tx, after)
    detail = _difference(told_before, await _told(tx, after))
    await trail.record(tx, actor, "product.set", f"product {slug}", detail)
    return after


async def import_file(
    tx: Tx, actor: Actor, name: str, rows: Sequence[RowCells], step: Callable[[int, int], None]
) -> ImportPlan:
    """Add and change products as a file says, all of it, or nothing if it has errors; what that was.

    `step` hears after each product how many of how many are done.
    """
    await take_long(tx)  # To plan with all rows of a large file takes seconds.
    listings = await store.lock(tx, [row.slug for row in rows if row.slug])
    plan = files.plan(rows, listings, await leaflets_of(tx, listings))
    if plan.error_count:
        return plan
    for done, one in enumerate(plan.changes, 1):
        slug = one.draft.slug
        if one.added:
            version = await store.add_product(tx, one.draft, active=one.active)
        else:
            version = await store.set_product(tx, slug, one.changes())
        before = listings.get(slug)
        if before is None or (before.version, before.active) != (version, one.active):
            await _tell(tx, Listing(version, one.active))
        step(done, len(plan.changes))
    if plan.changes:
        detail = {"added": plan.added, "changed": plan.changed, "unchanged": plan.unchanged}
        await trail.record(tx, actor, "product.import", f"file {name}", detail)
    return plan


async def planned_from(
    conn: Connection, rows: Sequence[RowCells]
) -> tuple[dict[str, Listing], dict[int, Leaflet]]:
    """What a plan of these rows starts from: the products that they name, and their texts."""
    listings = await store.current(conn, [row.slug for row in rows if row.slug])
    return listings, await leaflets_of(conn, listings)


async def leaflets_of(conn: Connection, listings: Mapping[str, Listing]) -> dict[int, Leaflet]:
    """The texts of these products, by version."""
    return await store.leaflets(conn, [listing.version.version_id for listing in listings.values()])


async def _tell(tx: Tx, listing: Listing) -> None:
    """Append the event that a product is new or has changed."""
    data = {"slug": listing.version.slug, "active": listing.active}
    await log.append(tx, kinds.PRODUCT_UPDATED, data=data)


async def _told(tx: Tx, listing: Listing) -> dict[str, Any]:
    """Everything that the trail could tell of a product."""
    version = listing.version
    leaflet = (await store.leaflets(tx, [version.version_id]))[version.version_id]
    return values(draft_of(version, leaflet), listing.active) | {"allow-loss": listing.allow_loss}


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """The fields that are other than before, as a file would write them; of long texts only that they changed."""
    told = {name: text(value) for name, value in after.items() if text(value) != text(before.get(name))}
    return {
        name: "(changed)" if name in TEXTS else value[:TEXT_CHARS_TOLD_MAX]
        for name, value in told.items()
        if name != "slug"
    }
