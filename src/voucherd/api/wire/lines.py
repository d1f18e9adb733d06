"""Order lines in their two shapes, as bytes with commas between them."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from voucherd.api.wire.numbers import money, rate
from voucherd.api.wire.shapes import ExtendedLine, Offer, ProductDescription, ShortLine
from voucherd.api.wire.templates import HOLE, encode, nested_template, template
from voucherd.api.wire.view import Piece, View
from voucherd.clock import iso
from voucherd.ids import line_id
from voucherd.money import RATE_ONE, divide_half_up, worth
from voucherd.orders.model import Item, Viewed

_BARE: Final = template(ShortLine(HOLE, HOLE))
_SHORT: Final = template(ShortLine(HOLE, HOLE, HOLE, HOLE))
_SHORT_EXPIRING: Final = template(ShortLine(HOLE, HOLE, HOLE, HOLE, HOLE))
_NULL: Final = b"null"


def short_lines(view: View, piece: Piece) -> bytes:
    """Lines of versions 1.00 and Next."""
    if not piece.delivered or not view.show_codes:
        return _bare_lines(view, piece)
    assert piece.codes is not None
    tags = view.ids.tags(view.order.id, piece.lines)
    expires = _expiry(view, piece)
    if expires is None:
        lines = [
            _SHORT % (b'"%b"' % tag.encode(), b'"finished"', encode(code), encode(serial))
            for tag, (code, serial) in zip(tags, piece.codes, strict=True)
        ]
    else:
        lines = [
            _SHORT_EXPIRING % (b'"%b"' % tag.encode(), b'"finished"', encode(code), encode(serial), expires)
            for tag, (code, serial) in zip(tags, piece.codes, strict=True)
        ]
    return b",".join(lines)


def extended_lines(view: View, piece: Piece) -> bytes:
    """Lines of version 1.03."""
    if not piece.delivered and view.bare_lines:
        return _bare_lines(view, piece)
    order, item = view.order, piece.item
    frame = _line_frame(view, piece)
    created, updated = _quoted(iso(order.created_at)), _quoted(iso(order.updated_at))
    owner, number, first_id = b"%d" % order.company_id, b"%d" % order.id, line_id(order.id, piece.line_from)
    product = describe(view, item)
    tags = view.ids.tags(order.id, piece.lines)
    seen = {} if not piece.views else {viewed.line: viewed for viewed in piece.views}
    if not piece.delivered or not view.show_codes:
        status = b'"%b"' % piece.status.encode()
        return b",".join(
            [
                frame
                % (
                    b'"%b"' % tag.encode(),
                    status,
                    b"%d" % (first_id + at),
                    number,
                    created,
                    updated,
                    product,
                    *_viewed(seen.get(piece.line_from + at)),
                    owner,
                )
                for at, tag in enumerate(tags)
            ]
        )
    assert piece.codes is not None
    assert piece.outcome is not None
    link = view.public_url + "/r/"
    expires = _expiry(view, piece) or _NULL
    lot_id, first_seq = piece.outcome.lot_id or 0, piece.positions().start
    bought_as = view.answer.lots[lot_id].external_id
    lines = []
    for at, (tag, token, (code, serial)) in enumerate(
        zip(tags, view.ids.tokens(order.id, piece.lines), piece.codes, strict=True)
    ):
        url = encode(link + token)
        external = b'"%d-%d"' % (lot_id, first_seq + at) if bought_as is None else encode(bought_as)
        lines.append(
            frame
            % (
                b'"%b"' % tag.encode(),
                b'"finished"',
                b"%d" % (first_id + at),
                number,
                created,
                encode(code),
                encode(serial),
                url,
                expires,
                external,
                updated,
                product,
                b'"%b"' % token.encode(),
                url,
                *_viewed(seen.get(piece.line_from + at)),
                owner,
            )
        )
    return b",".join(lines)


_NEVER: Final = (_NULL, _NULL, _NULL)


def _viewed(viewed: Viewed | None) -> tuple[bytes, ...]:
    """When the code was first shown, when the link was first opened, and when the code was taken back."""
    if viewed is None:
        return _NEVER
    dates = (viewed.voucher_at, viewed.link_at, viewed.returned_at)
    return tuple([_NULL if date is None else _quoted(iso(date)) for date in dates])


def _bare_lines(view: View, piece: Piece) -> bytes:
    status = b'"%b"' % piece.status.encode()
    tags = view.ids.tags(view.order.id, piece.lines)
    return b",".join([_BARE % (b'"%b"' % tag.encode(), status) for tag in tags])


def _quoted(text: str) -> bytes:
    return b'"%b"' % text.encode()


def _expiry(view: View, piece: Piece) -> bytes | None:
    assert piece.outcome is not None
    assert piece.outcome.lot_id is not None
    expires_at = view.answer.lots[piece.outcome.lot_id].expires_at
    return None if expires_at is None else _quoted(iso(expires_at))


def _line_frame(view: View, piece: Piece) -> bytes:
    """The template of a piece's lines: what they have in common, with holes for what they have not."""
    order, item = view.order, piece.item
    lot_id = piece.outcome.lot_id if piece.outcome is not None else None
    if lot_id is None:
        lot_id = item.offers[0] if item.offers else None
    key = (
        "line",
        item.version.version_id,
        item.unit,
        order.state,
        order.payment_currency,
        lot_id,
        piece.delivered and view.show_codes,
        view.expose_costs,
    )
    return view.templates.get(key, lambda: _make_line_frame(view, piece, lot_id))


