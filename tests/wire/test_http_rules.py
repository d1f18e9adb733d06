"""Paths, methods, keys and headers: what HTTP itself has a say in."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog

from tests.plain_logs import use_plain_logs
from tests.shop import Shop, open_shop
from voucherd import logs
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.callers import Caller
from voucherd.keys.key_text import KeyDraft, Scope, new_key

TRX = "TRX" + "0" * 26

# Contract 4 and OP-04: the operations, and the versions that each is offered in.
OFFERED = {
    ("POST", "order"): {"1.02", "1.03"},
    ("GET", "order"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", f"order/{TRX}"): {"1.00", "1.02", "1.03", "Next"},
    ("PATCH", f"order/confirm/{TRX}"): {"1.00", "1.02", "1.03"},
    ("PATCH", f"order/resolve/{TRX}"): {"1.02", "1.03", "Next"},
    ("PATCH", f"order/cancel/{TRX}"): {"1.02", "1.03"},
    ("GET", f"order/{TRX}/line"): {"1.02", "1.03"},
    ("GET", f"order/{TRX}/codes.csv"): {"1.02", "1.03"},
    ("GET", "account"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", "account/EUR/entry"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", "product"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", "product/changes"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", "brand"): {"1.00", "1.02", "1.03", "Next"},
    ("GET", "category"): {"1.02", "1.03"},
    ("GET", "fx-rate"): {"1.02", "1.03"},
    ("GET", "event"): {"1.02", "1.03"},
}


async def test_each_operation_exists_in_exactly_the_versions_of_the_contract(quiet_shop: Shop) -> None:
    """Contract 9, OP-04: any other pair is 404, or 405 where the path has another method."""
    company = await quiet_shop.company()
    versions = ["1.00", "1.02", "1.03", "Next", "1.01", "1.0", "2.00", "next", "v1.03", ""]
    for ((method, path), offered), version in itertools.product(OFFERED.items(), versions):
        response = await quiet_shop.call(method, f"/api/{version}/{path}", company)
        got = (response.status_code, response.text)
        if version in offered:
            assert got != (404, "not found"), (method, version, path)
            assert response.status_code != 405
        elif (method, path) == ("POST", "order") and version in ("1.00", "Next"):
            assert got == (405, "method not allowed")
        else:
            assert got == (404, "not found"), (method, version, path)


async def test_paths_that_do_not_exist_are_not_found(quiet_shop: Shop) -> None:
    """OP-04: with one slash too many, another case, or something behind."""
    company = await quiet_shop.company()
    for path in (
        "/api",
        "/api/",
        "/api/1.03",
        "/api/1.03/",
        "/api/1.03/order/",
        "/api/1.03/Order",
        "/api/1.03/orders",
        "//api/1.03/order",
        "/api//1.03/order",
        f"/api/1.03/order/{TRX}/",
        f"/api/1.03/order/{TRX}/lines",
        f"/api/1.03/order/confirm/{TRX}/x",
        f"/api/1.03/order/refund/{TRX}",
        "/API/1.03/order",
    ):
        response = await quiet_shop.call("GET", path, company)
        assert response.status_code == 404, path


async def test_a_wrong_method_is_told_the_right_ones(quiet_shop: Shop) -> None:
    """OP-25: 405 with Allow."""
    company = await quiet_shop.company()
    for method, path, allow in (
        ("PUT", "/api/1.03/order", "GET, POST"),
        ("DELETE", "/api/Next/order", "GET"),
        ("POST", "/api/1.00/order", "GET"),
        ("PATCH", f"/api/1.03/order/{TRX}", "GET"),
        ("POST", f"/api/1.03/order/confirm/{TRX}", "PATCH"),
        ("GET", f"/api/1.03/order/cancel/{TRX}", "PATCH"),
        ("OPTIONS", f"/api/1.03/order/resolve/{TRX}", "PATCH"),
        ("BREW", "/api/1.03/order", "GET, POST"),
    ):
        response = await quiet_shop.call(method, path, company)
        assert (response.status_code, response.text) == (405, "method not allowed"), (method, path)
        assert response.headers["allow"] == allow


async def test_a_trx_that_is_not_ours_is_not_found_whatever_it_looks_like(quiet_shop: Shop) -> None:
    """OP-02, OP-09: made up, altered by one character, in lower case, of another company."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    await shop.product("gift-10", stock=1)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    assert re.fullmatch("TRX[0-9A-HJKMNP-TV-Z]{26}", trx)
    altered = trx[:-3] + ("0" if trx[-3] != "0" else "1") + trx[-2:]
    forms = [
        TRX,
        altered,
        trx.lower(),
        trx[:-1],
        trx + "0",
        "1",
        "0",
        "-1",
        "%00",
        "a" * 500,
        "TRX",
        "%F0%9F%98%80",
    ]
    for form in forms:
        await shop.assert_refused(
            shop.call("GET", f"/api/1.03/order/{form}", company), 404, "order not found"
        )
        refused = shop.call("PATCH", f"/api/1.03/order/confirm/{form}", company)
        await shop.assert_refused(refused, 404, "Order not found")
    for operation, text in (("confirm", "Order"), ("resolve", "order"), ("cancel", "order")):
        await shop.assert_refused(shop.finalise(operation, other, trx), 404, f"{text} not found")
    await shop.assert_refused(shop.call("GET", f"/api/1.03/order/{trx}", other), 404, "order not found")
    await shop.assert_books_balance()


