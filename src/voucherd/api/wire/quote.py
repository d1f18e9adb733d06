"""A quote on the wire (1.03): an order's prices, without what only an order has."""

from __future__ import annotations

from msgspec import Struct

from voucherd.api.wire.numbers import Number, money, rate
from voucherd.api.wire.order import priced
from voucherd.api.wire.shapes import Product
from voucherd.orders.create import Quote


class QuotedItem(Struct, kw_only=True):
    """One product of a quote."""

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
    isAvailable: bool
    productSlug: str
    faceValueAmount: Number
    faceValueCurrency: str
    faceValueFx: Number


class QuotedOrder(Struct, kw_only=True):
    """What an order would cost if it were created now."""

    priceCurrency: str
    priceAmount: Number
    priceVat: Number
    priceInclVat: Number
    priceFx: Number
    reference: str | None
    state: str
    isAvailable: bool
    items: list[QuotedItem]


def quoted(quote: Quote) -> QuotedOrder:
    """The quote in the shape of Create's answer."""
    order, currency = quote.order, quote.order.payment_currency
    items = [
        QuotedItem(**priced(item, currency, with_range=True), isAvailable=at_hand)
        for item, at_hand in zip(order.items, quote.at_hand, strict=True)
    ]
    return QuotedOrder(
        priceCurrency=currency,
        priceAmount=money(order.price_minor, currency),
        priceVat=money(order.vat_minor, currency),
        priceInclVat=money(order.total_minor, currency),
        priceFx=rate(order.payment_fx_e8),
        reference=order.reference,
        state=order.state.word,
        isAvailable=all(quote.at_hand),
        items=items,
    )
