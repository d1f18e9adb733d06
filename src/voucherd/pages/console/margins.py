"""A product's face value, price, cost and margin in words, and its changes from one version to the next."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.catalogue import store as catalogue
from voucherd.catalogue.pricing import BP_ONE
from voucherd.catalogue.products import Fee, ProductDraft, ProductVersion, price_with_fee
from voucherd.catalogue.texts import face_text
from voucherd.db import Connection
from voucherd.ids import State
from voucherd.money import RATE_DIGITS, Money, digits, divide_half_up, plain, to_minor, worth
from voucherd.pages import product_words
from voucherd.pages.product_words import region_words
from voucherd.pages.render import amount
from voucherd.suppliers import overview
from voucherd.suppliers.offers import QuoteTerms
from voucherd.vault import shelf

SOURCES_MAX: Final = 12

_FIELDS: Final = {
    "name": "Name",
    "brand_name": "Brand",
    "product_type": "Type",
    "category": "Category",
    "redeem_type": "Redeemed as",
    "region": "Region",
    "vat_category": "VAT",
    "async_delivery": "Later delivery",
    "incentive": "Incentive",
}


_WORDS: Final = {
    "product_type": product_words.TYPES,
    "redeem_type": product_words.REDEEMED,
    "vat_category": product_words.VAT,
}


class Cost(Struct, frozen=True):
    """Where codes would come from, and what is earned on one of them by the catalogue's price."""

    source: str
    face: Money
    cost: Money
    left: int
    margin_bp: int | None
    """Of the cost; None where there is no rate to compare with."""

    @property
    def margin(self) -> str:
        """The margin for people."""
        return "–" if self.margin_bp is None else percent_words(self.margin_bp)


def percent_words(share_bp: int) -> str:
    """A share such as 1.5%."""
    return f"{plain(share_bp, 2).rstrip('0').rstrip('.')}%".replace("-", "−")


def guard_words(margin_min_bp: int) -> str:
    """What the guard against losses refuses."""
    if margin_min_bp <= -BP_ONE:
        return "The protection against losses is off: everything is sold at any price."
    if margin_min_bp == 0:
        return "A sale below its cost is refused."
    return f"A sale at less than {percent_words(margin_min_bp)} above its cost is refused."


async def costs(conn: Connection, version: ProductVersion, state: State) -> list[Cost]:
    """The lots and offers that would serve the next orders, by what they cost."""
    offers = await overview.offers_of(conn, version.product_id, state)
    faces = [version.face_minor] if version.face_minor is not None else sorted({o.face_minor for o in offers})
    shelves = [(version.product_id, face, int(state)) for face in faces[:SOURCES_MAX]]
    found: list[Cost] = []
    rates = await catalogue.rates(conn, [version.face_currency, version.price_currency or "EUR"])
    for (_, face_minor, _), lots in (await shelf.look(conn, shelves)).items():
        earned = _price_worth(version, face_minor, rates)
        face = Money(face_minor, version.face_currency)
        for lot in lots:
            cost = Money(lot.purchase_minor, lot.purchase_currency)
            found.append(Cost(f"Lot {lot.id}", face, cost, lot.left, _margin(earned, lot.cost)))
    for offer in offers:
        if offer.price_minor is None or offer.currency is None or offer.fx_e8 is None:
            continue
        terms = QuoteTerms(offer.face_minor, offer.price_minor, offer.face_to_minor, offer.price_to_minor)
        price = terms.price_at(offer.face_minor)
        earned = _price_worth(version, offer.face_minor, rates)
        found.append(
            Cost(
                offer.supplier,
                Money(offer.face_minor, version.face_currency),
                Money(price, offer.currency),
                offer.stock,
                _margin(earned, worth(price, offer.currency, offer.fx_e8)),
            )
        )
    return found[:SOURCES_MAX]


def _price_worth(version: ProductVersion, face_minor: int, rates: dict[str, int]) -> int | None:
    """What the catalogue's price is worth in EUR, to compare."""
    if version.price_minor is not None and version.price_currency is not None:
        minor, currency = version.price_minor, version.price_currency
    else:
        minor = price_with_fee(face_minor, version.fee_variable_e8 or 0, version.fee_fixed_minor or 0)
        currency = version.face_currency
    return None if currency not in rates else worth(minor, currency, rates[currency])


def _margin(earned: int | None, cost: int) -> int | None:
    return None if earned is None or cost <= 0 else divide_half_up((earned - cost) * BP_ONE, cost)


def differences(older: ProductVersion, newer: ProductVersion) -> list[tuple[str, str, str]]:
    """What is different: its name, what it was and what it is."""
    found = [
        (label, _words(field, getattr(older, field)), _words(field, getattr(newer, field)))
        for field, label in _FIELDS.items()
        if getattr(older, field) != getattr(newer, field)
    ]
    was, now = [(face_text(one, amount), price_words(one)) for one in (older, newer)]
    for label, before, after in zip(("Face value", "Price"), was, now, strict=True):
        if before != after:
            found.append((label, before, after))
    return found


def _words(field: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return region_words(text) if field == "region" else _WORDS.get(field, {}).get(text, text)


def price_words(version: ProductVersion) -> str:
    """The price, or how it is made from the face value."""
    if version.price_minor is not None and version.price_currency is not None:
        return amount(Money(version.price_minor, version.price_currency))
    times = _times(version.fee_variable_e8 or 0)
    fixed = version.fee_fixed_minor or 0
    added = f" + {amount(Money(fixed, version.face_currency))}" if fixed else ""
    return f"Face value × {times}{added}"


def face_fields(draft: ProductDraft) -> dict[str, str]:
    """The face value as the form's fields have it."""
    face = draft.face
    if isinstance(face, Money):
        return {"face_value": str(face.decimal()), "face_to": "", "face_currency": face.currency}
    low, high = (plain(minor, digits(face.currency)) for minor in (face.min_minor, face.max_minor))
    return {"face_value": low, "face_to": high, "face_currency": face.currency}


def selling_fields(draft: ProductDraft) -> dict[str, str]:
    """The price or the fee as the form's fields have it."""
    selling, currency = draft.selling, draft.face.currency
    if not isinstance(selling, Fee):
        price = {"price": str(selling.decimal()), "price_currency": selling.currency}
        return price | {"fee_times": "", "fee_plus": ""}
    fixed = to_minor(selling.fixed, currency)
    plus = plain(fixed, digits(currency)) if fixed else ""
    return {
        "price": "",
        "price_currency": currency,
        "fee_times": _times(selling.variable_e8),
        "fee_plus": plus,
    }


def _times(variable_e8: int) -> str:
    return plain(variable_e8, RATE_DIGITS).rstrip("0").rstrip(".")
