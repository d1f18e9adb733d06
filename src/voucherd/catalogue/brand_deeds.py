"""Deeds on brands: each writes its row of the trail, in the caller's transaction."""

from __future__ import annotations

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import brand_store, logos
from voucherd.catalogue.brand_store import Brand
from voucherd.db import Tx, take_long
from voucherd.events import kinds, log


async def add(tx: Tx, actor: Actor, name: str) -> Brand:
    """A new brand; refused if there is one already."""
    brand = await brand_store.add(tx, name)
    await trail.record(tx, actor, "brand.add", f"brand {brand.slug}", {"name": brand.name})
    return brand


async def rename(tx: Tx, actor: Actor, slug: str, name: str) -> Brand:
    """The brand with another name; its slug stays, and clients are told of each of its products."""
    before = await brand_store.find(tx, slug)
    if name == before.name:
        return before
    await take_long(tx)  # A brand may have thousands of products.
    for product, active in await brand_store.rename(tx, before, name):
        await log.append(tx, kinds.PRODUCT_UPDATED, data={"slug": product, "active": active})
    await trail.record(tx, actor, "brand.rename", f"brand {slug}", {"from": before.name, "to": name})
    return await brand_store.find(tx, slug)


async def set_logo(tx: Tx, actor: Actor, slug: str, content: bytes) -> str:
    """Give the brand this logo, in place of the one it had; its name. Refused if it is no picture, or too large."""
    name = await logos.set_logo(tx, slug, content)
    await trail.record(tx, actor, "brand.set-logo", f"brand {slug}", {"logo": name, "bytes": len(content)})
    return name


async def remove_logo(tx: Tx, actor: Actor, slug: str) -> bool:
    """Take the brand's logo away; whether it had one."""
    had = await logos.remove_logo(tx, slug)
    if had:
        await trail.record(tx, actor, "brand.remove-logo", f"brand {slug}")
    return had
