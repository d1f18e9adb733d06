"""The kinds of events, and what an event of an order says. Pure data."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ORDER_CREATED: Final = "order.created"
ORDER_PENDING: Final = "order.pending"
ORDER_LINE_FINISHED: Final = "order.line_finished"
ORDER_FINISHED: Final = "order.finished"
ORDER_CANCELLED: Final = "order.cancelled"
ORDER_DELETED: Final = "order.deleted"
ORDER_EXPIRED: Final = "order.expired"
PRODUCT_UPDATED: Final = "product.updated"
WALLET_LOW_BALANCE: Final = "wallet.low_balance"
WALLET_TOPPED_UP: Final = "wallet.topped_up"
KEY_ROTATED: Final = "key.rotated"
WEBHOOK_DISABLED: Final = "webhook.disabled"
PING: Final = "ping"
ATTEMPT_SETTLED: Final = "attempt.settled"
ATTEMPT_RETRIED: Final = "attempt.retried"
ATTEMPT_REVEALED: Final = "attempt.revealed"

FOR_ALL: Final = frozenset({PRODUCT_UPDATED})
"""Types that every company is told of; they carry none."""

FOR_COMPANIES: Final = FOR_ALL | {
    ORDER_CREATED,
    ORDER_PENDING,
    ORDER_LINE_FINISHED,
    ORDER_FINISHED,
    ORDER_CANCELLED,
    ORDER_DELETED,
    ORDER_EXPIRED,
    WALLET_LOW_BALANCE,
    WALLET_TOPPED_UP,
    KEY_ROTATED,
    WEBHOOK_DISABLED,
    PING,
}
"""Types that clients see (OP-54); what else is in the log is for the operator alone."""


class OrderEvent(Struct, frozen=True):
    """What happened to one order; `seq` is the order's version after it."""

    order_id: int
    company_id: int
    type: str
    seq: int
