"""Events over HTTP: in pages, one by one, and Find that waits for one."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop
from voucherd.audit import audit
from voucherd.events import feed
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope

PATH = "/api/1.03/event"


async def ask(
    shop: Shop, company: Company, query: str = "", *, state: State = State.LIVE
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A page of events, and where it ends."""
    response = await shop.call("GET", f"{PATH}?{query}", company, state=state)
    assert response.status_code == 200, response.text
    body = response.json()
    return body["data"], body["metadata"]


async def refusal(shop: Shop, company: Company, path: str, state: State = State.LIVE) -> tuple[int, str]:
    """What a call is refused with."""
    response = await shop.call("GET", path, company, state=state)
    return response.status_code, response.text


async def test_events_are_read_oldest_first_and_followed_by_cursor(quiet_shop: Shop) -> None:
    """OP-80: a follower goes on from the cursor of the last page, at the end of the feed, too."""
    shop = quiet_shop
    await shop.product("gift", stock=10)
    company = await shop.company()
    bought = await shop.create(company, ("gift", 1), reference="a")
    await shop.confirm(company, bought["trx"])
    dropped = await shop.create(company, ("gift", 1))
    await shop.cancel(company, dropped["trx"])

    data, metadata = await ask(shop, company)
    told = [
        (event["type"], *(event["data"][name] for name in ("trx", "reference", "orderStatus", "seq")))
        for event in data
    ]
    assert told == [
        ("order.created", bought["trx"], "a", "created", 1),
        ("order.finished", bought["trx"], "a", "finished", 2),
        ("order.created", dropped["trx"], None, "created", 1),
        ("order.deleted", dropped["trx"], None, "deleted", 2),
    ]
    assert {event["data"]["state"] for event in data} == {"live"}
    assert not metadata["more"]
    assert "voucherCode" not in str(data)

    walked: list[dict[str, Any]] = []
    cursor = ""
    for _ in range(2):
        part, place = await ask(shop, company, f"limit=3&cursor={cursor}")
        walked += part
        cursor = place["nextCursor"]
    assert walked == data
    assert (await ask(shop, company, f"cursor={cursor}"))[0] == []
    late = await shop.create(company, ("gift", 1))
    assert [event["data"]["trx"] for event in (await ask(shop, company, f"cursor={cursor}"))[0]] == [
        late["trx"]
    ]
    assert (await ask(shop, company, f"cursor={data[1]['id']}"))[0][:2] == data[2:], (
        "an event's id is a cursor"
    )

    finished = "type=order.finished"
    assert (await ask(shop, company, f"{finished}&type=order.deleted"))[0] == [data[1], data[3]]
    assert (await ask(shop, company, f"trx={bought['trx']}"))[0] == data[:2]
    assert (await ask(shop, company, f"trx={bought['trx']}&{finished}"))[0] == [data[1]]
    assert (await ask(shop, company, f"trx=TRX&{finished}"))[0] == []
    assert (await ask(shop, company, f"dateFrom={data[0]['timestamp']}&dateTo=2999-01-01"))[0][:4] == data
    assert (await ask(shop, company, "dateTo=2020-01-01"))[0] == []
    assert (await ask(shop, company, "dateFrom=2999-01-01"))[0] == []

    for event in data:
        one = await shop.call("GET", f"{PATH}/{event['id']}", company)
        assert (one.status_code, one.json()) == (200, event)
    await shop.assert_books_balance()


async def test_nobody_reads_what_does_not_concern_him(quiet_shop: Shop) -> None:
    """OP-80, OP-24: another company, the other state, a key without the scope, and no key at all."""
    shop = quiet_shop
    await shop.product("gift", stock=10)
    company, other = await shop.company(), await shop.company()
    await shop.create(company, ("gift", 1))
    [event], _ = await ask(shop, company)
    one = f"{PATH}/{event['id']}"

    for reader, state in ((other, State.LIVE), (company, State.SANDBOX)):
        assert (await ask(shop, reader, state=state))[0] == []
        assert (await ask(shop, reader, f"trx={event['data']['trx']}", state=state))[0] == []
        assert await refusal(shop, reader, one, state) == (404, "event not found")
    blind = Company(company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.EVENTS_READ}))
    for path in (PATH, one, f"{PATH}/stream"):
        assert await refusal(shop, blind, path) == (403, "forbidden")
        assert (await shop.client.get(path)).status_code == 401
    for path in (f"{PATH}/evt_{'0' * 26}", f"{PATH}/7", f"{PATH}/{event['data']['trx']}"):
        assert await refusal(shop, company, path) == (404, "event not found")


