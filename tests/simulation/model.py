"""What the service should do, in the simplest words: counters instead of rows, no database, no time, no batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from voucherd.ids import State
from voucherd.orders.rules.refusals import (
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    WrongStatus,
)
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Payment, Status

ENDLESS = 10**9
VAT_BP = 2100
Refused = type[Refusal]
Shelf = tuple[State, int, int]
"""State, product and face value: also the order in which shelves are served."""


@dataclass
class Product:
    """A product as the operator last described it; `fee` is (multiplier in hundredths, fixed part)."""

    id: int
    slug: str
    face_minor: int | None
    later: bool
    price_minor: int = 0
    fee: tuple[int, int] | None = None
    single_purpose: bool = False
    active: bool = True

    def unit(self, face_minor: int) -> tuple[int, int]:
        """The price and the VAT of one code."""
        if self.fee is None:
            price = turnover = self.price_minor
        else:
            price = half_up(face_minor * self.fee[0], 100) + self.fee[1]
            turnover = price - face_minor
        taxed = self.single_purpose or self.fee is not None
        return price, half_up(turnover * VAT_BP, 10_000) if taxed else 0


@dataclass
class Item:
    """A range of lines; its codes come in order, so a count says which have one."""

    product: Product
    face_minor: int
    amount: int
    charge_minor: int
    delivered: int = 0

    @property
    def open(self) -> int:
        """How many lines have no code."""
        return self.amount - self.delivered


@dataclass
class Order:
    """An order."""

    id: int
    company: int
    state: State
    items: list[Item]
    status: Status = Status.CREATED
    payment: Payment = Payment.UNPAID
    charged_minor: int = 0
    refunded_minor: int = 0
    held_minor: int = 0
    cancelled: int = 0
    resolving: bool = False
    expired: bool = False
    late: bool = False
    slow: bool = False

    @property
    def total_minor(self) -> int:
        """What all of it costs."""
        return sum(item.charge_minor * item.amount for item in self.items)

    @property
    def delivered(self) -> int:
        """How many lines have a code."""
        return sum(item.delivered for item in self.items)

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return sum(item.amount for item in self.items)

    def shelf(self, item: Item) -> Shelf:
        """Where an item's codes come from."""
        return self.state, item.product.id, item.face_minor


@dataclass
class Company:
    """A buyer."""

    id: int
    name: str
    active: bool = True
    verified: bool = True


