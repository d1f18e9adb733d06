"""Changes of price lists as an operator writes them: products and brands by their slugs, one entry or a whole file."""

from __future__ import annotations

from collections.abc import Iterable

from voucherd.catalogue import price_store, store
from voucherd.catalogue.price_list_files import Wanted, entry_of
from voucherd.catalogue.price_store import Target
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.rules import BadProduct
from voucherd.catalogue.store import UnknownProduct
from voucherd.catalogue.terms import PriceEntry
from voucherd.db import Connection, Tx


class UnknownBrand(LookupError):
    """No brand has that slug."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"there is no brand {slug[:100]!a}")


class BadRow(ValueError):
    """A row of a file can't be what it says; nothing was changed."""

    def __init__(self, number: int, why: object) -> None:
        super().__init__(f"row {number}: {why}; nothing was changed")


async def found(conn: Connection | Tx, wanted: Wanted) -> tuple[Target, ProductVersion | None]:
    """What is meant, by its ids, and the product if it is one."""
    if wanted.product is not None:
        listed = await store.current(conn, [wanted.product])
        if wanted.product not in listed:
            raise UnknownProduct(wanted.product)
        version = listed[wanted.product].version
        return Target(product_id=version.product_id, valid_from=wanted.from_), version
    if wanted.brand is not None:
        brand_id = await store.find_brand(conn, wanted.brand)
        if brand_id is None:
            raise UnknownBrand(wanted.brand)
        return Target(brand_id=brand_id, valid_from=wanted.from_), None
    return Target(valid_from=wanted.from_), None


async def set_entry(tx: Tx, list_id: int, wanted: Wanted) -> PriceEntry:
    """Let a list say this of a product, a brand, or everything."""
    target, version = await found(tx, wanted)
    entry = entry_of(wanted, version)
    await price_store.set_entry(tx, list_id, target, entry, wanted.until)
    return entry


async def replace_entries(tx: Tx, list_id: int, rows: Iterable[tuple[int, Wanted]]) -> int:
    """Let a list say what these numbered rows say and nothing else; how much that is."""
    await price_store.clear(tx, list_id)
    seen: dict[Target, int] = {}
    for number, wanted in rows:
        try:
            target, version = await found(tx, wanted)
            entry = entry_of(wanted, version)
        except (BadProduct, UnknownProduct, UnknownBrand) as bad:
            raise BadRow(number, bad) from None
        if seen.setdefault(target, number) != number:
            raise BadRow(number, f"says the same as row {seen[target]}")
        await price_store.set_entry(tx, list_id, target, entry, wanted.until)
    return len(seen)
