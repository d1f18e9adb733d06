"""The catalogue: products for sale, their prices and changes, brands, categories, exchange rates."""

from __future__ import annotations

from decimal import Decimal

from voucherd_client.engine import Walk
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.catalogue import Brand, Category, FxRate, Product, ProductChange
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Steps, query


class Products(Resource[E]):
    """What is for sale, at your company's prices."""

    @listing
    def find_all(
        self,
        *,
        q: str | None = None,
        slug: str | None = None,
        brand_slug: str | None = None,
        category: str | None = None,
        product_type: str | None = None,
        redeem_type: str | None = None,
        region: str | None = None,
        currency: str | None = None,
        face_value: Decimal | int | None = None,
        is_variable_product: bool | None = None,
        is_stocked: bool | None = None,
        payment_currency: str | None = None,
        sort_by: str | None = None,
        sort_order: str | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[Product]:
        """All products that the filters let through; with `payment_currency`, priced in that currency, too."""
        given = query(
            q=q,
            slug=slug,
            brandSlug=brand_slug,
            category=category,
            productType=product_type,
            redeemType=redeem_type,
            region=region,
            currency=currency,
            faceValue=face_value,
            isVariableProduct=is_variable_product,
            isStocked=is_stocked,
            paymentCurrency=payment_currency,
            sortBy=sort_by,
            sortOrder=sort_order,
            limit=limit,
        )
        return self._walk("product", Page[Product], cursor, given)

    @operation
    def find(
        self, slug: str, *, payment_currency: str | None = None, face_value: Decimal | int | None = None
    ) -> Steps[Product]:
        """One product; a variable one is priced at `face_value`."""
        given = query(paymentCurrency=payment_currency, faceValue=face_value)
        return self._read(f"product/{segment(slug)}", Product, given)

    @operation
    def changes(
        self, *, since: str = "", payment_currency: str | None = None, limit: int | None = None
    ) -> Steps[Page[ProductChange]]:
        """A page of changes, oldest first; go on with its `next_cursor`, also after an empty one. `now` skips all."""
        given = query(since=since, paymentCurrency=payment_currency, limit=limit)
        return self._read("product/changes", Page[ProductChange], given)


class Brands(Resource[E]):
    """Brands that have something for sale."""

    @listing
    def find_all(self, *, limit: int | None = None, cursor: str = "") -> Walk[Brand]:
        """All of them, by slug."""
        return self._walk("brand", Page[Brand], cursor, query(limit=limit))

    @operation
    def find(self, slug: str) -> Steps[Brand]:
        """One of them."""
        return self._read(f"brand/{segment(slug)}", Brand)


class Categories(Resource[E]):
    """Categories that have something for sale."""

    @operation
    def find_all(self) -> Steps[list[Category]]:
        """All of them, by slug."""
        return (yield from self._read("category", Page[Category])).data


class FxRates(Resource[E]):
    """Exchange rates."""

    @operation
    def find_all(self) -> Steps[list[FxRate]]:
        """What one unit of each currency is worth in EUR today."""
        return (yield from self._read("fx-rate", Page[FxRate])).data
