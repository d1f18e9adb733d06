"""The words of the portal: what became of an order, and why something was refused."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd import clock
from voucherd.orders.model import Order
from voucherd.orders.rules.refusals import (
    BadInput,
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OutOfStock,
    Refusal,
    SpendLimitExceeded,
    WrongStatus,
)
from voucherd.orders.rules.states import Status


class StatusWords(NamedTuple):
    """How an order stands, in a word, and the kind of its badge."""

    word: str
    kind: str


_STANDINGS: Final = {
    Status.CREATED: StatusWords("Not confirmed", "warn"),
    Status.PENDING: StatusWords("In progress", "note"),
    Status.FINISHED: StatusWords("Delivered", "good"),
    Status.CANCELLED: StatusWords("Cancelled", ""),
    Status.DELETED: StatusWords("Withdrawn", ""),
}
EXPIRED: Final = StatusWords("Expired", "")
PARTLY: Final = StatusWords("Partly delivered", "warn")

_PLAIN: Final[dict[type[Refusal], str]] = {
    CompanyNotActive: "Your company can't order at the moment. Please contact us.",
    CompanyNotVerified: "Your company has to be verified before it can pay for orders. Please contact us.",
    WrongStatus: "That can't be done with this order any more. This is how it stands now.",
    OrderExpired: "This price was kept for a limited time, which is over. Put the products into your cart again.",
    InsufficientBalance: "Your balance does not cover this order.",
    SpendLimitExceeded: "This order is above what your company may spend on one order, or in one day.",
}


def _field(name: str) -> str:
    """A field of the API's as people know it."""
    if name.endswith("faceValue"):
        return "The value"
    return {"paymentCurrency": "Currency:", "items": "The cart"}.get(name, name)


def is_expired(order: Order) -> bool:
    """Whether the price is no longer kept; the database's clock decides when somebody tries."""
    return order.status is Status.CREATED and order.expires_at <= clock.now()


def standing(order: Order) -> StatusWords:
    """How the order stands."""
    if is_expired(order):
        return EXPIRED
    if order.status is Status.CANCELLED and order.lines_finished:
        return PARTLY
    return _STANDINGS[order.status]


def said(refusal: Refusal) -> str:
    """Why something was refused, for people."""
    if isinstance(refusal, OffersNotAvailable):
        return f"Not available just now: {', '.join(refusal.names)}."
    if isinstance(refusal, OutOfStock):
        return f"There are not enough codes of {refusal.name} just now."
    if isinstance(refusal, BadInput):
        return f"{_field(refusal.field)} {refusal.rule}."
    return _PLAIN.get(type(refusal), "That could not be done.")
