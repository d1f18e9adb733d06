"""The storefront: products as one company sees them, with its prices. Reads only; each answer is one moment's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from msgspec import Struct

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.cache import VersionCache
from voucherd.catalogue.fx import BASE
from voucherd.catalogue.price_book import PriceBook
from voucherd.catalogue.pricing import PLAIN, ExchangeRates, NoRate, UnitPrice, oldest_day, vat_bp
from voucherd.catalogue.products import Leaflet, ProductVersion
from voucherd.catalogue.store import FxRate
from voucherd.catalogue.terms import PriceTerms
from voucherd.companies.model import Company
from voucherd.db import Connection, Pool
from voucherd.ids import State
from voucherd.storefront import feed as changes
from voucherd.storefront import groups, listing, prices, stock
from voucherd.storefront.groups import BrandGroup, ProductGroup
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.sorting import SortPosition
from voucherd.storefront.stock import Faces

SAMPLES_LOOKED_AT_MAX: Final = 20
VERSIONS_KEPT_MAX: Final = 5_000
"""Product versions that the storefront keeps: fewer than the order service, which sells the same few all day."""


class Shopper(Struct, frozen=True):
    """Who looks, and in which currency prices are shown beside their own."""

    company: Company
    state: State
    payment_currency: str | None = None
    face_value: Decimal | None = None
    """The face value at which variable products are priced."""


class ShownProduct(Struct, frozen=True):
    """A product as the visitor sees it."""

    version: ProductVersion
    leaflet: Leaflet
    active: bool
    stocked: bool
    updated_at: datetime
    own: UnitPrice | None
    """The price in the product's own currency; None where the face value is the client's to pick."""
    paid: UnitPrice | None
    """The same in the visitor's currency; None also where there is no exchange rate, or only one that is too old."""
    terms: PriceTerms | None = None
    """What the visitor's own price list says of it."""
    faces: Faces | None = None
    """Of a variable product the face values that sell now; None where all of them do, or nobody has looked."""
    looked: bool = True
    """Whether it is told what sells now; a change of the past tells what was."""

    @property
    def some_faces(self) -> Faces | None:
        """Of a variable product the face values that sell now, where that is not every one (OP-141)."""
        low, high = self.version.face_min_minor, self.version.face_max_minor
        if self.faces is None or low is None or high is None:
            return None
        whole = any(first <= low and last >= high for first, last in self.faces)
        return None if whole else self.faces


class StorefrontPage(Struct, frozen=True):
    """A page of products, where the next one begins and, where pages are counted, how many there are in all."""

    products: list[ShownProduct]
    next: SortPosition | None
    total: int | None


class BrandListing(Struct, frozen=True):
    """A page of brands, likewise."""

    brands: list[BrandGroup]
    more: bool
    total: int | None


class ChangedProduct(Struct, frozen=True):
    """One change, and the product as it stood after it."""

    kind: str
    at: datetime
    product: ShownProduct


class ChangeFeed(Struct, frozen=True):
    """A page of changes, and the number of the last one that was read."""

    changes: list[ChangedProduct]
    last: int


class _Stand(Struct, frozen=True):
    """How a product stood at one time."""

    version_id: int
    active: bool
    stocked: bool
    at: datetime
    faces: Faces | None = None
    looked: bool = True


class SampleProduct(Struct, frozen=True):
    """A product for the samples of the docs."""

    slug: str
    brand_slug: str