@dataclass
class Model:
    """The whole shop."""

    companies: dict[int, Company] = field(default_factory=dict)
    products: dict[str, Product] = field(default_factory=dict)
    orders: dict[int, Order] = field(default_factory=dict)
    balance: dict[tuple[int, State], int] = field(default_factory=dict)
    stock: dict[Shelf, int] = field(default_factory=dict)

    def view(self) -> dict[str, Any]:
        """Everything that can be compared with the database."""
        return {
            "orders": {
                order.id: (
                    order.status, order.payment, order.charged_minor, order.refunded_minor, order.held_minor,
                    order.delivered, order.cancelled,
                )
                for order in self.orders.values()
            },
            "wallets": {key: (balance, self.held(*key)) for key, balance in self.balance.items()},
            "stock": {shelf: left for shelf, left in self.stock.items() if left and shelf[0] is State.LIVE},
        }  # fmt: skip

    def held(self, company: int, state: State) -> int:
        """What a wallet holds."""
        mine = (o for o in self.orders.values() if (o.company, o.state) == (company, state))
        return sum(order.held_minor for order in mine)

    def available(self, order: Order) -> int:
        """What the order's wallet can spend."""
        key = (order.company, order.state)
        return self.balance.get(key, 0) - self.held(*key)

    def left(self, shelf: Shelf) -> int:
        """How many codes a shelf has; the sandbox's never run out."""
        return ENDLESS if shelf[0] is State.SANDBOX else self.stock.get(shelf, 0)

    # ── the operations ────────────────────────────────────────────────────────────────────────────────

    def refuses_create(
        self, company: int, state: State, cart: list[tuple[Product, int, int]]
    ) -> Refused | None:
        """Why a cart of (product, face value, amount) is refused (OP-21)."""
        if not self.companies[company].active:
            return CompanyNotActive
        wanted: dict[Shelf, int] = {}
        for product, face_minor, amount in cart:
            shelf = (state, product.id, face_minor)
            wanted[shelf] = wanted.get(shelf, 0) + amount
            if not product.active or (not product.later and wanted[shelf] > self.left(shelf)):
                return OffersNotAvailable
        return None

    def create(
        self, order_id: int, company: int, state: State, cart: list[tuple[Product, int, int]]
    ) -> Order:
        """A new order at today's prices (OP-42)."""
        items = [Item(product, face, amount, sum(product.unit(face))) for product, face, amount in cart]
        order = self.orders[order_id] = Order(order_id, company, state, items)
        return order

    def refuses_finalise(  # noqa: PLR0911 - One line for each refusal of OP-23.
        self, order: Order, sandbox_outcome: SandboxOutcome, *, resolve: bool
    ) -> Refused | None:
        """Why Confirm or Resolve is refused, in the order of OP-23."""
        company = self.companies[order.company]
        if order.status is Status.DELETED:
            return OrderNotFound
        if not company.active:
            return CompanyNotActive
        if not company.verified or sandbox_outcome is SandboxOutcome.UNVERIFIED:
            return CompanyNotVerified
        if order.status is not Status.CREATED:
            return WrongStatus
        if order.expired or sandbox_outcome is SandboxOutcome.EXPIRED:
            return OrderExpired
        if resolve and len(order.items) > 1:
            return SeveralItems
        if sandbox_outcome is SandboxOutcome.WITHDRAWN or not all(
            item.product.active for item in order.items
        ):
            return OffersNotAvailable
        if sandbox_outcome is SandboxOutcome.OUT_OF_STOCK:
            return OutOfStock
        if sandbox_outcome not in {SandboxOutcome.PENDING, SandboxOutcome.SLOW} and any(
            self._takes(order)[at] < item.amount and not item.product.later
            for at, item in enumerate(order.items)
        ):
            return OutOfStock
        if (
            sandbox_outcome is SandboxOutcome.INSUFFICIENT_BALANCE
            or self.available(order) < order.total_minor
        ):
            return InsufficientBalance
        return None

    def _takes(self, order: Order) -> list[int]:
        """How many codes each item would get now."""
        left: dict[Shelf, int] = {}
        takes = []
        for item in order.items:
            shelf = order.shelf(item)
            take = min(left.setdefault(shelf, self.left(shelf)), item.open)
            if item.product.later and self._queued(shelf, order):
                take = 0
            left[shelf] -= take
            takes.append(take)
        return takes

    def _queued(self, shelf: Shelf, but: Order) -> bool:
        """Whether another order waits for this shelf: it comes first, and a new one joins the queue (OP-48).

        In the sandbox only an order waits that was asked to, and nobody stands behind it.
        """
        return but.state is State.LIVE and any(
            other is not but
            and other.status is Status.PENDING
            and any(item.open and other.shelf(item) == shelf for item in other.items)
            for other in self.orders.values()
        )

    def waits(self, order: Order, sandbox_outcome: SandboxOutcome) -> bool:
        """Whether a finalised order would have lines without a code."""
        slow = sandbox_outcome in {SandboxOutcome.PENDING, SandboxOutcome.SLOW}
        return sandbox_outcome is not SandboxOutcome.CANCELLED and (
            slow or sum(self._takes(order)) < order.lines
        )

    def finalise(self, order: Order, sandbox_outcome: SandboxOutcome, *, resolve: bool) -> None:
        """Confirm or Resolve an order that is not refused."""
        if sandbox_outcome is SandboxOutcome.CANCELLED:
            order.status, order.cancelled = Status.CANCELLED, order.lines
            return
        waits = self.waits(order, sandbox_outcome)
        order.status, order.resolving = Status.PENDING, resolve
        order.slow = sandbox_outcome in {SandboxOutcome.PENDING, SandboxOutcome.SLOW}
        if resolve and waits:
            order.held_minor = order.total_minor
            return
        self._charge(order)
        if not order.slow:
            for item, take in zip(order.items, self._takes(order), strict=True):
                self._hand_over(order, item, take)

    def cancel(self, order: Order) -> Refused | None:
        """Cancel an order, or say why not."""
        if order.status is Status.DELETED:
            return OrderNotFound
        if order.status is Status.CREATED:
            order.status = Status.DELETED
        elif order.status is Status.PENDING:
            self.end(order)
        else:
            return WrongStatus
        return None

    def end(self, order: Order) -> None:
        """Take back what a pending order has not got (OP-44, OP-45, OP-46)."""
        order.status, order.cancelled = Status.CANCELLED, order.lines - order.delivered
        if order.payment is Payment.PAID:
            order.refunded_minor = sum(item.charge_minor * item.open for item in order.items)
            order.payment = Payment.PARTIALLY_REFUNDED if order.delivered else Payment.REFUNDED
            self._move(order, order.refunded_minor)
        order.held_minor = 0

    def end_waiting(self) -> None:
        """End every order whose time is up."""
        for order in self.orders.values():
            if order.late and order.status is Status.PENDING:
                self.end(order)

    def deliver(self, shelves_max: int = ENDLESS) -> None:
        """Serve the shelves that have codes and someone who waits, in order; each is a transaction of its own."""
        waiting: dict[Shelf, list[tuple[Order, Item, int]]] = {}
        for order, item, line in self._waiting():
            if self.left(order.shelf(item)):
                waiting.setdefault(order.shelf(item), []).append((order, item, line))
        for shelf in sorted(waiting)[:shelves_max]:
            for order, item, _ in in_turns(waiting[shelf]):
                take = min(self.left(shelf), item.open)
                if order.late or take == 0 or (order.resolving and take < item.open):
                    continue
                if order.payment is Payment.UNPAID:
                    order.held_minor = 0
                    self._charge(order)
                self._hand_over(order, item, take)

    def _waiting(self) -> Iterator[tuple[Order, Item, int]]:
        for order in self.orders.values():
            line = 0
            for item in order.items:
                if order.status is Status.PENDING and item.open and not order.slow:
                    yield order, item, line + item.delivered
                line += item.amount

    def _charge(self, order: Order) -> None:
        order.payment, order.charged_minor = Payment.PAID, order.total_minor
        self._move(order, -order.total_minor)

    def _move(self, order: Order, amount_minor: int) -> None:
        if amount_minor:
            self.balance[order.company, order.state] += amount_minor

    def _hand_over(self, order: Order, item: Item, count: int) -> None:
        item.delivered += count
        if order.state is State.LIVE and count:
            self.stock[order.shelf(item)] -= count
        if order.delivered == order.lines:
            order.status = Status.FINISHED


def in_turns(waits: list[tuple[Order, Item, int]]) -> list[tuple[Order, Item, int]]:
    """Every company's first wait before anyone's second, each company's oldest first (OP-48)."""
    turns: dict[int, int] = {}
    numbered = []
    for wait in sorted(waits, key=lambda one: (one[0].id, one[2])):
        turn = turns[wait[0].company] = turns.get(wait[0].company, 0) + 1
        numbered.append((turn, wait[0].company, wait))
    return [wait for _, _, wait in sorted(numbered, key=lambda one: one[:2])]


def half_up(number: int, divisor: int) -> int:
    """The quotient, rounded half up."""
    return (2 * number + divisor) // (2 * divisor)
