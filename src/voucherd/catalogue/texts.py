"""Reads and writes the texts in which operators have face values, prices and fees. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from voucherd.catalogue.products import Face, FaceRange, Fee, ProductVersion, Selling
from voucherd.catalogue.rules import BadProduct
from voucherd.money import RATE_DIGITS, BadAmount, Money, UnknownCurrency

# Plain digits only: what Python takes for a number ("1_0", "1e3", "NaN", digits of other scripts) is no
# amount to an operator. The bound on digits keeps hostile texts from costing anything.
_NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,8})?"
_AMOUNT: Final = re.compile(rf"({_NUMBER})\s+([A-Za-z]{{3}})")
_RANGE: Final = re.compile(rf"({_NUMBER})\s*-\s*({_NUMBER})\s+([A-Za-z]{{3}})")
_SHARE: Final = re.compile(r"([0-9]{1,4})(?:\.([0-9]{1,2}))?\s*%")
_FEE: Final = re.compile(rf"({_NUMBER})(?:\+({_NUMBER}))?")


def read_face(face_value: str | None, face_value_range: str | None) -> Face:
    """The face value from "50 EUR", or the range from "5-500 EUR"; exactly one must be given."""
    if face_value is not None and face_value_range is not None:
        raise BadProduct("face-value", "give a face value or a range of them, not both")
    if face_value is not None:
        return read_amount("face-value", face_value)
    if face_value_range is not None:
        return _read_range(face_value_range)
    raise BadProduct("face-value", "is needed, or face-value-range for a variable product")


def read_selling(price: str | None, fee: str | None) -> Selling:
    """The price from "48.10 EUR", or the fee from "1.02" or "1.02+0.10"; exactly one must be given."""
    if price is not None and fee is not None:
        raise BadProduct("price", "give a price or a fee, not both")
    if price is not None:
        return read_amount("price", price)
    if fee is not None:
        return _read_fee(fee)
    raise BadProduct("price", "is needed, or fee")


def read_amount(field: str, text: str) -> Money:
    """The amount in a text such as "48.10 EUR"; a refusal names the field."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise BadProduct(field, f"must be an amount and a currency, such as '48.10 EUR', not {_short(text)}")
    return _money(field, match[1], match[2])


def read_share(field: str, text: str) -> int:
    """The basis points in a text such as "1.5%"."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise BadProduct(field, f"must be a share such as '1.5%', in steps of 0.01%, not {_short(text)}")
    return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def face_text(version: ProductVersion, amount: Callable[[Money], str] = str) -> str:
    """A product's face value, or the range of them, for people; pages give the way they write an amount."""
    low, high = map(amount, version.faces)
    return f"{low.removesuffix(version.face_currency).rstrip()}–{high}" if version.is_variable else high


def _read_range(text: str) -> FaceRange:
    field = "face-value-range"
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise BadProduct(
            field, f"must be two amounts and a currency, such as '5-500 EUR', not {_short(text)}"
        )
    lowest = _money(field, match[1], match[3])
    highest = _money(field, match[2], match[3])
    return FaceRange(lowest.minor, highest.minor, lowest.currency)


def _read_fee(text: str) -> Fee:
    match = _FEE.fullmatch(text.strip())
    if match is None:
        raise BadProduct(
            "fee", f"must be a multiplier and perhaps an amount, such as '1.02+0.10', not {_short(text)}"
        )
    variable_e8 = int(Decimal(match[1]).scaleb(RATE_DIGITS))
    return Fee(variable_e8, Decimal(match[2] or "0"))


def _money(field: str, amount: str, currency: str) -> Money:
    try:
        return Money.parse(amount, currency)
    except UnknownCurrency:
        raise BadProduct(field, f"{currency.upper()!r} is not a currency code of ISO 4217") from None
    except BadAmount as refused:
        raise BadProduct(field, str(refused)) from None


def _short(text: str) -> str:
    """The text for an error message: quoted, on one line, cut off."""
    return ascii(text[:40])
