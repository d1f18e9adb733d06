"""Order lines in their two shapes, as bytes with commas between them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count, repeat
from typing import Any, Final

from msgspec import Struct

from voucherd.api.wire.numbers import money, rate
from voucherd.api.wire.shapes import ExtendedLine, Offer, ProductDescription, ShortLine
from voucherd.api.wire.templates import HOLE, TEXT_HOLE, encode, nested, template
from voucherd.api.wire.view import Piece, View
from voucherd.clock import iso
from voucherd.ids import line_number
from voucherd.money import RATE_ONE, divide_half_up, worth
from voucherd.orders.model import Item, Order, Viewed
from voucherd.vault.store import LotInfo

_BARE: Final = template(ShortLine(TEXT_HOLE, TEXT_HOLE))
_SHORT: Final = template(ShortLine(TEXT_HOLE, "finished", HOLE, HOLE))
_SHORT_EXPIRING: Final = template(ShortLine(TEXT_HOLE, "finished", HOLE, HOLE, TEXT_HOLE))
_NULL: Final = b"null"
_NOT_VIEWED: Final = (_NULL, _NULL, _NULL)


def short_lines(view: View, piece: Piece) -> bytes:
    """Lines of versions 1.00 and Next."""
    if not piece.delivered or not view.show_codes:
        return _bare_lines(view, piece)
    assert piece.codes is not None
    tags = view.ids.tags(view.order.id, piece.lines)
    expires_at = _lot_of(view, piece).expires_at
    frame, expires = (_SHORT, ()) if expires_at is None else (_SHORT_EXPIRING, (iso(expires_at).encode(),))
    return b",".join(
        [
            frame % (tag.encode(), encode(code), encode(serial), *expires)
            for tag, (code, serial) in zip(tags, piece.codes, strict=True)
        ]
    )


def extended_lines(view: View, piece: Piece) -> bytes:
    """Lines of version 1.03."""
    if not piece.delivered:
        return _bare_lines(view, piece) if view.bare_lines else _lines_without_codes(view, piece)
    return _lines_with_codes(view, piece) if view.show_codes else _lines_without_codes(view, piece)


def _lines_without_codes(view: View, piece: Piece) -> bytes:
    order, frame = view.answer.order, _line_frame(view, piece)
    created, stock = iso(order.created_at).encode(), _stock(view, piece)
    number, owner = view.ids.order_number(order.id), order.company_id
    return b",".join(
        [
            frame % (tag.encode(), b"%d" % at, b"%d" % number, created, updated, *stock, *seen, b"%d" % owner)
            for at, tag, (updated, seen) in zip(
                count(line_number(number, piece.line_from)),
                view.ids.tags(order.id, piece.lines),
                _dates_of_lines(order, piece),
            )
        ]
    )


def _lines_with_codes(view: View, piece: Piece) -> bytes:
    assert piece.codes is not None
    assert piece.outcome is not None
    order, frame, lot = view.answer.order, _line_frame(view, piece), _lot_of(view, piece)
    number, lines, lot_id = view.ids.order_number(order.id), piece.lines, piece.outcome.lot_id or 0
    created, owner = iso(order.created_at).encode(), order.company_id
    stock, link = _stock(view, piece), view.public_url + "/r/"
    made = []
    for at, seq, tag, token, (code, serial), (updated, seen) in zip(
        count(line_number(number, piece.line_from)),
        piece.positions(),
        view.ids.tags(order.id, lines),
        view.ids.tokens(order.id, lines),
        piece.codes,
        _dates_of_lines(order, piece),
    ):
        url = encode(link + token)
        external = b'"%d-%d"' % (lot_id, seq) if lot.external_id is None else encode(lot.external_id)
        if not view.expose_costs:
            external = encode(tag)
        made.append(
            frame
            % (
                *(tag.encode(), b"%d" % at, b"%d" % number, created),
                *(encode(code), encode(serial), url, external, updated),
                *stock,
                *(token.encode(), url),
                *seen,
                b"%d" % owner,
            )
        )
    return b",".join(made)


def _dates_of_lines(order: Order, piece: Piece) -> Iterator[tuple[bytes, tuple[bytes, ...]]]:
    """What fills the dates of each line: when it changed last, and when its code was shown, its link opened, its code
    taken back.

    A line changes with its own outcome and with those (OP-142), not with the rest of its order. Where nothing was
    viewed, the template has no holes for the others.
    """
    changed_at = order.created_at
    if piece.outcome is not None:
        changed_at = piece.outcome.at or order.updated_at
    updated = iso(changed_at).encode()
    if not piece.views:
        return repeat((updated, ()))
    seen = {viewed.line: viewed for viewed in piece.views}
    return (
        (updated, _NOT_VIEWED) if line not in seen else _dates(changed_at, seen[line]) for line in piece.lines
    )


def _dates(changed_at: datetime, viewed: Viewed) -> tuple[bytes, tuple[bytes, ...]]:
    dates = (viewed.voucher_at, viewed.link_at, viewed.returned_at)
    last = max([changed_at, *(date for date in dates if date is not None)])
    return iso(last).encode(), tuple(
        [_NULL if date is None else b'"%b"' % iso(date).encode() for date in dates]
    )


def _bare_lines(view: View, piece: Piece) -> bytes:
    status = piece.status.encode()
    tags = view.ids.tags(view.order.id, piece.lines)
    return b",".join([_BARE % (tag.encode(), status) for tag in tags])


def _lot_of(view: View, piece: Piece) -> LotInfo:
    """The lot that a delivered piece was served from."""
    assert piece.outcome is not None
    assert piece.outcome.lot_id is not None
    return view.answer.lots[piece.outcome.lot_id]


def _line_frame(view: View, piece: Piece) -> bytes:
    """The template of a piece's lines: what they have in common, with holes for what they have not."""
    order, item = view.answer.order, piece.item
    offers = _offers(piece)
    lots = offers[::2]
    lot_id = piece.outcome.lot_id if piece.outcome is not None else None
    if lot_id is None:
        lot_id = lots[0] if lots else None
    key = (
        item.unit,
        item.version.version_id,
        order.id & 1,
        order.payment_currency,
        lot_id,
        lots,
        view.answer.stock_of(item) > 0,
        piece.status,
        view.expose_costs,
        view.show_codes,
        not piece.views,
    )
    return view.templates.get(key) or view.templates.keep(key, _make_line_frame(view, piece, lots, lot_id))