def _make_line_frame(view: View, piece: Piece, lot_id: int | None) -> bytes:
    order, unit, version = view.order, piece.item.unit, piece.item.version
    own, paid = unit.price_currency, order.payment_currency
    code = HOLE if piece.delivered and view.show_codes else None
    return template(
        ExtendedLine(
            tag=HOLE,
            status=HOLE,
            id=HOLE,
            orderId=HOLE,
            dateCreated=HOLE,
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
            voucherDateExpired=code,
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
            dateUpdated=HOLE,
            state=order.state.word,
            product=HOLE,
            token=code,
            redemptionLink=code,
            dateVoucherViewed=HOLE,
            dateLinkViewed=HOLE,
            dateReturned=HOLE,
            allowAsyncDelivery=version.async_delivery,
            productRegion=version.region,
            entityId=HOLE,
            **_purchase_facts(view, piece.item, lot_id),
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
    source = None if number is None else _source(view, item, number)
    facts: dict[str, Any] = {
        "offerId": None if source is None else source.offer_id,
        "purchasePriceAmount": None,
        "purchasePriceCurrency": None,
        "purchasePriceFx": None,
        "commissionEur": None,
        "externalSupplier": None,
    }
    if source is None or not view.expose_costs:
        return facts
    return facts | {
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


def describe(view: View, item: Item) -> bytes:
    """The serialised product of an extended line, what Create saw: a JSON string that holds JSON."""
    lots, stock = item.offers[::2], item.offers[1::2]
    stock_count = sum(stock)
    key = ("product", item.version.version_id, item.unit, lots, stock_count > 0, view.expose_costs)
    frame = view.templates.get(key, lambda: _make_description(view, item, lots, is_stocked=stock_count > 0))
    if not view.expose_costs:
        return frame % stock_count
    return frame % (*stock, *stock[:1], stock_count)


def _make_description(view: View, item: Item, lots: tuple[int, ...], *, is_stocked: bool) -> bytes:
    unit, version = item.unit, item.version
    offers = [_offer(view, item, lot_id) for lot_id in lots] if view.expose_costs else None
    return nested_template(
        ProductDescription(
            name=version.name,
            slug=version.slug,
            brand=version.brand_name,
            offers=offers,
            region=version.region,
            inScope=True,
            bestOffer=offers[0] if offers else None,
            faceValue=money(unit.face_minor, version.face_currency),
            isStocked=is_stocked,
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
