"""The shapes of Contract 2: the types that responses are made of and that the OpenAPI document is made from."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire import fields
from voucherd.api.wire.fields import AnyTrx, Count, Environment, Link, LowerCurrency, Moment, doc
from voucherd.api.wire.numbers import Number
from voucherd.api.wire.view import PAYMENT_WORDS
from voucherd.orders.model import TYPES
from voucherd.wallet.ledger import EntryKind

_FINISHED: Final = "Only on a finished line."
UNTIL: Final = "Null until the line is finished."
_COST: Final = "Null if the operator does not show costs, or no offer is known."


class Product(Struct, kw_only=True):
    """The product of an item."""

    slug: fields.ProductSlug
    name: fields.ProductName
    brand: fields.Brand
    productType: fields.ProductType
    region: fields.Region
    faceValueAmount: fields.FaceValue
    faceValueCurrency: fields.FaceCurrency
    faceValueMin: Annotated[
        Number | UnsetType, doc("Smallest face value that can be ordered. Version 1.03 only.")
    ] = UNSET
    faceValueMax: Annotated[
        Number | UnsetType, doc("Largest face value that can be ordered. Version 1.03 only.")
    ] = UNSET
    mainCategory: fields.Category
    redeemType: fields.RedeemType
    isStocked: Annotated[
        bool,
        doc(
            "Whether codes are in stock; once the order is no longer `created`, whether they were at Create."
        ),
    ]


class ShortLine(Struct, omit_defaults=True):
    """A line in versions 1.00 and Next; the code fields are there once it is finished."""

    tag: fields.Tag
    status: fields.LineStatus
    voucherCode: Annotated[str | UnsetType, doc(f"The code. {_FINISHED}")] = UNSET
    voucherSerial: Annotated[str | UnsetType, doc(f"The code's serial number. {_FINISHED}")] = UNSET
    voucherDateExpired: Annotated[
        Moment | UnsetType, doc("When the code expires. Only on a finished line whose code expires.")
    ] = UNSET


class ExtendedLine(Struct, kw_only=True):
    """A line in version 1.03. In Confirm and Resolve an unfinished one carries only its tag and status (OP-05)."""

    tag: fields.Tag
    status: fields.LineStatus
    id: Annotated[int, doc("Number of the line.")]
    orderId: Annotated[int, doc("Number of the order.")]
    dateCreated: fields.DateOrdered
    brandSlug: fields.BrandSlug
    productSlug: fields.ProductSlug
    productFacevalueAmount: Annotated[Number, doc("Face value of the code.")]
    productFacevalueCurrency: fields.FaceCurrency
    productFacevalueFx: Annotated[Number, doc("What one unit of `productFacevalueCurrency` is worth in EUR.")]
    priceAmount: Annotated[Number, doc("Price of the code before VAT.")]
    priceCurrency: fields.OwnCurrency
    priceFx: fields.PriceFx
    voucherCode: Annotated[str | None, doc(f"The code. {UNTIL}")]
    voucherSerial: Annotated[str | None, doc(f"The code's serial number. {UNTIL}")]
    voucherUrl: Annotated[Link | None, doc(f"The same as `redemptionLink`. {UNTIL}")]
    voucherDateExpired: Annotated[
        Moment | None, doc(f"When the code expires; null for one that does not. {UNTIL}")
    ]
    purchasePriceAmount: Annotated[Number | None, doc(f"What the operator paid for the code. {_COST}")]
    purchasePriceCurrency: Annotated[
        LowerCurrency | None, doc(f"Currency of `purchasePriceAmount`. Lower case. {_COST}")
    ]
    purchasePriceFx: Annotated[
        Number | None, doc(f"What one unit of `purchasePriceCurrency` is worth in EUR. {_COST}")
    ]
    commissionEur: Annotated[Number | None, doc(f"Price before VAT less the purchase price, in EUR. {_COST}")]
    externalId: Annotated[
        str | None,
        doc(f"The supplier's identifier of the code; the tag if the operator does not show costs. {UNTIL}"),
    ]
    offerId: Annotated[str | None, doc(f"The offer that served the line, or the best one at Create. {_COST}")]
    externalSupplier: Annotated[str | None, doc(f"The supplier of the code. {_COST}")]
    priceVatAmount: Annotated[Number, doc("VAT on the code.")]
    priceVatTurnover: Annotated[Number, doc("The amount that the VAT was computed on.")]
    priceInclVat: Annotated[Number, doc("Price of the code including VAT.")]
    priceAmountInPaymentCurrency: Annotated[
        Number, doc("Price of the code before VAT, in `paymentCurrency`.")
    ]
    priceVatAmountInPaymentCurrency: Annotated[Number, doc("VAT on the code, in `paymentCurrency`.")]
    priceVatTurnoverInPaymentCurrency: Annotated[
        Number, doc("The amount that the VAT was computed on, in `paymentCurrency`.")
    ]
    priceInclVatInPaymentCurrency: Annotated[
        Number, doc("Price of the code including VAT, in `paymentCurrency`.")
    ]
    paymentCurrency: fields.PaymentCurrency
    paymentCurrencyFx: Annotated[Number, doc("What one unit of `paymentCurrency` is worth in EUR.")]
    dateUpdated: Annotated[
        Moment, doc("When this line last changed: created, delivered, cancelled, opened, shown or returned.")
    ]
    state: Annotated[Environment, doc("The environment of the order.")]
    product: Annotated[
        str,
        doc(
            "The product as it was at Create: a string that holds a JSON document of the shape "
            "`ProductDescription`.",
            contentMediaType="application/json",
        ),
    ]
    token: Annotated[str | None, doc(f"The secret in the redemption link. {UNTIL}")]
    redemptionLink: Annotated[
        Link | None, doc(f"A secret link to the page that shows the code to its final owner. {UNTIL}")
    ]
    dateVoucherViewed: Annotated[
        Moment | None, doc("When the code was first revealed through the link; null before.")
    ]
    dateLinkViewed: Annotated[Moment | None, doc("When the link was first opened; null before.")]
    dateReturned: Annotated[Moment | None, doc("When the code was returned; null if it was not.")]
    allowAsyncDelivery: Annotated[bool, doc("Whether the code may be delivered later; see Confirm order.")]
    productRegion: Annotated[str, doc("Where the code can be used.")]
    entityId: Annotated[int, doc("Number of the company that ordered.")]


class _ItemFields(Struct, kw_only=True):
    product: Annotated[Product, doc("The product as it was when the order was created.")]
    amount: Annotated[fields.Amount, doc("How many codes of the product were ordered.")]
    priceCurrency: fields.OwnCurrency
    singlePriceAmount: fields.PriceOfOne
    totalPriceAmount: fields.Total
    totalPriceVat: fields.TotalVat
    totalPriceInclVat: fields.TotalInclVat
    priceFx: fields.PriceFx
    paymentCurrency: fields.PaymentCurrency
    singlePriceAmountInPaymentCurrency: fields.PaidPriceOfOne
    totalPriceAmountInPaymentCurrency: fields.PaidTotal
    totalPriceVatInPaymentCurrency: fields.PaidTotalVat
    totalPriceInclVatInPaymentCurrency: fields.PaidTotalInclVat
    linesCompleted: Annotated[Count, doc("How many of the lines are `finished`.")]
    productSlug: fields.ProductSlug
    faceValueAmount: fields.FaceValue
    faceValueCurrency: fields.FaceCurrency
    faceValueFx: fields.FaceFx


_LINES: Final = doc("One line for each code ordered.")


class ShortItem(_ItemFields, kw_only=True):
    """One product of an order, with short lines."""

    orderLines: Annotated[list[ShortLine], _LINES]


class ExtendedItem(_ItemFields, kw_only=True):
    """One product of an order, with extended lines."""

    orderLines: Annotated[list[ExtendedLine], _LINES]


class _OrderFields(Struct, kw_only=True):
    trx: fields.Trx
    priceCurrency: fields.OrderCurrency
    priceAmount: fields.PriceAmount
    priceVat: fields.PriceVat
    priceInclVat: Annotated[
        Number, doc("Price including VAT: what Confirm or Resolve takes from the balance.")
    ]
    priceFx: fields.PriceFx
    paymentCurrency: fields.PaidIn
    dateCreated: fields.DateOrdered
    paymentStatus: Annotated[str, doc("How far the order is paid.", enum=PAYMENT_WORDS)]
    type: Annotated[str, doc("The system that created the order.", enum=TYPES)]
    reference: Annotated[str | None, doc("Your own text from Create; null if there was none.")]
    state: Annotated[Environment, doc("The environment of the order, picked by the API key.")]
    orderStatus: Annotated[str, doc("Where the order stands.", enum=fields.ORDER_STATUSES)]
    isBalancePayment: Annotated[bool, doc("Whether the order is paid from the balance; it always is.")]
    downloaded: Annotated[bool, doc("Whether the codes were exported as a file.")]
    dateExpires: Annotated[
        Moment | UnsetType, doc("End of the confirmation window. Only on an order that is `created`.")
    ] = UNSET


_ITEMS: Final = doc("The ordered products, in the order of the request.")


class ShortOrder(_OrderFields, kw_only=True):
    """An order in versions 1.00 and Next."""

    items: Annotated[list[ShortItem], _ITEMS]


class ExtendedOrder(_OrderFields, kw_only=True):
    """An order in version 1.03."""

    items: Annotated[list[ExtendedItem], _ITEMS]


class Offer(Struct):
    """One way to get a code, in the serialised product of an extended line."""

    price: fields.PriceOfOne
    offerId: Annotated[str, doc("Identifier of the offer.")]
    currency: fields.PriceOfOneCurrency
    supplier: Annotated[str, doc("Who supplies the code.")]
    stockCount: Annotated[Count, doc("How many codes the offer had at Create.")]
    purchasePrice: Annotated[Number, doc("What the operator paid for one code.")]
    purchasePriceCurrency: Annotated[LowerCurrency, doc("Currency of the purchase price. Lower case.")]


class ProductDescription(Struct):
    """The serialised product of an extended line, as it was at Create."""

    name: fields.ProductName
    slug: fields.ProductSlug
    brand: fields.Brand
    offers: Annotated[
        list[Offer],
        doc(
            "The best offers at Create, best first, and the one that the line was delivered from. Empty if the "
            "operator does not show costs."
        ),
    ]
    region: Annotated[str, doc("Where a code can be used.")]
    inScope: Annotated[bool, doc("Whether the product can be ordered with this key; it always can.")]
    bestOffer: Annotated[Offer | None, doc("The first of `offers`; null if there was none.")]
    faceValue: fields.FaceValue
    isStocked: Annotated[bool, doc("The same as that of the item's product.")]
    redeemType: fields.RedeemType
    stockCount: Annotated[
        Count, doc("How many codes there are; once the order is no longer `created`, how many there were.")
    ]
    priceAmount: fields.PriceOfOne
    productType: fields.ProductType
    vatCategory: fields.VatCategory
    mainCategory: fields.Category
    priceCurrency: fields.PriceOfOneCurrency
    faceValueCurrency: fields.FaceCurrency
    isVariableProduct: fields.IsVariable
    isIncentiveProduct: fields.IsIncentive


class PageMetadata(Struct, omit_defaults=True):
    """Where a page stands in the whole list; the totals are there when pages are counted (OP-03)."""

    pageSize: Annotated[
        int, doc("The most orders that a page holds: the `limit` that was asked for.", minimum=1)
    ]
    nextCursor: fields.NextCursor
    page: Annotated[int | UnsetType, doc("Number of the page. Not in a walk by cursor.", minimum=1)] = UNSET
    totalItems: Annotated[
        Count | UnsetType,
        doc(
            "How many orders the filters let through, among the first 10,000 that are looked at. "
            "Not in a walk by cursor."
        ),
    ] = UNSET
    totalPages: Annotated[Count | UnsetType, doc("How many pages they fill. Not in a walk by cursor.")] = (
        UNSET
    )
    moreItems: Annotated[
        bool | UnsetType,
        doc(
            "`true` where there are more than 10,000 orders, so that there may be more than `totalItems` says: "
            "walk by cursor, or choose dates. Not there otherwise."
        ),
    ] = UNSET
    archivedBefore: Annotated[
        fields.Moment | UnsetType,
        doc(
            "On the last page, where the operator keeps an archive: orders created before this are found by their trx, "
            "and are in no list. Not there otherwise."
        ),
    ] = UNSET


class Pagination(Struct):
    """Where a counted page stands, in the names that clients of other services read."""

    total: Annotated[Count, doc("The same as `totalItems`.")]
    limit: Annotated[int, doc("The same as `pageSize`.", minimum=1)]
    offset: Annotated[Count, doc("How many come before the page.")]
    page: Annotated[int, doc("The same as `page` of the metadata.", minimum=1)]
    pages: Annotated[Count, doc("The same as `totalPages`.")]


def place_of(
    size: int, skip: int | None, cursor: str | None, total: int | None
) -> tuple[PageMetadata, Pagination | UnsetType]:
    """Where a page stands in the whole list; in a walk by cursor (`skip` is None) nothing is counted."""
    metadata = PageMetadata(pageSize=size, nextCursor=cursor)
    if skip is None or total is None:
        return metadata, UNSET
    metadata.page, metadata.totalItems, metadata.totalPages = skip // size + 1, total, -(-total // size)
    return metadata, Pagination(total, size, skip, metadata.page, metadata.totalPages)


CountedPage: TypeAlias = Annotated[PageMetadata, doc("Where the page stands in the whole list.")]
ToldTwice: TypeAlias = Annotated[
    Pagination | UnsetType, doc("The same in other names. Not in a walk by cursor.")
]
_ORDERS: Final = doc("The orders of the page.")


class ShortOrderPage(Struct):
    """A page of orders in versions 1.00 and Next."""

    data: Annotated[list[ShortOrder], _ORDERS]
    metadata: CountedPage
    pagination: ToldTwice = UNSET


class ExtendedOrderPage(Struct):
    """A page of orders in version 1.03."""

    data: Annotated[list[ExtendedOrder], _ORDERS]
    metadata: CountedPage
    pagination: ToldTwice = UNSET


class Account(Struct):
    """A balance in one currency."""

    currency: fields.AccountCurrency
    state: Annotated[Environment, doc("The environment of the account, picked by the API key.")]
    totalAmount: Annotated[Number, doc("The balance.")]
    heldAmount: Annotated[Number, doc("What of it is set aside for orders that are being resolved.")]
    availableAmount: Annotated[Number, doc("What an order can be paid from: the balance less what is held.")]


class AccountEntry(Struct):
    """One movement of an account."""

    seq: Annotated[int, doc("Number of the movement: 1, 2, 3 … in each account.", minimum=1)]
    dateCreated: Annotated[Moment, doc("When the money moved.")]
    kind: Annotated[str, doc("Why it moved.", enum=[kind.word for kind in EntryKind])]
    amount: Annotated[Number, doc("What came in; negative for what went out.")]
    holdAmount: Annotated[Number, doc("What was set aside; negative for what was given back or spent.")]
    balanceAfter: Annotated[Number, doc("The balance after the movement.")]
    heldAfter: Annotated[Number, doc("What was set aside after the movement.")]
    currency: fields.AccountCurrency
    trx: Annotated[AnyTrx | None, doc("The order that the movement belongs to; null if there is none.")]
    reference: Annotated[
        str | None, doc("The text of a top-up or correction; null for a movement of an order.")
    ]


class WalkMetadata(Struct):
    """Where a walk by cursor stands."""

    pageSize: Annotated[int, doc("The most that a page holds: the `limit` that was asked for.", minimum=1)]
    nextCursor: fields.NextCursor


WalkedPage: TypeAlias = Annotated[WalkMetadata, doc("Where the page stands.")]


class LinePage(Struct):
    """A page of an order's lines."""

    data: Annotated[list[ExtendedLine], doc("The lines of the page.")]
    metadata: WalkedPage


class AccountEntryPage(Struct):
    """A page of an account's statement."""

    data: Annotated[list[AccountEntry], doc("The movements of the page.")]
    metadata: WalkedPage


class Redemption(Struct):
    """How an order's redemption links are protected."""

    trx: fields.Trx
    hasPin: Annotated[bool, doc("Whether the order's links ask for a PIN.")]
