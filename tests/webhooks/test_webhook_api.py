"""Webhooks over HTTP: endpoints, secrets that are shown once, the log, tests, replays and recoveries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.shop import Company, Shop
from tests.webhooks.postman import Postman, opened
from tests.webhooks.receiver import Receiver
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope

HOOK = "/api/1.03/webhook"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
FAILURE = b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nbusy"


async def call(shop: Shop, company: Company, method: str, path: str, **more: Any) -> httpx.Response:
    """A call that is answered well."""
    answer = await shop.call(method, path, company, **more)
    assert answer.status_code < 300, answer.text
    return answer


async def add(shop: Shop, company: Company, **body: Any) -> dict[str, Any]:
    """A new endpoint, with its secret."""
    answer = await call(shop, company, "POST", HOOK, json=body)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{HOOK}/{answer.json()['id']}"
    return dict(answer.json())


async def test_an_endpoint_is_made_found_changed_and_removed(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: its secret is shown once and stored sealed; values of headers are never shown."""
    company = await shop.company()
    body = {
        "url": receiver.url(),
        "eventTypes": ["order.finished", "order.cancelled", "order.finished"],
        "description": "the shop",
        "headers": {"Authorization": "Basic c2VjcmV0"},
    }
    made = await add(shop, company, **body)
    secret = made.pop("secret")
    path = f"{HOOK}/{made['id']}"
    assert made["eventTypes"] == ["order.cancelled", "order.finished"]
    assert made["headerNames"] == ["authorization"]
    assert (made["state"], made["perOrder"], made["enabled"], made["failures"]) == ("live", False, True, 0)
    assert (await call(shop, company, "GET", path)).json() == made
    listed = (await call(shop, company, "GET", HOOK)).json()
    assert listed == {"data": [made], "metadata": {"totalItems": 1}}
    stored = await shop.pool.fetchrow("SELECT secret, headers FROM webhook")
    assert not any(text in bytes(value) for value in stored or () for text in (secret.encode(), b"c2VjcmV0"))

    changed = (await call(shop, company, "PATCH", path, json={"eventTypes": None, "headers": {}})).json()
    assert (changed["eventTypes"], changed["headerNames"], changed["url"]) == ([], [], receiver.url())
    assert changed["dateUpdated"] > made["dateUpdated"]
    queued = await call(shop, company, "POST", path + "/test")
    assert queued.status_code == 202
    await postman.run()
    assert opened(secret, receiver.got[0])["id"] == queued.json()["eventId"]

    rotated = (await call(shop, company, "POST", path + "/rotate", json={"overlapSeconds": 60})).json()
    assert rotated["secret"] != secret
    assert rotated["dateOldSecretExpires"] is not None
    await call(shop, company, "POST", path + "/test")
    await postman.run()
    for either in (secret, rotated["secret"]):
        opened(either, receiver.got[1])
    once = (await call(shop, company, "POST", path + "/rotate", json={"overlapSeconds": 0})).json()
    assert once["dateOldSecretExpires"] is None
    own = {"secret": "whsec_" + "QUFB" * 10}
    assert (await call(shop, company, "POST", path + "/rotate", json=own)).json()["secret"] == own["secret"]

    gone = await call(shop, company, "DELETE", path)
    assert (gone.status_code, gone.content) == (204, b"")
    await shop.assert_refused(shop.call("GET", path, company), 404, "webhook not found")
    assert await shop.pool.fetchval("SELECT count(*) FROM webhook_delivery") == 0
    await shop.assert_books_balance()


