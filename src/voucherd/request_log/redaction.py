"""What the request log may keep of a body. Pure.

A field is shown if its name is known to be harmless, and hidden otherwise: what a client makes up, and what is added
to the wire later, is hidden until somebody has thought about it.
"""

from __future__ import annotations

import contextlib
import re
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

HIDDEN: Final = "***"
BODY_BYTES_MAX: Final = 65_536
"""A longer body is not even read."""
KEPT_CHARS_MAX: Final = 4_000
PATH_CHARS_MAX: Final = 500

_NAMES: Final = """
active aheadSeconds allowAsyncDelivery allowIps amount archivedBefore at attempts availableAmount balance
balanceAfter bestOffer brand brandName brandSlug category commissionEur confirmsAlone currency currencyFrom
currencyTo data date dateCreated dateExpires dateFailingSince dateLastUsed dateLinkViewed dateNext
dateNextAttempt dateNow dateOldSecretExpires dateReturned dateRevoked dateSent dateUpdated dateVoucherViewed
deliveries description detail disabledReason discount downloaded durationMs enabled entityId error eventId
eventTypes expiredOrders externalId externalSupplier faceValue faceValueAmount faceValueCurrency faceValueFx
faceValueMax faceValueMin faceValueRanges faceValues failures feeCurrency feeFixed feeVariable field format
fromCurrency fxRates hasPin headerNames heldAfter heldAmount holdAmount httpStatus id imageUrl inScope
isActive isAvailable isBalancePayment isCaller isIncentiveProduct isStocked isVariableProduct items keyId kind
limit linesCompleted madeWith mainCategory max message metadata method min more moreItems name nextCursor
number offerId offers offset orderId orderLines orderStatus orders overlapSeconds page pageSize pages
pagination path paymentCurrency paymentCurrencyFx paymentStatus perOrder prefix price priceAmount
priceAmountInPaymentCurrency priceCurrency priceFx priceInclVat priceInclVatInPaymentCurrency priceVat
priceVatAmount priceVatAmountInPaymentCurrency priceVatInPaymentCurrency priceVatTurnover
priceVatTurnoverInPaymentCurrency product productCount productFacevalueAmount productFacevalueCurrency
productFacevalueFx productRegion productSlug productType purchasePrice purchasePriceAmount
purchasePriceCurrency purchasePriceFx queued rate rateLimit reason redeemInstructions redeemType redeemValue
reference region replacedBy requestId retryable scopes seconds seq singlePriceAmount
singlePriceAmountInPaymentCurrency slug spendDayEur spendOrderEur standing state status stockCount stocked
supplier tag terms thresholdAmount timestamp title toCurrency total totalAmount totalItems totalPages
totalPriceAmount totalPriceAmountInPaymentCurrency totalPriceInclVat totalPriceInclVatInPaymentCurrency
totalPriceVat totalPriceVatInPaymentCurrency trx type vatCategory voucherDateExpired webhookId withheldScopes
"""
SHOWN: Final = frozenset(_NAMES.split())
"""Names of fields whose values are kept."""

ADDRESSES: Final = frozenset({"url", "webhookUrl"})
"""Of these the host alone: the rest of an address may be somebody's secret."""

WORDS: Final = frozenset({"code"})
"""Of these one word in small letters, as the code of a problem is, and never what may be a voucher's."""

SECRETS: Final = frozenset(
    {
        "headers",
        "key",
        "pin",
        "redemptionLink",
        "requestBody",
        "responseBody",
        "responseHead",
        "secret",
        "token",
        "voucherCode",
        "voucherSerial",
        "voucherUrl",
    }
)
"""Fields of the wire that are hidden because of what they hold; a test compares them with the document."""

# What a secret looks like wherever a client may have put it by mistake.
_SECRET_TEXT: Final = re.compile(
    r"(vk_(?:live|test)_|whsec_|(?i:bearer|basic)[ +%20]+|/(?:r|reset|invitation)/)[\w.~+/=%-]{8,}", re.ASCII
)
_WORD: Final = re.compile("[a-z_]{1,40}")
_MARKS: Final = ("vk_", "whsec_", "bearer", "basic", "/r/", "/reset/", "/invitation/")
"""One of these is in every such text; to look for them is quick."""
_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


def kept_body(body: object, content_type: bytes | None) -> str:
    """What is kept of a body: its JSON without secrets, its line of text, or a word about what it is."""
    if not isinstance(body, bytes):
        return "(a stream, not kept)"
    kind = (content_type or b"application/json").partition(b";")[0].strip().lower()
    text = ""
    if len(body) <= BODY_BYTES_MAX and kind == b"text/plain":
        text = body.decode("utf-8", "replace")
    elif len(body) <= BODY_BYTES_MAX and kind.endswith(b"json"):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
            text = _encode(_safe(_decode(body))).decode()
    if body and not text:
        return f"({len(body)} bytes, not kept)"
    return kept_text(text, KEPT_CHARS_MAX)


def kept_text(text: str, chars_max: int) -> str:
    """A text without what looks like a secret, and without what a database or a page would choke on."""
    # Cut before it is searched, and again afterwards, because what stands for a secret may be longer than it.
    text = text[: 2 * chars_max]
    lower = text.lower()
    if any(mark in lower for mark in _MARKS):
        text = _SECRET_TEXT.sub(rf"\1{HIDDEN}", text)
    if not text.isprintable():
        text = "".join([c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text])
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def _safe(value: Any) -> Any:
    """The value with everything hidden that is not known to be harmless."""
    if isinstance(value, dict):
        # Nearly every value stands by itself under a name that is known, and is looked at no further.
        return {
            name: (inside if type(inside) is not dict and type(inside) is not list else _safe(inside))
            if name in SHOWN
            else _hidden(name, inside)
            for name, inside in value.items()
        }
    return [_safe(one) for one in value] if isinstance(value, list) else value


def _hidden(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if name in ADDRESSES:
            return _host(value)
        if name in WORDS and _WORD.fullmatch(value):
            return value
    return HIDDEN


def _host(address: str) -> str:
    try:
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.hostname or ''}/{HIDDEN}"
    except ValueError:
        return HIDDEN
