"""How an event looks outside: one form for `GET event`, for streams and for the body of a webhook.

It is made of the row and of the order's reference. Neither ever changes, so an event looks the same however often it is
told; only the reference goes when an order that nobody confirmed is removed.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from voucherd import clock
from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.ids import Identifiers

# The status of the order right after the event. It needs no look at the order: each type leaves only one.
_STATUS_AFTER: Final = {
    kinds.ORDER_CREATED: "created",
    kinds.ORDER_PENDING: "pending",
    kinds.ORDER_LINE_FINISHED: "pending",
    kinds.ORDER_FINISHED: "finished",
    kinds.ORDER_CANCELLED: "cancelled",
    kinds.ORDER_DELETED: "deleted",
    kinds.ORDER_EXPIRED: "created",
}

_stored = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def written(event: Event, ids: Identifiers) -> bytes:
    """The event as JSON, on one line."""
    return _encode(
        {
            "id": ids.event(event.id),
            "type": event.type,
            "timestamp": clock.written(event.at),
            "data": data_of(event, ids),
        }
    )


def data_of(event: Event, ids: Identifiers) -> dict[str, Any]:
    """Its data: of an order which one it is, where it stands and which of its versions this is; never a code."""
    # Amounts stay as they were written: numbers with exact digits, which no float has touched (OP-07).
    told: dict[str, Any] = {} if event.data is None else dict(_stored(event.data))
    if event.company_id is not None and event.state is not None:
        told["state"] = event.state.word
    number = told.pop("webhook", None)
    if number is not None:
        told["webhookId"] = ids.webhook(int(bytes(number)))
    if event.type == kinds.KEY_ROTATED:
        numbers = {name: bytes(told[name]) for name in ("id", "replacedBy") if name in told}
        told |= {name: ids.key(int(raw)) for name, raw in numbers.items() if raw.isdigit()}
    if event.order_id is not None:
        # Lists of events are long: they would push out the identifiers that calls use again.
        told["trx"] = ids.trx_unkept(event.order_id)
        told["reference"] = event.reference
        told["orderStatus"] = _STATUS_AFTER[event.type]
        told["seq"] = event.seq
    return told
