"""Orders, their items and lines, and quotes."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from voucherd_client.shapes.words import LineStatus, OrderStatus, State

NO_FLOAT: Final = "a float can't hold 0.10, take a Decimal"


class CartItem(Struct, rename="camel", frozen=True):
    """A product to order, and how many codes of it."""

    product_slug: str
    amount: int = 1
    face_value: Decimal | int | UnsetType = UNSET
    """Of one code, in the product's own currency: for products whose face value you pick."""

    def __post_init__(self) -> None:
        if isinstance(self.face_value, float):
            raise TypeError(f"face_value: {NO_FLOAT}")


class ItemProduct(Struct, rename="camel", frozen=True, kw_only=True):
    """The product of an item, as it was at Create."""

    slug: str
    name: str
    brand: str
    product_type: str
    region: str
    face_value_amount: Decimal
    face_value_currency: str
    face_value_min: Decimal | None = None
    face_value_max: Decimal | None = None
    main_category: str
    redeem_type: str
    is_stocked: bool


class Offer(Struct, rename="camel", frozen=True, kw_only=True):
    """One way to get a code."""

    price: Decimal
    offer_id: str
    currency: str
    supplier: str
    stock_count: int
    purchase_price: Decimal
    purchase_price_currency: str


class ProductDescription(Struct, rename="camel", frozen=True, kw_only=True):
    """The product of a line, as it was at Create."""

    name: str
    slug: str
    brand: str
    offers: list[Offer]
    region: str
    in_scope: bool
    best_offer: Offer | None
    face_value: Decimal
    is_stocked: bool
    redeem_type: str
    stock_count: int
    price_amount: Decimal
    product_type: str
    vat_category: str
    main_category: str
    price_currency: str
    face_value_currency: str
    is_variable_product: bool
    is_incentive_product: bool


_read_description: Final = msgspec.json.Decoder(ProductDescription).decode


class Line(Struct, rename="camel", frozen=True, kw_only=True):
    """One code of an order. Until it is finished, Confirm and Resolve show only its tag and status."""

    tag: str
    status: LineStatus
    id: int | None = None
    order_id: int | None = None
    date_created: datetime | None = None
    brand_slug: str | None = None
    product_slug: str | None = None
    product_facevalue_amount: Decimal | None = None
    product_facevalue_currency: str | None = None
    product_facevalue_fx: Decimal | None = None
    price_amount: Decimal | None = None
    price_currency: str | None = None
    price_fx: Decimal | None = None
    voucher_code: str | None = None
    voucher_serial: str | None = None
    voucher_url: str | None = None
    voucher_date_expired: datetime | None = None
    purchase_price_amount: Decimal | None = None
    purchase_price_currency: str | None = None
    purchase_price_fx: Decimal | None = None
    commission_eur: Decimal | None = None
    external_id: str | None = None
    offer_id: str | None = None
    external_supplier: str | None = None
    price_vat_amount: Decimal | None = None
    price_vat_turnover: Decimal | None = None
    price_incl_vat: Decimal | None = None
    price_amount_in_payment_currency: Decimal | None = None
    price_vat_amount_in_payment_currency: Decimal | None = None
    price_vat_turnover_in_payment_currency: Decimal | None = None
    price_incl_vat_in_payment_currency: Decimal | None = None
    payment_currency: str | None = None
    payment_currency_fx: Decimal | None = None
    date_updated: datetime | None = None
    state: State | None = None
    product: str | None = None
    """The product as JSON; `description` reads it."""
    token: str | None = None
    redemption_link: str | None = None
    date_voucher_viewed: datetime | None = None
    date_link_viewed: datetime | None = None
    date_returned: datetime | None = None
    allow_async_delivery: bool | None = None
    product_region: str | None = None
    entity_id: int | None = None

    @property
    def description(self) -> ProductDescription | None:
        """The product as it was at Create; None on a line that shows only its tag and status."""
        return None if self.product is None else _read_description(self.product)

    def __repr__(self) -> str:
        # A code is money: it must not get into a log because somebody printed the order.
        return f"Line(tag={self.tag!r}, status={self.status.value!r})"


class _Priced(Struct, rename="camel", frozen=True, kw_only=True):
    product: ItemProduct
    amount: int
    price_currency: str
    single_price_amount: Decimal
    total_price_amount: Decimal
    total_price_vat: Decimal
    total_price_incl_vat: Decimal
    price_fx: Decimal
    payment_currency: str
    single_price_amount_in_payment_currency: Decimal
    total_price_amount_in_payment_currency: Decimal
    total_price_vat_in_payment_currency: Decimal
    total_price_incl_vat_in_payment_currency: Decimal
    product_slug: str
    face_value_amount: Decimal
    face_value_currency: str
    face_value_fx: Decimal


class Item(_Priced, rename="camel", frozen=True, kw_only=True):
    """One product of an order."""

    lines_completed: int
    order_lines: list[Line]


class Order(Struct, rename="camel", frozen=True, kw_only=True):
    """An order as it stood when the service answered."""

    trx: str
    price_currency: str
    price_amount: Decimal
    price_vat: Decimal
    price_incl_vat: Decimal
    """What Confirm or Resolve takes from the balance."""
    price_fx: Decimal
    date_created: datetime
    payment_status: str
    type: str
    reference: str | None
    state: State
    order_status: OrderStatus
    is_balance_payment: bool
    downloaded: bool
    payment_currency: str | None = None
    """The same as `price_currency`."""
    date_expires: datetime | None = None
    """Until when it can be confirmed; only while it is created."""
    items: list[Item]

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen to it any more: it is finished or cancelled."""
        return self.order_status in (OrderStatus.FINISHED, OrderStatus.CANCELLED)

    @property
    def lines(self) -> list[Line]:
        """The lines of all items, in the order of the request."""
        return [line for item in self.items for line in item.order_lines]

    @property
    def codes(self) -> list[str]:
        """The codes that were delivered and that the key may see."""
        return [line.voucher_code for line in self.lines if line.voucher_code is not None]


class QuotedItem(_Priced, rename="camel", frozen=True, kw_only=True):
    """One product of a quote."""

    is_available: bool
    """Whether all of them could be delivered at once."""


class Quote(Struct, rename="camel", frozen=True, kw_only=True):
    """What an order would cost if it were created now."""

    price_currency: str
    price_amount: Decimal
    price_vat: Decimal
    price_incl_vat: Decimal
    price_fx: Decimal
    reference: str | None
    state: State
    is_available: bool
    payment_currency: str | None = None
    """The same as `price_currency`."""
    items: list[QuotedItem]


class Redemption(Struct, rename="camel", frozen=True, kw_only=True):
    """How an order's redemption links are protected."""

    trx: str
    has_pin: bool
