"""An order on the wire, in any version: the fields that all share, and the bytes, whole or in pieces.

An order of 10,000 extended lines is 20 MB. It is never in memory as a whole: its lines are written in pieces
(`orders.model.INLINE_LINES_MAX`), and the codes of each piece are opened only then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct
from msgspec.structs import replace

from voucherd.api.wire.numbers import money, money_bytes, rate, rate_bytes
from voucherd.api.wire.shapes import Product
from voucherd.api.wire.templates import HOLE, encode, template
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
from voucherd.orders.model import INLINE_LINES_MAX, TYPES, Item
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
        items.append(_item_frame(shape, view, item) % (_completed(view, item), b"[%b]" % lines))
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
        start, end = (_item_frame(shape, view, item) % (_completed(view, item), b"\x00")).split(b"\x00")
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


_STATUS: Final = tuple(b'"%b"' % word.encode() for word in STATUS_WORDS)
_PAYMENT: Final = tuple(b'"%b"' % word.encode() for word in PAYMENT_WORDS)
_TYPE: Final = tuple(b'"%b"' % word.encode() for word in TYPES)


def _order_with(shape: Shape, view: View, items: bytes) -> bytes:
    """The order around its items."""
    order, currency = view.order, view.order.payment_currency
    created = order.status is Status.CREATED
    frame = view.templates.get(
        ("order", shape.name, created), lambda: _make_order_frame(shape, created=created)
    )
    values = [
        b'"%b"' % view.ids.trx(order.id).encode(),
        b'"%b"' % currency.encode(),
        money_bytes(order.price_minor, currency),
        money_bytes(order.vat_minor, currency),
        money_bytes(order.total_minor, currency),
        rate_bytes(order.payment_fx_e8),
        b'"%b"' % iso(order.created_at).encode(),
        _PAYMENT[order.payment_status],
        _TYPE[order.type],
        encode(order.reference),
        b'"%b"' % order.state.word.encode(),
        _STATUS[order.status],
        b"true" if order.downloaded else b"false",
    ]
    if created:
        values.append(b'"%b"' % iso(order.expires_at).encode())
    return frame % (*values, items)


def _make_order_frame(shape: Shape, *, created: bool) -> bytes:
    return template(
        shape.order(
            trx=HOLE,
            priceCurrency=HOLE,
            priceAmount=HOLE,
            priceVat=HOLE,
            priceInclVat=HOLE,
            priceFx=HOLE,
            dateCreated=HOLE,
            paymentStatus=HOLE,
            type=HOLE,
            reference=HOLE,
            state=HOLE,
            orderStatus=HOLE,
            isBalancePayment=True,
            downloaded=HOLE,
            dateExpires=HOLE if created else UNSET,
            items=HOLE,
        )
    )


def _completed(view: View, item: Item) -> bytes:
    return b"%d" % lines_completed(view.order, item)


def _item_frame(shape: Shape, view: View, item: Item) -> bytes:
    """The template of an item: all but its lines and how many of them are completed."""
    stocked = any(item.offers[1::2])
    key = (
        "item",
        shape.name,
        item.version.version_id,
        item.unit,
        item.amount,
        view.order.payment_currency,
        stocked,
    )
    return view.templates.get(key, lambda: _make_item_frame(shape, view, item))


def _make_item_frame(shape: Shape, view: View, item: Item) -> bytes:
    fields = priced(item, view.order.payment_currency, with_range=shape.face_value_range)
    return template(shape.item(**fields, linesCompleted=HOLE, orderLines=HOLE))


def priced(item: Item, paid: str, *, with_range: bool) -> dict[str, Any]:
    """The fields of an item that are fixed with its price."""
    unit, version, amount = item.unit, item.version, item.amount
    own = unit.price_currency
    return {
        "product": _product(item, with_range=with_range),
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
