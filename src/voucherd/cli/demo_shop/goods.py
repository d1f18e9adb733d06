"""What the demo's shop sells, as read from products.csv, and what its money is worth."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Final

from voucherd.catalogue.products import ProductDraft
from voucherd.catalogue.texts import read_face, read_selling
from voucherd.money import Money, divide_half_up

RATES: Final = {
    "USD": "0.92",
    "GBP": "1.17",
    "JPY": "0.0058",
    "KWD": "2.98",
    "SEK": "0.088",
    "NOK": "0.085",
    "PLN": "0.234",
    "CHF": "1.05",
}
"""What one unit is worth in EUR: about right, and nothing that anyone should trade on."""

BALANCES: Final = (
    "1000000 EUR",
    "250000 USD",
    "100000 GBP",
    "20000000 JPY",
    "25000 KWD",
    "500000 SEK",
    "200000 PLN",
)

INSTRUCTIONS: Final = {
    "giftcard": "1. Choose what you like, in any shop of {brand} or online.\n"
    "2. Enter the code when you pay, or have it scanned at the till.\n"
    "3. What is left stays on the code for the next time.",
    "gamecard": "1. Sign in to {brand}.\n2. Open your account and choose “Redeem a code”.\n"
    "3. Enter the code: the credit is there at once.",
    "topup": "1. Open the {brand} app, or its website.\n2. Choose “Top up with a code”.\n"
    "3. Enter the code and your number.",
    "paymentcard": "1. Choose {brand} when you pay online.\n2. Enter the code instead of a card.",
    "subscription": "1. Sign in to {brand}, or make an account.\n2. Enter the code under “Subscription”.\n"
    "3. Your time starts right away.",
}
"""How codes are redeemed, by the type of product."""
TERMS: Final = "This is a demo: the brand is made up, and nobody gives anything for its codes."

_CODE_LETTERS: Final = 16
_SERIAL_DIGITS: Final = 12
_LETTERS: Final = bytes(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"[byte & 31] for byte in range(256))
_DIGITS: Final = bytes(b"0123456789"[byte % 10] for byte in range(256))
_LOT: Final = re.compile(r"(?:(\d+):)?(\d+)")


@dataclass(frozen=True, slots=True)
class DemoLot:
    """One lot of the first stock."""

    face: Money
    cost: Money
    count: int


@dataclass(frozen=True, slots=True)
class Good:
    """A product of the demo's shop and its first stock."""

    draft: ProductDraft
    active: bool
    deliveries: tuple[DemoLot, ...]
    lasts: timedelta | None


def goods() -> list[Good]:
    """Everything the shop sells, in the order in which it is listed."""
    text = (files("voucherd.cli.demo_shop") / "products.csv").read_text(encoding="utf-8")
    return [_good(row) for row in csv.DictReader(text.splitlines())]


def new_codes(count: int) -> list[tuple[str, str]]:
    """Random codes and serials, made for this demo only."""
    width = _CODE_LETTERS + _SERIAL_DIGITS
    random = os.urandom(count * width)
    letters, digits = random.translate(_LETTERS).decode("ascii"), random.translate(_DIGITS).decode("ascii")
    starts = range(0, count * width, width)
    groups = [[letters[at + part : at + part + 4] for part in range(0, _CODE_LETTERS, 4)] for at in starts]
    serials = [digits[at + _CODE_LETTERS : at + width] for at in starts]
    return [("-".join(parts), serial) for parts, serial in zip(groups, serials, strict=True)]


def _good(row: dict[str, str]) -> Good:
    flags = row["flags"].split()
    variable = "-" in row["face"]
    fee = row["sells"].removeprefix("fee ") if row["sells"].startswith("fee ") else None
    draft = ProductDraft(
        slug=row["slug"],
        name=row["name"],
        brand=row["brand"],
        product_type=row["type"],
        category=row["category"],
        redeem_type=row["redeem"],
        region=row["region"],
        face=read_face(None if variable else row["face"], row["face"] if variable else None),
        selling=read_selling(None if fee else row["sells"], fee),
        vat_category=row["vat"],
        async_delivery="async" in flags,
        incentive="incentive" in flags,
        redeem_instructions=INSTRUCTIONS[row["type"]].format(brand=row["brand"]),
        terms=TERMS,
    )
    lasts = timedelta(days=int(row["expires"].removesuffix("d"))) if row["expires"] else None
    return Good(draft, "inactive" not in flags, tuple(_deliveries(row, draft)), lasts)


def _deliveries(row: dict[str, str], draft: ProductDraft) -> list[DemoLot]:
    """The lots in a text such as "500", "10000+10000" or, by face value, "10:300 25:500"."""
    lots = []
    for face_text, count in _LOT.findall(row["stock"]):
        currency = draft.face.currency
        face = Money.parse(face_text, currency) if face_text else Money.read(row["face"])
        per_mille = int(Decimal(row["cost"]) * 1000)
        cost = Money(divide_half_up(face.minor * per_mille, 1000), currency)
        if int(count):
            lots.append(DemoLot(face, cost, int(count)))
    return lots
