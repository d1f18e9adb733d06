"""What people read of the fixed words of products: their types, what they are redeemed as, VAT, regions. Pure."""

from __future__ import annotations

from typing import Final

from voucherd.catalogue.products import PRODUCT_TYPES, REDEEM_TYPES, VAT_CATEGORIES
from voucherd.words import ENGLISH, Words, phrase

TYPES: Final = {
    "giftcard": phrase("Gift card"),
    "gamecard": phrase("Game card"),
    "topup": phrase("Top-up"),
    "paymentcard": phrase("Payment card"),
    "subscription": phrase("Subscription"),
}
REDEEMED: Final = {
    "currency": "Money on an account",
    "product": "A product",
    "subscription": "Subscription",
}
VAT: Final = {
    "single_purpose": "On the whole price",
    "multi_purpose": "On the fee only",
    "exempt": "None: exempt",
}
assert (set(TYPES), set(REDEEMED), set(VAT)) == (set(PRODUCT_TYPES), set(REDEEM_TYPES), set(VAT_CATEGORIES))


def region_words(region: str, words: Words = ENGLISH) -> str:
    """Where codes can be redeemed."""
    return words.place(region) or words.text("Worldwide")
