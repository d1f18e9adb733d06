"""Products with prices, their changes, brands, categories and exchange rates."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct

Day: TypeAlias = date


class FaceValueRange(Struct, rename="camel", frozen=True, kw_only=True):
    """Face values between two that can be ordered, both included."""

    min: Decimal
    max: Decimal


class Product(Struct, rename="camel", frozen=True, kw_only=True):
    """A product that is for sale, at the prices of the calling company."""

    slug: str
    name: str
    brand: str
    brand_slug: str
    product_type: str
    region: str
    face_value_amount: Decimal | None
    """None where the client picks it."""
    face_value_currency: str
    face_value_min: Decimal
    face_value_max: Decimal
    main_category: str
    redeem_type: str
    is_stocked: bool
    is_variable_product: bool
    is_incentive_product: bool
    is_active: bool
    allow_async_delivery: bool
    vat_category: str
    price_amount: Decimal | None
    price_currency: str
    price_vat: Decimal | None
    price_incl_vat: Decimal | None
    fee_variable: Decimal | None
    fee_fixed: Decimal | None
    fee_currency: str | None
    discount: Decimal | None = None
    payment_currency: str | None = None
    price_amount_in_payment_currency: Decimal | None = None
    price_vat_in_payment_currency: Decimal | None = None
    price_incl_vat_in_payment_currency: Decimal | None = None
    """What Create would fix now, for one code."""
    redeem_instructions: str | None
    terms: str | None
    image_url: str | None
    date_updated: datetime
    brand_name: str | None = None
    category: str | None = None
    redeem_value: str | None = None
    face_values: list[Decimal] | None = None
    """The face values of a variable product of which a code could be delivered now; None where that is every one."""
    face_value_ranges: list[FaceValueRange] | None = None


class ProductChange(Struct, rename="camel", frozen=True, kw_only=True):
    """One change of a product."""

    type: str
    at: datetime
    product: Product


class Brand(Struct, rename="camel", frozen=True, kw_only=True):
    """A brand that has something for sale."""

    slug: str
    name: str
    product_count: int
    brand_name: str | None = None
    category: str | None = None
    redeem_type: str | None = None


class Category(Struct, rename="camel", frozen=True, kw_only=True):
    """A category that has something for sale."""

    slug: str
    name: str
    product_count: int


class FxRate(Struct, rename="camel", frozen=True, kw_only=True):
    """What one unit of a currency is worth in another."""

    from_currency: str
    to_currency: str
    rate: Decimal
    date: Day
