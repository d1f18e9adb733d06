"""A supplier in memory that does what a test tells it, for tests that are not about suppliers."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias

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
    UnderWay,
    WantedCodes,
    Why,
)

Step: TypeAlias = Answer | Literal["sell", "sell-unclear", "accept", "hang"]
"""What a purchase does: sells; sells, and the answer is lost; takes it and sells when told; hangs. Or an answer."""
EXPIRES = datetime(2031, 12, 31, 23, 59, 59, tzinfo=UTC)


class FakeSupplier:
    """Sells, unless the next step of its script says otherwise."""

    def __init__(
        self,
        price: Money,
        *,
        stock: int = 1_000,
        looks_up: bool = True,
        bulk_max: int = 100,
        timeout_s: float = 1.0,
    ) -> None:
        self.price = price
        self.stock = stock
        self.looks_up = looks_up
        self.bulk_max = bulk_max
        self.script: deque[Step] = deque()
        self.sold: dict[str, tuple[Code, ...]] = {}
        self.accepted: dict[str, WantedCodes] = {}
        self.cancelled: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        """(operation, reference) of every call, in order."""
        self._timeout_s = timeout_s

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """Everything costs the same; a script that hangs hangs here too."""
        self.calls.append(("quote", ""))
        if self.script and self.script[0] == "hang":
            await asyncio.sleep(self._timeout_s)
            raise QuoteFailed("no price: no answer in time")
        return [SupplierQuote(sku.sku, sku.face, self.price, self.stock) for sku in skus]

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """The next step of the script."""
        self.calls.append(("buy", reference))
        assert reference not in self.sold, "bought twice with one reference"
        assert wanted.count <= self.bulk_max
        if self.price.currency != wanted.price_max.currency or self.price.minor > wanted.price_max.minor:
            return SupplierRefused(Why.PRICE)
        if self.stock < wanted.count:
            return SupplierRefused(Why.OUT_OF_STOCK)
        return await self._act(self.script.popleft() if self.script else "sell", reference, wanted)

    async def _act(self, step: Step, reference: str, wanted: WantedCodes) -> Answer:
        if step == "hang":
            await asyncio.sleep(self._timeout_s)
            return Unclear("no answer in time")
        if step == "accept":
            self.accepted[reference] = wanted
            return UnderWay(reference)
        if step == "sell":
            return self.sell(reference, wanted)
        if step == "sell-unclear":
            self.sell(reference, wanted)
            return Unclear("the answer was lost")
        if isinstance(step, Bought):
            self.sold[reference] = step.codes
        return step

    def sell(self, reference: str, wanted: WantedCodes) -> Bought:
        """Sell now, also what was only accepted before."""
        self.accepted.pop(reference, None)
        self.stock -= wanted.count
        self.sold[reference] = tuple(
            Code(f"FAKE-{secrets.token_hex(8)}", f"F{at}", EXPIRES) for at in range(wanted.count)
        )
        return Bought(self.sold[reference], reference, self.price)

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """What became of it."""
        self.calls.append(("look_up", reference))
        return self._found(reference)

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """Only what was not sold yet."""
        self.calls.append(("cancel", reference))
        if self.accepted.pop(reference, None) is not None:
            self.cancelled.add(reference)
        return self._found(reference)

    def _found(self, reference: str) -> Finding:
        if not self.looks_up:
            return Unclear("can't be asked")
        if reference in self.sold:
            return Bought(self.sold[reference], reference, self.price)
        if reference in self.cancelled:
            return SupplierRefused(Why.CANCELLED)
        return UnderWay(reference) if reference in self.accepted else NotFound()

    async def close(self) -> None:
        """Nothing to let go of."""