async def test_a_bad_parameter_is_named(quiet_shop: Shop) -> None:
    """OP-25: one line that names the parameter and the rule."""
    company = await quiet_shop.company(balance=None)
    for query, rule in {
        "limit=0": "limit: must be between 1 and 200",
        "limit=201": "limit: must be between 1 and 200",
        "cursor=MTI": "cursor: is not one of ours",
        "page=2": "page: is not offered here, use cursor",
        "type=order.eaten": "type: must be one of key.rotated, order.cancelled, ",
        "type=attempt.settled": "type: must be one of key.rotated, order.cancelled, ",
        "dateFrom=yesterday": "dateFrom: must be an ISO 8601 date or date-time",
        "dateTo=-": "dateTo: must be an ISO 8601 date or date-time",
    }.items():
        status, text = await refusal(quiet_shop, company, f"{PATH}?{query}")
        assert (status, text[: len(rule)]) == (400, rule)


async def test_what_is_no_longer_kept_is_not_missed_quietly(quiet_shop: Shop) -> None:
    """OP-80: after their time events are removed; a cursor from before is refused, and the books still balance."""
    shop = quiet_shop
    await shop.product("gift", stock=10)
    company = await shop.company()
    first = await shop.create(company, ("gift", 1))
    [event], _ = await ask(shop, company)
    await shop.confirm(company, first["trx"])
    assert await feed.remove_old(shop.pool, timedelta()) > 0
    await shop.assert_books_balance()

    late = await shop.create(company, ("gift", 1))
    assert [one["data"]["trx"] for one in (await ask(shop, company))[0]] == [late["trx"]]
    gone = (410, "cursor: is from before the oldest event that is kept, begin without it")
    assert await refusal(shop, company, f"{PATH}?cursor={event['id']}") == gone
    assert await refusal(shop, company, f"{PATH}/stream?cursor={event['id']}") == gone
    assert await refusal(shop, company, f"{PATH}/{event['id']}") == (404, "event not found")

    async with shop.pool.acquire() as conn:
        await conn.execute("DELETE FROM event WHERE order_id = $1", shop.ids.order_id(late["trx"]))
        assert [finding.check for finding in await audit(conn)] == ["events-tell-every-version"]


async def test_find_waits_for_a_pending_order_to_move_or_to_end(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-80: a client that can't be called back asks once instead of again and again; no connection is held."""
    shop = quick_shop
    until_moved, waits_s = shop.order_service.watch.until_moved, list[float]()

    async def noted(order_id: int, version: int, timeout_s: float) -> bool:
        waits_s.append(timeout_s)
        # Sixty seconds may be short on a slow machine, and this call must be ended by a move.
        return await until_moved(order_id, version, HANG_S if timeout_s == 60 else timeout_s)

    monkeypatch.setattr(shop.order_service.watch, "until_moved", noted)
    await shop.product("slow", async_delivery=True)
    company = await shop.company()
    trx = (await shop.create(company, ("slow", 3)))["trx"]

    async def ask_for(seconds: int, version: str = "1.03") -> dict[str, Any]:
        response = await shop.call("GET", f"/api/{version}/order/{trx}?wait={seconds}", company)
        assert response.status_code == 200, response.text
        return dict(response.json())

    assert (await ask_for(20))["orderStatus"] == "created"
    assert waits_s == [], "only a pending order is waited for"
    await shop.confirm(company, trx)
    waits_s.clear()
    assert (await ask_for(0))["orderStatus"] == "pending"
    assert waits_s == []
    started = time.monotonic()
    assert (await ask_for(1))["orderStatus"] == "pending"
    assert time.monotonic() - started >= 1

    for line, status, version in ((1, "pending", "1.00"), (2, "pending", "Next"), (3, "finished", "1.03")):
        waiting = asyncio.create_task(ask_for(60, version))
        await shop.waits(trx)
        await shop.stock("slow", 1)
        await shop.worker.run_once("deliver")
        order = await waiting
        assert (order["items"][0]["linesCompleted"], order["orderStatus"]) == (line, status)
    assert shop.order_service.watch.parked == 0
    assert waits_s == [1, 60, 60, 60]

    path = f"/api/1.03/order/{trx}"
    for wrong in ("61", "-1", "1.5", "soon", ""):
        assert await refusal(shop, company, f"{path}?wait={wrong}") == (400, "wait: must be between 0 and 60")
    assert await refusal(shop, await shop.company(), f"{path}?wait=5") == (404, "order not found")
    await shop.assert_books_balance()
