"""What only some prices depend on: margins on exchange rates, remembered so that all other prices pay nothing for it.

One row tells when something has changed. A change is seen by every process within `EPOCH_AGE_S_MAX`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from voucherd.catalogue import fx_store
from voucherd.db import Connection

EPOCH_AGE_S_MAX: Final = 1.0


class PriceBook:
    """The margins in force."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._checked_at = -EPOCH_AGE_S_MAX
        self._margins: Mapping[tuple[str, str], int] = {}

    async def margins(self, conn: Connection) -> Mapping[tuple[str, str], int]:
        """What is added to a price in the first currency that is paid in the second, in basis points."""
        await self._look(conn)
        return self._margins

    async def _look(self, conn: Connection) -> None:
        checked_at = time.monotonic()
        if checked_at - self._checked_at < EPOCH_AGE_S_MAX:
            return
        epoch = await conn.fetchval("SELECT epoch FROM price_epoch")
        if epoch != self._epoch:
            self._margins = await fx_store.margins(conn)
            self._epoch = epoch
        self._checked_at = checked_at
