"""Every way in which an order can be refused. A refusal carries facts; the wire owns the words."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Loss(Struct, frozen=True):
    """A product that would sell for less than it must: its price and cost, each a number of 10⁻¹¹ EUR."""

    slug: str
    name: str
    price: int
    cost: int


class Refusal(Exception):
    """The call was refused and changed nothing."""


class OrderNotFound(Refusal):
    """No such order for this company and state."""


class CompanyNotActive(Refusal):
    """The company may not order."""


class CompanyNotVerified(Refusal):
    """The company may not finalise orders yet."""


class WrongStatus(Refusal):
    """The order's status does not allow this."""


class DoneBefore(Refusal):
    """It is as it should be: an earlier try of this very request did it, and may not have heard so."""

    def __init__(self, order_id: int) -> None:
        super().__init__(order_id)
        self.order_id = order_id


class OrderExpired(Refusal):
    """The confirmation window has passed."""


class SeveralItems(Refusal):
    """Resolve takes an order with exactly one item."""


class OffersNotAvailable(Refusal):
    """These products (names, or slugs where there is none) can't be sold now."""

    def __init__(
        self, names: tuple[str, ...], losses: tuple[Loss, ...] = (), left: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(names)
        self.names = names
        self.left = left or {}
        """How many codes can be had, by the slugs of those of which there are too few."""
        self.losses = losses
        """Why, where it is their price: for the operator alone."""


class OutOfStock(Refusal):
    """This product has too few codes, and may not be delivered later."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class InsufficientBalance(Refusal):
    """The wallet does not cover the order."""


class SpendLimitExceeded(Refusal):
    """The order would cost more than the company, or the key, may spend on one order or in one day."""


class ApprovalNeeded(Refusal):
    """The order costs so much that a second person has to allow it."""


class ApprovalRefused(Refusal):
    """Nobody else allows the order (any more): the request was decided, is over, or is the caller's own."""


class BadInput(Refusal):
    """A field of the request breaks a rule."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule
