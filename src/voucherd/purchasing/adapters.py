"""The adapters that a worker has open, one for each supplier, made anew when what they depend on has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import structlog

from voucherd.db import Pool
from voucherd.suppliers.protocol import Supplier
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import SupplierRow
from voucherd.vault.seal import SealBroken, Sealer

logger = structlog.get_logger(__name__)


class Adapters:
    """Opens, replaces and closes."""

    def __init__(self, pool: Pool, sealer: Sealer, open_with: Callable[[Spec, Pool], Supplier]) -> None:
        self._pool = pool
        self._sealer = sealer
        self._open_with = open_with
        self._open: dict[int, tuple[SupplierRow, Supplier | None]] = {}
        self._retiring: set[asyncio.Task[None]] = set()

    def of(self, row: SupplierRow, calls: Collection[asyncio.Task[None]]) -> Supplier | None:
        """The supplier's adapter; None if it can't be made, which is nobody else's trouble.

        One that is replaced is closed when these calls, which may go through it, have ended.
        """
        known = self._open.get(row.id)
        if known is not None and known[0].written == row.written:
            return known[1]
        if known is not None and known[1] is not None:
            task = asyncio.create_task(_retire(known[1], set(calls)))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
        adapter: Supplier | None = None
        try:
            adapter = self._open_with(row.spec(self._sealer), self._pool)
        except (ValueError, SealBroken) as error:
            logger.error("supplier_unusable", supplier=row.name, error=str(error))
        self._open[row.id] = (row, adapter)
        return adapter

    async def close(self) -> None:
        """Close all of them; no call is under way any more."""
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for _, adapter in self._open.values():
            if adapter is not None:
                await adapter.close()


async def _retire(adapter: Supplier, calls: set[asyncio.Task[None]]) -> None:
    if calls:
        await asyncio.wait(calls)
    await adapter.close()
