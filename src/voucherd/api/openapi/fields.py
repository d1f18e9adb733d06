"""What every field of the wire means, and the rules that its type alone does not say.

A field that is missing here, or that no shape has, fails a test: the words can't drift from the shapes.
"""

from __future__ import annotations

from typing import Any, Final

from voucherd.api.openapi import catalogue_fields, event_fields, key_fields, redemption_fields, webhook_fields
from voucherd.api.requests import SLUG_CHARS_MAX
from voucherd.api.wire.view import PAYMENT_WORDS, STATUS_WORDS
from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, VAT_CATEGORIES
from voucherd.ids import LINES_MAX, State
from voucherd.orders.model import AMOUNT_MAX, ITEMS_MAX, REFERENCE_CHARS_MAX, TYPES
from voucherd.orders.rules.states import Status
from voucherd.wallet.ledger import Kind

ORDER_STATUSES: Final = tuple(word for word in STATUS_WORDS if word != STATUS_WORDS[Status.DELETED])
"""A deleted order is gone for every reader (OP-53)."""

LINE_STATUSES: Final = ("pending", "finished", "cancelled")

_UPPER: Final[dict[str, Any]] = {"pattern": "^[A-Z]{3}$"}
_LOWER: Final[dict[str, Any]] = {"pattern": "^[a-z]{3}$"}
_TIME: Final[dict[str, Any]] = {"format": "date-time"}
_COUNT: Final[dict[str, Any]] = {"minimum": 0}
_LINK: Final[dict[str, Any]] = {"format": "uri"}
_ENVIRONMENT: Final[dict[str, Any]] = {"enum": [state.word for state in State]}
TRX: Final[dict[str, Any]] = {"pattern": "^TRX[0-9A-HJKMNP-TV-Z]{26}$"}
_TAG: Final[dict[str, Any]] = {"pattern": "^TAG-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}

Fields = dict[str, tuple[str, dict[str, Any]]]

ORDER: Final[Fields] = {
    "trx": ("Identifier of the order.", TRX),
    "priceCurrency": ("Currency of the order's prices: the one it is paid in. Upper case.", _UPPER),
    "priceAmount": ("Price before VAT.", {}),
    "priceVat": ("VAT amount.", {}),
    "priceInclVat": ("Price including VAT: what Confirm or Resolve takes from the balance.", {}),
    "priceFx": ("What one unit of `priceCurrency` is worth in EUR.", {}),
    "dateCreated": ("When the order was created.", _TIME),
    "paymentStatus": ("How far the order is paid.", {"enum": list(PAYMENT_WORDS)}),
    "type": ("The system that created the order.", {"enum": list(TYPES)}),
    "reference": ("Your own text from Create; null if there was none.", {}),
    "state": ("The environment of the order, picked by the API key.", _ENVIRONMENT),
    "orderStatus": ("Where the order stands.", {"enum": list(ORDER_STATUSES)}),
    "isBalancePayment": ("Whether the order is paid from the balance; it always is.", {}),
    "downloaded": ("Whether the codes were exported as a file.", {}),
    "dateExpires": ("End of the confirmation window. Only on an order that is `created`.", _TIME),
    "items": ("The ordered products, in the order of the request.", {}),
}

ITEM: Final[Fields] = {
    "product": ("The product as it was when the order was created.", {}),
    "amount": ("How many codes of the product were ordered.", {"minimum": 1, "maximum": AMOUNT_MAX}),
    "priceCurrency": ("Currency that the product is priced in. Lower case.", _LOWER),
    "singlePriceAmount": ("Price of one code before VAT.", {}),
    "totalPriceAmount": ("Price of all codes before VAT.", {}),
    "totalPriceVat": ("VAT on all codes.", {}),
    "totalPriceInclVat": ("Price of all codes including VAT.", {}),
    "priceFx": ("What one unit of `priceCurrency` is worth in EUR.", {}),
    "paymentCurrency": ("Currency that the order is paid in. Lower case.", _LOWER),
    "singlePriceAmountInPaymentCurrency": ("Price of one code before VAT, in `paymentCurrency`.", {}),
    "totalPriceAmountInPaymentCurrency": ("Price of all codes before VAT, in `paymentCurrency`.", {}),
    "totalPriceVatInPaymentCurrency": ("VAT on all codes, in `paymentCurrency`.", {}),
    "totalPriceInclVatInPaymentCurrency": ("Price of all codes including VAT, in `paymentCurrency`.", {}),
    "orderLines": ("One line for each code ordered.", {}),
    "linesCompleted": ("How many of the lines are `finished`.", _COUNT),
    "productSlug": ("Slug of the product.", {}),
    "faceValueAmount": ("Face value of one code.", {}),
    "faceValueCurrency": ("Currency of the face value. Lower case.", _LOWER),
    "faceValueFx": ("What one unit of `faceValueCurrency` is worth in EUR.", {}),
}

QUOTED_ORDER: Final[Fields] = {
    **{name: ORDER[name] for name in ("priceCurrency", "priceAmount", "priceVat", "priceFx")},
    "priceInclVat": ("Price including VAT: what the order would take from the balance.", {}),
    "reference": ("Your own text; null if there was none.", {}),
    "state": ("The environment, picked by the API key.", _ENVIRONMENT),
    "isAvailable": ("Whether every code could be delivered at once.", {}),
    "items": ("The products, in the order of the request.", {}),
}

QUOTED_ITEM: Final[Fields] = {
    **{name: words for name, words in ITEM.items() if name not in ("orderLines", "linesCompleted")},
    "product": ("The product as it is now.", {}),
    "amount": ("How many codes of the product were asked for.", ITEM["amount"][1]),
    "isAvailable": ("Whether all of them could be delivered at once; if not, some would come later.", {}),
}

PRODUCT: Final[Fields] = {
    "slug": ("Slug of the product.", {}),
    "name": ("Name of the product.", {}),
    "brand": ("Name of the brand.", {}),
    "productType": ("Kind of product.", {"enum": list(PRODUCT_TYPES)}),
    "region": ("Where a code can be used; `ww` is everywhere.", {}),
    "faceValueAmount": ("Face value of one code.", {}),
    "faceValueCurrency": ("Currency of the face value. Lower case.", _LOWER),
    "faceValueMin": ("Smallest face value that can be ordered. Version 1.03 only.", {}),
    "faceValueMax": ("Largest face value that can be ordered. Version 1.03 only.", {}),
    "mainCategory": ("Slug of the category.", {}),
    "redeemType": ("What a code is redeemed for.", {"enum": list(REDEEM_TYPES)}),
    "isStocked": ("Whether codes were in stock when the order was created.", {}),
}

_FINISHED: Final = "Only on a finished line."

SHORT_LINE: Final[Fields] = {
    "tag": ("Identifier of the line.", _TAG),
    "status": ("Where the line stands.", {"enum": list(LINE_STATUSES)}),
    "voucherCode": (f"The code. {_FINISHED}", {}),
    "voucherSerial": (f"The code's serial number. {_FINISHED}", {}),
    "voucherDateExpired": ("When the code expires. Only on a finished line whose code expires.", _TIME),
}

_UNTIL: Final = "Null until the line is finished."
_COST: Final = "Null if the operator does not show costs, or no offer is known."

EXTENDED_LINE: Final[Fields] = {
    "tag": SHORT_LINE["tag"],
    "status": SHORT_LINE["status"],
    "id": ("Number of the line.", {}),
    "orderId": ("Number of the order.", {}),
    "dateCreated": ("When the order was created.", _TIME),
    "brandSlug": ("Slug of the brand.", {}),
    "productSlug": ("Slug of the product.", {}),
    "productFacevalueAmount": ("Face value of the code.", {}),
    "productFacevalueCurrency": ("Currency of the face value. Lower case.", _LOWER),
    "productFacevalueFx": ("What one unit of `productFacevalueCurrency` is worth in EUR.", {}),
    "priceAmount": ("Price of the code before VAT.", {}),
    "priceCurrency": ("Currency that the product is priced in. Lower case.", _LOWER),
    "priceFx": ("What one unit of `priceCurrency` is worth in EUR.", {}),
    "voucherCode": (f"The code. {_UNTIL}", {}),
    "voucherSerial": (f"The code's serial number. {_UNTIL}", {}),
    "voucherUrl": (f"The same as `redemptionLink`. {_UNTIL}", _LINK),
    "voucherDateExpired": (f"When the code expires; null for one that does not. {_UNTIL}", _TIME),
    "purchasePriceAmount": (f"What the operator paid for the code. {_COST}", {}),
    "purchasePriceCurrency": (f"Currency of `purchasePriceAmount`. Lower case. {_COST}", _LOWER),
    "purchasePriceFx": (f"What one unit of `purchasePriceCurrency` is worth in EUR. {_COST}", {}),
    "commissionEur": (f"Price before VAT less the purchase price, in EUR. {_COST}", {}),
    "externalId": (f"The supplier's identifier of the code. {_UNTIL}", {}),
    "offerId": ("The offer that served the line, or the best one at Create; null if there was none.", {}),
    "externalSupplier": (f"The supplier of the code. {_COST}", {}),
    "priceVatAmount": ("VAT on the code.", {}),
    "priceVatTurnover": ("The amount that the VAT was computed on.", {}),
    "priceInclVat": ("Price of the code including VAT.", {}),
    "priceAmountInPaymentCurrency": ("Price of the code before VAT, in `paymentCurrency`.", {}),
    "priceVatAmountInPaymentCurrency": ("VAT on the code, in `paymentCurrency`.", {}),
    "priceVatTurnoverInPaymentCurrency": (
        "The amount that the VAT was computed on, in `paymentCurrency`.",
        {},
    ),
    "priceInclVatInPaymentCurrency": ("Price of the code including VAT, in `paymentCurrency`.", {}),
    "paymentCurrency": ("Currency that the order is paid in. Lower case.", _LOWER),
    "paymentCurrencyFx": ("What one unit of `paymentCurrency` is worth in EUR.", {}),
    "dateUpdated": ("When the order last changed.", _TIME),
    "state": ("The environment of the order.", _ENVIRONMENT),
    "product": (
        "The product as it was at Create: a string that holds a JSON document of the shape `ProductDescription`.",
        {"contentMediaType": "application/json"},
    ),
    "token": (f"The secret in the redemption link. {_UNTIL}", {}),
    "redemptionLink": (
        f"A secret link for the code's final owner: its page shows the code on a click. {_UNTIL}",
        _LINK,
    ),
    "dateVoucherViewed": ("When the code was first revealed through the link; null before.", _TIME),
    "dateLinkViewed": ("When the link was first opened; null before.", _TIME),
    "dateReturned": ("When the code was returned; null if it was not.", _TIME),
    "allowAsyncDelivery": ("Whether the code may be delivered later; see Confirm order.", {}),
    "productRegion": ("Where the code can be used.", {}),
    "entityId": ("Number of the company that ordered.", {}),
}

OFFER: Final[Fields] = {
    "price": ("Price of one code before VAT.", {}),
    "offerId": ("Identifier of the offer.", {}),
    "currency": ("Currency of the price. Lower case.", _LOWER),
    "supplier": ("Who supplies the code.", {}),
    "stockCount": ("How many codes the offer had at Create.", _COUNT),
    "purchasePrice": ("What the operator paid for one code.", {}),
    "purchasePriceCurrency": ("Currency of the purchase price. Lower case.", _LOWER),
}

PRODUCT_DESCRIPTION: Final[Fields] = {
    "name": ("Name of the product.", {}),
    "slug": ("Slug of the product.", {}),
    "brand": ("Name of the brand.", {}),
    "offers": ("The best offers at Create, best first. Null if the operator does not show costs.", {}),
    "region": ("Where a code can be used.", {}),
    "inScope": ("Whether the product can be ordered with this key; it always can.", {}),
    "bestOffer": ("The first of `offers`; null if there was none.", {}),
    "faceValue": ("Face value of one code.", {}),
    "isStocked": ("Whether codes were in stock.", {}),
    "redeemType": PRODUCT["redeemType"],
    "stockCount": ("How many codes all offers had together.", _COUNT),
    "priceAmount": ("Price of one code before VAT.", {}),
    "productType": PRODUCT["productType"],
    "vatCategory": ("What VAT is computed on.", {"enum": list(VAT_CATEGORIES)}),
    "mainCategory": PRODUCT["mainCategory"],
    "priceCurrency": ("Currency of the price. Lower case.", _LOWER),
    "faceValueCurrency": ("Currency of the face value. Lower case.", _LOWER),
    "isVariableProduct": ("Whether the client picks the face value.", {}),
    "isIncentiveProduct": ("Whether the product is an incentive.", {}),
}

PAGE_METADATA: Final[Fields] = {
    "pageSize": ("The most orders that a page holds: the `limit` that was asked for.", {"minimum": 1}),
    "nextCursor": ("The `cursor` of the next page. Null on the last page.", {}),
    "page": ("Number of the page. Not in a walk by cursor.", {"minimum": 1}),
    "totalItems": ("How many orders the filters let through. Not in a walk by cursor.", _COUNT),
    "totalPages": ("How many pages they fill. Not in a walk by cursor.", _COUNT),
}

ORDER_PAGE: Final[Fields] = {
    "data": ("The orders of the page.", {}),
    "metadata": ("Where the page stands in the whole list.", {}),
}

ACCOUNT: Final[Fields] = {
    "currency": ("Currency of the account. Upper case.", _UPPER),
    "state": ("The environment of the account, picked by the API key.", _ENVIRONMENT),
    "totalAmount": ("The balance.", {}),
    "heldAmount": ("What of it is set aside for orders that are being resolved.", {}),
    "availableAmount": ("What an order can be paid from: the balance less what is held.", {}),
}

ACCOUNT_ENTRY: Final[Fields] = {
    "seq": ("Number of the movement: 1, 2, 3 … in each account.", {"minimum": 1}),
    "dateCreated": ("When the money moved.", _TIME),
    "kind": ("Why it moved.", {"enum": [kind.word for kind in Kind]}),
    "amount": ("What came in; negative for what went out.", {}),
    "holdAmount": ("What was set aside; negative for what was given back or spent.", {}),
    "balanceAfter": ("The balance after the movement.", {}),
    "heldAfter": ("What was set aside after the movement.", {}),
    "currency": ("Currency of the account. Upper case.", _UPPER),
    "trx": ("The order that the movement belongs to; null if there is none.", TRX),
    "reference": ("The text of a top-up or correction; null for a movement of an order.", {}),
}

WALK_METADATA: Final[Fields] = {
    "pageSize": ("The most that a page holds: the `limit` that was asked for.", {"minimum": 1}),
    "nextCursor": ("The `cursor` of the next page. Null on the last page.", {}),
}

CREATE_BODY: Final[Fields] = {
    "items": (
        f"The products to order; their amounts add up to at most {LINES_MAX:,} codes.",
        {"minItems": 1, "maxItems": ITEMS_MAX},
    ),
    "paymentCurrency": (
        "ISO 4217 code of the balance to pay from, in upper or lower case.",
        {"pattern": "^[A-Za-z]{3}$"},
    ),
    "reference": (
        "Your own text, such as an order number. It comes back in every response and can be searched for.",
        {"maxLength": REFERENCE_CHARS_MAX, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"},
    ),
    "webhookUrl": webhook_fields.ORDER_URL,
}

CREATE_ITEM: Final[Fields] = {
    "productSlug": ("Slug of the product.", {"minLength": 1, "maxLength": SLUG_CHARS_MAX}),
    "amount": ("How many codes.", {"minimum": 1, "maximum": AMOUNT_MAX}),
    "faceValue": (
        "Face value of one code, in the product's own currency. Required for a product with a variable face "
        "value and refused for any other.",
        {"exclusiveMinimum": 0},
    ),
}

FIELDS: Final[dict[str, Fields]] = {
    **catalogue_fields.FIELDS,
    **webhook_fields.FIELDS,
    **event_fields.FIELDS,
    **key_fields.FIELDS,
    **redemption_fields.FIELDS,
    "ShortOrder": ORDER,
    "ExtendedOrder": ORDER,
    "ShortItem": ITEM,
    "QuotedOrder": QUOTED_ORDER,
    "QuotedItem": QUOTED_ITEM,
    "ExtendedItem": ITEM,
    "Product": PRODUCT,
    "ShortLine": SHORT_LINE,
    "ExtendedLine": EXTENDED_LINE,
    "ProductDescription": PRODUCT_DESCRIPTION,
    "Offer": OFFER,
    "ShortOrderPage": ORDER_PAGE,
    "ExtendedOrderPage": ORDER_PAGE,
    "PageMetadata": PAGE_METADATA,
    "Account": ACCOUNT,
    "AccountEntry": ACCOUNT_ENTRY,
    "AccountEntryPage": {
        "data": ("The movements of the page.", {}),
        "metadata": ("Where the page stands.", {}),
    },
    "LinePage": {"data": ("The lines of the page.", {}), "metadata": ("Where the page stands.", {})},
    "WalkMetadata": WALK_METADATA,
    "CreateBody": CREATE_BODY,
    "CreateItem": CREATE_ITEM,
}
