"""What prices and sales depend on and what seldom changes: remembered by this process until it changes.

Counters in the database (`price_epoch`, `access_epoch`) grow with every change of it. The statements that look at
shelves read them too, so nothing is priced or sold by what was true before, and nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from typing import Final, NamedTuple, TypeVar

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.price_book import PriceBook
from voucherd.catalogue.pricing import UnitPrice
from voucherd.catalogue.products import Listing
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Connection
from voucherd.orders.rules.cart import UnitKey

K = TypeVar("K")
V = TypeVar("V")

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
    """What was read at one epoch.

    Each method gives back facts that hold at least what was asked for, and reads only what is not known.
    """

    def __init__(self, moment: Moment | None, versions: VersionCache) -> None:
        self.epoch = None if moment is None else moment.epoch
        self._versions = versions
        self._companies: dict[int, Company] = {}
        self.listings: dict[str, Listing] = {}
        self._for_sale: dict[int, bool] = {}
        self.vat_rates: dict[str, int] = {}
        self.rates: dict[str, int] = {}
        self.rate_days: dict[str, date] = {}
        self._units: dict[UnitKey, UnitPrice] = {}

    async def companies(self, conn: Connection, company_ids: Collection[int]) -> Mapping[int, Company]:
        """The companies."""
        known = self._companies = _with_room(self._companies)
        if missing := [number for number in company_ids if number not in known]:
            known.update(await company_store.companies(conn, missing))
        return known

    async def products(self, conn: Connection, slugs: Collection[str]) -> Mapping[str, Listing]:
        """The products; a slug that does not exist is asked for every time."""
        known = self.listings = _with_room(self.listings)
        if missing := [slug for slug in slugs if slug not in known]:
            known.update(await catalogue.current(conn, missing, self._versions))
        return known

    async def for_sale(self, conn: Connection, product_ids: Collection[int]) -> Mapping[int, bool]:
        """Whether each product is for sale."""
        known = self._for_sale = _with_room(self._for_sale)
        if missing := [number for number in product_ids if number not in known]:
            known.update(await catalogue.for_sale(conn, missing))
        return known

    async def know_rates(self, conn: Connection, currencies: Iterable[str], countries: Iterable[str]) -> None:
        """Read the rates of exchange and VAT; there are few, and all stay."""
        if missing := [one for one in set(currencies) if one not in self.rates]:
            rates, days = await catalogue.dated_rates(conn, missing)
            self.rates |= rates
            self.rate_days |= days
        if missing := [one for one in set(countries) if one not in self.vat_rates]:
            self.vat_rates |= await catalogue.vat_rates(conn, missing)

    def units(self) -> dict[UnitKey, UnitPrice]:
        """Prices that were worked out before, to look at and to add to."""
        self._units = _with_room(self._units)
        return self._units


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

    def forget(self) -> None:
        """Read everything anew: what is kept was worked out by other settings."""
        self.facts = ShopFacts(None, self._versions)


def _with_room(kept: dict[K, V]) -> dict[K, V]:
    """These, or nothing if they are too many: another batch may still hold them, so they are not emptied."""
    return kept if len(kept) < KEPT_MAX else {}
