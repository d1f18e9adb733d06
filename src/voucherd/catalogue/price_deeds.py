"""Deeds on price lists: each writes its row of the trail, in the caller's transaction.

Products and brands are named by their slugs, as an operator writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import price_store, store
from voucherd.catalogue.logos import BrandNotFound
from voucherd.catalogue.price_list_files import PriceChange, entry_of
from voucherd.catalogue.price_store import NAME_CHARS_MAX, PriceTarget
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.terms import PriceEntry
from voucherd.companies.model import Company
from voucherd.db import Connection, Tx


class BadListName(ValueError):
    """The name can't be that of a price list."""

    def __init__(self) -> None:
        super().__init__(f"a name is 1 to {NAME_CHARS_MAX} printable characters")


class NothingSaid(LookupError):
    """The list says nothing of that from that day on."""

    def __init__(self, name: str, wanted: PriceChange) -> None:
        super().__init__(
            f"{name} says nothing of that" + (f" from {wanted.from_} on" if wanted.from_ else "")
        )


class NoPriceList(LookupError):
    """The company has no price list."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} has no price list")


class BadRow(ValueError):
    """A row of a file can't be what it says; nothing was changed."""

    def __init__(self, number: int, why: object) -> None:
        super().__init__(f"row {number}: {why}; nothing was changed")


async def add_list(tx: Tx, actor: Actor, name: str) -> int:
    """A new list without entries; refused if its name is taken, or none."""
    if not 1 <= len(name) <= NAME_CHARS_MAX or name != name.strip() or not name.isprintable():
        raise BadListName
    list_id = await price_store.add_list(tx, name)
    await _record(tx, actor, "price.list.add", name)
    return list_id


async def remove_list(tx: Tx, actor: Actor, name: str) -> None:
    """Remove a list with its entries; refused while a company has it."""
    await price_store.remove_list(tx, name)
    await _record(tx, actor, "price.list.remove", name)


async def assign(tx: Tx, actor: Actor, name: str, company: Company) -> None:
    """Give the company this list, instead of the one that it may have had."""
    await price_store.assign(tx, company.id, await price_store.find_list(tx, name))
    subject = f"company {company.name}"
    await trail.record(tx, actor, "price.list.assign", subject, {"list": name}, company_id=company.id)


async def unassign(tx: Tx, actor: Actor, company: Company) -> None:
    """Take the company's list away: it pays the catalogue's prices; refused if it has none."""
    if not await price_store.unassign(tx, company.id):
        raise NoPriceList(company.name)
    subject = f"company {company.name}"
    await trail.record(tx, actor, "price.list.unassign", subject, company_id=company.id)


async def set_entry(tx: Tx, actor: Actor, name: str, wanted: PriceChange) -> PriceEntry:
    """Let a list say this of a product, a brand, or everything."""
    list_id = await price_store.find_list(tx, name)
    target, version = await _found(tx, wanted)
    entry = entry_of(wanted, version)
    await price_store.set_entry(tx, list_id, target, entry, wanted.until)
    await _record(tx, actor, "price.set", name, _told(wanted))
    return entry


async def remove_entry(tx: Tx, actor: Actor, name: str, wanted: PriceChange) -> None:
    """Take back what a list says of this from exactly that day on; refused if it says nothing."""
    list_id = await price_store.find_list(tx, name)
    target, _ = await _found(tx, wanted)
    if not await price_store.remove_entry(tx, list_id, target):
        raise NothingSaid(name, wanted)
    await _record(tx, actor, "price.remove", name, _told(wanted))


async def import_file(
    tx: Tx, actor: Actor, name: str, file: str, rows: Sequence[tuple[int, PriceChange]]
) -> int:
    """Let a list say what these numbered rows say and nothing else; how many entries that is."""
    list_id = await price_store.find_list(tx, name)
    await price_store.clear(tx, list_id)
    seen: dict[PriceTarget, int] = {}
    for number, wanted in rows:
        try:
            target, version = await _found(tx, wanted)
            entry = entry_of(wanted, version)
        except (BadProduct, UnknownProduct, BrandNotFound) as bad:
            raise BadRow(number, bad) from None
        if seen.setdefault(target, number) != number:
            raise BadRow(number, f"says the same as row {seen[target]}")
        await price_store.set_entry(tx, list_id, target, entry, wanted.until)
    await _record(tx, actor, "price.import", name, {"file": file[:200], "entries": len(seen)})
    return len(seen)


async def _found(conn: Connection | Tx, wanted: PriceChange) -> tuple[PriceTarget, ProductVersion | None]:
    """What is meant, by its ids, and the product if it is one."""
    if wanted.product is not None:
        listed = await store.current(conn, [wanted.product])
        if wanted.product not in listed:
            raise UnknownProduct(wanted.product)
        version = listed[wanted.product].version
        return PriceTarget(product_id=version.product_id, valid_from=wanted.from_), version
    if wanted.brand is not None:
        brand_id = await store.find_brand(conn, wanted.brand)
        if brand_id is None:
            raise BrandNotFound(wanted.brand)
        return PriceTarget(brand_id=brand_id, valid_from=wanted.from_), None
    return PriceTarget(valid_from=wanted.from_), None


async def _record(
    tx: Tx, actor: Actor, action: str, name: str, detail: Mapping[str, Any] | None = None
) -> None:
    await trail.record(tx, actor, action, f"price list {name}", detail)


def _told(wanted: PriceChange) -> dict[str, str]:
    given = {name: getattr(wanted, name) for name in ("product", "brand", "discount", "price", "fee")}
    days = {"from": wanted.from_, "until": wanted.until}
    return {name: str(value) for name, value in (given | days).items() if value is not None}