class Storefront:
    """Everything that can be looked at."""

    def __init__(self, pool: Pool, operator_country: str, fx_age_max: timedelta = timedelta(0)) -> None:
        self._pool = pool
        self._operator_country = operator_country
        self._fx_age_max = fx_age_max
        self._prices = PriceBook()
        self._versions = VersionCache(VERSIONS_KEPT_MAX)

    def use(self, operator_country: str, fx_age_max: timedelta) -> None:
        """Show prices by these from now on."""
        self._operator_country, self._fx_age_max = operator_country, fx_age_max

    async def find_all(
        self,
        visitor: Shopper,
        filters: ProductFilters,
        order: ProductOrder,
        *,
        size: int,
        skip: int | None,
        after: SortPosition | None,
    ) -> StorefrontPage:
        """One page of the products that are for sale; NoRate if the visitor's currency has none."""
        async with self._look() as conn:
            await listing.plan_for_values(conn)
            # One more than a page tells whether another follows.
            rows = await listing.page_of_products(
                conn, visitor.state, filters, order, size=size + 1, skip=skip or 0, after=after
            )
            more, rows = len(rows) > size, rows[:size]
            total = None if skip is None else await listing.count_products(conn, visitor.state, filters)
            stands = await self._stands(conn, rows, visitor.state)
            shown = await self._shown(conn, visitor, stands)
        return StorefrontPage(shown, rows[-1].place if more else None, total)

    async def find(self, visitor: Shopper, slug: str) -> ShownProduct | None:
        """The product with this slug, if it is for sale."""
        async with self._look() as conn:
            row = await listing.listed(conn, slug)
            if row is None:
                return None
            stands = await self._stands(conn, [row], visitor.state)
            return (await self._shown(conn, visitor, stands))[0]

    async def sample(self) -> SampleProduct | None:
        """A product that whoever tries the API can order: of one value, sold in its base currency alone."""
        fixed = ProductFilters(currency=BASE, variable=False)
        async with self._look() as conn:
            rows = await listing.page_of_products(
                conn, State.SANDBOX, fixed, ProductOrder(), size=SAMPLES_LOOKED_AT_MAX
            )
            versions = await catalogue.versions(conn, [row.version_id for row in rows], self._versions)
        for row in rows:
            version = versions[row.version_id]
            if version.price_currency in (None, BASE):
                return SampleProduct(version.slug, version.brand_slug)
        return None

    async def changes(self, visitor: Shopper, after: int | None, size: int) -> ChangeFeed:
        """What changed after this one, oldest first; nothing, and where the feed ends, for None."""
        async with self._look() as conn:
            if after is None:
                return ChangeFeed([], await changes.newest(conn))
            found = await changes.changes_after(conn, after, visitor.state, size)
            sandbox = visitor.state is State.SANDBOX
            stands = [_Stand(c.version_id, c.active, c.stocked or sandbox, c.at, looked=False) for c in found]
            shown = await self._shown(conn, visitor, stands)
        told = [ChangedProduct(one.kind, one.at, product) for one, product in zip(found, shown, strict=True)]
        return ChangeFeed(told, found[-1].id if found else after)

    async def brands(self, *, size: int, skip: int | None, after_slug: str | None) -> BrandListing:
        """One page of the brands that have something for sale."""
        async with self._look() as conn:
            found = await groups.page_of_brands(conn, size=size + 1, skip=skip or 0, after_slug=after_slug)
            total = None if skip is None else await groups.count_brands(conn)
        return BrandListing(found[:size], len(found) > size, total)

    async def brand(self, slug: str) -> BrandGroup | None:
        """The brand with this slug, if it has something for sale."""
        async with self._look() as conn:
            return await groups.brand(conn, slug)

    async def categories(self) -> list[ProductGroup]:
        """Every category that has something for sale."""
        async with self._look() as conn:
            return await groups.categories(conn)

    async def rates(self) -> list[FxRate]:
        """The exchange rates in force today."""
        async with self._look() as conn:
            return await catalogue.list_rates(conn)

    @asynccontextmanager
    async def _look(self) -> AsyncIterator[Connection]:
        """One snapshot for all that an answer holds."""
        async with (
            self._pool.acquire() as conn,
            conn.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield conn

    async def _stands(
        self, conn: Connection, rows: Sequence[listing.ListingRow], state: State
    ) -> list[_Stand]:
        """How these products stand now."""
        stocked = await stock.in_stock(conn, [row.product_id for row in rows], state) if rows else {}
        return [
            _Stand(
                *(row.version_id, True, row.product_id in stocked, row.updated_at),
                faces=stocked.get(row.product_id, ()),
            )
            for row in rows
        ]

    async def _shown(
        self, conn: Connection, visitor: Shopper, stands: Sequence[_Stand]
    ) -> list[ShownProduct]:
        """The products with the visitor's prices."""
        ids = list({stand.version_id for stand in stands})
        versions = await catalogue.versions(conn, ids, self._versions)
        leaflets = await catalogue.leaflets(conn, ids)
        company = visitor.company
        agreed = await self._prices.terms(conn, ((company.id, version) for version in versions.values()))
        rates, exchange = await self._rates(conn, visitor, versions.values(), agreed.values())
        vat_rates = await catalogue.vat_rates(conn, [company.country])
        rate_bp = vat_bp(company.country, company.vat_number, self._operator_country, vat_rates)
        shown = []
        for stand in stands:
            version = versions[stand.version_id]
            face_minor = prices.face_of(version, visitor.face_value)
            terms = agreed.get((company.id, version.product_id))
            own = prices.tag(
                version, face_minor, payment_currency=None, rates=rates, vat_bp=rate_bp, terms=terms
            )
            paid = None
            if visitor.payment_currency is not None:
                paid = prices.tag(
                    version,
                    face_minor,
                    payment_currency=visitor.payment_currency,
                    rates=rates,
                    vat_bp=rate_bp,
                    exchange=exchange,
                    terms=terms,
                )
            leaflet, stocked = leaflets[stand.version_id], stand.stocked
            if version.is_variable and face_minor is not None and stand.faces is not None and stand.looked:
                stocked = any(low <= face_minor <= high for low, high in stand.faces)
            shown.append(
                ShownProduct(
                    *(version, leaflet, stand.active, stocked, stand.at, own, paid, terms),
                    *(stand.faces, stand.looked),
                )
            )
        return shown

    async def _rates(
        self,
        conn: Connection,
        visitor: Shopper,
        versions: Iterable[ProductVersion],
        agreed: Iterable[PriceTerms],
    ) -> tuple[dict[str, int], ExchangeRates]:
        """The exchange rates that the prices depend on: none, where each is shown in its own currency."""
        if visitor.payment_currency is None:
            return {}, PLAIN
        wanted = {visitor.payment_currency}
        for version in versions:
            wanted |= {version.face_currency, version.price_currency or version.face_currency}
        wanted.update(terms.price_currency for terms in agreed if terms.price_currency is not None)
        rates, days = await catalogue.dated_rates(conn, wanted)
        if visitor.payment_currency not in rates:
            raise NoRate(visitor.payment_currency)
        now: datetime = await conn.fetchval("SELECT now()")
        margins = await self._prices.margins(conn)
        return rates, ExchangeRates(days, oldest_day(now, self._fx_age_max), margins)
