"""Face values and prices of products, as the console writes them."""

from __future__ import annotations

from voucherd.catalogue.products import Fee, ProductDraft, ProductVersion
from voucherd.money import RATE_DIGITS, Money, digits, plain, to_minor


def price_words(version: ProductVersion) -> str:
    """The price, or how it is made from the face value."""
    if version.price_minor is not None and version.price_currency is not None:
        return str(Money(version.price_minor, version.price_currency))
    times = _times(version.fee_variable_e8 or 0)
    fixed = version.fee_fixed_minor or 0
    return f"×{times} + {Money(fixed, version.face_currency)}" if fixed else f"×{times}"


def face_fields(draft: ProductDraft) -> dict[str, str]:
    """The face value as the form's fields have it."""
    face = draft.face
    if isinstance(face, Money):
        return {"face_value": str(face), "face_value_range": ""}
    low = plain(face.min_minor, digits(face.currency))
    return {"face_value": "", "face_value_range": f"{low}-{Money(face.max_minor, face.currency)}"}


def selling_fields(draft: ProductDraft) -> dict[str, str]:
    """The price or the fee as the form's fields have it."""
    selling = draft.selling
    if not isinstance(selling, Fee):
        return {"price": str(selling), "fee": ""}
    currency = draft.face.currency
    fixed = to_minor(selling.fixed, currency)
    times = _times(selling.variable_e8)
    return {"price": "", "fee": f"{times}+{plain(fixed, digits(currency))}" if fixed else times}


def _times(variable_e8: int) -> str:
    return plain(variable_e8, RATE_DIGITS).rstrip("0").rstrip(".")
