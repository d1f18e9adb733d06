"""An order on the wire, in any version: the fields that all share, and the bytes, whole or in pieces.

An order of 10,000 extended lines is 20 MB. It is never in memory as a whole: the head is encoded with a mark in the
place of each item's lines, cut at the marks, and the lines are written between the cuts in pieces of 500.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from voucherd.api.wire.numbers import money, rate
from voucherd.api.wire.shapes import Product
from voucherd.api.wire.view import PAYMENT_WORDS, STATUS_WORDS, Piece, View, lines_completed, pieces
from voucherd.clock import iso
from voucherd.orders.desk import INLINE_LINES_MAX, Codes
from voucherd.orders.model import TYPES, Item
from voucherd.orders.states import Status

encode: Final = msgspec.json.Encoder().encode
_LINES_MARK: Final = b"\x00"
"""Stands for an item's lines: a byte that JSON can't contain."""

ReadCodes = Callable[[Sequence[tuple[int, int, int]]], Awaitable[Codes]]


class Shape(Struct, frozen=True):
    """What differs between versions."""

    order: Callable[..., Struct]
    item: Callable[..., Struct]
    lines: Callable[[View, Piece], Sequence[Struct]]
    face_value_range: bool


def order_struct(shape: Shape, view: View, *, marks: bool = False) -> Struct:
    """The order as a struct of its version; with `marks` its lines are left out for a stream."""
    order = view.order
    currency = order.payment_currency
    return shape.order(
        trx=view.ids.trx(order.id),
        priceCurrency=currency,
        priceAmount=money(order.price_minor, currency),
        priceVat=money(order.vat_minor, currency),
        priceInclVat=money(order.total_minor, currency),
        priceFx=rate(order.payment_fx_e8),
        dateCreated=iso(order.created_at),
        paymentStatus=PAYMENT_WORDS[order.payment_status],
        type=TYPES[order.type],
        reference=order.reference,
        state=order.state.word,
        orderStatus=STATUS_WORDS[order.status],
        isBalancePayment=True,
        downloaded=order.downloaded,
        items=[_item(shape, view, item, marks=marks) for item in order.items],
        dateExpires=iso(order.expires_at) if order.status is Status.CREATED else UNSET,
    )


def _item(shape: Shape, view: View, item: Item, *, marks: bool) -> Struct:
    unit, version, amount = item.unit, item.version, item.amount
    own, paid = unit.price_currency, view.order.payment_currency
    lines: Any = Raw(_LINES_MARK)
    if not marks:
        lines = [line for piece in pieces(view.answer, item) for line in shape.lines(view, piece)]
    return shape.item(
        product=_product(item, with_range=shape.face_value_range),
        amount=amount,
        priceCurrency=own.lower(),
        singlePriceAmount=money(unit.price_minor, own),
        totalPriceAmount=money(unit.price_minor * amount, own),
        totalPriceVat=money(unit.vat_minor * amount, own),
        totalPriceInclVat=money((unit.price_minor + unit.vat_minor) * amount, own),
        priceFx=rate(unit.price_fx_e8),
        paymentCurrency=paid.lower(),
        singlePriceAmountInPaymentCurrency=money(unit.pay_price_minor, paid),
        totalPriceAmountInPaymentCurrency=money(unit.pay_price_minor * amount, paid),
        totalPriceVatInPaymentCurrency=money(unit.pay_vat_minor * amount, paid),
        totalPriceInclVatInPaymentCurrency=money(item.unit_charge_minor * amount, paid),
        orderLines=lines,
        linesCompleted=lines_completed(view.order, item),
        productSlug=version.slug,
        faceValueAmount=money(unit.face_minor, version.face_currency),
        faceValueCurrency=version.face_currency.lower(),
        faceValueFx=rate(unit.face_fx_e8),
    )


def _product(item: Item, *, with_range: bool) -> Product:
    version, face_minor = item.version, item.unit.face_minor
    low = face_minor if version.face_min_minor is None else version.face_min_minor
    high = face_minor if version.face_max_minor is None else version.face_max_minor
    return Product(
        slug=version.slug,
        name=version.name,
        brand=version.brand_name,
        productType=version.product_type,
        region=version.region,
        faceValueAmount=money(face_minor, version.face_currency),
        faceValueCurrency=version.face_currency.lower(),
        faceValueMin=money(low, version.face_currency) if with_range else UNSET,
        faceValueMax=money(high, version.face_currency) if with_range else UNSET,
        mainCategory=version.category,
        redeemType=version.redeem_type,
        isStocked=any(item.offers[1::2]),
    )


def is_large(view: View) -> bool:
    """Whether the order is to be streamed."""
    return view.order.lines > INLINE_LINES_MAX


async def stream(shape: Shape, view: View, read_codes: ReadCodes) -> AsyncIterator[bytes]:
    """The order's bytes, piece by piece."""
    head, *rest = encode(order_struct(shape, view, marks=True)).split(_LINES_MARK)
    yield head + b"["
    last = len(rest) - 1
    for at, (item, tail) in enumerate(zip(view.order.items, rest, strict=True)):
        comma = b""
        for piece in pieces(view.answer, item):
            for start in range(piece.line_from, piece.line_to, INLINE_LINES_MAX):
                part = replace(piece, line_from=start, line_to=min(start + INLINE_LINES_MAX, piece.line_to))
                yield comma + encode(shape.lines(view, await _opened(part, read_codes)))[1:-1]
                comma = b","
        yield b"]" + tail + (b"[" if at < last else b"")


async def _opened(piece: Piece, read_codes: ReadCodes) -> Piece:
    """The piece with its codes, which a large order reads only now."""
    if piece.outcome is None or piece.outcome.lot_id is None or piece.codes is not None:
        return piece
    where = piece.positions()
    (codes,) = await read_codes([(piece.outcome.lot_id, where.start, where.stop)])
    return replace(piece, codes=codes)
