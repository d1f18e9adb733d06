"""The words of the portal: what became of an order, and why something was refused."""

from __future__ import annotations

from typing import Final, NamedTuple

from voucherd import clock
from voucherd.orders.bulk import RowProblem
from voucherd.orders.model import AMOUNT_MAX, REFERENCE_CHARS_MAX, Order
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
from voucherd.pages.buyer.quoting import QuotedLine
from voucherd.sheets.model import SheetRefused
from voucherd.words import Words, phrase


class StatusWords(NamedTuple):
    """How an order stands, in a word, and the kind of its badge."""

    word: str
    kind: str


_STATUSES: Final = {
    Status.CREATED: StatusWords(phrase("Not confirmed"), "warn"),
    Status.PENDING: StatusWords(phrase("In progress"), "note"),
    Status.FINISHED: StatusWords(phrase("Delivered"), "good"),
    Status.CANCELLED: StatusWords(phrase("Cancelled"), ""),
    Status.DELETED: StatusWords(phrase("Withdrawn"), ""),
}
EXPIRED: Final = StatusWords(phrase("Expired"), "")
ASKED_FOR: Final = StatusWords(phrase("Waiting for approval"), "warn")
PARTLY: Final = StatusWords(phrase("Partly delivered"), "warn")

_PLAIN: Final[dict[type[Refusal], str]] = {
    CompanyNotActive: phrase("Your company can't order at the moment. Please contact us."),
    CompanyNotVerified: phrase(
        "Your company has to be verified before it can pay for orders. Please contact us."
    ),
    WrongStatus: phrase("That can't be done with this order any more. This is its status now."),
    OrderExpired: phrase("The price was kept for a limited time, which is over. Order the products again."),
    InsufficientBalance: phrase("Your balance does not cover this order."),
    SpendLimitExceeded: phrase(
        "This order is above what your company may spend on one order, or in one day."
    ),
}
_FIELDS: Final = {
    "faceValue": phrase("The product is not sold at this value: its page says which ones there are."),
    "paymentCurrency": phrase("There is no exchange rate for this currency now: pay with another one."),
    "company": phrase("There is no VAT rate for your company's country. Please contact us."),
    "items": phrase("The order is too large. Split it into several orders."),
}
"""What is wrong with a field of Create, by the last part of its name."""

BULK: Final = {
    RowProblem.SLUG: phrase("The product is missing."),
    RowProblem.AMOUNT: phrase("The amount is a whole number from 1 to {most}."),
    RowProblem.VALUE: phrase("The value is a number such as 25.00."),
    RowProblem.REFERENCE: phrase(
        "A reference has at most {longest} characters, all of which can be printed."
    ),
    RowProblem.FORMULA: phrase("A cell is a formula, a date or an error: write its value as text."),
}
"""What is wrong with a row of a file."""


def row_problem(speak: Words, problem: RowProblem) -> str:
    """What is wrong with a row of a file by itself."""
    return speak.text(BULK[problem], most=speak.number(AMOUNT_MAX), longest=speak.number(REFERENCE_CHARS_MAX))


def sheet_refusal(speak: Words, refused: SheetRefused) -> str:
    """Why a file as a whole can't be read."""
    places = {
        name: speak.number(one) if isinstance(one, int) else one for name, one in refused.places.items()
    }
    return speak.text(refused.words, **places)


def is_expired(order: Order) -> bool:
    """Whether the price is no longer kept; the database's clock decides when somebody tries."""
    return order.status is Status.CREATED and order.expires_at <= clock.now()


def standing(order: Order, *, asked_for: bool = False) -> StatusWords:
    """How the order stands; `asked_for` if a second person is asked to agree to it."""
    if is_expired(order):
        return EXPIRED
    if asked_for and order.status is Status.CREATED:
        return ASKED_FOR
    if order.status is Status.CANCELLED and order.lines_finished:
        return PARTLY
    return _STATUSES[order.status]


def said(speak: Words, refusal: Refusal) -> str:
    """Why something was refused, for people."""
    if isinstance(refusal, OffersNotAvailable):
        return speak.text("Not available just now: {products}.", products=", ".join(refusal.names))
    if isinstance(refusal, OutOfStock):
        return speak.text("There are not enough codes of {product} just now.", product=refusal.name)
    if isinstance(refusal, BadInput):
        return speak.text(_FIELDS.get(refusal.field.rpartition(".")[2], _FIELDS["items"]))
    return speak.text(_PLAIN.get(type(refusal), phrase("That could not be done.")))


def line_problem(speak: Words, quoted: QuotedLine) -> str:
    """Why a line of a cart or a file can't be had as it is."""
    if not isinstance(quoted.refusal, OffersNotAvailable):
        return "" if quoted.refusal is None else said(speak, quoted.refusal)
    if not quoted.short:
        return speak.text("Not for sale just now.")
    if not quoted.left:
        return speak.text("Sold out.")
    return speak.plural("Only {count} left.", "Only {count} left.", quoted.left)
