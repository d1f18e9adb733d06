"""Idempotency-Key: a request is done once and answered as often as it is sent (OP-28)."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd.actors import SYSTEM
from voucherd.api.app import Api
from voucherd.api.handlers import Call
from voucherd.api.idempotent import IdempotentCalls
from voucherd.api.routes import ROUTES, Route
from voucherd.db import Pool, transaction
from voucherd.http import Response
from voucherd.idempotency import store as idempotency
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys.key_text import Scope, key_hash
from voucherd.money import Money

BODY = {"items": [{"productSlug": "gift", "amount": 2}], "paymentCurrency": "EUR"}


async def send(
    shop: Shop, company: Company, method: str, path: str, key: str, **arguments: Any
) -> httpx.Response:
    """A call with a key."""
    headers = {"idempotency-key": key} | arguments.pop("headers", {})
    return await shop.call(method, f"/api/1.03/{path}", company, headers=headers, **arguments)


def same(first: httpx.Response, second: httpx.Response) -> bool:
    """Whether the second is the first again, byte for byte, and says so."""
    fixed = ("content-type", "location")
    return (
        (first.status_code, first.content) == (second.status_code, second.content)
        and [first.headers.get(name) for name in fixed] == [second.headers.get(name) for name in fixed]
        and "idempotent-replayed" not in first.headers
        and second.headers.get("idempotent-replayed") == "true"
    )


@pytest.fixture
async def company(quiet_shop: Shop) -> Company:
    """A company, and a product on the shelf."""
    await quiet_shop.product("gift", price="10.00 EUR", stock=200)
    return await quiet_shop.company(balance="1000.00 EUR")


async def test_every_write_is_done_once_and_answered_again_byte_for_byte(
    quiet_shop: Shop, company: Company
) -> None:
    """OP-28: Create, Confirm, Resolve and Cancel; also after the order went on, and with its codes."""
    shop = quiet_shop
    created = [await send(shop, company, "POST", "order", "create-1", json=BODY) for _ in range(2)]
    trx = created[0].json()["trx"]
    confirmed = [await send(shop, company, "PATCH", f"order/confirm/{trx}", "confirm-1") for _ in range(2)]
    again = await send(shop, company, "POST", "order", "create-1", json=BODY)
    other = (await send(shop, company, "POST", "order", "create-2", json=BODY)).json()["trx"]
    resolved = [await send(shop, company, "PATCH", f"order/resolve/{other}", "resolve-1") for _ in range(2)]
    third = (await send(shop, company, "POST", "order", "create-3", json=BODY)).json()["trx"]
    deleted = [await send(shop, company, "PATCH", f"order/cancel/{third}", "cancel-1") for _ in range(2)]

    for first, second in (created, confirmed, resolved, deleted, (created[0], again)):
        assert same(first, second)
    assert [r[0].status_code for r in (created, confirmed, resolved, deleted)] == [201, 200, 200, 204]
    assert confirmed[1].json()["items"][0]["orderLines"][0]["voucherCode"].startswith("CODE-")
    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 3
    assert await shop.balance(company) == Money.read("960.00 EUR")
    await shop.assert_books_balance()


async def test_a_key_belongs_to_one_request_of_one_company_and_state(
    quiet_shop: Shop, company: Company
) -> None:
    """OP-28: the same key with another request is a 422; somebody else's same key is another key."""
    shop, stranger = quiet_shop, await quiet_shop.company()
    first = await send(shop, company, "POST", "order", "k", json=BODY)
    other = {"items": [{"productSlug": "gift", "amount": 3}], "paymentCurrency": "EUR"}

    refused = await send(shop, company, "POST", "order", "k", json=other)
    elsewhere = await send(shop, company, "PATCH", f"order/confirm/{first.json()['trx']}", "k")
    theirs = await send(shop, stranger, "POST", "order", "k", json=BODY)
    play = await send(shop, company, "POST", "order", "k", json=BODY, state=State.SANDBOX)

    for response in (refused, elsewhere):
        assert (response.status_code, response.text) == (
            422,
            "this Idempotency-Key was used for another request",
        )
    assert [theirs.status_code, play.status_code] == [201, 201]
    assert len({r.json()["trx"] for r in (first, theirs, play)}) == 3
    for key in ("", "x" * 256, "a\tb"):
        bad = await send(shop, company, "POST", "order", key, json=BODY)
        assert (bad.status_code, bad.text) == (
            400,
            "Idempotency-Key: must be 1 to 255 printable ASCII characters",
        )