async def test_a_caller_without_a_valid_key_is_unauthorized(quiet_shop: Shop) -> None:
    """OP-24: with a challenge, and the reason where a token was sent."""
    company = await quiet_shop.company()
    key = company.keys[State.LIVE]
    wrong = [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        f"Bearer {key}x",
        f"Bearer {key[:-1]}",
        f"Bearer {key.swapcase()}",
        f"Bearer {new_key(State.LIVE).text}",
        f"Basic {key}",
        key,
    ]
    for path in ("/api/1.03/order", f"/api/1.03/order/{TRX}"):
        response = await quiet_shop.client.get(path)
        assert (response.status_code, response.text) == (401, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"
        for header in wrong:
            response = await quiet_shop.client.get(path, headers={"authorization": header})
            assert (response.status_code, response.text) == (401, "unauthorized"), header
            assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert (await quiet_shop.client.get("/api/1.03/order", headers=company.bearer())).status_code == 200


async def test_spaces_around_a_key_do_not_matter_and_cost_no_memory(quiet_shop: Shop) -> None:
    """OP-24: two of them, one behind, or a hundred; the key is remembered in one form however it was sent."""
    company, known = await quiet_shop.company(), quiet_shop.program.authenticator._callers
    key = company.keys[State.LIVE]
    for header in (f"Bearer  {key}", f"Bearer {key} ", f"bearer   {key}  ", f"Bearer {' ' * 100}{key}\t"):
        response = await quiet_shop.client.get("/api/1.03/order", headers={"authorization": header})
        assert response.status_code == 200, header
    assert {one for one in known if key.encode() in one} <= {
        f"{word} {key}".encode() for word in ("Bearer", "bearer")
    }
    for header in (f"Bearer{key}", f" Bearer {key[:20]} {key[20:]}", f"Bearer {key} {key}"):
        response = await quiet_shop.client.get("/api/1.03/order", headers={"authorization": header})
        assert response.status_code == 401, header


async def test_a_key_may_do_only_what_its_scopes_say(quiet_shop: Shop) -> None:
    """OP-24: 403 forbidden, and nothing changed."""
    shop = quiet_shop
    reader = await shop.company(scopes=frozenset({Scope.ORDERS_READ}))
    writer = await shop.company(scopes=frozenset({Scope.ORDERS_WRITE}))
    await shop.product("gift-10", stock=2)

    await shop.assert_refused(shop.try_create(reader, ("gift-10", 1)), 403, "forbidden")
    for operation in ("confirm", "resolve", "cancel"):
        await shop.assert_refused(shop.finalise(operation, reader, TRX), 403, "forbidden")
    assert (await shop.call("GET", "/api/1.03/order", reader)).status_code == 200

    trx = (await shop.create(writer, ("gift-10", 1)))["trx"]
    for path in ("/api/1.03/order", f"/api/1.03/order/{trx}"):
        await shop.assert_refused(shop.call("GET", path, writer), 403, "forbidden")
    await shop.confirm(writer, trx)
    await shop.assert_books_balance()


async def test_a_key_may_be_used_only_from_its_addresses(quiet_shop: Shop) -> None:
    """OP-24: 403 from anywhere else."""
    shop = quiet_shop
    company = await shop.company()
    bearers = {}
    for network in ("127.0.0.0/8", "10.0.0.0/8"):
        async with transaction(shop.pool) as tx:
            draft = KeyDraft(scopes=frozenset({Scope.ORDERS_READ}), allow_ips=(ip_network(network),))
            key = await key_store.add_key(tx, company.id, State.LIVE, draft)
        bearers[network] = {"authorization": f"Bearer {key.text}"}

    assert (await shop.client.get("/api/1.03/order", headers=bearers["127.0.0.0/8"])).status_code == 200
    spoofed: list[dict[str, str]] = [
        {},
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"x-real-ip": "10.0.0.1"},
    ]
    for headers in spoofed:
        response = await shop.client.get("/api/1.03/order", headers=bearers["10.0.0.0/8"] | headers)
        assert (response.status_code, response.text) == (403, "forbidden")


