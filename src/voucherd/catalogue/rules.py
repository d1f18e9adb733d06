"""The rules that every field of a product must keep, and the refusal that names the field. Pure."""

from __future__ import annotations

import re
from typing import Final

from voucherd.money import DIGITS, MINOR_MAX, Money

SLUG_LENGTH_MAX: Final = 100
NAME_LENGTH_MAX: Final = 200
URL_LENGTH_MAX: Final = 500

UNIT_MINOR_MAX: Final = MINOR_MAX // 10_000
"""No code costs more than this: an order of 10,000 lines (OP-14) then stays inside money's own bound."""

_SLUG: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_HTTPS: Final = re.compile(r"https://[!-~]*[!-.0-~][!-~]*")


class BadProduct(ValueError):
    """A product can't be like this; names the field and the rule."""

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        self.rule = rule
        super().__init__(f"{field}: {rule}")


def is_slug(value: str) -> bool:
    """Whether something could have this slug."""
    return len(value) <= SLUG_LENGTH_MAX and _SLUG.fullmatch(value) is not None


def check_slug(field: str, value: str, length_max: int = SLUG_LENGTH_MAX) -> None:
    if not _SLUG.fullmatch(value):
        raise BadProduct(field, "must be lower-case letters and digits, with single hyphens between them")
    if len(value) > length_max:
        raise BadProduct(field, f"must be at most {length_max} characters")


def check_name(field: str, value: str) -> None:
    if not 1 <= len(value) <= NAME_LENGTH_MAX:
        raise BadProduct(field, f"must be 1 to {NAME_LENGTH_MAX} characters")
    if value != value.strip() or not value.isprintable():
        raise BadProduct(field, "must have no control characters and no space at either end")


def check_text(field: str, value: str, length_max: int) -> None:
    """Several lines, or none at all."""
    if len(value) > length_max:
        raise BadProduct(field, f"must be at most {length_max} characters")
    if value != value.strip() or not all(line.isprintable() for line in value.replace("\t", " ").split("\n")):
        raise BadProduct(field, "must have no control characters and no space at either end")


def check_image_url(field: str, value: str) -> None:
    if value and not (_HTTPS.fullmatch(value) and len(value) <= URL_LENGTH_MAX):
        raise BadProduct(
            field, f"must be an address that starts with https:// and has at most {URL_LENGTH_MAX} characters"
        )


def check_choice(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadProduct(field, f"must be one of {', '.join(choices)}")


def check_amount(field: str, minor: int, currency: str) -> None:
    if currency not in DIGITS:
        raise BadProduct(field, f"{currency!r} is not a currency code of ISO 4217")
    if minor <= 0:
        raise BadProduct(field, "must be more than 0")
    if minor > UNIT_MINOR_MAX:
        raise BadProduct(field, f"must be at most {Money(UNIT_MINOR_MAX, currency)}")
