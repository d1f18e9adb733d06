"""What the process remembers about orders and the shop, so that it need not read it again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from voucherd.catalogue.cache import VersionCache
from voucherd.orders.model import Order
from voucherd.orders.rules.ruling import Windows
from voucherd.orders.shop_book import ShopBook
from voucherd.settings import Settings
from voucherd.suppliers.offer_book import OfferBook

RECENT_MAX: Final = 20_000
"""About 12 MB."""


class RecentOrders:
    """Orders that this process created and that nobody finalised here: Confirm mostly comes right after Create."""

    def __init__(self, size_max: int = RECENT_MAX) -> None:
        self._size_max = size_max
        self._orders: dict[int, Order] = {}

    def keep(self, orders: Iterable[Order]) -> None:
        """Remember these; when it is full those that came first go first."""
        for order in orders:
            # One of the sandbox is read again: its company may have moved its clock since (OP-146).
            if not order.id & 1:
                self._orders[order.id] = order
        while len(self._orders) > self._size_max:
            del self._orders[next(iter(self._orders))]

    def take(self, order_id: int) -> Order | None:
        """The order as it was created, if it is known; it is forgotten now."""
        return self._orders.pop(order_id, None)


class OrderCaches:
    """The windows that orders are decided by, and what this process has read before."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.versions = VersionCache()
        self.offers = OfferBook()
        self.shop = ShopBook(self.versions)
        self.recent = RecentOrders()

    @classmethod
    def empty(cls, settings: Settings) -> OrderCaches:
        """Caches that know nothing yet."""
        return cls(_windows(settings))

    def use(self, settings: Settings) -> None:
        """Decide by these settings from now on; prices that were worked out by others are forgotten."""
        self.windows = _windows(settings)
        self.shop.forget()


def _windows(settings: Settings) -> Windows:
    delivery, resolve = settings.delivery_window_s, settings.resolve_limit_s
    return Windows(timedelta(seconds=delivery), timedelta(seconds=resolve))