async def test_a_key_over_its_limit_is_told_when_to_come_back(quiet_shop: Shop) -> None:
    """OP-27: 429 with RateLimit headers and Retry-After; another key is not affected."""
    shop = quiet_shop
    shop.stop_the_minute()
    company, other = await shop.company(rate_limit=3), await shop.company()
    for left in (2, 1, 0):
        response = await shop.call("GET", "/api/1.03/order", company)
        assert response.status_code == 200
        assert response.headers["ratelimit-policy"] == '"default";q=3;w=60'
        assert re.fullmatch(rf'"default";r={left};t=[0-9]+', response.headers["ratelimit"])
    # A refusal counts too, and carries the same headers.
    response = await shop.assert_refused(
        shop.call("GET", f"/api/1.03/order/{TRX}", company), 429, "rate limit exceeded"
    )
    assert 1 <= int(response.headers["retry-after"]) <= 61
    assert re.fullmatch('"default";r=0;t=[0-9]+', response.headers["ratelimit"])
    not_found = await shop.call("GET", f"/api/1.03/order/{TRX}", other)
    assert not_found.status_code == 404
    assert "ratelimit" in not_found.headers
    sandbox = await shop.call("GET", "/api/1.03/order", company, state=State.SANDBOX)
    assert sandbox.status_code == 200


async def test_a_limit_is_one_limit_for_all_servers(
    quiet_shop: Shop, database_url: str, tmp_path: Path
) -> None:
    """OP-27: two servers on one database; together they let pass what one would."""
    company = await quiet_shop.company(rate_limit=8)
    async with open_shop(quiet_shop.pool, database_url, tmp_path, with_worker=False) as other:
        shops = (quiet_shop, other)
        for each in shops:
            each.stop_the_minute()
        answers = await asyncio.gather(
            *[shops[at % 2].call("GET", "/api/1.03/order", company) for at in range(20)]
        )
        assert sorted(answer.status_code for answer in answers) == [200] * 8 + [429] * 12
        # Each refuses from memory now, and says when it is worth coming back.
        refused = [await shop.call("GET", "/api/1.03/order", company) for shop in shops]
        assert {answer.status_code for answer in refused} == {429}