async def test_nobody_elses_endpoint_can_be_seen_or_touched(shop: Shop, receiver: Receiver) -> None:
    """OP-54: another company, the other state, a made-up id and a key without the scope."""
    company, other = await shop.company(), await shop.company()
    made = await add(shop, company, url=receiver.url())
    blind = Company(
        company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.WEBHOOKS_WRITE})
    )
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "", {}),
        ("PATCH", "", {"json": {"enabled": False}}),
        ("DELETE", "", {}),
        ("POST", "/rotate", {}),
        ("POST", "/test", {}),
        ("GET", "/delivery", {}),
        ("POST", f"/recover?since={datetime.now(UTC):%Y-%m-%d}", {}),
    ]
    for method, rest, more in calls:
        path = f"{HOOK}/{made['id']}{rest}"
        for who, state in ((other, State.LIVE), (company, State.SANDBOX)):
            await shop.assert_refused(
                shop.call(method, path, who, state=state, **more), 404, "webhook not found"
            )
        made_up = f"{HOOK}/wh_{'0' * 26}{rest}"
        await shop.assert_refused(shop.call(method, made_up, company, **more), 404, "webhook not found")
        await shop.assert_refused(shop.call(method, path, blind, **more), 403, "forbidden")
    assert (await call(shop, other, "GET", HOOK)).json()["data"] == []
    await call(shop, company, "POST", f"{HOOK}/{made['id']}/test")
    event = await shop.pool.fetchval("SELECT max(id) FROM event")
    replay = f"/api/1.03/event/{shop.ids.event(event)}/replay"
    for who, state in ((other, State.LIVE), (company, State.SANDBOX)):
        await shop.assert_refused(shop.call("POST", replay, who, state=state), 404, "event not found")
    await shop.assert_refused(
        shop.call("POST", "/api/1.03/event/evt_1/replay", company), 404, "event not found"
    )


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "url: is required"),
    ({"url": 7}, "url: must be a string"),
    ({"url": "http://hooks.shop.com/"}, "url: must start with https://"),
    ({"url": "https://10.0.0.1/"}, "url: must not lead to an address that is not public"),
    ({"url": "https://u:p@hooks.shop.com/"}, "url: must have no user or password in it"),
    ({"url": "https://hooks.shop.com:22/"}, "url: must use one of the ports 443, 4443, 8443, 9443"),
    ({"perOrder": True, "url": "https://a.com/"}, "url: must be left out where each order names its own"),
    ({"perOrder": 1}, "perOrder: must be true or false"),
    ({"url": "https://a.com/", "eventTypes": ["ping"]}, "eventTypes[0]: must be one of key.rotated"),
    ({"url": "https://a.com/", "eventTypes": "all"}, "eventTypes: must be an array"),
    ({"url": "https://a.com/", "description": "x" * 201}, "description: must be at most 200"),
    ({"url": "https://a.com/", "description": "a\nb"}, "description: must be at most 200 printable"),
    ({"url": "https://a.com/", "headers": {"Host": "x"}}, "headers: must not hold host"),
    ({"url": "https://a.com/", "headers": {"X": "a\r\nb"}}, "headers: must have values of"),
    ({"url": "https://a.com/", "secret": "hunter2"}, "secret: must be whsec_ and base64 of 24 to 64 bytes"),
]


async def test_bad_input_is_named_and_changes_nothing(pool: Any, database_url: str, tmp_path: Any) -> None:
    """OP-25, OP-54: as an operator without networks of his own has it; 20 endpoints and one for orders, no more."""
    from tests.shop import open_shop

    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        company = await shop.company()
        for body, text in BAD:
            answer = await shop.call("POST", HOOK, company, json=body)
            assert (answer.status_code, answer.text[: len(text)]) == (400, text), answer.text
        assert await shop.pool.fetchval("SELECT count(*) FROM webhook") == 0
        made = await add(shop, company, perOrder=True)
        path = f"{HOOK}/{made['id']}"
        for method, rest, more, text in (
            (
                "POST",
                "",
                {"json": {"perOrder": True}},
                "perOrder: there is an endpoint for orders' own addresses",
            ),
            ("PATCH", path, {"json": {"url": "https://a.com/"}}, "url: must be left out where each order"),
            ("PATCH", path, {"json": {"enabled": None}}, "enabled: must be true or false"),
            ("POST", path + "/test", {}, "id: must be an endpoint with an address of its own"),
            (
                "POST",
                path + "/rotate",
                {"json": {"overlapSeconds": 700_000}},
                "overlapSeconds: must be between 0",
            ),
            ("POST", path + "/recover", {}, "since: is required"),
            ("POST", path + "/recover?since=2001-01-01", {}, "since: must be within the last 30 days"),
            ("GET", path + "/delivery?status=lost", {}, "status: must be waiting, delivered or failed"),
            ("GET", path + "/delivery?eventType=x", {}, "eventType: must be a type of event"),
            ("GET", path + "/delivery?cursor=x", {}, "cursor: is not one of ours"),
            ("GET", path + "/delivery?limit=0", {}, "limit: must be between 1 and 200"),
        ):
            answer = await shop.call(method, rest or HOOK, company, **more)
            assert (answer.status_code, answer.text[: len(text)]) == (400, text), answer.text
        for at in range(19):
            await add(shop, company, url=f"https://hooks.shop.com/{at}")
        await shop.assert_refused(
            shop.call("POST", HOOK, company, json={"url": "https://hooks.shop.com/"}),
            409,
            "a company has at most 20 webhooks",
        )
        await call(shop, company, "POST", HOOK, json={"url": "https://a.com/"}, state=State.SANDBOX)


