"""Events on the wire: one form for all who are told."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.events.wire import written
from voucherd.ids import Identifiers, State
from voucherd.orders.rules.states import Status

IDS = Identifiers(bytes(range(32)))
AT = datetime(2026, 1, 31, 9, 30, 0, 123456, UTC)
ORDER_TYPES = sorted(type_ for type_ in kinds.FOR_COMPANIES if type_.startswith("order."))


def test_an_event_of_an_order_names_it_and_says_where_it_stands() -> None:
    """OP-80: frozen to the byte, because a receiver may keep it, hash it or compare it."""
    event = Event(1, AT, 7, State.LIVE, kinds.ORDER_FINISHED, 2048, 2, None, 'PO "7"')

    assert written(event, IDS) == (
        b'{"id":"'
        + IDS.event(1).encode()
        + b'","type":"order.finished","timestamp":"2026-01-31T09:30:00.123Z",'
        b'"data":{"state":"live","trx":"' + IDS.trx(2048).encode() + b'","reference":"PO \\"7\\"",'
        b'"orderStatus":"finished","seq":2}}'
    )


@pytest.mark.parametrize("type_", ORDER_TYPES)
def test_every_type_of_an_order_has_a_status(type_: str) -> None:
    """Contract 3: the words of `orderStatus`, and no look at the order to find the right one."""
    event = Event(1, AT, 7, State.SANDBOX, type_, 2049, 1, None)
    data = msgspec.json.decode(written(event, IDS))["data"]
    assert data["orderStatus"] in [status.name.lower() for status in Status]
    assert data["state"] == "sandbox"


def test_amounts_keep_their_digits() -> None:
    """OP-07: JSON numbers with exact digits, from the log to the wire."""
    stored = '{"amount": 100.50, "balance": 12345678901234567.10, "currency": "EUR"}'
    event = Event(3, AT, 7, State.LIVE, kinds.WALLET_TOPPED_UP, None, None, stored)
    assert b'{"amount":100.50,"balance":12345678901234567.10,"currency":"EUR","state":"live"}' in written(
        event, IDS
    )


def test_what_is_for_all_carries_no_state() -> None:
    """OP-80: a change of the catalogue is nobody's own."""
    event = Event(4, AT, None, None, kinds.PRODUCT_UPDATED, None, None, '{"slug": "gift-10", "active": true}')
    assert written(event, IDS).endswith(b'"data":{"slug":"gift-10","active":true}}')
