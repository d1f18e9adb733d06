"""A price for a cart without an order: what Create would answer now. Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from voucherd.db import Connection
from voucherd.orders import create
from voucherd.orders.model import Order
from voucherd.orders.rules import cart
from voucherd.orders.rules.cart import Create, SalesPolicy, Shop
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.store import Memory
from voucherd.vault.model import Shelf


class Quote(Struct, frozen=True):
    """The order that Create would make, without a number of its own, and what of it could be delivered at once."""

    order: Order
    at_hand: tuple[bool, ...]
    """For each item, whether all of its codes can be had now."""


async def quote(
    conn: Connection, commands: Sequence[Create], memory: Memory, house: SalesPolicy
) -> list[Quote | Refusal]:
    """The price of every cart that can be sold; the same refusals as Create's for the rest."""
    shop = await create.load(conn, commands, memory, house, stocking=False)
    # No number is taken for what is not kept: the state alone stands in its place.
    answers = cart.place(shop, commands, int)
    return [
        Quote(answer, _at_hand(shop, answer)) if isinstance(answer, Order) else answer for answer in answers
    ]


def _at_hand(shop: Shop, order: Order) -> tuple[bool, ...]:
    """Items of one shelf share what is on it, the first in the cart first."""
    wanted: Counter[Shelf] = Counter()
    found = []
    for item in order.items:
        shelf = (*item.shelf, int(order.state))
        wanted[shelf] += item.amount
        found.append(wanted[shelf] <= _left_on(shop, shelf))
    return tuple(found)


def _left_on(shop: Shop, shelf: Shelf) -> int:
    """How many codes can be had of a shelf: our own, and what suppliers say they have."""
    lots, offers = shop.shelves[shelf], shop.offers.get(shelf, ())
    return sum(lot.left for lot in lots) + sum(offer.stock for offer in offers)
