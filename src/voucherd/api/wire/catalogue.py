"""The catalogue on the wire: products with prices, their changes, brands, categories and exchange rates (1.03)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire.numbers import Number, money, rate
from voucherd.api.wire.shapes import PageMetadata
from voucherd.catalogue.pricing import BP_ONE, UnitPrice
from voucherd.catalogue.store import Rate
from voucherd.catalogue.terms import tariff
from voucherd.clock import iso
from voucherd.money import RATE_ONE
from voucherd.storefront.groups import Group
from voucherd.storefront.service import ProductChange as Told
from voucherd.storefront.service import ShownProduct


class CatalogueProduct(Struct, kw_only=True):
    """A product that is for sale, at the prices of the calling company."""

    slug: str
    name: str
    brand: str
    brandSlug: str
    productType: str
    region: str
    faceValueAmount: Number | None
    faceValueCurrency: str
    faceValueMin: Number
    faceValueMax: Number
    mainCategory: str
    redeemType: str
    isStocked: bool
    isVariableProduct: bool
    isIncentiveProduct: bool
    isActive: bool
    allowAsyncDelivery: bool
    vatCategory: str
    priceAmount: Number | None
    priceCurrency: str
    priceVat: Number | None
    priceInclVat: Number | None
    feeVariable: Number | None
    feeFixed: Number | None
    feeCurrency: str | None
    discount: Number | UnsetType = UNSET
    paymentCurrency: str | UnsetType = UNSET
    priceAmountInPaymentCurrency: Number | UnsetType | None = UNSET
    priceVatInPaymentCurrency: Number | UnsetType | None = UNSET
    priceInclVatInPaymentCurrency: Number | UnsetType | None = UNSET
    redeemInstructions: str | None
    terms: str | None
    imageUrl: str | None
    dateUpdated: str


class ProductPage(Struct):
    """A page of products."""

    data: list[CatalogueProduct]
    metadata: PageMetadata


class ProductChange(Struct):
    """One change of a product."""

    type: str
    at: str
    product: CatalogueProduct


class FeedMetadata(Struct):
    """Where the feed goes on."""

    nextCursor: str


class ProductChangePage(Struct):
    """A page of the feed of changes."""

    data: list[ProductChange]
    metadata: FeedMetadata


class Brand(Struct):
    """A brand that has something for sale."""

    slug: str
    name: str
    productCount: int


class BrandPage(Struct):
    """A page of brands."""

    data: list[Brand]
    metadata: PageMetadata


class Category(Struct):
    """A category that has something for sale."""

    slug: str
    name: str
    productCount: int


class ListMetadata(Struct):
    """How long a list is that comes in one piece."""

    totalItems: int


class CategoryList(Struct):
    """All categories."""

    data: list[Category]
    metadata: ListMetadata


class FxRate(Struct):
    """What one unit of a currency is worth in another."""

    fromCurrency: str
    toCurrency: str
    rate: Number
    date: str


class FxRateList(Struct):
    """All exchange rates that are in force."""

    data: list[FxRate]
    metadata: ListMetadata


DOCUMENTED: Final = (ProductPage, ProductChangePage, BrandPage, CategoryList, FxRateList)
"""The bodies of answers; all other shapes are parts of them."""


def product(shown: ShownProduct, payment_currency: str | None) -> CatalogueProduct:
    """The product; the fields in the payment currency are there if it was asked for."""
    version, leaflet, face = shown.version, shown.leaflet, shown.version.face_currency
    low, high = version.face_min_minor or version.face_minor, version.face_max_minor or version.face_minor
    assert low is not None, "The schema allows no version without a face value."
    assert high is not None, "The schema keeps both ends of a range together."
    selling = tariff(version, shown.terms)
    fee_e8, own = selling.fee_variable_e8, selling.price_currency or face
    amounts = _amounts(shown.own, own)
    made = CatalogueProduct(
        slug=version.slug,
        name=version.name,
        brand=version.brand_name,
        brandSlug=version.brand_slug,
        productType=version.product_type,
        region=version.region,
        faceValueAmount=None if version.face_minor is None else money(version.face_minor, face),
        faceValueCurrency=face.lower(),
        faceValueMin=money(low, face),
        faceValueMax=money(high, face),
        mainCategory=version.category,
        redeemType=version.redeem_type,
        isStocked=shown.stocked,
        isVariableProduct=version.is_variable,
        isIncentiveProduct=version.incentive,
        isActive=shown.active,
        allowAsyncDelivery=version.async_delivery,
        vatCategory=version.vat_category,
        priceAmount=amounts[0],
        priceCurrency=own.lower(),
        priceVat=amounts[1],
        priceInclVat=amounts[2],
        feeVariable=None if fee_e8 is None else rate(fee_e8),
        feeFixed=None if selling.fee_fixed_minor is None else money(selling.fee_fixed_minor, face),
        feeCurrency=None if fee_e8 is None else face.lower(),
        redeemInstructions=leaflet.redeem_instructions or None,
        terms=leaflet.terms or None,
        imageUrl=leaflet.image_url or None,
        dateUpdated=iso(shown.updated_at),
    )
    if selling.discount_bp:
        made.discount = rate(selling.discount_bp * (RATE_ONE // BP_ONE))
    if payment_currency is not None:
        paid = _amounts(shown.paid, payment_currency, paid=True)
        made.paymentCurrency = payment_currency.lower()
        made.priceAmountInPaymentCurrency = paid[0]
        made.priceVatInPaymentCurrency = paid[1]
        made.priceInclVatInPaymentCurrency = paid[2]
    return made


def _amounts(
    unit: UnitPrice | None, currency: str, *, paid: bool = False
) -> tuple[Number | None, Number | None, Number | None]:
    """The price before VAT, the VAT, and both together."""
    if unit is None:
        return None, None, None
    price, vat = (unit.pay_price_minor, unit.pay_vat_minor) if paid else (unit.price_minor, unit.vat_minor)
    return money(price, currency), money(vat, currency), money(price + vat, currency)


def change(told: Told, payment_currency: str | None) -> ProductChange:
    """One change, with the product as it stood after it."""
    return ProductChange(told.kind, iso(told.at), product(told.product, payment_currency))


def brand(group: Group) -> Brand:
    """A brand."""
    return Brand(group.slug, group.name, group.count)


def category(group: Group) -> Category:
    """A category."""
    return Category(group.slug, group.name, group.count)


def fx_rate(found: Rate, base: str) -> FxRate:
    """A rate, without where it came from."""
    return FxRate(found.currency.lower(), base.lower(), rate(found.eur_e8), found.day.isoformat())
