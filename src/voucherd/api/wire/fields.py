"""What a field of the wire means: the form of such words, and the fields that several shapes share.

The words and rules stand on the structs that the service reads and writes; the OpenAPI document is made from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from voucherd.api.wire.numbers import Number
from voucherd.api.wire.view import STATUS_WORDS
from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, VAT_CATEGORIES
from voucherd.ids import State
from voucherd.orders.model import AMOUNT_MAX
from voucherd.orders.rules.states import Status


def doc(words: str, **rules: Any) -> Meta:
    """The meaning of a field, and the rules of JSON Schema that its type alone does not say."""
    # They describe and do not check: what a client sends is checked by hand, in words that name the field (OP-25).
    return Meta(description=words, extra_json_schema=rules)


def rule(**rules: Any) -> Meta:
    """The rules of a kind of field that has no words of its own."""
    return Meta(extra_json_schema=rules)


ORDER_STATUSES: Final = tuple(word for word in STATUS_WORDS if word != STATUS_WORDS[Status.DELETED])
"""A deleted order is gone for every reader (OP-53)."""
STATES: Final = tuple(state.word for state in State)

# ── kinds ─────────────────────────────────────────────────────────────────────────────────────────────────

Count: TypeAlias = Annotated[int, rule(minimum=0)]
Link: TypeAlias = Annotated[str, rule(format="uri")]
LowerCurrency: TypeAlias = Annotated[str, rule(pattern="^[a-z]{3}$")]
Moment: TypeAlias = Annotated[str, rule(format="date-time")]
UpperCurrency: TypeAlias = Annotated[str, rule(pattern="^[A-Z]{3}$")]
AnyCurrency: TypeAlias = Annotated[str, rule(pattern="^[A-Za-z]{3}$")]
AnyTrx: TypeAlias = Annotated[str, rule(pattern="^TRX[0-9A-HJKMNP-TV-Z]{26}$")]
EventId: TypeAlias = Annotated[str, rule(pattern="^evt_[0-9A-Z]{26}$")]
KeyId: TypeAlias = Annotated[str, rule(pattern="^key_[0-9A-Z]{26}$")]

# ── products ──────────────────────────────────────────────────────────────────────────────────────────────

Brand: TypeAlias = Annotated[str, doc("Name of the brand.")]
BrandSlug: TypeAlias = Annotated[str, doc("Slug of the brand.")]
Category: TypeAlias = Annotated[str, doc("Slug of the category.")]
FaceCurrency: TypeAlias = Annotated[LowerCurrency, doc("Currency of the face value. Lower case.")]
FaceValue: TypeAlias = Annotated[Number, doc("Face value of one code.")]
IsIncentive: TypeAlias = Annotated[bool, doc("Whether the product is an incentive.")]
IsVariable: TypeAlias = Annotated[bool, doc("Whether the client picks the face value.")]
PriceOfOne: TypeAlias = Annotated[Number, doc("Price of one code before VAT.")]
PriceOfOneCurrency: TypeAlias = Annotated[LowerCurrency, doc("Currency of the price. Lower case.")]
ProductName: TypeAlias = Annotated[str, doc("Name of the product.")]
ProductSlug: TypeAlias = Annotated[str, doc("Slug of the product.")]
ProductType: TypeAlias = Annotated[str, doc("Kind of product.", enum=PRODUCT_TYPES)]
RedeemValue: TypeAlias = Annotated[
    str,
    doc(
        "What a code is redeemed in: the currency of its face value where `redeemType` is `currency`, its region "
        "otherwise. Lower case."
    ),
]
RedeemType: TypeAlias = Annotated[str, doc("What a code is redeemed for.", enum=REDEEM_TYPES)]
Region: TypeAlias = Annotated[str, doc("Where a code can be used; `ww` is everywhere.")]
VatCategory: TypeAlias = Annotated[str, doc("What VAT is computed on.", enum=VAT_CATEGORIES)]

# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────

Amount: TypeAlias = Annotated[int, rule(minimum=1, maximum=AMOUNT_MAX)]
DateOrdered: TypeAlias = Annotated[Moment, doc("When the order was created.")]
LineStatus: TypeAlias = Annotated[
    str, doc("Where the line stands.", enum=("pending", "finished", "cancelled"))
]
OrderCurrency: TypeAlias = Annotated[
    UpperCurrency, doc("Currency of the order's prices: the one it is paid in. Upper case.")
]
PaidIn: TypeAlias = Annotated[UpperCurrency, doc("The same as `priceCurrency`.")]
OwnCurrency: TypeAlias = Annotated[LowerCurrency, doc("Currency that the product is priced in. Lower case.")]
PaymentCurrency: TypeAlias = Annotated[LowerCurrency, doc("Currency that the order is paid in. Lower case.")]
PriceAmount: TypeAlias = Annotated[Number, doc("Price before VAT.")]
PriceFx: TypeAlias = Annotated[Number, doc("What one unit of `priceCurrency` is worth in EUR.")]
PriceVat: TypeAlias = Annotated[Number, doc("VAT amount.")]
PaidPriceOfOne: TypeAlias = Annotated[Number, doc("Price of one code before VAT, in `paymentCurrency`.")]
FaceFx: TypeAlias = Annotated[Number, doc("What one unit of `faceValueCurrency` is worth in EUR.")]
Total: TypeAlias = Annotated[Number, doc("Price of all codes before VAT.")]
TotalVat: TypeAlias = Annotated[Number, doc("VAT on all codes.")]
TotalInclVat: TypeAlias = Annotated[Number, doc("Price of all codes including VAT.")]
PaidTotal: TypeAlias = Annotated[Number, doc("Price of all codes before VAT, in `paymentCurrency`.")]
PaidTotalVat: TypeAlias = Annotated[Number, doc("VAT on all codes, in `paymentCurrency`.")]
PaidTotalInclVat: TypeAlias = Annotated[
    Number, doc("Price of all codes including VAT, in `paymentCurrency`.")
]
Environment: TypeAlias = Annotated[str, rule(enum=STATES)]
Tag: TypeAlias = Annotated[
    str, doc("Identifier of the line.", pattern="^TAG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
]
Trx: TypeAlias = Annotated[AnyTrx, doc("Identifier of the order.")]

# ── pages and the rest ────────────────────────────────────────────────────────────────────────────────────

AccountCurrency: TypeAlias = Annotated[UpperCurrency, doc("Currency of the account. Upper case.")]
DateMade: TypeAlias = Annotated[Moment, doc("When it was made.")]
NextCursor: TypeAlias = Annotated[str | None, doc("The `cursor` of the next page. Null on the last page.")]
TotalItems: TypeAlias = Annotated[Count, doc("How many there are.")]