async def test_whoever_keeps_calling_without_a_valid_key_is_told_to_wait(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-27: by address, without a look-up; keys that were good lately are let in from there all the same."""
    async with open_shop(
        pool,
        database_url,
        tmp_path,
        with_worker=False,
        strangers_per_minute_max=5,
        trusted_proxies="127.0.0.1",
    ) as shop:
        shop.stop_the_minute()
        company, newcomer = await shop.company(), await shop.company()
        assert (await shop.call("GET", "/api/1.03/order", company)).status_code == 200
        wrong = {"authorization": f"Bearer {new_key(State.LIVE).text}", "x-forwarded-for": "192.0.2.1"}
        statuses = [(await shop.client.get("/api/1.03/order", headers=wrong)).status_code for _ in range(7)]
        assert statuses == [401] * 5 + [429] * 2
        refused = await shop.client.get("/api/1.03/order", headers={"x-forwarded-for": "192.0.2.1"})
        assert (refused.status_code, refused.text) == (429, "too many requests without a valid key")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        elsewhere = wrong | {"x-forwarded-for": "192.0.2.2"}
        assert (await shop.client.get("/api/1.03/order", headers=elsewhere)).status_code == 401
        # A change of any key empties the memory of all.
        there = {"x-forwarded-for": "192.0.2.1"}
        await shop.set_company(newcomer, verified=False)
        await shop.hear()
        assert (await shop.call("GET", "/api/1.03/order", company, headers=there)).status_code == 200
        assert (await shop.call("GET", "/api/1.03/order", newcomer, headers=there)).status_code == 429


async def test_every_line_that_a_request_leaves_in_the_log_names_it(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-26: whoever logs need not know which request it is for."""
    shop = quiet_shop
    company = await shop.company()
    keeper = shop.program.authenticator
    known, out = keeper.known, io.StringIO()

    def told(authorization: bytes) -> Caller | None:
        structlog.get_logger().warning("looked at")
        return known(authorization)

    monkeypatch.setattr(keeper, "known", told)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.configure("info", "json", out)
    try:
        response = await asyncio.create_task(shop.call("GET", "/api/1.03/order", company))
    finally:
        use_plain_logs()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    # The client is in this process, too, and logs.
    ours = [line["request_id"] for line in lines if line["event"] == "looked at"]
    assert ours == [response.headers["x-request-id"]]


async def test_a_client_that_asks_for_it_gets_problem_json(quiet_shop: Shop) -> None:
    """OP-26: RFC 9457 with a stable code, retryable, the request's id and, for bad input, the field."""
    shop = quiet_shop
    shop.stop_the_minute()
    company = await shop.company(rate_limit=9)
    await shop.product("gift-10", stock=1)
    accept = {"accept": "application/problem+json"}

    async def problem(method: str, path: str, **arguments: Any) -> tuple[httpx.Response, dict[str, object]]:
        response = await shop.call(method, path, company, headers=accept, **arguments)
        assert response.headers["content-type"] == "application/problem+json"
        said = response.json()
        assert said["status"] == response.status_code
        assert said["requestId"] == response.headers["x-request-id"]
        assert (said["title"], said["type"]) == (said["detail"], f"/docs/errors/{said['code']}")
        return response, said

    bad = {"items": [{"productSlug": "gift-10", "amount": 0}], "paymentCurrency": "EUR"}
    _, said = await problem("POST", "/api/1.03/order", json=bad)
    assert (said["code"], said["field"], said["retryable"]) == ("bad_input", "items[0].amount", False)
    assert said["detail"] == "items[0].amount: must be between 1 and 10000"
    gone = {"items": [{"productSlug": "none", "amount": 1}], "paymentCurrency": "EUR"}
    _, said = await problem("POST", "/api/1.03/order", json=gone)
    assert (said["code"], said["status"]) == ("offers_not_available", 422)
    assert "field" not in said
    for method, path, code in (
        ("PATCH", f"/api/1.03/order/confirm/{TRX}", "order_not_found"),
        ("PATCH", f"/api/1.03/order/{TRX}", "method_not_allowed"),
        ("GET", "/api/1.03/nothing", "no_such_path"),
        ("POST", "/api/1.03/order", "not_json"),
    ):
        _, said = await problem(method, path)
        assert said["code"] == code
    for _ in range(20):
        limited, said = await problem("GET", f"/api/1.03/order/{TRX}")
        if limited.status_code == 429:
            break
    assert (said["code"], said["retryable"]) == ("rate_limit_exceeded", True)

    response = await shop.client.get("/api/1.03/order", headers=accept)
    assert response.json()["code"] == "unauthorized"
    assert response.headers["www-authenticate"] == "Bearer"
    for kind in ("*/*", "application/json", "text/plain", ""):
        response = await shop.client.get("/api/1.03/order", headers={"accept": kind})
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
    for kind in ("application/json, application/problem+json;q=0.9", "Application/Problem+JSON"):
        response = await shop.client.get("/api/1.03/order", headers={"accept": kind})
        assert response.headers["content-type"] == "application/problem+json", kind


async def test_every_answer_has_an_id_of_its_own_and_is_kept_by_no_cache(quiet_shop: Shop) -> None:
    """OP-26: X-Request-Id on success, refusal and error alike."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    created = await shop.try_create(company, ("gift-10", 1))
    trx = created.json()["trx"]
    answers = [
        created,
        await shop.call("GET", f"/api/1.03/order/{trx}", company),
        await shop.call("GET", "/api/1.03/order", company),
        await shop.cancel(company, trx),
        await shop.cancel(company, trx),
        await shop.call("GET", "/nothing", company),
        await shop.client.get("/api/1.03/order"),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 204, 404, 404, 401]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"req_[0-9a-f]+", one) for one in ids)
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}


async def test_a_live_trx_means_nothing_to_the_sandbox_key_and_the_other_way_round(quiet_shop: Shop) -> None:
    """OP-29, OP-49: the key alone picks the state; nothing crosses."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    for own, foreign in ((State.LIVE, State.SANDBOX), (State.SANDBOX, State.LIVE)):
        order = await shop.create(company, ("gift-10", 1), state=own)
        assert order["state"] == own.word
        trx = order["trx"]
        for operation, text in (("confirm", "Order"), ("resolve", "order"), ("cancel", "order")):
            refused = shop.finalise(operation, company, trx, state=foreign)
            await shop.assert_refused(refused, 404, f"{text} not found")
        refused = shop.call("GET", f"/api/1.03/order/{trx}", company, state=foreign)
        await shop.assert_refused(refused, 404, "order not found")
        listed = (await shop.call("GET", f"/api/1.03/order?trx={trx}", company, state=foreign)).json()
        assert listed["data"] == []
        assert (await shop.find(company, trx, state=own))["orderStatus"] == "created"
    await shop.assert_books_balance()
