"""Our own stock, beside the suppliers: what lies on the shelf and what it cost. Not one that an operator adds.

Codes of ours are sold inside the transaction that takes the money, by moving a lot's cursor. So nothing is ever bought
here: `buy` looks, and answers `OnShelf` where the others say `Bought`. That is the one answer more than the protocol
has, which is why this is no `Supplier` for the dispatcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import asyncpg
from msgspec import Struct

from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money
from voucherd.suppliers.protocol import (
    BULK_MAX,
    Answer,
    Finding,
    NotFound,
    Quote,
    QuoteFailed,
    Sku,
    SupplierRefused,
    Wanted,
    Why,
)
from voucherd.vault import shelf
from voucherd.vault.model import Lot

PRODUCT_ID_MAX: Final = 2**31 - 1
_FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class OnShelf(Struct, frozen=True):
    """The codes lie on our own shelf at this moment; deliver them from there."""

    count: int


class ShelfSupplier:
    """Looks at the shelf. Its name for a product is the product's id."""

    looks_up = True
    bulk_max = BULK_MAX

    def __init__(self, pool: Pool, state: State, timeout_s: float) -> None:
        self._pool = pool
        self._state = state
        self._timeout_s = timeout_s

    async def quote(self, skus: Sequence[Sku]) -> list[Quote]:
        """What the next code of each product cost us, and how many there are."""
        try:
            lots = await self._look(skus)
        except _FAILURES as error:
            raise QuoteFailed(f"no price: {type(error).__name__}") from None
        return [
            Quote(sku.sku, sku.face, _cost(found[0]), sum(lot.left for lot in found))
            for sku, found in zip(skus, lots, strict=True)
            if found
        ]

    async def buy(self, reference: str, wanted: Wanted) -> Answer | OnShelf:
        """Whether the shelf has them at that price. Nothing moves, so not even a failure is unclear."""
        try:
            (lots,) = await self._look([Sku(wanted.sku, wanted.face)])
        except _FAILURES as error:
            return SupplierRefused(Why.UNREACHABLE, type(error).__name__)
        missing = wanted.count
        for lot in lots:
            if missing <= 0:
                break
            cost = _cost(lot)
            if cost.currency != wanted.price_max.currency or cost.minor > wanted.price_max.minor:
                return SupplierRefused(Why.PRICE, f"cost {cost}")
            missing -= lot.left
        return OnShelf(wanted.count) if missing <= 0 else SupplierRefused(Why.OUT_OF_STOCK)

    async def look_up(self, reference: str, wanted: Wanted) -> Finding:
        """Nothing was bought, whatever the reference."""
        return NotFound()

    async def cancel(self, reference: str, wanted: Wanted) -> Finding:
        """There is nothing to take back."""
        return NotFound()

    async def close(self) -> None:
        """Nothing to let go of: the pool is not ours."""

    async def _look(self, skus: Sequence[Sku]) -> list[list[Lot]]:
        keys = [(_product_id(sku.sku), sku.face.minor, int(self._state)) for sku in skus]
        async with asyncio.timeout(self._timeout_s), self._pool.acquire() as conn:
            found = await shelf.look(conn, set(keys))
        return [found[key] for key in keys]


def _cost(lot: Lot) -> Money:
    return Money(lot.purchase_minor, lot.purchase_currency)


def _product_id(sku: str) -> int:
    """The product's id; 0, which is none, for a name that is not one."""
    return int(sku) if sku.isascii() and sku.isdigit() and len(sku) < 11 and int(sku) <= PRODUCT_ID_MAX else 0
