"""The classic format of webhooks: messages that programs of other services read, signed and tried again like ours."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct

from tests.shop import Company, Shop
from tests.webhooks.postman import Postman, opened
from tests.webhooks.receiver import OK, Got, Receiver
from voucherd.events import kinds
from voucherd.events.feed import Event
from voucherd.ids import Identifiers, State
from voucherd.webhooks import fanout, signing
from voucherd.webhooks.messages import MessageFormat, message

HOOK = "/api/1.03/webhook"
FAILURE = b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsick"
IDS = Identifiers(bytes(range(32)))
AT = datetime(2026, 1, 31, 9, 30, 0, 123456, UTC)


class To(Struct, frozen=True):
    """An endpoint, as far as messages depend on it."""

    format: MessageFormat = MessageFormat.CLASSIC
    state: State = State.LIVE
    description: str = "Test key"


def classic(event: Event, to: To | None = None) -> dict[str, Any]:
    """The body of a classic message."""
    return dict(json.loads(message(IDS, event, to or To()).body))


def heard(secret: str, got: Got) -> dict[str, Any]:
    """The body of a request, once its signature is proven."""
    head = [got.headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")]
    signing.verify(secret, head[0], head[1], head[2], got.body, now_s=time.time())
    return dict(json.loads(got.body))


def test_a_classic_message_is_written_as_such_programs_read_it() -> None:
    """OP-137: frozen to the byte, like the other format."""
    event = Event(1, AT, 7, State.LIVE, kinds.ORDER_FINISHED, 2048, 2, None, "test reference")
    sent = message(IDS, event, To())
    assert sent.id == IDS.event(1)
    assert sent.body == (
        b'{"event":"ORDER_FINISHED","state":"live","apiKeyDescription":"Test key","data":{"trx":"'
        + IDS.trx(2048).encode()
        + b'","reference":"test reference"}}'
    )


@pytest.mark.parametrize("type_", sorted(fanout.TYPES | {kinds.PING}))
def test_every_type_has_a_name_in_capitals_and_its_facts(type_: str) -> None:
    """OP-137: of an order trx and reference alone; of anything else what the standard format tells."""
    is_order = type_.startswith("order.")
    stored = None if is_order else '{"amount": 100.50, "currency": "EUR"}'
    event = Event(4, AT, 7, State.SANDBOX, type_, 2049 if is_order else None, 1, stored)
    told = classic(event, To(state=State.SANDBOX))
    assert list(told) == ["event", "state", "apiKeyDescription", "data"]
    assert told["event"] == {"order.line_finished": "ORDER_LINE_FINISHED", "ping": "PING"}.get(
        type_, type_.upper().replace(".", "_")
    )
    assert told["state"] == "sandbox"
    if is_order:
        assert told["data"] == {"trx": IDS.trx(2049), "reference": None}
    else:
        assert told["data"] == {"amount": 100.50, "currency": "EUR"}
        assert b"100.50" in message(IDS, event, To()).body


def test_an_event_for_everybody_names_the_state_of_the_endpoint() -> None:
    """OP-137: a change of the catalogue is of live and of the sandbox."""
    event = Event(4, AT, None, None, kinds.PRODUCT_UPDATED, None, None, '{"slug": "gift-10", "active": true}')
    told = classic(event, To(state=State.SANDBOX))
    assert (told["state"], told["data"]) == ("sandbox", {"slug": "gift-10", "active": True})


async def _hook(shop: Shop, company: Company, method: str, path: str = "", **body: Any) -> dict[str, Any]:
    answer = await shop.call(method, HOOK + path, company, json=body)
    assert answer.status_code < 300, answer.text
    return dict(answer.json())


async def test_a_classic_endpoint_is_sent_to_signed_and_tried_again_like_any_other(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54, OP-137: the same id and body at each attempt, and the log shows the very text that was signed."""
    company = await shop.company()
    wish: dict[str, Any] = {"url": receiver.url(), "format": "classic", "eventTypes": ["order.finished"]}
    made = await _hook(shop, company, "POST", **wish, description="the webshop")
    assert made["format"] == "classic"
    answers = iter([FAILURE, OK])
    receiver.answer = lambda _: next(answers)
    await shop.product("gift-10", stock=2)
    reference = '{"order": "EP-7"}'
    trx = (await shop.create(company, ("gift-10", 1), reference=reference))["trx"]
    await shop.confirm(company, trx)
    await postman.run()
    await postman.hurry()
    await postman.run()

    first, second = receiver.got
    assert heard(made["secret"], first) == {
        "event": "ORDER_FINISHED",
        "state": "live",
        "apiKeyDescription": "the webshop",
        "data": {"trx": trx, "reference": reference},
    }
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    heard(made["secret"], second)
    (logged,) = (await shop.call("GET", f"{HOOK}/{made['id']}/delivery", company)).json()["data"]
    assert (logged["status"], logged["message"]) == ("delivered", json.loads(first.body))
    await shop.assert_books_balance()


async def test_a_format_is_chosen_and_changed_and_one_that_does_not_exist_is_refused(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-137: the next message is in the new format; what is not sent stays; the standard one has the reference too."""
    company = await shop.company()
    made = await _hook(shop, company, "POST", url=receiver.url(), eventTypes=["order.created"])
    path = f"/{made['id']}"
    assert made["format"] == "standard"
    for method, where in (("POST", HOOK), ("PATCH", HOOK + path)):
        refused = shop.call(method, where, company, json={"url": receiver.url(), "format": "modern"})
        await shop.assert_refused(refused, 400, "format: must be standard or classic")
    assert (await _hook(shop, company, "PATCH", path, format="classic"))["format"] == "classic"
    assert (await _hook(shop, company, "PATCH", path, description="till"))["format"] == "classic"
    await shop.product("gift-10", stock=2)
    await shop.create(company, ("gift-10", 1), reference="one")
    await postman.run()
    assert (await _hook(shop, company, "PATCH", path, format="standard"))["description"] == "till"
    await shop.create(company, ("gift-10", 1), reference="two")
    await postman.run()

    old, new = receiver.got
    told = heard(made["secret"], old)
    assert (told["event"], told["apiKeyDescription"]) == ("ORDER_CREATED", "till")
    assert told["data"]["reference"] == "one"
    assert opened(made["secret"], new)["data"]["reference"] == "two"


async def test_orders_that_name_their_own_address_are_told_in_the_format_of_their_endpoint(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54, OP-137: the endpoint for orders' own addresses has a format like every other."""
    company = await shop.company()
    await postman.endpoint(company, None, "order.created", format=MessageFormat.CLASSIC, description="each")
    await shop.product("gift-10", stock=1)
    cart = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    address = {"webhookUrl": receiver.url("/own")}
    made = await shop.call("POST", "/api/1.03/order", company, json=cart | address)
    await postman.run()
    (got,) = receiver.got
    assert json.loads(got.body)["data"] == {"trx": made.json()["trx"], "reference": None}