async def test_the_log_tells_what_was_sent_what_came_back_and_what_comes_next(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: message, attempts, answers, next try; by status, by type and by cursor; replay and recover act on it."""
    company = await shop.company()
    made = await add(shop, company, url=receiver.url(), eventTypes=["order.created", "order.finished"])
    path = f"{HOOK}/{made['id']}"
    await shop.product("gift-10", stock=9)
    receiver.answer = lambda got: FAILURE if b"order.finished" in got.body else FINE
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    await shop.confirm(company, trx)
    await postman.run()
    log = (await call(shop, company, "GET", path + "/delivery")).json()
    finished, created = log["data"]
    assert (finished["type"], finished["status"], created["status"]) == (
        "order.finished",
        "waiting",
        "delivered",
    )
    (attempt,) = finished["attempts"]
    assert (attempt["httpStatus"], attempt["error"], attempt["responseBody"]) == (503, None, "busy")
    assert "Retry-After: 9" in attempt["responseHead"]
    assert finished["dateNextAttempt"] > attempt["dateSent"]
    assert finished["message"]["data"]["trx"] == trx
    assert finished["message"]["id"] == finished["eventId"]
    assert created["dateNextAttempt"] is None
    first = (await call(shop, company, "GET", path + "/delivery?limit=1")).json()
    rest = (
        await call(shop, company, "GET", f"{path}/delivery?limit=1&cursor={first['metadata']['nextCursor']}")
    ).json()
    assert [first["data"], rest["data"], rest["metadata"]["nextCursor"]] == [[finished], [created], None]
    for query, expected in (
        ("status=delivered", [created]),
        ("eventType=order.finished", [finished]),
        ("status=failed", []),
    ):
        assert (await call(shop, company, "GET", f"{path}/delivery?{query}")).json()["data"] == expected

    receiver.answer = lambda _: FINE
    receiver.got.clear()
    replay = f"/api/1.03/event/{created['eventId']}/replay"
    assert (await call(shop, company, "POST", replay)).json() == {"queued": 1}
    only = {"json": {"webhookId": made["id"]}}
    assert (await call(shop, company, "POST", replay, **only)).json() == {"queued": 1}
    await shop.assert_refused(
        shop.call("POST", replay, company, json={"webhookId": "wh_1"}),
        400,
        "webhookId: must be an endpoint of yours",
    )
    await postman.run()
    assert [opened(made["secret"], got)["id"] for got in receiver.got] == [created["eventId"]]
    await call(shop, company, "PATCH", path, json={"enabled": False})
    for bad, text in ((path + "/test", "id"), (path + f"/recover?since={datetime.now(UTC):%Y-%m-%d}", "id")):
        answer = await shop.call("POST", bad, company)
        assert (answer.status_code, answer.text) == (400, f"{text}: must be an endpoint that is enabled")
    missed = (await shop.create(company, ("gift-10", 1)))["trx"]
    await postman.run()
    await call(shop, company, "PATCH", path, json={"enabled": True})
    since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    recovered = await call(shop, company, "POST", path + "/recover", params={"since": since})
    assert recovered.json() == {"queued": 1, "dateNext": None}
    await postman.hurry()
    await postman.run()
    got = [opened(made["secret"], one) for one in receiver.got[1:]]
    assert sorted((one["type"], one["data"]["trx"]) for one in got) == sorted(
        [("order.finished", trx), ("order.created", missed)]
    )
    await shop.assert_books_balance()


async def test_an_order_may_name_an_address_of_its_own(
    shop: Shop, postman: Postman, receiver: Receiver
) -> None:
    """OP-54: its events go there too, signed with the secret of the company's endpoint for orders."""
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    cart: dict[str, Any] = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}

    async def create(url: str) -> httpx.Response:
        return await shop.call("POST", "/api/1.03/order", company, json=cart | {"webhookUrl": url})

    await shop.assert_refused(
        create(receiver.url("/own")), 400, "webhookUrl: needs a webhook with perOrder first"
    )
    await shop.assert_refused(
        create("https://192.168.0.1/"), 400, "webhookUrl: must not lead to an address that is not public"
    )
    made = await add(shop, company, perOrder=True, eventTypes=["order.finished", "order.created"])
    both = await add(shop, company, url=receiver.url("/both"))
    plain = (await shop.create(company, ("gift-10", 1)))["trx"]
    answers = {"/gone": b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"}
    receiver.answer = lambda got: answers.get(got.path, FINE)
    own, gone = [(await create(receiver.url(path))).json()["trx"] for path in ("/own?order=7", "/gone")]
    await shop.confirm(company, own)
    await postman.run()

    def told(secret: str, path: str) -> list[tuple[str, str]]:
        found = [opened(secret, got) for got in receiver.got if got.path == path]
        return [(one["type"], one["data"]["trx"]) for one in found]

    assert told(made["secret"], "/own?order=7") == [("order.created", own), ("order.finished", own)]
    assert told(made["secret"], "/gone") == [("order.created", gone)]
    assert {trx for _, trx in told(both["secret"], "/both")} == {plain, own, gone}
    shown = (await call(shop, company, "GET", f"{HOOK}/{made['id']}")).json()
    assert (shown["enabled"], shown["perOrder"], shown["url"]) == (True, True, None), (
        "one order speaks for itself"
    )
    await shop.assert_books_balance()


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_a_repeated_write_is_answered_again_and_done_once(
    shop: Shop, receiver: Receiver, method: str
) -> None:
    """OP-28, OP-54: with an Idempotency-Key the secret is in both answers and there is one endpoint."""
    company = await shop.company()
    key = {"idempotency-key": f"hook-{method}"}
    made = await add(shop, company, url=receiver.url("/first"))
    path = HOOK if method == "POST" else f"{HOOK}/{made['id']}"
    body = None if method == "DELETE" else {"url": receiver.url("/second")}
    answers = [
        await call(shop, company, method, path, headers=key, **({"json": body} if body else {}))
        for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["idempotent-replayed"] == "true"
    count = await shop.pool.fetchval("SELECT count(*) FROM webhook")
    assert count == {"POST": 2, "PATCH": 1, "DELETE": 0}[method]
