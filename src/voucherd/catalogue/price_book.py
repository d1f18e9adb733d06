"""What only some prices depend on: margins on exchange rates and companies' price lists.

Which companies have a list is remembered, so prices that depend on neither pay nothing for them. One row tells when
that has changed; every process sees it within `EPOCH_AGE_S_MAX`. What a list says is read when it is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from voucherd.catalogue import fx_store, price_store
from voucherd.catalogue.products import ProductVersion
from voucherd.catalogue.terms import PriceTerms, agreed
from voucherd.db import Connection

EPOCH_AGE_S_MAX: Final = 1.0


class PriceBook:
    """The margins in force, and who has a price list."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._checked_at = -EPOCH_AGE_S_MAX
        self._margins: Mapping[tuple[str, str], int] = {}
        self._lists: Mapping[int, int] = {}

    async def margins(self, conn: Connection, epoch: int | None = None) -> Mapping[tuple[str, str], int]:
        """What is added to a price in the first currency that is paid in the second, in basis points."""
        await self._look(conn, epoch)
        return self._margins

    async def terms(
        self, conn: Connection, wanted: Iterable[tuple[int, ProductVersion]], epoch: int | None = None
    ) -> dict[tuple[int, int], PriceTerms]:
        """What companies pay for products instead of the catalogue's price, by company and product."""
        await self._look(conn, epoch)
        if not self._lists:
            return {}
        pairs = [(company_id, version) for company_id, version in wanted if company_id in self._lists]
        if not pairs:
            return {}
        found = await price_store.in_force(
            conn, ((self._lists[company], one.product_id, one.brand_slug) for company, one in pairs)
        )
        made: dict[tuple[int, int], PriceTerms] = {}
        for company_id, version in pairs:
            terms = agreed(version, found.get((self._lists[company_id], version.product_id), ()))
            if terms is not None:
                made[company_id, version.product_id] = terms
        return made

    async def _look(self, conn: Connection, epoch: int | None) -> None:
        """Know what is true at this epoch; without one, what was true a moment ago."""
        checked_at = time.monotonic()
        if epoch is None:
            if checked_at - self._checked_at < EPOCH_AGE_S_MAX:
                return
            epoch = await conn.fetchval("SELECT epoch FROM price_epoch")
        if epoch != self._epoch:
            self._margins = await fx_store.margins(conn)
            self._lists = await price_store.assigned(conn)
            self._epoch = epoch
        self._checked_at = checked_at
