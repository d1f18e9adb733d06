"""Products: what an immutable version holds, and what a draft must be before it becomes one. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Final, TypeAlias

from voucherd.catalogue.rules import (
    SLUG_LENGTH_MAX,
    UNIT_MINOR_MAX,
    BadProduct,
    check_amount,
    check_choice,
    check_image_url,
    check_name,
    check_slug,
    check_text,
)
from voucherd.money import RATE_ONE, BadAmount, Money, digits, divide_half_up, to_minor

PRODUCT_TYPES: Final = ("giftcard", "gamecard", "topup", "paymentcard", "subscription")  # OP-12
REDEEM_TYPES: Final = ("currency", "product", "subscription")  # OP-12
VAT_CATEGORIES: Final = ("single_purpose", "multi_purpose", "exempt")  # OP-52

REGION_LENGTH_MAX: Final = 20
FEE_VARIABLE_E8_MAX: Final = 100 * RATE_ONE
INSTRUCTIONS_LENGTH_MAX: Final = 4_000
TERMS_LENGTH_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class ProductVersion:
    """A product as it was at one time. It never changes, so it can be kept in memory for ever."""

    version_id: int
    product_id: int
    slug: str
    name: str
    brand_slug: str
    brand_name: str
    product_type: str
    category: str
    redeem_type: str
    region: str
    vat_category: str
    async_delivery: bool
    incentive: bool
    face_currency: str
    face_minor: int | None
    face_min_minor: int | None
    face_max_minor: int | None
    price_minor: int | None
    price_currency: str | None
    fee_variable_e8: int | None
    fee_fixed_minor: int | None

    @property
    def is_variable(self) -> bool:
        """Whether the client picks the face value (OP-10, OP-51)."""
        return self.face_minor is None

    @property
    def faces(self) -> tuple[Money, Money]:
        """The smallest and the largest face value; they are the same where there is only one."""
        low, high = self.face_min_minor or self.face_minor or 0, self.face_max_minor or self.face_minor or 0
        return Money(low, self.face_currency), Money(high, self.face_currency)

    def accepts_face(self, face_minor: int) -> bool:
        """Whether a code of that face value can be sold."""
        if self.face_min_minor is None or self.face_max_minor is None:
            return face_minor == self.face_minor
        return self.face_min_minor <= face_minor <= self.face_max_minor


@dataclass(frozen=True, slots=True)
class Listing:
    """A product as it stands now: its newest version, and whether it is for sale."""

    version: ProductVersion
    active: bool
    allow_loss: bool = False
    """Whether it may be sold for less than it costs."""


@dataclass(frozen=True, slots=True)
class Leaflet:
    """What a version says to people; empty where it says nothing. No price needs it, so it is read apart."""

    redeem_instructions: str = ""
    terms: str = ""
    image_url: str = ""


NO_LEAFLET: Final = Leaflet()


@dataclass(frozen=True, slots=True)
class FaceRange:
    """The face values that a client may pick from, both ends included."""

    min_minor: int
    max_minor: int
    currency: str


@dataclass(frozen=True, slots=True)
class Fee:
    """What is paid for a code: its face value × `variable_e8`, plus `fixed` in the face value's currency.

    `fixed` is in whole units, so that a product whose currency changes can't turn ten cents into ten yen.
    """

    variable_e8: int
    fixed: Decimal


Face: TypeAlias = Money | FaceRange
"""A fixed face value or a range: never both (OP-51)."""

Selling: TypeAlias = Money | Fee
"""A fixed price or a fee: never both (OP-51)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductDraft:
    """A product as an operator describes it. One that breaks a rule can't be made."""

    slug: str
    name: str
    brand: str
    product_type: str
    category: str
    redeem_type: str
    region: str
    face: Face
    selling: Selling
    vat_category: str = "multi_purpose"
    async_delivery: bool = False
    incentive: bool = False
    redeem_instructions: str = ""
    terms: str = ""
    image_url: str = ""

    def __post_init__(self) -> None:
        check_slug("slug", self.slug)
        check_name("name", self.name)
        check_name("brand", self.brand)
        slugify(self.brand)
        check_choice("type", self.product_type, PRODUCT_TYPES)
        check_slug("category", self.category)
        check_choice("redeem-type", self.redeem_type, REDEEM_TYPES)
        check_slug("region", self.region, REGION_LENGTH_MAX)
        if len(self.region) < 2:
            raise BadProduct("region", "must be at least 2 characters, such as 'ww' or 'nl'")
        check_choice("vat-category", self.vat_category, VAT_CATEGORIES)
        check_text("redeem-instructions", self.redeem_instructions, INSTRUCTIONS_LENGTH_MAX)
        check_text("terms", self.terms, TERMS_LENGTH_MAX)
        check_image_url("image-url", self.image_url)
        _check_face(self.face)
        _check_selling(self.face, self.selling)

    def figures(self) -> tuple[str | int | None, ...]:
        """The face value and what is paid for it, in the order of a version's last eight fields."""
        face, selling = self.face, self.selling
        values = (
            (face.minor, None, None) if isinstance(face, Money) else (None, face.min_minor, face.max_minor)
        )
        if isinstance(selling, Money):
            return (face.currency, *values, selling.minor, selling.currency, None, None)
        return (face.currency, *values, None, None, selling.variable_e8, _fee_fixed_minor(face, selling))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductChanges:
    """What an operator wants changed; None leaves a field as it is, an empty text removes it. A slug never changes."""

    name: str | None = None
    brand: str | None = None
    product_type: str | None = None
    category: str | None = None
    redeem_type: str | None = None
    region: str | None = None
    face: Face | None = None
    selling: Selling | None = None
    vat_category: str | None = None
    async_delivery: bool | None = None
    incentive: bool | None = None
    redeem_instructions: str | None = None
    terms: str | None = None
    image_url: str | None = None
    active: bool | None = None
    allow_loss: bool | None = None


