"""What every field of the catalogue means."""

from __future__ import annotations

from typing import Any, Final

from voucherd.catalogue.products import (
    INSTRUCTIONS_LENGTH_MAX,
    PRODUCT_TYPES,
    REDEEM_TYPES,
    TERMS_LENGTH_MAX,
    VAT_CATEGORIES,
)
from voucherd.storefront.feed import KINDS

_LOWER: Final[dict[str, Any]] = {"pattern": "^[a-z]{3}$"}
_TIME: Final[dict[str, Any]] = {"format": "date-time"}
_LINK: Final[dict[str, Any]] = {"format": "uri"}
_COUNT: Final[dict[str, Any]] = {"minimum": 0}

_PICKED: Final = "Null for a variable product unless `faceValue` was asked for"
_PAID: Final = f"Only if it was asked for. {_PICKED}, and where there is no exchange rate."

_Fields = dict[str, tuple[str, dict[str, Any]]]

PRODUCT: Final[_Fields] = {
    "slug": ("Slug of the product: its name in orders.", {}),
    "name": ("Name of the product.", {}),
    "brand": ("Name of the brand.", {}),
    "brandSlug": ("Slug of the brand.", {}),
    "productType": ("Kind of product.", {"enum": list(PRODUCT_TYPES)}),
    "region": ("Where a code can be used; `ww` is everywhere.", {}),
    "faceValueAmount": ("Face value of one code. Null for a variable product.", {}),
    "faceValueCurrency": ("Currency of the face value. Lower case.", _LOWER),
    "faceValueMin": ("Smallest face value that can be ordered.", {}),
    "faceValueMax": ("Largest face value that can be ordered.", {}),
    "mainCategory": ("Slug of the category.", {}),
    "redeemType": ("What a code is redeemed for.", {"enum": list(REDEEM_TYPES)}),
    "isStocked": (
        "Whether a code could be delivered now, from stock or by a supplier. Always true in the sandbox.",
        {},
    ),
    "isVariableProduct": ("Whether the client picks the face value.", {}),
    "isIncentiveProduct": ("Whether the product is an incentive.", {}),
    "isActive": ("Whether the product is for sale. False only in the feed of changes.", {}),
    "allowAsyncDelivery": ("Whether a code may be delivered later; see Confirm order.", {}),
    "vatCategory": ("What VAT is computed on.", {"enum": list(VAT_CATEGORIES)}),
    "priceAmount": (f"Price of one code before VAT. {_PICKED}.", {}),
    "priceCurrency": ("Currency of the price. Lower case.", _LOWER),
    "priceVat": (f"VAT on one code for your company, today. {_PICKED}.", {}),
    "priceInclVat": (f"Price of one code including VAT. {_PICKED}.", {}),
    "feeVariable": ("What the face value is multiplied with. Null for a fixed price.", {}),
    "feeFixed": ("What is added to that. Null for a fixed price.", {}),
    "discount": (
        "Your company's discount, as a share: it is taken from the price, or from face value and fee together, before "
        "rounding. Only where there is one.",
        {},
    ),
    "feeCurrency": ("Currency of `feeFixed`. Lower case. Null for a fixed price.", _LOWER),
    "paymentCurrency": ("The currency that was asked for. Lower case.", _LOWER),
    "priceAmountInPaymentCurrency": (f"Price of one code before VAT, in `paymentCurrency`. {_PAID}", {}),
    "priceVatInPaymentCurrency": (f"VAT on one code, in `paymentCurrency`. {_PAID}", {}),
    "priceInclVatInPaymentCurrency": (
        f"Price of one code including VAT, in `paymentCurrency`: what Create would fix now. {_PAID}",
        {},
    ),
    "redeemInstructions": (
        "How a code is redeemed, in plain text; null if nothing is said.",
        {"maxLength": INSTRUCTIONS_LENGTH_MAX},
    ),
    "terms": (
        "What the user of a code agrees to, in plain text; null if nothing is said.",
        {"maxLength": TERMS_LENGTH_MAX},
    ),
    "imageUrl": ("A picture of the product; null if there is none.", _LINK),
    "dateUpdated": ("When the product last changed.", _TIME),
}

_GROUP: Final[_Fields] = {
    "slug": ("Slug, for filters.", {}),
    "name": ("Name for people.", {}),
    "productCount": ("How many products are for sale.", _COUNT),
}
_PAGE: Final = "Where the page stands in the whole list."

FIELDS: Final[dict[str, _Fields]] = {
    "CatalogueProduct": PRODUCT,
    "ProductPage": {"data": ("The products of the page.", {}), "metadata": (_PAGE, {})},
    "ProductChange": {
        "type": (
            "What changed: whether it is for sale, its price, anything else about it, or whether it is in stock.",
            {"enum": list(KINDS)},
        ),
        "at": ("When it changed.", _TIME),
        "product": ("The product as it stood after the change, at your prices of today.", {}),
    },
    "ProductChangePage": {
        "data": ("The changes, oldest first.", {}),
        "metadata": ("Where the feed goes on.", {}),
    },
    "FeedMetadata": {
        "nextCursor": ("The `since` of the next call: the same again while nothing is new.", {}),
    },
    "Brand": _GROUP,
    "BrandPage": {"data": ("The brands of the page, by slug.", {}), "metadata": (_PAGE, {})},
    "Category": _GROUP,
    "CategoryList": {"data": ("The categories, by slug.", {}), "metadata": ("How many there are.", {})},
    "FxRate": {
        "fromCurrency": ("The currency. Lower case.", _LOWER),
        "toCurrency": ("The currency that it is worth something in: always `eur`.", _LOWER),
        "rate": ("What one unit of `fromCurrency` is worth in `toCurrency`.", {}),
        "date": ("The day of the rate; it is in force until there is a newer one.", {"format": "date"}),
    },
    "FxRateList": {"data": ("The rates, by currency.", {}), "metadata": ("How many there are.", {})},
    "ListMetadata": {"totalItems": ("How many there are.", _COUNT)},
}
