"""A quote on the wire (1.03): an order's prices, without what only an order has."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from voucherd.api.wire import fields
from voucherd.api.wire.fields import doc
from voucherd.api.wire.numbers import Number, money, rate
from voucherd.api.wire.order import priced
from voucherd.api.wire.shapes import Product
from voucherd.orders.create import Quote

_AT_ONCE: Final = "Whether all of them could be delivered at once; if not, some would come later."


class QuotedItem(Struct, kw_only=True):
    """One product of a quote."""

    product: Annotated[Product, doc("The product as it is now.")]
    amount: Annotated[fields.Amount, doc("How many codes of the product were asked for.")]
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
    isAvailable: Annotated[bool, doc(_AT_ONCE)]
    productSlug: fields.ProductSlug
    faceValueAmount: fields.FaceValue
    faceValueCurrency: fields.FaceCurrency
    faceValueFx: fields.FaceFx


class QuotedOrder(Struct, kw_only=True):
    """What an order would cost if it were created now."""

    priceCurrency: fields.OrderCurrency
    priceAmount: fields.PriceAmount
    priceVat: fields.PriceVat
    priceInclVat: Annotated[Number, doc("Price including VAT: what the order would take from the balance.")]
    priceFx: fields.PriceFx
    paymentCurrency: fields.PaidIn
    reference: Annotated[str | None, doc("Your own text; null if there was none.")]
    state: Annotated[fields.Environment, doc("The environment, picked by the API key.")]
    isAvailable: Annotated[bool, doc("Whether every code could be delivered at once.")]
    items: Annotated[list[QuotedItem], doc("The products, in the order of the request.")]


def quoted(quote: Quote) -> QuotedOrder:
    """The quote in the shape of Create's answer."""
    order, currency = quote.order, quote.order.payment_currency
    items = [
        QuotedItem(
            **priced(item, currency, stocked=any(item.offers[1::2]), with_range=True), isAvailable=at_hand
        )
        for item, at_hand in zip(order.items, quote.at_hand, strict=True)
    ]
    return QuotedOrder(
        priceCurrency=currency,
        priceAmount=money(order.price_minor, currency),
        priceVat=money(order.vat_minor, currency),
        priceInclVat=money(order.total_minor, currency),
        priceFx=rate(order.payment_fx_e8),
        paymentCurrency=currency,
        reference=order.reference,
        state=order.state.word,
        isAvailable=all(quote.at_hand),
        items=items,
    )
