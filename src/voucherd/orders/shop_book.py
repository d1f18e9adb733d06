"""What prices and sales depend on and what seldom changes: remembered by this process until it changes.

Counters in the database (`price_epoch`, `access_epoch`) grow with every change of it. The statements that look at
shelves read them too, so nothing is priced or sold by what was true before, and nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.price_book import PriceBook
from voucherd.catalogue.pricing import UnitPrice
from voucherd.catalogue.products import Listing
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Connection
from voucherd.orders.rules.cart import UnitKey

KEPT_MAX: Final = 50_000
"""Companies, products and prices that are remembered of each; beyond it all of that kind are read anew."""

MOMENT: Final = "now(), (SELECT epoch FROM price_epoch), (SELECT epoch FROM access_epoch)"
"""The columns behind `Moment`, as part of a larger statement."""


class Moment(NamedTuple):
    """The database's time, and how often prices and companies had changed by then."""

    now: datetime
    prices: int
    access: int

    @property
    def epoch(self) -> tuple[int, int, date]:
        """Equal for two moments between which nothing changed; rates of exchange and VAT begin with a day."""
        return self.prices, self.access, self.now.date()


class ShopFacts:
    """What was read at one epoch."""

    def __init__(self, moment: Moment | None, versions: VersionCache) -> None:
        self.epoch = None if moment is None else moment.epoch
        self.prices = -1 if moment is None else moment.prices
        self._versions = versions
        self.companies: dict[int, Company] = {}
        self.listings: dict[str, Listing] = {}
        self.for_sale: dict[int, bool] = {}
        """Whether a product is for sale, by its id."""
        self.vat_rates: dict[str, int] = {}
        self.rates: dict[str, int] = {}
        self.rate_days: dict[str, date] = {}
        self.units: dict[UnitKey, UnitPrice] = {}
        """Prices that were worked out before."""

    async def know_companies(self, conn: Connection, company_ids: Collection[int]) -> None:
        """Read those of these companies that are not known."""
        if missing := [number for number in company_ids if number not in self.companies]:
            _make_room(self.companies)
            self.companies |= await company_store.companies(conn, missing)

    async def know_listings(self, conn: Connection, slugs: Collection[str]) -> None:
        """Read those of these products that are not known; a slug that does not exist is asked for every time."""
        if missing := [slug for slug in slugs if slug not in self.listings]:
            _make_room(self.listings)
            self.listings |= await catalogue.current(conn, missing, self._versions)

    async def know_for_sale(self, conn: Connection, product_ids: Collection[int]) -> None:
        """Read of these products whether they are for sale."""
        if missing := [number for number in product_ids if number not in self.for_sale]:
            _make_room(self.for_sale)
            self.for_sale |= await catalogue.for_sale(conn, missing)

    async def know_rates(self, conn: Connection, currencies: Iterable[str], countries: Iterable[str]) -> None:
        """Read the rates of exchange and VAT that are not known."""
        if missing := [one for one in set(currencies) if one not in self.rates]:
            rates, days = await catalogue.dated_rates(conn, missing)
            self.rates |= rates
            self.rate_days |= days
        if missing := [one for one in set(countries) if one not in self.vat_rates]:
            self.vat_rates |= await catalogue.vat_rates(conn, missing)


class ShopBook:
    """The facts of the newest epoch that was seen. Batches that run side by side may hold those of two."""

    def __init__(self, versions: VersionCache) -> None:
        self._versions = versions
        self.facts = ShopFacts(None, versions)
        self.price_lists = PriceBook()

    def at(self, moment: Moment) -> ShopFacts:
        """The facts of this moment's epoch; empty ones if it is a new one."""
        if self.facts.epoch != moment.epoch:
            self.facts = ShopFacts(moment, self._versions)
        return self.facts


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= KEPT_MAX:
        kept.clear()
