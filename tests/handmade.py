"""Orders, products and lots made by hand: for tests that need no database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from voucherd.catalogue.pricing import UnitPrice
from voucherd.catalogue.products import ProductVersion
from voucherd.money import RATE_ONE
from voucherd.orders.model import Item, Order
from voucherd.orders.rules.states import Payment, Status
from voucherd.vault.model import Lot

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def product(product_id: int = 1, **changes: Any) -> ProductVersion:
    """A gift card of 10 EUR that sells for 9.50 EUR."""
    fields: dict[str, Any] = {
        "version_id": product_id * 10,
        "product_id": product_id,
        "slug": f"gift-{product_id}",
        "name": f"Gift {product_id}",
        "brand_slug": "testbrand",
        "brand_name": "Testbrand",
        "product_type": "giftcard",
        "category": "gifts",
        "redeem_type": "currency",
        "region": "ww",
        "vat_category": "single_purpose",
        "async_delivery": False,
        "incentive": False,
        "face_currency": "EUR",
        "face_minor": 1_000,
        "face_min_minor": None,
        "face_max_minor": None,
        "price_minor": 950,
        "price_currency": "EUR",
        "fee_variable_e8": None,
        "fee_fixed_minor": None,
    }
    return ProductVersion(**(fields | changes))


def unit(price_minor: int = 950, vat_minor: int = 0, **changes: Any) -> UnitPrice:
    """One code's price, paid in its own currency."""
    fields: dict[str, Any] = {
        "face_minor": 1_000,
        "face_fx_e8": RATE_ONE,
        "price_currency": "EUR",
        "price_fx_e8": RATE_ONE,
        "price_minor": price_minor,
        "vat_minor": vat_minor,
        "turnover_minor": price_minor if vat_minor else 0,
        "pay_fx_e8": RATE_ONE,
        "pay_price_minor": price_minor,
        "pay_vat_minor": vat_minor,
        "pay_turnover_minor": price_minor if vat_minor else 0,
    }
    return UnitPrice(**(fields | changes))


def order(
    order_id: int,
    *items: tuple[ProductVersion, UnitPrice, int],
    offers: Sequence[tuple[int, ...]] = (),
    **changes: Any,
) -> Order:
    """A created order of company 1; an item is a product, a unit's price and an amount."""
    made: list[Item] = []
    first_line = 0
    for item_no, (version, price, amount) in enumerate(items):
        seen = offers[item_no] if offers else ()
        made.append(Item(item_no, version, amount, first_line, price, seen))
        first_line += amount
    fields: dict[str, Any] = {
        "id": order_id,
        "company_id": 1,
        "type": 0,
        "status": Status.CREATED,
        "payment_status": Payment.UNPAID,
        "payment_currency": "EUR",
        "payment_fx_e8": RATE_ONE,
        "price_minor": sum(price.pay_price_minor * amount for _, price, amount in items),
        "vat_minor": sum(price.pay_vat_minor * amount for _, price, amount in items),
        "charged_minor": 0,
        "refunded_minor": 0,
        "held_minor": 0,
        "lines": first_line,
        "lines_finished": 0,
        "lines_cancelled": 0,
        "resolving": False,
        "cancelling": False,
        "downloaded": False,
        "version": 1,
        "created_at": NOW,
        "expires_at": NOW + DAY,
        "updated_at": NOW,
        "deadline_at": None,
        "reference": None,
        "items": tuple(made),
    }
    return Order(**(fields | changes))


def lot(lot_id: int, product_id: int, size: int, cursor: int = 0, **changes: Any) -> Lot:
    """A lot of a product's codes; an odd id is the sandbox's."""
    fields: dict[str, Any] = {
        "id": lot_id,
        "product_id": product_id,
        "face_minor": 1_000,
        "state": lot_id & 1,
        "cursor": cursor,
        "size": size,
        "expires_at": None,
        "purchase_minor": 900,
        "purchase_currency": "EUR",
        "purchase_fx_e8": RATE_ONE,
    }
    return Lot(**(fields | changes))
