"""The catalogue on the wire: products with prices, their changes, brands, categories and exchange rates (1.03)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire import fields
from voucherd.api.wire.fields import Count, Link, LowerCurrency, Moment, doc
from voucherd.api.wire.numbers import Number, money, rate
from voucherd.api.wire.shapes import CountedPage, ToldTwice
from voucherd.catalogue.pricing import BP_ONE, UnitPrice
from voucherd.catalogue.products import INSTRUCTIONS_LENGTH_MAX, TERMS_LENGTH_MAX
from voucherd.catalogue.store import FxRate as Rate
from voucherd.catalogue.terms import tariff
from voucherd.clock import iso
from voucherd.money import RATE_ONE
from voucherd.storefront.feed import KINDS
from voucherd.storefront.groups import BrandGroup, ProductGroup
from voucherd.storefront.service import ChangedProduct as Told
from voucherd.storefront.service import ShownProduct
from voucherd.storefront.stock import FACES_MAX, Faces

_PICKED: Final = "Null for a variable product unless `faceValue` was asked for"
_PAID: Final = f"Only if it was asked for. {_PICKED}, and where there is no exchange rate."


class FaceValueRange(Struct):
    """Face values between two that can be ordered, both included."""

    min: Annotated[Number, doc("The smallest.")]
    max: Annotated[Number, doc("The largest.")]


class CatalogueProduct(Struct, kw_only=True):
    """A product that is for sale, at the prices of the calling company."""

    slug: Annotated[str, doc("Slug of the product: its name in orders.")]
    name: fields.ProductName
    brand: fields.Brand
    brandName: Annotated[str, doc("The same as `brand`.")]
    brandSlug: fields.BrandSlug
    productType: fields.ProductType
    region: fields.Region
    faceValueAmount: Annotated[Number | None, doc("Face value of one code. Null for a variable product.")]
    faceValueCurrency: fields.FaceCurrency
    faceValueMin: Annotated[Number, doc("Smallest face value that can be ordered.")]
    faceValueMax: Annotated[Number, doc("Largest face value that can be ordered.")]
    faceValues: Annotated[
        list[Number] | UnsetType | None,
        doc(
            "The face values of a variable product of which a code could be delivered now, the smallest first; null "
            "where that is every one from `faceValueMin` to `faceValueMax`. Only for variable products, and not in "
            "the feed of changes.",
            maxItems=FACES_MAX,
        ),
    ] = UNSET
    faceValueRanges: Annotated[
        list[FaceValueRange] | UnsetType,
        doc(
            "Ranges of face values that a supplier sells now, beside `faceValues`. Only where there are some."
        ),
    ] = UNSET
    mainCategory: fields.Category
    category: Annotated[str, doc("The same as `mainCategory`.")]
    redeemType: fields.RedeemType
    redeemValue: fields.RedeemValue
    isStocked: Annotated[
        bool,
        doc(
            "Whether a code could be delivered now, from stock or by a supplier: of the `faceValue` that was asked "
            "for, or of any. Always true in the sandbox."
        ),
    ]
    isVariableProduct: fields.IsVariable
    isIncentiveProduct: fields.IsIncentive
    isActive: Annotated[bool, doc("Whether the product is for sale. False only in the feed of changes.")]
    allowAsyncDelivery: Annotated[bool, doc("Whether a code may be delivered later; see Confirm order.")]
    vatCategory: fields.VatCategory
    priceAmount: Annotated[Number | None, doc(f"Price of one code before VAT. {_PICKED}.")]
    priceCurrency: fields.PriceOfOneCurrency
    priceVat: Annotated[Number | None, doc(f"VAT on one code for your company, today. {_PICKED}.")]
    priceInclVat: Annotated[Number | None, doc(f"Price of one code including VAT. {_PICKED}.")]
    feeVariable: Annotated[
        Number | None, doc("What the face value is multiplied with. Null for a fixed price.")
    ]
    feeFixed: Annotated[Number | None, doc("What is added to that. Null for a fixed price.")]
    feeCurrency: Annotated[
        LowerCurrency | None, doc("Currency of `feeFixed`. Lower case. Null for a fixed price.")
    ]
    discount: Annotated[
        Number | UnsetType,
        doc(
            "Your company's discount, as a share: it is taken from the price, or from face value and fee together, "
            "before rounding. Only where there is one."
        ),
    ] = UNSET
    paymentCurrency: Annotated[
        LowerCurrency | UnsetType, doc("The currency that was asked for. Lower case.")
    ] = UNSET
    priceAmountInPaymentCurrency: Annotated[
        Number | UnsetType | None, doc(f"Price of one code before VAT, in `paymentCurrency`. {_PAID}")
    ] = UNSET
    priceVatInPaymentCurrency: Annotated[
        Number | UnsetType | None, doc(f"VAT on one code, in `paymentCurrency`. {_PAID}")
    ] = UNSET
    priceInclVatInPaymentCurrency: Annotated[
        Number | UnsetType | None,
        doc(f"Price of one code including VAT, in `paymentCurrency`: what Create would fix now. {_PAID}"),
    ] = UNSET
    redeemInstructions: Annotated[
        str | None,
        doc(
            "How a code is redeemed, in plain text; null if nothing is said.",
            maxLength=INSTRUCTIONS_LENGTH_MAX,
        ),
    ]
    terms: Annotated[
        str | None,
        doc(
            "What the user of a code agrees to, in plain text; null if nothing is said.",
            maxLength=TERMS_LENGTH_MAX,
        ),
    ]
    imageUrl: Annotated[Link | None, doc("A picture of the product; null if there is none.")]
    dateUpdated: Annotated[Moment, doc("When the product last changed.")]


class ProductPage(Struct):
    """A page of products."""

    data: Annotated[list[CatalogueProduct], doc("The products of the page.")]
    metadata: CountedPage
    pagination: ToldTwice = UNSET


class ProductChange(Struct):
    """One change of a product."""

    type: Annotated[
        str,
        doc(
            "What changed: whether it is for sale, its price, anything else about it, or whether it is in stock.",
            enum=KINDS,
        ),
    ]
    at: Annotated[Moment, doc("When it changed.")]
    product: Annotated[
        CatalogueProduct, doc("The product as it stood after the change, at your prices of today.")
    ]


class FeedMetadata(Struct):
    """Where the feed goes on."""

    nextCursor: Annotated[str, doc("The `since` of the next call: the same again while nothing is new.")]


class ProductChangePage(Struct):
    """A page of the feed of changes."""

    data: Annotated[list[ProductChange], doc("The changes, oldest first.")]
    metadata: Annotated[FeedMetadata, doc("Where the feed goes on.")]


_OF_FIRST: Final = "of its first product by name; others may differ."


class _GroupFields(Struct):
    slug: Annotated[str, doc("Slug, for filters.")]
    name: Annotated[str, doc("Name for people.")]
    productCount: Annotated[Count, doc("How many products are for sale.")]


class Brand(_GroupFields):
    """A brand that has something for sale."""

    brandName: Annotated[str, doc("The same as `name`.")]
    category: Annotated[str, doc(f"Slug of the category {_OF_FIRST}")]
    redeemType: Annotated[fields.RedeemType, doc(f"What a code is redeemed for, {_OF_FIRST}")]


class BrandPage(Struct):
    """A page of brands."""

    data: Annotated[list[Brand], doc("The brands of the page, by slug.")]
    metadata: CountedPage
    pagination: ToldTwice = UNSET


class Category(_GroupFields):
    """A category that has something for sale."""


class ListMetadata(Struct):
    """How long a list is that comes in one piece."""

    totalItems: fields.TotalItems


_HowMany: TypeAlias = Annotated[ListMetadata, doc("How many there are.")]


class CategoryList(Struct):
    """All categories."""

    data: Annotated[list[Category], doc("The categories, by slug.")]
    metadata: _HowMany


class FxRate(Struct):
    """What one unit of a currency is worth in another."""

    fromCurrency: Annotated[LowerCurrency, doc("The currency. Lower case.")]
    toCurrency: Annotated[LowerCurrency, doc("The currency that it is worth something in: always `eur`.")]
    rate: Annotated[Number, doc("What one unit of `fromCurrency` is worth in `toCurrency`.")]
    date: Annotated[
        str, doc("The day of the rate; it is in force until there is a newer one.", format="date")
    ]


class FxPair(Struct):
    """The same rate in the names that clients of other services read."""

    currencyFrom: Annotated[LowerCurrency, doc("The currency. Lower case.")]
    currencyTo: Annotated[LowerCurrency, doc("The currency that it is worth something in: always `eur`.")]
    rate: Annotated[Number, doc("What one unit of `currencyFrom` is worth in `currencyTo`.")]


class FxRateList(Struct):
    """All exchange rates that are in force."""

    data: Annotated[list[FxRate], doc("The rates, by currency.")]
    metadata: _HowMany
    fxRates: Annotated[list[FxPair], doc("The same rates in other names.")]


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
        brandName=version.brand_name,
        brandSlug=version.brand_slug,
        productType=version.product_type,
        region=version.region,
        faceValueAmount=None if version.face_minor is None else money(version.face_minor, face),
        faceValueCurrency=face.lower(),
        faceValueMin=money(low, face),
        faceValueMax=money(high, face),
        mainCategory=version.category,
        category=version.category,
        redeemType=version.redeem_type,
        redeemValue=face.lower() if version.redeem_type == "currency" else version.region,
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
    if version.is_variable and shown.looked:
        _tell_faces(made, shown.some_faces, face)
    if selling.discount_bp:
        made.discount = rate(selling.discount_bp * (RATE_ONE // BP_ONE))
    if payment_currency is not None:
        paid = _amounts(shown.paid, payment_currency, paid=True)
        made.paymentCurrency = payment_currency.lower()
        made.priceAmountInPaymentCurrency = paid[0]
        made.priceVatInPaymentCurrency = paid[1]
        made.priceInclVatInPaymentCurrency = paid[2]
    return made


def _tell_faces(made: CatalogueProduct, faces: Faces | None, currency: str) -> None:
    """Say which face values sell now; None stands for all of them."""
    if faces is None:
        made.faceValues = None
        return
    made.faceValues = [money(first, currency) for first, last in faces if first == last]
    ranges = [
        FaceValueRange(money(first, currency), money(last, currency)) for first, last in faces if first < last
    ]
    if ranges:
        made.faceValueRanges = ranges


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


def brand(found: BrandGroup) -> Brand:
    """A brand."""
    return Brand(found.slug, found.name, found.count, found.name, found.category, found.redeem_type)


def category(group: ProductGroup) -> Category:
    """A category."""
    return Category(group.slug, group.name, group.count)


def fx_rate(found: Rate, base: str) -> FxRate:
    """A rate, without where it came from."""
    return FxRate(found.currency.lower(), base.lower(), rate(found.eur_e8), found.day.isoformat())


def fx_pairs(found: Sequence[Rate], base: str) -> list[FxPair]:
    """The rates as pairs of currencies."""
    return [FxPair(one.currency.lower(), base.lower(), rate(one.eur_e8)) for one in found]
