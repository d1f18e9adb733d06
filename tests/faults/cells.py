"""The cells of the fault matrix: what a supplier does wrong, what the client wants, and where the worker dies.

All times of the service are scaled down alike, so that a supplier that is slow by 25 s is still slower than the time
limit of a call (20 s) and faster than Resolve's (30 s).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tests.faults.stumbling import _PLAN, Stumble, Way
from tests.patience import until
from tests.shop import Company
from tests.suppliers.warehouse import Warehouse
from voucherd.db import Pool
from voucherd.suppliers.protocol import Answer, Finding, Sku, Supplier, SupplierQuote, WantedCodes

SCALE: Final = 0.15
TIMEOUT_S: Final = 3
"""20 s: the longest call."""
MARGIN_S: Final = 1.5
"""10 s: what a lease lasts longer than that."""
OVERTIME_S: Final = 0.75
RESOLVE_LIMIT_S: Final = 4.5
CONFIRM_WAIT_S: Final = 3.75
SETTLE_S: Final = 600
"""The supplier's settling time; it is over when the wholesaler has nothing under way any more."""
REAL_SETTLE_S: Final = 30
"""The same where real processes wait for it: far longer than a sale comes after the time limit of its call."""
AMOUNT: Final = 4
SURPLUS: Final = 2
STATEMENTS: Final = 14
"""The record of an answer has about so many; each cell falls at another one."""


@dataclass(frozen=True)
class Fault:
    """What the supplier does to the first purchase of a cell; to later ones it is honest."""

    name: str
    mode: str
    seconds: float = 0.0
    sells: int = AMOUNT
    """How many codes the purchase brings in the end."""


FAULTS: Final = (
    Fault("times out, nothing sold", "hang-before", sells=0),
    Fault("times out, sold", "hang-after"),
    Fault("resets the connection, nothing sold", "reset-before", sells=0),
    Fault("resets the connection, sold", "reset-after"),
    Fault("answers 500, nothing sold", "error-before", sells=0),
    Fault("answers 500, sold", "error-after"),
    Fault("answers with HTML", "malformed"),
    Fault("answers after 5 s", "slow", 5 * SCALE),
    Fault("answers after 25 s", "slow", 25 * SCALE),
    Fault("answers after 35 s", "slow", 35 * SCALE),
    Fault("sells after 25 s", "late-sale", 25 * SCALE),
    Fault("sells after 35 s", "late-sale", 35 * SCALE),
    Fault("lists every code twice", "duplicate"),
    Fault("sells half", "partial", sells=AMOUNT // 2),
    Fault("sells two more", "too-many", sells=AMOUNT + SURPLUS),
)


class Death(Enum):
    """Where the worker that makes the first purchase dies."""

    BEFORE_CALL = "dies before the call"
    AFTER_CALL = "dies after the call"
    BEFORE_RECORD = "dies before the record"
    NEVER = "lives"
    ANYWHERE = "is killed somewhere"


OPERATIONS: Final = ("resolve", "confirm", "cancel")


@dataclass
class Cell:
    """One product at one supplier, one company, one order."""

    number: int
    fault: Fault
    operation: str
    death: Death
    company: Company = field(init=False)
    trx: str = ""

    def __str__(self) -> str:
        return f"{self.slug}: {self.operation}, the supplier {self.fault.name}, the worker {self.death.value}"

    @property
    def slug(self) -> str:
        """The product, the supplier and its name for the product are all called so."""
        return f"cell-{self.number}"

    @property
    def bought_first(self) -> set[int]:
        """How many codes the first purchase may have brought."""
        # A worker that died before it called has bought nothing: the supplier misbehaves at what is bought instead.
        if self.death is Death.BEFORE_CALL:
            return {0}
        return {0, self.fault.sells} if self.death is Death.ANYWHERE else {self.fault.sells}


IN_THE_SUITE: Final = (Death.BEFORE_CALL, Death.AFTER_CALL, Death.BEFORE_RECORD, Death.NEVER)


def cells(deaths: Sequence[Death] = IN_THE_SUITE) -> list[Cell]:
    """Each of these deaths with every operation and every fault."""
    whole = itertools.product(deaths, OPERATIONS, FAULTS)
    return [Cell(number, fault, operation, death) for number, (death, operation, fault) in enumerate(whole)]


def pairs() -> list[Cell]:
    """A third of the matrix, in which every two of a fault, an operation and a death still meet."""
    chosen = [
        (death, OPERATIONS[(at + turn) % len(OPERATIONS)], fault)
        for turn, death in enumerate(IN_THE_SUITE)
        for at, fault in enumerate(FAULTS)
    ]
    return [Cell(number, fault, operation, death) for number, (death, operation, fault) in enumerate(chosen)]


class Mortal:
    """An adapter whose worker dies at its first purchase: the task is gone, and with it what it knew."""

    def __init__(self, inner: Supplier, cell: Cell, killer: Pool, wholesaler: Warehouse) -> None:
        self._inner = inner
        self._wholesaler = wholesaler
        self._cell = cell
        self._killer = killer
        self.looks_up = inner.looks_up
        self.bulk_max = inner.bulk_max

    async def quote(self, skus: Sequence[Sku]) -> list[SupplierQuote]:
        """As the adapter's."""
        return await self._inner.quote(skus)

    async def buy(self, reference: str, wanted: WantedCodes) -> Answer:
        """As the adapter's, and then nothing more."""
        match self._cell.death:
            case Death.BEFORE_CALL:
                raise asyncio.CancelledError
            case Death.AFTER_CALL:
                # As a killed process does: the connection is closed, whatever the supplier is at.
                calling = asyncio.ensure_future(self._inner.buy(reference, wanted))
                await until(lambda: self._wholesaler.was_asked(reference))
                calling.cancel()
                raise asyncio.CancelledError
            case Death.BEFORE_RECORD:
                answer = await self._inner.buy(reference, wanted)
                _PLAN.set(Stumble(1 + self._cell.number % STATEMENTS, Way.CANCELLED, self._killer))
                return answer
        return await self._inner.buy(reference, wanted)

    async def look_up(self, reference: str, wanted: WantedCodes) -> Finding:
        """As the adapter's."""
        return await self._inner.look_up(reference, wanted)

    async def cancel(self, reference: str, wanted: WantedCodes) -> Finding:
        """As the adapter's."""
        return await self._inner.cancel(reference, wanted)

    async def close(self) -> None:
        """As the adapter's."""
        await self._inner.close()
