"""The event log: every change appends to it in the same transaction. Never a voucher code in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from voucherd.db import Tx

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


async def append(
    tx: Tx, type_: str, *, company_id: int | None = None, state: int | None = None, data: dict[str, Any]
) -> None:
    """Append an event that is not about an order. Amounts in its data are JSON numbers, written out (OP-07)."""
    await tx.execute(
        "INSERT INTO event (at, company_id, state, type, data) VALUES (now(), $1, $2, $3, $4::jsonb)",
        company_id,
        state,
        type_,
        msgspec.json.encode(data).decode(),
    )


async def append_all(
    tx: Tx,
    type_: str,
    data: Sequence[dict[str, Any]],
    *,
    company_id: int | None = None,
    state: int | None = None,
) -> None:
    """Append events of one kind that are not about orders, in this order, in one statement."""
    await tx.execute(
        """INSERT INTO event (at, company_id, state, type, data)
           SELECT now(), $1, $2, $3, one.data::jsonb FROM unnest($4::text[]) WITH ORDINALITY AS one (data, place)
           ORDER BY place""",
        company_id,
        state,
        type_,
        [msgspec.json.encode(one).decode() for one in data],
    )
