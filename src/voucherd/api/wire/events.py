"""The shapes of events, for the document; their bytes are made by `events.wire`, which webhooks use too."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType

from voucherd.api.wire import fields
from voucherd.api.wire.fields import Environment, KeyId, Link, Moment, doc
from voucherd.api.wire.numbers import Number
from voucherd.api.wire.view import STATUS_WORDS
from voucherd.events import kinds
from voucherd.events.kinds import FOR_COMPANIES

_ORDER_TYPES: Final = sorted(type_ for type_ in FOR_COMPANIES if type_.startswith("order."))
_STATE: Final = doc("The environment in which it happened.")


class EventMetadata(Struct):
    """Where a page of events ends."""

    pageSize: Annotated[
        int, doc("The most events that a page holds: the `limit` that was asked for.", minimum=1)
    ]
    nextCursor: Annotated[str, doc("The `cursor` of the next call, at the end of the feed, too.")]
    more: Annotated[bool, doc("Whether there is more to read there already.")]


class Event(Struct):
    """Something that happened. It looks the same here, in a stream and in a webhook, however often it is told."""

    id: Annotated[str, doc("Identifier of the event. The same event has it wherever it is told.")]
    type: Annotated[str, doc("What happened.", enum=sorted(FOR_COMPANIES))]
    timestamp: Annotated[Moment, doc("When it happened.")]
    data: Annotated[dict[str, Any], doc("What it happened to. Never a code.")]


class EventPage(Struct):
    """A page of events."""

    data: Annotated[list[Event], doc("The events, oldest first.")]
    metadata: Annotated[EventMetadata, doc("Where to go on.")]


# ── what an event of each type says ───────────────────────────────────────────────────────────────────────


class OrderEventData(Struct):
    """Which order an event is about, and where the order stands. Never a code."""

    state: Annotated[Environment, doc("The environment of the order.")]
    trx: fields.Trx
    reference: Annotated[
        str | None,
        doc("Your own text; null if there is none, or the order was never confirmed and is removed."),
    ]
    orderStatus: Annotated[str, doc("Where the order stands right after the event.", enum=STATUS_WORDS)]
    seq: Annotated[int, doc("Counts the order's events from 1.", minimum=1)]


class TopUpEventData(Struct):
    """What was paid in."""

    state: Annotated[Environment, _STATE]
    currency: fields.AccountCurrency
    amount: Annotated[Number, doc("What came in.")]
    balance: Annotated[Number, doc("The balance after it.")]
    reference: Annotated[str, doc("The text of the top-up.")]


class LowBalanceEventData(Struct):
    """Which balance fell below the amount that was chosen for it."""

    state: Annotated[Environment, _STATE]
    currency: fields.AccountCurrency
    availableAmount: Annotated[Number, doc("What an order can be paid from.")]
    thresholdAmount: Annotated[Number, doc("The amount that was chosen.")]


class ProductEventData(Struct):
    """Which product changed; find it for the rest."""

    slug: fields.ProductSlug
    active: Annotated[bool, doc("Whether it is for sale.")]
    stocked: Annotated[bool | UnsetType, doc("Whether it is in stock. Only if that is what changed.")] = UNSET


class KeyRotatedEventData(Struct):
    """Which key was replaced, and by which."""

    state: Annotated[Environment, _STATE]
    id: Annotated[KeyId, doc("The id of the key that was replaced.")]
    replacedBy: Annotated[KeyId, doc("The id of its successor.")]


class WebhookDisabledEventData(Struct):
    """Which endpoint gets nothing more, and why."""

    state: Annotated[Environment, _STATE]
    webhookId: Annotated[str, doc("The id of the endpoint.", pattern="^wh_[0-9A-Z]{26}$")]
    url: Annotated[Link, doc("Where events were sent.")]
    reason: Annotated[str, doc("It answered 410, or failed for five days.", enum=("gone", "failing"))]


class PingEventData(Struct):
    """A test."""

    state: Annotated[Environment, _STATE]
    message: Annotated[str, doc("A greeting.")]


DATA: Final[dict[str, tuple[str, tuple[str, ...], type[Struct]]]] = {
    "OrderEvent": ("Something happened to an order.", tuple(_ORDER_TYPES), OrderEventData),
    "TopUpEvent": ("A balance was topped up.", (kinds.WALLET_TOPPED_UP,), TopUpEventData),
    "LowBalanceEvent": ("A balance is low.", (kinds.WALLET_LOW_BALANCE,), LowBalanceEventData),
    "ProductEvent": ("A product is new or has changed.", (kinds.PRODUCT_UPDATED,), ProductEventData),
    "KeyRotatedEvent": ("An API key was replaced.", (kinds.KEY_ROTATED,), KeyRotatedEventData),
    "WebhookDisabledEvent": (
        "We stopped sending to an endpoint.",
        (kinds.WEBHOOK_DISABLED,),
        WebhookDisabledEventData,
    ),
    "PingEvent": ("You asked for a test.", (kinds.PING,), PingEventData),
}
"""The shapes of events: of which types each is, and what its data is."""

WHEN: Final = {
    kinds.ORDER_CREATED: "An order was created.",
    kinds.ORDER_PENDING: "It was confirmed, and codes are still to come.",
    kinds.ORDER_LINE_FINISHED: "Some of its codes were delivered, and some are still to come.",
    kinds.ORDER_FINISHED: "All its codes were delivered.",
    kinds.ORDER_CANCELLED: "It was cancelled, by you or because it could not be delivered.",
    kinds.ORDER_DELETED: "It was cancelled before it was confirmed.",
    kinds.ORDER_EXPIRED: "Its time to be confirmed is over.",
    kinds.WALLET_LOW_BALANCE: "A balance fell below the amount that was chosen for it.",
    kinds.WALLET_TOPPED_UP: "A balance was topped up.",
    kinds.PRODUCT_UPDATED: "A product is new, has changed, or went in or out of stock.",
    kinds.KEY_ROTATED: "An API key was replaced.",
    kinds.WEBHOOK_DISABLED: "We stopped sending to one of your endpoints.",
    kinds.PING: "You asked for a test.",
}
"""When an event of each type is sent."""
