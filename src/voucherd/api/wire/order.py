"""An order on the wire, in any version: the fields that all share, and the bytes, whole or in pieces.

An order of 10,000 extended lines is 20 MB. It is never in memory as a whole: its lines are written in pieces
(`orders.model.INLINE_LINES_MAX`), and the codes of each piece are opened only then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from voucherd.api.wire.numbers import money, rate
from voucherd.api.wire.shapes import Product
from voucherd.api.wire.templates import HOLE, TEXT_HOLE, encode, template
from voucherd.api.wire.view import (
    PAYMENT_WORDS,
    STATUS_WORDS,
    Piece,
    View,
    lines_completed,
    pieces,
    small_pieces,
)
from voucherd.clock import iso
from voucherd.orders.answers import Codes
from voucherd.orders.model import INLINE_LINES_MAX, TYPES, Item, Order
from voucherd.orders.rules.states import Status

ReadCodes: TypeAlias = Callable[[Sequence[tuple[int, int, int]]], Awaitable[Codes]]


class Shape(Struct, frozen=True):
    """What differs between versions."""

    name: str
    order: Callable[..., Struct]
    item: Callable[..., Struct]
    lines: Callable[[View, Piece], bytes]
    face_value_range: bool


def render(shape: Shape, view: View) -> bytes:
    """The whole order."""
    items = []
    for item in view.order.items:
        lines = b",".join([shape.lines(view, piece) for piece in pieces(view.answer, item)])
        items.append(_item_frame(shape, view, item) % (b"[%b]" % lines))
    return _order_with(shape, view, b"[%b]" % b",".join(items))


def is_large(view: View) -> bool:
    """Whether the order is to be streamed."""
    return view.order.lines > INLINE_LINES_MAX


async def stream(shape: Shape, view: View, read_codes: ReadCodes) -> AsyncIterator[bytes]:
    """The order's bytes, piece by piece."""
    head, tail = _order_with(shape, view, b"\x00").split(b"\x00")
    yield head
    before = b"["
    for item in view.order.items:
        start, end = (_item_frame(shape, view, item) % b"\x00").split(b"\x00")
        yield before + start
        before = b"["
        for piece in small_pieces(view, item, item.lines):
            yield before + shape.lines(view, await opened(view, piece, read_codes))
            before = b","
        yield b"]" + end
        before = b","
    yield b"]" + tail


async def opened(view: View, piece: Piece, read_codes: ReadCodes) -> Piece:
    """The piece with its codes and what was viewed of it, which a large order reads only now."""
    if piece.views and piece.delivered and is_large(view):
        seen = await view.read_views(view.order.id, piece.line_from, piece.line_to)
        piece = replace(piece, views=seen)
    if not piece.delivered or not view.show_codes or piece.codes is not None:
        return piece
    assert piece.outcome is not None
    assert piece.outcome.lot_id is not None
    where = piece.positions()
    (codes,) = await read_codes([(piece.outcome.lot_id, where.start, where.stop)])
    return replace(piece, codes=codes)


def _order_with(shape: Shape, view: View, items: bytes) -> bytes:
    """The order around its items."""
    order = view.answer.order
    key = (
        shape.name,
        order.payment_currency,
        order.payment_fx_e8,
        order.price_minor,
        order.vat_minor,
        order.payment_status,
        order.type,
        order.id & 1,
        order.shown_status,
        order.downloaded,
    )
    frame = view.templates.get(key) or view.templates.keep(key, _make_order_frame(shape, order))
    trx, created = view.ids.trx(order.id).encode(), iso(order.created_at).encode()
    if order.shown_status is Status.CREATED:
        return frame % (trx, created, encode(order.reference), iso(order.expires_at).encode(), items)
    return frame % (trx, created, encode(order.reference), items)


def _make_order_frame(shape: Shape, order: Order) -> bytes:
    currency = order.payment_currency
    return template(
        shape.order(
            trx=TEXT_HOLE,
            priceCurrency=currency,
            priceAmount=money(order.price_minor, currency),
            priceVat=money(order.vat_minor, currency),
            priceInclVat=money(order.total_minor, currency),
            priceFx=rate(order.payment_fx_e8),
            paymentCurrency=currency,
            dateCreated=TEXT_HOLE,
            paymentStatus=PAYMENT_WORDS[order.payment_status],
            type=TYPES[order.type],
            reference=HOLE,
            state=order.state.word,
            orderStatus=STATUS_WORDS[order.shown_status],
            isBalancePayment=True,
            downloaded=order.downloaded,
            dateExpires=TEXT_HOLE if order.shown_status is Status.CREATED else UNSET,
            items=HOLE,
        )
    )


def _item_frame(shape: Shape, view: View, item: Item) -> bytes:
    """The template of an item: all but its lines."""
    order = view.answer.order
    completed, stocked = lines_completed(order, item), view.answer.stock_of(item) > 0
    key = (
        item.unit,
        shape.name,
        item.version.version_id,
        item.amount,
        order.payment_currency,
        completed,
        stocked,
    )
    return view.templates.get(key) or view.templates.keep(key, _make_item_frame(shape, view, item, completed))


def _make_item_frame(shape: Shape, view: View, item: Item, completed: int) -> bytes:
    stocked = view.answer.stock_of(item) > 0
    fields = priced(item, view.order.payment_currency, stocked=stocked, with_range=shape.face_value_range)
    return template(shape.item(**fields, linesCompleted=completed, orderLines=HOLE))


def priced(item: Item, paid: str, *, stocked: bool, with_range: bool) -> dict[str, Any]:
    """The fields of an item that are fixed with its price."""
    unit, version, amount = item.unit, item.version, item.amount
    own = unit.price_currency
    return {
        "product": _product(item, stocked=stocked, with_range=with_range),
        "amount": amount,
        "priceCurrency": own.lower(),
        "singlePriceAmount": money(unit.price_minor, own),
        "totalPriceAmount": money(unit.price_minor * amount, own),
        "totalPriceVat": money(unit.vat_minor * amount, own),
        "totalPriceInclVat": money((unit.price_minor + unit.vat_minor) * amount, own),
        "priceFx": rate(unit.price_fx_e8),
        "paymentCurrency": paid.lower(),
        "singlePriceAmountInPaymentCurrency": money(unit.pay_price_minor, paid),
        "totalPriceAmountInPaymentCurrency": money(unit.pay_price_minor * amount, paid),
        "totalPriceVatInPaymentCurrency": money(unit.pay_vat_minor * amount, paid),
        "totalPriceInclVatInPaymentCurrency": money(item.unit_charge_minor * amount, paid),
        "productSlug": version.slug,
        "faceValueAmount": money(unit.face_minor, version.face_currency),
        "faceValueCurrency": version.face_currency.lower(),
        "faceValueFx": rate(unit.face_fx_e8),
    }


def _product(item: Item, *, stocked: bool, with_range: bool) -> Product:
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
        isStocked=stocked,
    )