def _make_line_frame(view: View, piece: Piece, lots: tuple[int, ...], lot_id: int | None) -> bytes:
    order, item = view.order, piece.item
    unit, version = item.unit, item.version
    own, paid = unit.price_currency, order.payment_currency
    with_code = piece.delivered and view.show_codes
    code = HOLE if with_code else None
    viewed = HOLE if piece.views else None
    expires_at = _lot_of(view, piece).expires_at if with_code else None
    return template(
        ExtendedLine(
            tag=TEXT_HOLE,
            status=piece.status,
            id=HOLE,
            orderId=HOLE,
            dateCreated=TEXT_HOLE,
            brandSlug=version.brand_slug,
            productSlug=version.slug,
            productFacevalueAmount=money(unit.face_minor, version.face_currency),
            productFacevalueCurrency=version.face_currency.lower(),
            productFacevalueFx=rate(unit.face_fx_e8),
            priceAmount=money(unit.price_minor, own),
            priceCurrency=own.lower(),
            priceFx=rate(unit.price_fx_e8),
            voucherCode=code,
            voucherSerial=code,
            voucherUrl=code,
            voucherDateExpired=None if expires_at is None else iso(expires_at),
            externalId=code,
            priceVatAmount=money(unit.vat_minor, own),
            priceVatTurnover=money(unit.turnover_minor, own),
            priceInclVat=money(unit.price_minor + unit.vat_minor, own),
            priceAmountInPaymentCurrency=money(unit.pay_price_minor, paid),
            priceVatAmountInPaymentCurrency=money(unit.pay_vat_minor, paid),
            priceVatTurnoverInPaymentCurrency=money(unit.pay_turnover_minor, paid),
            priceInclVatInPaymentCurrency=money(unit.pay_price_minor + unit.pay_vat_minor, paid),
            paymentCurrency=paid.lower(),
            paymentCurrencyFx=rate(order.payment_fx_e8),
            dateUpdated=TEXT_HOLE,
            state=order.state.word,
            product=nested(_description(view, item, lots)),
            token=TEXT_HOLE if with_code else None,
            redemptionLink=code,
            dateVoucherViewed=viewed,
            dateLinkViewed=viewed,
            dateReturned=viewed,
            allowAsyncDelivery=version.async_delivery,
            productRegion=version.region,
            entityId=HOLE,
            **_purchase_facts(view, item, lot_id),
        )
    )


class Source(Struct, frozen=True):
    """Where a code comes from, or would come from, and what it costs us there."""

    offer_id: str
    supplier: str
    purchase_minor: int
    currency: str
    fx_e8: int


def _source(view: View, item: Item, number: int) -> Source:
    """The lot, or (a negative number) the supplier's quote."""
    if number > 0:
        lot = view.answer.lots[number]
        return Source(
            f"LOT-{number}", lot.supplier, lot.purchase_minor, lot.purchase_currency, lot.purchase_fx_e8
        )
    quote = view.answer.quotes[-number]
    price_minor = quote.terms.price_at(item.unit.face_minor)
    return Source(f"QUOTE-{-number}", quote.supplier, price_minor, quote.currency, quote.fx_e8)


def _purchase_facts(view: View, item: Item, number: int | None) -> dict[str, Any]:
    """The offer that served the line, or the best one that Create saw (OP-58)."""
    facts: dict[str, Any] = {
        "offerId": None,
        "purchasePriceAmount": None,
        "purchasePriceCurrency": None,
        "purchasePriceFx": None,
        "commissionEur": None,
        "externalSupplier": None,
    }
    if number is None or not view.expose_costs:
        return facts
    source = _source(view, item, number)
    return facts | {
        "offerId": source.offer_id,
        "purchasePriceAmount": money(source.purchase_minor, source.currency),
        "purchasePriceCurrency": source.currency.lower(),
        "purchasePriceFx": rate(source.fx_e8),
        "commissionEur": money(commission_eur_minor(item, source), "EUR"),
        "externalSupplier": source.supplier,
    }


def commission_eur_minor(item: Item, source: Source) -> int:
    """The margin on one code in euro cents: its price before VAT less what it was bought for."""
    price = worth(item.unit.price_minor, item.unit.price_currency, item.unit.price_fx_e8)
    cost = worth(source.purchase_minor, source.currency, source.fx_e8)
    return divide_half_up(price - cost, RATE_ONE * 10)


def _offers(piece: Piece) -> tuple[int, ...]:
    """Offer, stock, offer, stock …: what Create saw and, behind it, the lot that served the line (OP-142)."""
    offers, outcome = piece.item.offers, piece.outcome
    if outcome is None or outcome.lot_id is None or outcome.lot_id in offers[::2]:
        return offers
    # It was bought, or stocked, after Create: nothing of it was there then.
    return (*offers, outcome.lot_id, 0)


def _stock(view: View, piece: Piece) -> tuple[int, ...]:
    """What fills the holes of the description: the stock of each offer, of the best one, and of all."""
    stock, whole = _offers(piece)[1::2], view.answer.stock_of(piece.item)
    return (*stock, *stock[:1], whole) if view.expose_costs else (whole,)


def _description(view: View, item: Item, lots: tuple[int, ...]) -> ProductDescription:
    """The product of an extended line as Create saw it, and how many codes there are."""
    unit, version = item.unit, item.version
    offers = [_offer(view, item, lot_id) for lot_id in lots] if view.expose_costs else []
    return ProductDescription(
        name=version.name,
        slug=version.slug,
        brand=version.brand_name,
        offers=offers,
        region=version.region,
        inScope=True,
        bestOffer=offers[0] if offers else None,
        faceValue=money(unit.face_minor, version.face_currency),
        isStocked=view.answer.stock_of(item) > 0,
        redeemType=version.redeem_type,
        stockCount=HOLE,
        priceAmount=money(unit.price_minor, unit.price_currency),
        productType=version.product_type,
        vatCategory=version.vat_category,
        mainCategory=version.category,
        priceCurrency=unit.price_currency.lower(),
        faceValueCurrency=version.face_currency.lower(),
        isVariableProduct=version.is_variable,
        isIncentiveProduct=version.incentive,
    )


def _offer(view: View, item: Item, number: int) -> Offer:
    source = _source(view, item, number)
    return Offer(
        price=money(item.unit.price_minor, item.unit.price_currency),
        offerId=source.offer_id,
        currency=item.unit.price_currency.lower(),
        supplier=source.supplier,
        stockCount=HOLE,
        purchasePrice=money(source.purchase_minor, source.currency),
        purchasePriceCurrency=source.currency.lower(),
    )
