"""A shop of one buyer as a sequence of steps would run it: one wallet, two shelves, a few orders.

Every state is a tuple, so that the search for an order of calls can remember where it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from tests.proof.linearizable import Call

PRICE_MINOR: Final = {"now": 950, "later": 990}
DONE: Final = "done"
NOT_FOUND: Final = "404"
WRONG_STATUS: Final = "400"
NO_MONEY: Final = "402"
NO_STOCK: Final = "422"


class Order(NamedTuple):
    """An order; `codes` are those of its first lines."""

    id: int
    goods: str
    amount: int
    status: str = "created"
    payment: str = "unpaid"
    codes: tuple[str, ...] = ()
    resolving: bool = False

    @property
    def total_minor(self) -> int:
        """What all of it costs."""
        return PRICE_MINOR[self.goods] * self.amount

    @property
    def held_minor(self) -> int:
        """What of the wallet is held for it."""
        return self.total_minor if self.status == "pending" and self.payment == "unpaid" else 0

    @property
    def view(self) -> Hashable:
        """What a client sees of it: while a Resolve holds its money, it is not paid and so still created (OP-139)."""
        return "created" if self.held_minor else self.status, self.payment, self.codes


class SmallShop(NamedTuple):
    """All that there is."""

    balance_minor: int
    shelves: tuple[tuple[str, tuple[str, ...]], ...]
    orders: tuple[Order, ...] = ()

    def codes(self, goods: str) -> tuple[str, ...]:
        """What is on a shelf, next first."""
        return dict(self.shelves)[goods]

    def order(self, order_id: int) -> Order | None:
        """An order that exists for its buyer."""
        return next((one for one in self.orders if one.id == order_id and one.status != "deleted"), None)

    @property
    def held_minor(self) -> int:
        """What of the wallet is held."""
        return sum(one.held_minor for one in self.orders)

    @property
    def available_minor(self) -> int:
        """What of the wallet can be spent."""
        return self.balance_minor - self.held_minor

    def with_order(self, order: Order) -> SmallShop:
        """The shop with this order in place of what it was before."""
        others = [one for one in self.orders if one.id != order.id]
        return self._replace(orders=tuple(sorted((*others, order), key=lambda one: one.id)))

    def with_codes(self, goods: str, codes: tuple[str, ...]) -> SmallShop:
        """The shop with this on a shelf."""
        shelves = [(name, codes if name == goods else before) for name, before in self.shelves]
        return self._replace(shelves=tuple(shelves))


class Rules:
    """What each call does to the small shop (contract 3; OP-22, OP-23, OP-43 to OP-48)."""

    def do(self, shop: SmallShop, call: Call) -> tuple[Hashable, SmallShop]:
        """The answer to a call, and the shop after it."""
        answer, after = getattr(self, call.what)(shop, call.about)
        return answer, after

    def silent(self, shop: SmallShop) -> Iterable[SmallShop]:
        """What the worker may do: hand codes of the shelf to one order that waits."""
        for order in shop.orders:
            if order.status == "pending":
                after = _delivered(shop, order)
                if after is not None:
                    yield after

    def create(self, shop: SmallShop, wish: tuple[int, str, int]) -> tuple[Hashable, SmallShop]:
        """A new order; nobody hears of the one whose answer was lost, so it is none."""
        order_id, goods, amount = wish
        if goods == "now" and amount > len(shop.codes(goods)):
            return NO_STOCK, shop
        return DONE, shop.with_order(Order(order_id, goods, amount)) if order_id else shop

    def pay(self, shop: SmallShop, order_id: int) -> tuple[Hashable, SmallShop]:
        """The first step of Confirm."""
        order = shop.order(order_id)
        if (refusal := _refusal(shop, order)) is not None:
            return refusal, shop
        assert order is not None
        paid = order._replace(status="pending", payment="paid")
        after = shop._replace(balance_minor=shop.balance_minor - order.total_minor).with_order(paid)
        if order.goods == "later" and _queue(shop):
            return DONE, after
        return DONE, _delivered(after, paid) or after

    def hold(self, shop: SmallShop, order_id: int) -> tuple[Hashable, SmallShop]:
        """The first step of Resolve: all of it at once, or the money is held."""
        order = shop.order(order_id)
        if (refusal := _refusal(shop, order)) is not None:
            return refusal, shop
        assert order is not None
        if len(shop.codes(order.goods)) >= order.amount and not (order.goods == "later" and _queue(shop)):
            answer, after = self.pay(shop, order_id)
            now = after.order(order_id)
            assert now is not None
            return answer, after.with_order(now._replace(resolving=True))
        return DONE, shop.with_order(order._replace(status="pending", resolving=True))

    def end(self, shop: SmallShop, order_id: int) -> tuple[Hashable, SmallShop]:
        """The last step of Resolve: cancelled without a charge, unless it ended before."""
        order = shop.order(order_id)
        if order is None:
            return NOT_FOUND, shop
        if order.status == "pending":
            order = order._replace(status="cancelled")
            shop = shop.with_order(order)
        return order.view, shop

    def cancel(self, shop: SmallShop, order_id: int) -> tuple[Hashable, SmallShop]:
        """Delete an order, or give back what it has not got."""
        order = shop.order(order_id)
        if order is None:
            return NOT_FOUND, shop
        if order.status == "created":
            return DONE, shop.with_order(order._replace(status="deleted"))
        if order.status != "pending":
            return WRONG_STATUS, shop
        if order.payment == "unpaid":
            return DONE, shop.with_order(order._replace(status="cancelled"))
        back_minor = PRICE_MINOR[order.goods] * (order.amount - len(order.codes))
        payment = "partially_refunded" if order.codes else "refunded"
        after = shop.with_order(order._replace(status="cancelled", payment=payment))
        return DONE, after._replace(balance_minor=shop.balance_minor + back_minor)

    def find(self, shop: SmallShop, order_id: int) -> tuple[Hashable, SmallShop]:
        """Look at an order."""
        order = shop.order(order_id)
        return (NOT_FOUND if order is None else order.view), shop

    def account(self, shop: SmallShop, _about: Any) -> tuple[Hashable, SmallShop]:
        """Look at the wallet."""
        return (shop.balance_minor, shop.held_minor), shop

    def top_up(self, shop: SmallShop, amount_minor: int) -> tuple[Hashable, SmallShop]:
        """Money comes in."""
        return DONE, shop._replace(balance_minor=shop.balance_minor + amount_minor)

    def restock(self, shop: SmallShop, what: tuple[str, tuple[str, ...]]) -> tuple[Hashable, SmallShop]:
        """Codes come in."""
        goods, codes = what
        return DONE, shop.with_codes(goods, shop.codes(goods) + codes)


def _refusal(shop: SmallShop, order: Order | None) -> str | None:
    """Why an order can't be paid for, in the order of OP-23."""
    if order is None:
        return NOT_FOUND
    if order.status != "created":
        return WRONG_STATUS
    if order.goods == "now" and len(shop.codes(order.goods)) < order.amount:
        return NO_STOCK
    return NO_MONEY if shop.available_minor < order.total_minor else None


def _queue(shop: SmallShop) -> bool:
    """Whether somebody waits for what may come later (OP-48)."""
    return any(one.status == "pending" and one.goods == "later" for one in shop.orders)


def _delivered(shop: SmallShop, order: Order) -> SmallShop | None:
    """The shop after an order that waits got what the shelf has; None if that is nothing."""
    shelf, open_lines = shop.codes(order.goods), order.amount - len(order.codes)
    take = min(len(shelf), open_lines)
    if not take or (order.payment == "unpaid" and take < open_lines):
        return None
    paid_minor = order.total_minor if order.payment == "unpaid" else 0
    status = "finished" if take == open_lines else "pending"
    served = order._replace(status=status, payment="paid", codes=order.codes + shelf[:take])
    after = shop._replace(balance_minor=shop.balance_minor - paid_minor)
    return after.with_codes(order.goods, shelf[take:]).with_order(served)
