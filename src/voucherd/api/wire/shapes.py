"""The shapes of Contract 2: the types that responses are made of and that the OpenAPI document is made from."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire.numbers import Number


class Product(Struct, kw_only=True):
    """The product of an item."""

    slug: str
    name: str
    brand: str
    productType: str
    region: str
    faceValueAmount: Number
    faceValueCurrency: str
    faceValueMin: Number | UnsetType = UNSET
    faceValueMax: Number | UnsetType = UNSET
    mainCategory: str
    redeemType: str
    isStocked: bool


class ShortLine(Struct, omit_defaults=True):
    """A line in versions 1.00 and Next; the code fields are there once it is finished."""

    tag: str
    status: str
    voucherCode: str | UnsetType = UNSET
    voucherSerial: str | UnsetType = UNSET
    voucherDateExpired: str | UnsetType = UNSET


class ExtendedLine(Struct):
    """A line in version 1.03. In Confirm and Resolve an unfinished one carries only its tag and status (OP-05)."""

    tag: str
    status: str
    id: int | UnsetType = UNSET
    orderId: int | UnsetType = UNSET
    dateCreated: str | UnsetType = UNSET
    brandSlug: str | UnsetType = UNSET
    productSlug: str | UnsetType = UNSET
    productFacevalueAmount: Number | UnsetType = UNSET
    productFacevalueCurrency: str | UnsetType = UNSET
    productFacevalueFx: Number | UnsetType = UNSET
    priceAmount: Number | UnsetType = UNSET
    priceCurrency: str | UnsetType = UNSET
    priceFx: Number | UnsetType = UNSET
    voucherCode: str | UnsetType | None = UNSET
    voucherSerial: str | UnsetType | None = UNSET
    voucherUrl: str | UnsetType | None = UNSET
    voucherDateExpired: str | UnsetType | None = UNSET
    purchasePriceAmount: Number | UnsetType | None = UNSET
    purchasePriceCurrency: str | UnsetType | None = UNSET
    purchasePriceFx: Number | UnsetType | None = UNSET
    commissionEur: Number | UnsetType | None = UNSET
    externalId: str | UnsetType | None = UNSET
    offerId: str | UnsetType | None = UNSET
    externalSupplier: str | UnsetType | None = UNSET
    priceVatAmount: Number | UnsetType = UNSET
    priceVatTurnover: Number | UnsetType = UNSET
    priceInclVat: Number | UnsetType = UNSET
    priceAmountInPaymentCurrency: Number | UnsetType = UNSET
    priceVatAmountInPaymentCurrency: Number | UnsetType = UNSET
    priceVatTurnoverInPaymentCurrency: Number | UnsetType = UNSET
    priceInclVatInPaymentCurrency: Number | UnsetType = UNSET
    paymentCurrency: str | UnsetType = UNSET
    paymentCurrencyFx: Number | UnsetType = UNSET
    dateUpdated: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    product: str | UnsetType = UNSET
    token: str | UnsetType | None = UNSET
    redemptionLink: str | UnsetType | None = UNSET
    dateVoucherViewed: str | UnsetType | None = UNSET
    dateLinkViewed: str | UnsetType | None = UNSET
    dateReturned: str | UnsetType | None = UNSET
    allowAsyncDelivery: bool | UnsetType = UNSET
    productRegion: str | UnsetType = UNSET
    entityId: int | UnsetType = UNSET


class _ItemFields(Struct, kw_only=True):
    product: Product
    amount: int
    priceCurrency: str
    singlePriceAmount: Number
    totalPriceAmount: Number
    totalPriceVat: Number
    totalPriceInclVat: Number
    priceFx: Number
    paymentCurrency: str
    singlePriceAmountInPaymentCurrency: Number
    totalPriceAmountInPaymentCurrency: Number
    totalPriceVatInPaymentCurrency: Number
    totalPriceInclVatInPaymentCurrency: Number
    linesCompleted: int
    productSlug: str
    faceValueAmount: Number
    faceValueCurrency: str
    faceValueFx: Number


class ShortItem(_ItemFields, kw_only=True):
    """One product of an order, with short lines."""

    orderLines: list[ShortLine]


class ExtendedItem(_ItemFields, kw_only=True):
    """One product of an order, with extended lines."""

    orderLines: list[ExtendedLine]


class _OrderFields(Struct, kw_only=True):
    trx: str
    priceCurrency: str
    priceAmount: Number
    priceVat: Number
    priceInclVat: Number
    priceFx: Number
    dateCreated: str
    paymentStatus: str
    type: str
    reference: str | None
    state: str
    orderStatus: str
    isBalancePayment: bool
    downloaded: bool
    dateExpires: str | UnsetType = UNSET


class ShortOrder(_OrderFields, kw_only=True):
    """An order in versions 1.00 and Next."""

    items: list[ShortItem]


class ExtendedOrder(_OrderFields, kw_only=True):
    """An order in version 1.03."""

    items: list[ExtendedItem]


class Offer(Struct):
    """One way to get a code, in the serialised product of an extended line."""

    price: Number
    offerId: str
    currency: str
    supplier: str
    stockCount: int
    purchasePrice: Number
    purchasePriceCurrency: str


class ProductDescription(Struct):
    """The serialised product of an extended line, as it was at Create."""

    name: str
    slug: str
    brand: str
    offers: list[Offer] | None
    region: str
    inScope: bool
    bestOffer: Offer | None
    faceValue: Number
    isStocked: bool
    redeemType: str
    stockCount: int
    priceAmount: Number
    productType: str
    vatCategory: str
    mainCategory: str
    priceCurrency: str
    faceValueCurrency: str
    isVariableProduct: bool
    isIncentiveProduct: bool


class PageMetadata(Struct, omit_defaults=True):
    """Where a page stands in the whole list; the totals are there when pages are counted (OP-03)."""

    pageSize: int
    nextCursor: str | None
    page: int | UnsetType = UNSET
    totalItems: int | UnsetType = UNSET
    totalPages: int | UnsetType = UNSET


class ShortOrderPage(Struct):
    """A page of orders in versions 1.00 and Next."""

    data: list[ShortOrder]
    metadata: PageMetadata


class ExtendedOrderPage(Struct):
    """A page of orders in version 1.03."""

    data: list[ExtendedOrder]
    metadata: PageMetadata


class Account(Struct):
    """A balance in one currency."""

    currency: str
    state: str
    totalAmount: Number
    heldAmount: Number
    availableAmount: Number


class AccountEntry(Struct):
    """One movement of an account."""

    seq: int
    dateCreated: str
    kind: str
    amount: Number
    holdAmount: Number
    balanceAfter: Number
    heldAfter: Number
    currency: str
    trx: str | None
    reference: str | None


class WalkMetadata(Struct):
    """Where a walk by cursor stands."""

    pageSize: int
    nextCursor: str | None


class LinePage(Struct):
    """A page of an order's lines."""

    data: list[ExtendedLine]
    metadata: WalkMetadata


class AccountEntryPage(Struct):
    """A page of an account's statement."""

    data: list[AccountEntry]
    metadata: WalkMetadata


class Redemption(Struct):
    """How an order's redemption links are protected."""

    trx: str
    hasPin: bool