async def test_64_parallel_duplicates_of_a_confirm_have_one_effect(
    quiet_shop: Shop, company: Company
) -> None:
    """OP-28: all of them get the same answer, or are told that the first is still running."""
    shop = quiet_shop
    trx = (await shop.create(company, ("gift", 2)))["trx"]

    answers = await asyncio.gather(
        *(send(shop, company, "PATCH", f"order/confirm/{trx}", "once") for _ in range(64))
    )
    later = await send(shop, company, "PATCH", f"order/confirm/{trx}", "once")

    good = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert good
    assert {answer.content for answer in good} == {later.content}
    busy = [answer for answer in answers if answer.status_code == 409]
    assert all(answer.headers["retry-after"] == "1" for answer in busy)
    assert await shop.balance(company) == Money.read("980.00 EUR")
    await shop.assert_books_balance()


async def test_while_the_first_runs_the_second_is_told_so(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-28: 409 while a slow Confirm waits, and its answer afterwards."""
    sandbox = {"state": State.SANDBOX, "headers": {"x-sandbox-outcome": "slow:5"}}
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=2 * HANG_S) as shop:
        await shop.product("gift")
        company = await shop.company()
        trx = (await shop.create(company, ("gift", 1), state=State.SANDBOX))["trx"]
        path = f"order/confirm/{trx}"
        running = asyncio.create_task(send(shop, company, "PATCH", path, "slow", **sandbox))
        await shop.waits(trx)

        second = await send(shop, company, "PATCH", path, "slow", **sandbox)
        await shop.time_is_up(trx)
        first = await running
        third = await send(shop, company, "PATCH", path, "slow", **sandbox)

    assert (second.status_code, second.text) == (
        409,
        "the first request with this Idempotency-Key is still running",
    )
    assert first.json()["orderStatus"] == "pending"
    assert same(first, third)


async def test_refusals_are_kept_and_failures_of_ours_are_not(
    quiet_shop: Shop, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28: a 402 stays a 402 for its key; after a 503 the same key may try again."""
    shop, poor = quiet_shop, await quiet_shop.company(balance="1.00 EUR")
    trx = (await shop.create(poor, ("gift", 1)))["trx"]
    refused = await send(shop, poor, "PATCH", f"order/confirm/{trx}", "poor")
    await shop.top_up(poor, "100.00 EUR")
    again = await send(shop, poor, "PATCH", f"order/confirm/{trx}", "poor")
    fresh = await send(shop, poor, "PATCH", f"order/confirm/{trx}", "rich")

    trx = (await shop.create(company, ("gift", 1)))["trx"]
    with monkeypatch.context() as broken:
        broken.setattr(shop.order_service, "confirm", _away)
        failed = await send(shop, company, "PATCH", f"order/confirm/{trx}", "unlucky")
    retried = await send(shop, company, "PATCH", f"order/confirm/{trx}", "unlucky")

    assert (refused.status_code, refused.text) == (402, "insufficient balance")
    assert same(refused, again)
    assert fresh.json()["orderStatus"] == "finished"
    assert (failed.status_code, retried.status_code) == (503, 200)
    assert retried.json()["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def _away(*_: object) -> None:
    raise OSError("the database is away")


async def test_a_crash_between_the_effect_and_the_answer_loses_neither(
    quiet_shop: Shop, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28: the order is named in the transaction that changes it, so nothing is done a second time."""
    shop = quiet_shop

    async def forgets(*_: object) -> None:
        """The process dies here."""

    async def crash(method: str, path: str, key: str, **arguments: Any) -> list[httpx.Response]:
        with monkeypatch.context() as dying:
            dying.setattr(IdempotentCalls, "_settle", forgets)
            first = await send(shop, company, method, path, key, **arguments)
        busy = await send(shop, company, method, path, key, **arguments)
        await shop.pool.execute("UPDATE idempotency SET running_until = now() WHERE answer IS NULL")
        return [first, busy, *[await send(shop, company, method, path, key, **arguments) for _ in range(2)]]

    created = await crash("POST", "order", "c", json=BODY)
    trx = created[0].json()["trx"]
    confirmed = await crash("PATCH", f"order/confirm/{trx}", "f")
    other = (await shop.create(company, ("gift", 1)))["trx"]
    deleted = await crash("PATCH", f"order/cancel/{other}", "d")

    for first, busy, second, third in (created, confirmed, deleted):
        assert busy.status_code == 409
        assert (first.status_code, first.content) == (second.status_code, second.content)
        assert same(second, third)
    assert await shop.balance(company) == Money.read("980.00 EUR")
    await shop.assert_books_balance()


async def test_no_code_and_no_key_is_kept_in_the_clear_and_all_is_forgotten_after_30_days(
    quiet_shop: Shop, company: Company
) -> None:
    """OP-28: hashes and sealed answers only; the sweep takes what is old, and leaves the rest."""
    shop = quiet_shop
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    answer = await send(shop, company, "PATCH", f"order/confirm/{trx}", "my-secret-key")
    codes = [line["voucherCode"] for line in answer.json()["items"][0]["orderLines"]]

    rows = await shop.pool.fetch("SELECT * FROM idempotency")
    text = repr([tuple(row) for row in rows])
    assert len(rows) == 1
    assert not any(word in text for word in (*codes, "my-secret-key", trx, "finished"))

    assert await idempotency.sweep(shop.pool) == 0
    await shop.pool.execute("ALTER TABLE idempotency DISABLE TRIGGER USER")
    await shop.pool.execute("UPDATE idempotency SET began_at = now() - interval '31 days'")
    assert await idempotency.sweep(shop.pool) == 1
    assert await shop.pool.fetchval("SELECT count(*) FROM idempotency") == 0


WRITES = [route for route in ROUTES if route.writes]


@pytest.mark.parametrize("route", WRITES, ids=lambda route: f"{route.method} {route.path}")
async def test_no_answer_is_replayed_to_another_key(
    quiet_shop: Shop, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28: for every write of the table: a key, its successor and a second key of the company, also at once."""
    shop, first = quiet_shop, await quiet_shop.company(scopes=frozenset(Scope))
    second = Company(first.id, first.name, await shop.keys(first, frozenset(Scope)))
    path = re.sub(r"\{\w+\}", "x", route.path)
    done: list[int] = []

    async def respond(_api: Api, _route: Route, call: Call) -> Response:
        done.append(call.caller.key_id)
        await asyncio.sleep(0)
        return Response(200, b"a secret of key %d" % call.caller.key_id)

    monkeypatch.setattr(Api, "_respond", respond)
    once = await asyncio.gather(*(send(shop, who, route.method, path, "k") for who in (first, second)))
    again = [await send(shop, who, route.method, path, "k") for who in (first, second)]
    assert [one.status_code for one in once] == [200, 200]
    assert len(set(done)) == len(done) == 2
    assert all(same(*pair) for pair in zip(once, again, strict=True))
    assert once[0].content != once[1].content

    found = key_hash(first.keys[State.LIVE])
    number = await shop.pool.fetchval("SELECT id FROM api_key WHERE hash = $1", found)
    async with transaction(shop.pool) as tx:
        _, text = await key_deeds.rotate(tx, SYSTEM, number, timedelta(hours=1))
    successor = Company(first.id, first.name, {State.LIVE: text})
    assert same(once[0], await send(shop, successor, route.method, path, "k"))


async def test_a_webhook_secret_is_shown_to_the_key_that_asked_alone(quiet_shop: Shop) -> None:
    """OP-28, OP-54: the same header and body with another key of the company make another endpoint."""
    shop, first = quiet_shop, await quiet_shop.company()
    second = Company(first.id, first.name, await shop.keys(first, frozenset({Scope.WEBHOOKS_WRITE})))
    body = {"url": "https://hooks.shop.com/x"}
    one, two = [await send(shop, who, "POST", "webhook", "w", json=body) for who in (first, second)]
    assert (one.status_code, two.status_code) == (201, 201)
    assert one.json()["secret"] not in two.text
    assert one.json()["id"] != two.json()["id"]
