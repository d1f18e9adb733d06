"""Listening from a developer's machine: streams that are signed as webhooks are, and events that are asked for."""

from __future__ import annotations

import json
import time

import pytest

from tests.shop import Shop
from tests.wire.test_event_streams import SHORT, WAYS, Ear, listening
from tests.wire.test_sockets import Street, street
from voucherd.api.sandbox_requests import TRIGGERS
from voucherd.ids import State
from voucherd.webhooks import signing
from voucherd.webhooks.signing import NotGenuine

__all__ = ["street"]

SANDBOX = State.SANDBOX
TRIGGER = "/api/1.03/event/trigger"


async def secret_of(ear: Ear) -> str:
    """The secret that a signed stream begins with."""
    while True:
        block = await ear.block()
        assert block is not None
        if block.get("event") == "secret":
            return block["data"]


@WAYS
async def test_a_signed_stream_is_signed_as_a_webhook_is(quiet_shop: Shop, street: Street, path: str) -> None:
    """OP-147: id, time, signature and body of each event make a webhook that a receiver takes for genuine."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift")
    before = await shop.create(company, ("gift", 1), state=SANDBOX)
    async with (
        listening(street, company, f"{path}?signed=true&cursor=", state=SANDBOX) as ear,
        listening(street, company, path, state=SANDBOX) as plain,
    ):
        secret = await secret_of(ear)
        after = await shop.create(company, ("gift", 1), state=SANDBOX)
        for trx in (before["trx"], after["trx"]):
            block = await ear.block()
            assert block is not None
            body = block["data"].encode()
            given = block["id"], block["webhook-timestamp"], block["webhook-signature"]
            signing.verify(secret, *given, body, now_s=time.time())
            with pytest.raises(NotGenuine):
                signing.verify(secret, *given, body + b" ", now_s=time.time())
            assert json.loads(body)["data"]["trx"] == trx
        first = await plain.block()
        assert first is not None
        assert first.keys() == {"retry", "id"}
        told = await plain.block()
        assert told is not None
        assert told.keys() == {"id", "event", "data"}, "a stream that did not ask has nothing of it"


async def test_the_secret_is_that_of_the_key_and_stays(quiet_shop: Shop, street: Street) -> None:
    """OP-147: the same at every stream of a key, another for every other key, and kept nowhere."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    secrets = []
    for who, state in ((company, SANDBOX), (company, SANDBOX), (company, State.LIVE), (other, SANDBOX)):
        async with listening(street, who, f"{SHORT}?signed=true", state=state) as ear:
            secrets.append(await secret_of(ear))
    assert secrets[0] == secrets[1]
    assert len(set(secrets)) == 3
    for secret in secrets:
        signing.check_secret(secret)


@pytest.mark.parametrize("kind", TRIGGERS)
async def test_each_event_can_be_asked_for(quiet_shop: Shop, kind: str) -> None:
    """OP-147: it is the newest event of the feed, and its order is there as it says."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("choose", face_range="5-50 EUR", fee="1.02")
    await shop.product("gift-10")
    answer = await shop.call("POST", TRIGGER, company, state=SANDBOX, json={"type": kind})
    assert answer.status_code == 202, answer.text
    triggered = answer.json()
    assert triggered["type"] == kind
    feed = (await shop.call("GET", "/api/1.03/event", company, state=SANDBOX)).json()["data"]
    assert feed[-1]["type"] == kind
    if kind.startswith("order."):
        assert feed[-1]["data"]["trx"] == triggered["trx"]
        found = await shop.call("GET", f"/api/1.03/order/{triggered['trx']}", company, state=SANDBOX)
        expected = feed[-1]["data"]["orderStatus"]
        assert found.status_code == 404 if expected == "deleted" else found.json()["orderStatus"] == expected
    else:
        assert triggered["trx"] is None
    await shop.assert_books_balance()


async def test_what_can_not_be_triggered_is_refused(quiet_shop: Shop) -> None:
    """OP-147, OP-25: another type, a product that is not there, no money, more than may be, and a live key."""
    shop = quiet_shop
    company = await shop.company(balance="1.00 EUR")
    finished = {"type": "order.finished"}
    none = await shop.call("POST", TRIGGER, company, state=SANDBOX, json=finished)
    assert (none.status_code, none.text) == (
        400,
        "productSlug: is required: no product with a fixed face value is for sale",
    )
    await shop.product("gift-10", price="9.50 EUR")
    for body, status, text in (
        ({"type": "key.rotated"}, 400, "type: must be"),
        ({}, 400, "type: is required"),
        (finished | {"productSlug": "nothing"}, 422, "some offers not available: nothing"),
        (finished | {"productSlug": ""}, 400, "productSlug: must be 1 to 100"),
        (finished, 402, "insufficient balance"),
    ):
        refused = await shop.call("POST", TRIGGER, company, state=SANDBOX, json=body)
        assert (refused.status_code, refused.text[: len(text)]) == (status, text)
    full = await shop.call(
        "POST", "/api/1.03/sandbox/top-up", company, state=SANDBOX, json={"amount": 99_999_999}
    )
    assert full.status_code == 200, full.text
    most = await shop.call("POST", TRIGGER, company, state=SANDBOX, json={"type": "wallet.topped_up"})
    assert (most.status_code, most.text) == (
        400,
        "amount: must leave the balance at 100000000.00 EUR or less",
    )
    live = await shop.call("POST", TRIGGER, company, json=finished)
    assert (live.status_code, live.text) == (400, "for sandbox keys only")
    await shop.assert_books_balance()
