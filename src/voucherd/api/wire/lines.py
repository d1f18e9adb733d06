"""Order lines in their two shapes."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from voucherd.api.wire.numbers import money, rate
from voucherd.api.wire.shapes import ExtendedLine, Offer, ProductDescription, ShortLine
from voucherd.api.wire.view import Piece, View
from voucherd.clock import iso
from voucherd.ids import line_id
from voucherd.money import RATE_ONE, digits, divide_half_up
from voucherd.orders.model import Item
from voucherd.vault.store import LotInfo


def short_lines(view: View, piece: Piece) -> list[ShortLine]:
    """Lines of versions 1.00 and Next."""
    tags = view.ids.tags(view.order.id, piece.lines)
    status = _status(piece)
    if status != "finished":
        return [ShortLine(tag, status) for tag in tags]
    assert piece.codes is not None
    expires = _expiry(view, piece)
    if expires is None:
        return [
            ShortLine(tag, status, code, serial)
            for tag, (code, serial) in zip(tags, piece.codes, strict=True)
        ]
    return [
        ShortLine(tag, status, code, serial, expires)
        for tag, (code, serial) in zip(tags, piece.codes, strict=True)
    ]


def extended_lines(view: View, piece: Piece) -> list[ExtendedLine]:
    """Lines of version 1.03."""
    order = view.order
    status = _status(piece)
    tags = view.ids.tags(order.id, piece.lines)
    if status != "finished":
        if view.bare_lines:
            return [ExtendedLine(tag, status) for tag in tags]
        facts = _item_facts(view, piece) | _NO_CODE
        return [
            ExtendedLine(tag, status, id=line_id(order.id, line), **facts)
            for tag, line in zip(tags, piece.lines, strict=True)
        ]
    assert piece.codes is not None
    assert piece.outcome is not None
    facts = _item_facts(view, piece)
    expires = _expiry(view, piece)
    tokens = view.ids.tokens(order.id, piece.lines)
    link = view.public_url + "/r/"
    lot = piece.outcome.lot_id
    first_id = line_id(order.id, piece.line_from)
    first_seq = piece.positions().start
    return [
        ExtendedLine(
            tag,
            status,
            id=first_id + at,
            voucherCode=code,
            voucherSerial=serial,
            voucherUrl=link + token,
            voucherDateExpired=expires,
            externalId=f"{lot}-{first_seq + at}",
            token=token,
            redemptionLink=link + token,
            **facts,
        )
        for at, (tag, token, (code, serial)) in enumerate(zip(tags, tokens, piece.codes, strict=True))
    ]


_NO_CODE: dict[str, Any] = dict.fromkeys(
    (
        "voucherCode",
        "voucherSerial",
        "voucherUrl",
        "voucherDateExpired",
        "externalId",
        "token",
        "redemptionLink",
    )
)


def _status(piece: Piece) -> str:
    if piece.outcome is None:
        return "pending"
    return "cancelled" if piece.outcome.lot_id is None else "finished"


def _expiry(view: View, piece: Piece) -> str | None:
    assert piece.outcome is not None
    assert piece.outcome.lot_id is not None
    expires_at = view.answer.lots[piece.outcome.lot_id].expires_at
    return None if expires_at is None else iso(expires_at)


def _item_facts(view: View, piece: Piece) -> dict[str, Any]:
    """What all lines of a piece have in common."""
    order, item = view.order, piece.item
    unit, version = item.unit, item.version
    own, paid = unit.price_currency, order.payment_currency
    return {
        "orderId": order.id,
        "dateCreated": iso(order.created_at),
        "brandSlug": version.brand_slug,
        "productSlug": version.slug,
        "productFacevalueAmount": money(unit.face_minor, version.face_currency),
        "productFacevalueCurrency": version.face_currency.lower(),
        "productFacevalueFx": rate(unit.face_fx_e8),
        "priceAmount": money(unit.price_minor, own),
        "priceCurrency": own.lower(),
        "priceFx": rate(unit.price_fx_e8),
        "priceVatAmount": money(unit.vat_minor, own),
        "priceVatTurnover": money(unit.turnover_minor, own),
        "priceInclVat": money(unit.price_minor + unit.vat_minor, own),
        "priceAmountInPaymentCurrency": money(unit.pay_price_minor, paid),
        "priceVatAmountInPaymentCurrency": money(unit.pay_vat_minor, paid),
        "priceVatTurnoverInPaymentCurrency": money(unit.pay_turnover_minor, paid),
        "priceInclVatInPaymentCurrency": money(unit.pay_price_minor + unit.pay_vat_minor, paid),
        "paymentCurrency": paid.lower(),
        "paymentCurrencyFx": rate(order.payment_fx_e8),
        "dateUpdated": iso(order.updated_at),
        "state": order.state.word,
        "product": describe(view, item),
        "dateVoucherViewed": None,
        "dateLinkViewed": None,
        "dateReturned": None,
        "allowAsyncDelivery": version.async_delivery,
        "productRegion": version.region,
        "entityId": order.company_id,
        **_purchase_facts(view, piece),
    }


def _purchase_facts(view: View, piece: Piece) -> dict[str, Any]:
    """The offer that served the line, or the best one that Create saw (OP-58)."""
    delivered = piece.outcome is not None and piece.outcome.lot_id is not None
    lot_id = piece.outcome.lot_id if delivered and piece.outcome else next(iter(piece.item.offers), None)
    facts: dict[str, Any] = {
        "offerId": None if lot_id is None else f"LOT-{lot_id}",
        "purchasePriceAmount": None,
        "purchasePriceCurrency": None,
        "purchasePriceFx": None,
        "commissionEur": None,
        "externalSupplier": None,
    }
    if lot_id is None or not view.expose_costs:
        return facts
    lot = view.answer.lots[lot_id]
    return facts | {
        "purchasePriceAmount": money(lot.purchase_minor, lot.purchase_currency),
        "purchasePriceCurrency": lot.purchase_currency.lower(),
        "purchasePriceFx": rate(lot.purchase_fx_e8),
        "commissionEur": money(commission_eur_minor(piece.item, lot), "EUR"),
        "externalSupplier": lot.supplier,
    }


def commission_eur_minor(item: Item, lot: LotInfo) -> int:
    """The margin on one code in euro cents: its price before VAT less what it was bought for."""
    price = item.unit.price_minor * item.unit.price_fx_e8 * 10 ** (3 - digits(item.unit.price_currency))
    cost = lot.purchase_minor * lot.purchase_fx_e8 * 10 ** (3 - digits(lot.purchase_currency))
    return divide_half_up(price - cost, RATE_ONE * 10)


def describe(view: View, item: Item) -> str:
    """The serialised product of an extended line: what Create saw."""
    unit, version = item.unit, item.version
    offers = [_offer(view, item, lot_id, stock) for lot_id, stock in _pairs(item.offers)]
    shown = offers if view.expose_costs else None
    stock_count = sum(stock for _, stock in _pairs(item.offers))
    description = ProductDescription(
        name=version.name,
        slug=version.slug,
        brand=version.brand_name,
        offers=shown,
        region=version.region,
        inScope=True,
        bestOffer=shown[0] if shown else None,
        faceValue=money(unit.face_minor, version.face_currency),
        isStocked=stock_count > 0,
        redeemType=version.redeem_type,
        stockCount=stock_count,
        priceAmount=money(unit.price_minor, unit.price_currency),
        productType=version.product_type,
        vatCategory=version.vat_category,
        mainCategory=version.category,
        priceCurrency=unit.price_currency.lower(),
        faceValueCurrency=version.face_currency.lower(),
        isVariableProduct=version.is_variable,
        isIncentiveProduct=version.incentive,
    )
    return msgspec.json.encode(description).decode()


def _offer(view: View, item: Item, lot_id: int, stock: int) -> Offer:
    lot = view.answer.lots[lot_id]
    price: Raw = money(item.unit.price_minor, item.unit.price_currency)
    return Offer(
        price=price,
        offerId=f"LOT-{lot_id}",
        currency=item.unit.price_currency.lower(),
        supplier=lot.supplier,
        stockCount=stock,
        purchasePrice=money(lot.purchase_minor, lot.purchase_currency),
        purchasePriceCurrency=lot.purchase_currency.lower(),
    )


def _pairs(offers: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip(offers[::2], offers[1::2], strict=True))