def amend(version: ProductVersion, changes: ProductChanges, leaflet: Leaflet = NO_LEAFLET) -> ProductDraft:
    """The version with the changes made, refused like any other draft."""
    wanted = {
        field.name: getattr(changes, field.name)
        for field in fields(changes)
        if field.name not in ("active", "allow_loss")
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return replace(draft_of(version, leaflet), **given)


def draft_of(version: ProductVersion, leaflet: Leaflet = NO_LEAFLET) -> ProductDraft:
    """The draft that this version was made from."""
    return ProductDraft(
        slug=version.slug,
        name=version.name,
        brand=version.brand_name,
        product_type=version.product_type,
        category=version.category,
        redeem_type=version.redeem_type,
        region=version.region,
        face=_face_of(version),
        selling=_selling_of(version),
        vat_category=version.vat_category,
        async_delivery=version.async_delivery,
        incentive=version.incentive,
        redeem_instructions=leaflet.redeem_instructions,
        terms=leaflet.terms,
        image_url=leaflet.image_url,
    )


def price_with_fee(face_minor: int, fee_variable_e8: int, fee_fixed_minor: int) -> int:
    """What a code of that face value sells for in its own currency, rounded once (OP-51)."""
    return divide_half_up(face_minor * fee_variable_e8, RATE_ONE) + fee_fixed_minor


def slugify(name: str) -> str:
    """The slug of a brand's name: accents dropped, everything else than letters and digits a hyphen."""
    bare = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    slug = re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:SLUG_LENGTH_MAX].rstrip("-")
    if not slug:
        raise BadProduct("brand", "must hold at least one letter from a to z or digit")
    return slug


def _face_of(version: ProductVersion) -> Face:
    if version.face_min_minor is not None and version.face_max_minor is not None:
        return FaceRange(version.face_min_minor, version.face_max_minor, version.face_currency)
    assert version.face_minor is not None, "The schema allows no version without a face value."
    return Money(version.face_minor, version.face_currency)


def _selling_of(version: ProductVersion) -> Selling:
    if version.price_minor is not None and version.price_currency is not None:
        return Money(version.price_minor, version.price_currency)
    assert version.fee_variable_e8 is not None, "The schema allows no version without a price or a fee."
    assert version.fee_fixed_minor is not None, "The schema keeps both parts of a fee together."
    return Fee(version.fee_variable_e8, Money(version.fee_fixed_minor, version.face_currency).decimal())


def _check_face(face: Face) -> None:
    if isinstance(face, Money):
        check_amount("face-value", face.minor, face.currency)
        return
    check_amount("face-value-range", face.min_minor, face.currency)
    check_amount("face-value-range", face.max_minor, face.currency)
    if face.max_minor < face.min_minor:
        raise BadProduct("face-value-range", "must not end below its start")


def _check_selling(face: Face, selling: Selling) -> None:
    if isinstance(selling, Money):
        if isinstance(face, FaceRange):
            raise BadProduct("price", "must be a fee instead, because the face value is a range")
        check_amount("price", selling.minor, selling.currency)
        return
    if not 0 < selling.variable_e8 <= FEE_VARIABLE_E8_MAX:
        raise BadProduct(
            "fee", f"its multiplier must be more than 0 and at most {FEE_VARIABLE_E8_MAX // RATE_ONE}"
        )
    fixed_minor = _fee_fixed_minor(face, selling)
    smallest, largest = (
        (face.minor, face.minor) if isinstance(face, Money) else (face.min_minor, face.max_minor)
    )
    if price_with_fee(smallest, selling.variable_e8, fixed_minor) == 0:
        raise BadProduct("fee", "would make the smallest face value cost nothing")
    if price_with_fee(largest, selling.variable_e8, fixed_minor) > UNIT_MINOR_MAX:
        raise BadProduct("fee", f"would make a price above {Money(UNIT_MINOR_MAX, face.currency)}")


def _fee_fixed_minor(face: Face, fee: Fee) -> int:
    """The fixed part of a fee in minor units of the face value's currency."""
    try:
        fixed_minor = to_minor(fee.fixed, face.currency)
    except BadAmount:
        places = digits(face.currency)
        rule = f"its fixed part must have at most {places} digits after the point, as {face.currency} has"
        raise BadProduct("fee", rule) from None
    if fixed_minor < 0:
        raise BadProduct("fee", "its fixed part must not be below 0")
    return fixed_minor
