"""Webhooks of the sandbox: late by wish, and brought closer by the test clock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.shop import Company, Shop
from tests.webhooks.postman import Postman
from tests.webhooks.receiver import Receiver
from voucherd.ids import State
from voucherd.webhooks import retries

SANDBOX = State.SANDBOX
FAILURE = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"


async def advance(shop: Shop, company: Company, seconds: int) -> int:
    """Move the clock; how many deliveries came closer."""
    answer = await shop.call(
        "POST", "/api/1.03/sandbox/clock/advance", company, state=SANDBOX, json={"seconds": seconds}
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["deliveries"])


async def test_the_events_of_an_order_can_come_late(shop: Shop, postman: Postman, receiver: Receiver) -> None:
    """OP-145: slow-webhook delays that order's deliveries and no other's; the clock brings them."""
    company = await shop.company()
    await postman.endpoint(company, receiver.url(), "order.created", state=SANDBOX)
    await shop.product("gift-10")
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    slow = await shop.call(
        "POST",
        "/api/1.03/order",
        company,
        state=SANDBOX,
        json=body,
        headers={"x-sandbox-outcome": "slow-webhook:3600"},
    )
    quick = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    await postman.run()
    assert [quick["trx"].encode() in got.body for got in receiver.got] == [True]
    due = await shop.pool.fetchval("SELECT next_at - created_at FROM webhook_delivery WHERE status = 0")
    assert due == timedelta(hours=1)

    assert await advance(shop, company, 3_600) == 1
    await postman.run()
    assert slow.json()["trx"].encode() in receiver.got[1].body
    await shop.assert_books_balance()


async def test_the_clock_brings_retries_closer_and_ends_an_endpoint_that_fails_for_days(
    shop: Shop, postman: Postman, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-146, OP-54: a step is as good as waiting; live endpoints and other companies' keep their time."""
    monkeypatch.setattr(retries, "pause_s", lambda tries, _chance: 7_200.0)
    company, other = await shop.company(), await shop.company()
    await shop.product("gift-10", stock=9)
    failing = await postman.endpoint(company, receiver.url("/mine"), "order.created", state=SANDBOX)
    await postman.endpoint(company, receiver.url("/live"), "order.created")
    await postman.endpoint(other, receiver.url("/other"), "order.created", state=SANDBOX)
    receiver.answer = lambda _: FAILURE
    await shop.create(company, ("gift-10", 1), state=SANDBOX)
    await shop.create(company, ("gift-10", 1))
    await shop.create(other, ("gift-10", 1), state=SANDBOX)
    await postman.run()
    assert sorted(got.path for got in receiver.got) == ["/live", "/mine", "/other"]

    assert await advance(shop, company, 7_199) == 1
    await postman.run()
    assert len(receiver.got) <= 4
    receiver.got.clear()
    await advance(shop, company, 86_400 * 6)
    await postman.run()
    assert [got.path for got in receiver.got] == ["/mine"]
    rows = await shop.pool.fetch("SELECT id FROM webhook WHERE disabled_reason = 'failing'")
    assert [row["id"] for row in rows] == [failing.id]
