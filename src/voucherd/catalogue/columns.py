"""The columns of a file of products: the fields of `product add`, and a listing written in them. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, TypeAlias

from voucherd.catalogue.products import Fee, ProductDraft
from voucherd.money import RATE_DIGITS, Money, digits, plain, to_minor

COLUMNS: Final = (
    "slug",
    "name",
    "brand",
    "type",
    "category",
    "redeem-type",
    "region",
    "face-value",
    "face-currency",
    "face-value-range",
    "price",
    "price-currency",
    "fee",
    "vat-category",
    "async-delivery",
    "incentive",
    "redeem-instructions",
    "terms",
    "image-url",
    "active",
)
PRICE_COLUMNS: Final = ("slug", "price", "price-currency", "fee")

FIELDS: Final = {
    "name": "name",
    "brand": "brand",
    "type": "product_type",
    "category": "category",
    "redeem-type": "redeem_type",
    "region": "region",
    "vat-category": "vat_category",
    "async-delivery": "async_delivery",
    "incentive": "incentive",
    "redeem-instructions": "redeem_instructions",
    "terms": "terms",
    "image-url": "image_url",
}
"""The columns that are one field of a draft each; the others make up its face value and what is paid for it."""

TEXTS: Final = ("redeem-instructions", "terms")
"""The columns of texts that may have several lines; in a file a row is a line, so these are written as one."""

Value: TypeAlias = str | Decimal | bool | None


def values(draft: ProductDraft, active: bool) -> dict[str, Value]:
    """What a product's row says, column by column; reading it again changes nothing."""
    row: dict[str, Value] = dict.fromkeys(COLUMNS)
    row |= {"slug": draft.slug, "active": active}
    row |= {column: getattr(draft, field) for column, field in FIELDS.items()}
    row |= {column: one_line(getattr(draft, FIELDS[column])) for column in TEXTS}
    face, selling = draft.face, draft.selling
    row["face-currency"] = face.currency
    if isinstance(face, Money):
        row["face-value"] = face.decimal()
    else:
        # With its currency, or a spreadsheet program takes 5-12 for a day in May.
        low = plain(face.min_minor, digits(face.currency))
        row["face-value-range"] = f"{low}-{Money(face.max_minor, face.currency)}"
    if isinstance(selling, Money):
        row |= {"price": selling.decimal(), "price-currency": selling.currency}
    else:
        row["fee"] = _fee(selling, face.currency)
    return row


def one_line(text: str) -> str:
    """The text with `\\n` for each of its ends of lines."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def several_lines(text: str) -> str:
    """The text behind one line; line breaks as a workbook's cell has them stay."""
    return re.sub(r"\\([n\\])", lambda found: "\n" if found[1] == "n" else "\\", text.replace("\r\n", "\n"))


def text(value: Value) -> str:
    """The value as a cell of CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value}"


def _fee(fee: Fee, currency: str) -> str:
    times = plain(fee.variable_e8, RATE_DIGITS).rstrip("0").rstrip(".")
    fixed_minor = to_minor(fee.fixed, currency)
    return f"{times}+{plain(fixed_minor, digits(currency))}" if fixed_minor else times
