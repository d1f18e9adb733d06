"""A supplier that does as it is told, in this process: for scenarios about what we do, not about the wire."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from voucherd.money import Money
from voucherd.suppliers.protocol import (
    Answer,
    Bought,
    Code,
    Finding,
    NotFound,
    QuoteFailed,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    WantedCodes,
    Why,
)

Deed: TypeAlias = Callable[["FakeSupplier", str, WantedCodes], Awaitable[Answer]]


@dataclass
class FakeSupplier:
    """Sells what it is asked for, under every reference once, and remembers it."""

    price: str = "9.00 EUR"
    stock: int = 1_000
    looks_up: bool = True
    bulk_max: int = 100
    deeds: list[Deed] = field(default_factory=list)
    """What it does with the next purchases, one after another; then it is honest."""
    sold: dict[str, Bought] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    quotes: int = 0
    silent: bool = False
    """Whether it gives no prices."""
    free: asyncio.Event = field(default_factory=asyncio.Event)
    """Purchases that wait go on when it is set."""

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """The same price for everything."""
        self.quotes += 1
        if self.silent:
            raise QuoteFailed("closed today")
        return [SupplierQuote(one.sku, one.face, Money.read(self.price), self.stock) for one in skus]

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """Do the next deed."""
        assert ("buy", reference) not in self.calls, "bought twice with one reference"
        self.calls.append(("buy", reference))
        if self.deeds:
            return await self.deeds.pop(0)(self, reference, wanted)
        return self.sell(reference, wanted)

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What was sold under the reference."""
        self.calls.append(("look_up", reference))
        return self.sold.get(reference, NotFound())

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """What is sold is sold."""
        self.calls.append(("cancel", reference))
        return self.sold.get(reference, NotFound())

    async def close(self) -> None:
        """Nothing is open."""

    def sell(self, reference: str, wanted: WantedCodes, count: int | None = None) -> Bought:
        """Sell that many codes under the reference."""
        codes = tuple(
            Code(f"F-{secrets.token_hex(8)}", f"f-{at}")
            for at in range(wanted.count if count is None else count)
        )
        self.sold[reference] = Bought(codes, f"F{len(self.sold) + 1}", Money.read(self.price))
        return self.sold[reference]


# ── deeds ─────────────────────────────────────────────────────────────────────────────────────────────


async def honest(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells."""
    return supplier.sell(reference, wanted)


async def sold_out(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Has none after all."""
    return SupplierRefused(Why.OUT_OF_STOCK)


async def unreachable(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Can't be reached."""
    return SupplierRefused(Why.UNREACHABLE)


async def sold_but_unclear(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells, but its answer gets lost."""
    supplier.sell(reference, wanted)
    return Unclear("reset")


async def unclear(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells nothing, and its answer gets lost."""
    return Unclear("reset")


async def waits(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells when it is let go."""
    await supplier.free.wait()
    return supplier.sell(reference, wanted)


async def waits_in_vain(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Has none, but says so only when it is let go."""
    await supplier.free.wait()
    return SupplierRefused(Why.OUT_OF_STOCK)


async def too_few(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells one code less."""
    return supplier.sell(reference, wanted, wanted.count - 1)


async def too_many(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells two codes more."""
    return supplier.sell(reference, wanted, wanted.count + 2)
