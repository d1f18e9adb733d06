"""The shapes of the sandbox's own resources: its clock, and events that were asked for."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from voucherd.api.wire.fields import AnyTrx, Count, Moment, doc
from voucherd.clock import written
from voucherd.sandbox.deeds import Moved
from voucherd.sandbox.store import TestClock


class SandboxClock(Struct):
    """The clock of your sandbox."""

    dateNow: Annotated[Moment, doc("The time in your sandbox.")]
    aheadSeconds: Annotated[Count, doc("How far it is ahead of the real time.")]


class AdvancedClock(Struct):
    """The clock after a step, and what came closer by it."""

    dateNow: Annotated[Moment, doc("The time in your sandbox.")]
    aheadSeconds: Annotated[Count, doc("How far it is ahead of the real time.")]
    orders: Annotated[Count, doc("Open orders whose deadlines came closer.")]
    expiredOrders: Annotated[Count, doc("Orders among them that expired by it.")]
    deliveries: Annotated[Count, doc("Deliveries to webhooks that wait and came closer.")]


class TriggeredEvent(Struct):
    """An event that was asked for. It comes as any other: in the feed, in streams and to webhooks."""

    type: Annotated[str, doc("What happened.")]
    trx: Annotated[
        AnyTrx | None, doc("The order that was made for it; null for an event that is of no order.")
    ]


def clock(shown: TestClock) -> SandboxClock:
    """A clock as clients see it."""
    return SandboxClock(written(shown.now), int(shown.ahead.total_seconds()))


def advanced(moved: Moved) -> AdvancedClock:
    """A clock that was moved, as clients see it."""
    shown = clock(moved.clock)
    return AdvancedClock(shown.dateNow, shown.aheadSeconds, moved.orders, moved.expired, moved.deliveries)
