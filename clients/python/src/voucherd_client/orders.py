"""Orders: create, quote, confirm, resolve, cancel, find."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from voucherd_client.engine import Walk
from voucherd_client.errors import StillPending
from voucherd_client.operation import E, Resource, listing, operation, segment
from voucherd_client.shapes.orders import CartItem, Line, Order, Quote, Redemption
from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Pause, Request, Steps, answered, decode, query

SANDBOX_HEADER: Final = "X-Sandbox-Outcome"
WAIT_S_MAX: Final = 25
"""So long the service holds one Find back; `wait` asks again after it."""
LOOK_EVERY_S: Final = 0.5


class Cart(Struct, rename="camel", frozen=True, kw_only=True):
    """The body of Create and of a quote."""

    items: Sequence[CartItem]
    payment_currency: str
    reference: str | UnsetType = UNSET
    webhook_url: str | UnsetType = UNSET


class Orders(Resource[E]):
    """Create, quote, confirm, resolve, cancel, find."""

    @operation
    def create(
        self,
        items: Sequence[CartItem],
        *,
        payment_currency: str,
        reference: str | None = None,
        webhook_url: str | None = None,
        sandbox_outcome: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Order]:
        """An order whose price is fixed for 24 hours; nothing is paid yet."""
        cart = _cart(items, payment_currency, reference, webhook_url)
        headers = {SANDBOX_HEADER: sandbox_outcome}
        return self._write("POST", "order", Order, cart, key=idempotency_key, headers=headers)

    @operation
    def quote(
        self, items: Sequence[CartItem], *, payment_currency: str, reference: str | None = None
    ) -> Steps[Quote]:
        """What such an order would cost now; nothing is kept."""
        return self._ask("order/quote", Quote, _cart(items, payment_currency, reference, None))

    @operation
    def confirm(
        self, trx: str, *, sandbox_outcome: str | None = None, idempotency_key: str | None = None
    ) -> Steps[Order]:
        """Pay the order: it is finished, or pending while delivery goes on, which `wait` waits for."""
        path, headers = f"order/confirm/{segment(trx)}", {SANDBOX_HEADER: sandbox_outcome}
        return self._write("PATCH", path, Order, key=idempotency_key, headers=headers)

    @operation
    def resolve(
        self, trx: str, *, sandbox_outcome: str | None = None, idempotency_key: str | None = None
    ) -> Steps[Order]:
        """Pay an order of one item: within 30 seconds it is finished, or cancelled without a charge."""
        path, headers = f"order/resolve/{segment(trx)}", {SANDBOX_HEADER: sandbox_outcome}
        return self._write("PATCH", path, Order, key=idempotency_key, headers=headers)

    @operation
    def cancel(self, trx: str, *, idempotency_key: str | None = None) -> Steps[Order | None]:
        """Delete an order that is created (None), or cancel and refund what of a pending one is not delivered."""
        answer = yield from self._do("PATCH", f"order/cancel/{segment(trx)}", key=idempotency_key)
        return decode(answer, Order) if answer else None

    @operation
    def find(self, trx: str, *, wait_s: int = 0) -> Steps[Order]:
        """The order; with `wait_s`, as soon as a pending one moves, or after so many seconds."""
        return self._find(trx, wait_s)

    def _find(self, trx: str, wait_s: int) -> Steps[Order]:
        path, given = f"order/{segment(trx)}", query(wait=wait_s or None)
        asked = Request(method="GET", path=path, query=given, wait_s=wait_s)
        return decode((yield from answered(asked, self._retries)), Order)

    @operation
    def wait(self, trx: str, *, timeout_s: float = 300.0) -> Steps[Order]:
        """The order once it is finished or cancelled; raises StillPending, with the order, when the time is over."""
        ends_at = time.monotonic() + timeout_s
        while True:
            left_s = ends_at - time.monotonic()
            order = yield from self._find(trx, max(min(int(left_s), WAIT_S_MAX), 0))
            if order.is_over:
                return order
            left_s = ends_at - time.monotonic()
            if left_s <= 0:
                failure = StillPending(f"order {trx} is {order.order_status} after {timeout_s:g} seconds")
                failure.order = order
                raise failure
            # An order that is not confirmed is told at once, and one of many lines with each that is delivered.
            yield Pause(min(LOOK_EVERY_S, left_s))

    @listing
    def find_all(
        self,
        *,
        order_status: str | Sequence[str] | None = None,
        reference: str | None = None,
        product_slug: str | None = None,
        payment_currency: str | None = None,
        type: str | None = None,
        date_from: datetime | date | None = None,
        date_to: datetime | date | None = None,
        sort_order: str | None = None,
        limit: int | None = None,
        cursor: str = "",
    ) -> Walk[Order]:
        """All orders that the filters let through, newest first unless `sort_order` is `asc`."""
        statuses = [order_status] if isinstance(order_status, str) else order_status
        given = query(
            orderStatus=None if statuses is None else list(statuses),
            reference=reference,
            productSlug=product_slug,
            paymentCurrency=payment_currency,
            type=type,
            dateFrom=date_from,
            dateTo=date_to,
            sortOrder=sort_order,
            limit=limit,
        )
        return self._walk("order", Page[Order], cursor, given)

    @listing
    def lines(self, trx: str, *, limit: int | None = None, cursor: str = "") -> Walk[Line]:
        """The lines of an order, for orders that are too large for one answer."""
        return self._walk(f"order/{segment(trx)}/line", Page[Line], cursor, query(limit=limit))

    @operation
    def codes_csv(self, trx: str) -> Steps[bytes]:
        """The codes that were delivered, as a file of CSV."""
        return self._bytes(f"order/{segment(trx)}/codes.csv")

    @operation
    def protect(self, trx: str, pin: str | None, *, idempotency_key: str | None = None) -> Steps[Redemption]:
        """Let the order's redemption links ask for this PIN, or for none any more."""
        path = f"order/{segment(trx)}/redemption"
        return self._write("PATCH", path, Redemption, {"pin": pin}, key=idempotency_key)


def _cart(
    items: Sequence[CartItem], payment_currency: str, reference: str | None, webhook_url: str | None
) -> Cart:
    return Cart(
        items=items,
        payment_currency=payment_currency,
        reference=UNSET if reference is None else reference,
        webhook_url=UNSET if webhook_url is None else webhook_url,
    )
