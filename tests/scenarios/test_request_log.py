"""The request log: what keys sent and were answered, found again by id, path, status and key; never a secret in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.shop import Company, Shop
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope
from voucherd.request_log import collector, store
from voucherd.request_log.collector import RequestLog
from voucherd.request_log.store import Answered, Filters

LOG = "/api/1.03/request"


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every call down, however quickly they come."""
    monkeypatch.setattr(collector, "SECOND_MAX", 10_000)
    monkeypatch.setattr(collector, "SECOND_OF_COMPANY_MAX", 10_000)


async def logged(shop: Shop, company: Company, query: str = "", **options: Any) -> list[dict[str, Any]]:
    """What the log shows to the company."""
    await shop.program.services.request_log.flush()
    answer = await shop.call("GET", LOG + query, company, **options)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["data"])


@pytest.mark.usefixtures("unlimited")
async def test_a_call_is_found_by_its_id_path_status_and_key(quiet_shop: Shop) -> None:
    """OP-148: newest first, with what was sent and answered."""
    shop = quiet_shop
    company = await shop.company(balance="1.00 EUR")
    await shop.product("gift-10", stock=2)
    order = await shop.create(company, ("gift-10", 1), reference="order 7")
    refused = await shop.call(
        "PATCH",
        f"/api/1.03/order/confirm/{order['trx']}",
        company,
        headers={"x-request-id": "my-own-id"},
    )
    assert refused.status_code == 402
    await shop.call("GET", "/api/1.03/product?limit=3", company)

    calls = await logged(shop, company)
    assert [(one["method"], one["httpStatus"]) for one in calls] == [
        ("GET", 200),
        ("PATCH", 402),
        ("POST", 201),
    ]
    assert calls[0]["path"] == "/api/1.03/product?limit=3"
    key = calls[0]["keyId"]
    for query, count in (
        ("?requestId=my-own-id", 1),
        ("?httpStatus=402", 1),
        ("?path=/api/1.03/order", 2),
        (f"?keyId={key}", 3),
        (f"?keyId={shop.ids.key(999)}", 0),
        ("?requestId=nobody", 0),
        ("?path=/api/1.03/order&httpStatus=201", 1),
    ):
        assert len(await logged(shop, company, query)) == count, query
    one = (await shop.call("GET", f"{LOG}/my-own-id", company)).json()
    assert (one["requestBody"], one["responseBody"]) == ("", "insufficient balance")
    made = (await shop.call("GET", f"{LOG}/{calls[2]['requestId']}", company)).json()
    assert '"productSlug":"gift-10"' in made["requestBody"]
    assert '"reference":"order 7"' in made["responseBody"]
    for query in ("?httpStatus=abc", "?keyId=7", "?limit=0", "?cursor=x", "?page=2"):
        assert (await shop.call("GET", LOG + query, company)).status_code == 400, query
    missing = await shop.call("GET", f"{LOG}/nobody", company)
    assert (missing.status_code, missing.text) == (404, "request not found")


@pytest.mark.usefixtures("unlimited")
async def test_nothing_worth_stealing_is_in_the_log(quiet_shop: Shop) -> None:
    """OP-148: codes, serials, links, keys, secrets, PINs and headers that went over the wire are in no row of it."""
    shop = quiet_shop
    company = await shop.company(scopes=frozenset(Scope))
    await shop.product("gift-10")
    await shop.stock_codes("gift-10", [("CANARYCODE", "CANARYSERIAL"), ("CANARYCODE2", "CANARYSERIAL2")])
    order = await shop.create(company, ("gift-10", 2))
    trx = order["trx"]
    done = await shop.confirm(company, trx)
    token = shop.ids.tokens(shop.ids.order_id(trx) or 0, [0])[0]
    for path in (f"order/{trx}", "order", f"order/{trx}/line", f"order/{trx}/codes.csv"):
        answer = await shop.call("GET", f"/api/1.03/{path}", company)
        assert "CANARYCODE" in answer.text, "it went over the wire"
    await shop.call("PATCH", f"/api/1.03/order/{trx}/redemption", company, json={"pin": "83640275"})
    hook = {"url": "https://hooks.shop.com/CANARYPATH", "headers": {"x-tenant": "CANARYHEADER"}}
    secret = (await shop.call("POST", "/api/1.03/webhook", company, json=hook)).json()["secret"]
    key = (await shop.call("POST", "/api/1.03/key", company, json={})).json()["key"]
    own = company.keys[State.LIVE]
    mistake = {"items": [], "paymentCurrency": "EUR", "reference": f"mine is {own}", "apiKey": "CANARYFIELD"}
    assert (await shop.call("POST", f"/api/1.03/order?token={key}", company, json=mistake)).status_code == 400

    assert len(await logged(shop, company)) == 10
    rows = await shop.pool.fetch("SELECT * FROM request_log")
    text = "\n".join(str(tuple(row)) for row in rows)
    for canary in ("CANARY", token, "83640275", secret[-12:], key[-12:], own[-12:]):
        assert canary not in text
    assert done["items"][0]["orderLines"][0]["tag"] in text, "what is harmless is kept"
    await shop.assert_books_balance()


@pytest.mark.usefixtures("unlimited")
async def test_each_company_and_state_sees_its_own_calls(quiet_shop: Shop) -> None:
    """OP-148, isolation: by the query, and by the policy of the table."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    for who, state in ((company, State.LIVE), (company, State.SANDBOX), (other, State.LIVE)):
        await shop.call("GET", f"/api/1.03/account?of={who.id}-{state.word}", who, state=state)
    for who, state in ((company, State.LIVE), (company, State.SANDBOX), (other, State.LIVE)):
        (seen,) = await logged(shop, who, state=state)
        assert seen["path"].endswith(f"{who.id}-{state.word}")
    assert await logged(shop, other, state=State.SANDBOX) == []


@pytest.mark.usefixtures("unlimited")
async def test_a_key_reads_no_body_of_a_call_that_it_may_not_make(quiet_shop: Shop) -> None:
    """OP-148, OP-29: events:read opens the log; the bodies of a call need the scopes of that call."""
    shop = quiet_shop
    company = await shop.company()
    await shop.call("GET", "/api/1.03/account", company, headers={"x-request-id": "balance"})
    await shop.call("GET", "/api/1.03/product", company, headers={"x-request-id": "goods"})
    await logged(shop, company)
    few = await shop.keys(company, frozenset({Scope.EVENTS_READ, Scope.CATALOGUE_READ}))
    reader = Company(company.id, company.name, few)
    hidden = (await shop.call("GET", f"{LOG}/balance", reader)).json()
    assert (hidden["httpStatus"], hidden["requestBody"], hidden["responseBody"]) == (200, None, None)
    assert (await shop.call("GET", f"{LOG}/goods", reader)).json()["responseBody"].startswith('{"data":[')
    none = Company(company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.EVENTS_READ}))
    assert (await shop.call("GET", LOG, none)).status_code == 403


async def test_a_busy_company_is_logged_in_part_and_refusals_have_room(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-148: so many calls a second and no more, those that were refused apart; the rest is counted."""
    shop = quiet_shop
    log = RequestLog(shop.pool)
    monkeypatch.setattr(shop.program.services.request_log, "note", log.note)
    noted = log.note

    def in_one_second(request: Any, response: Any, seconds: float) -> None:
        request.started = 1_000.0
        noted(request, response, 0.0)

    monkeypatch.setattr(shop.program.services.request_log, "note", in_one_second)
    company, other = await shop.company(), await shop.company()
    for _ in range(collector.SECOND_OF_COMPANY_MAX + 3):
        await shop.call("GET", "/api/1.03/account", company)
    for _ in range(4):
        await shop.call("GET", "/api/1.03/account?currency=euro", company)
    for _ in range(collector.SECOND_MAX):
        await shop.call("GET", "/api/1.03/account", other)
    await log.flush()
    counts = await shop.pool.fetch(
        "SELECT company_id, status, count(*) FROM request_log GROUP BY 1, 2 ORDER BY 1, 2"
    )
    most, of_one = collector.SECOND_MAX, collector.SECOND_OF_COMPANY_MAX
    rest = most - of_one - 4
    assert [tuple(row) for row in counts] == [
        (company.id, 200, of_one),
        (company.id, 400, 4),
        (other.id, 200, rest),
    ]
    assert log.dropped == 3 + most - rest


def call_of(company: Company, number: int, at: datetime | None = None) -> Answered:
    """A call as it is kept."""
    seen = (at or datetime.now(UTC), f"req_{number}", 1, "GET", "/api/1.03/order", 200, 1, "", "")
    return Answered(company.id, State.LIVE, *seen)


async def test_the_newest_call_takes_the_place_of_the_oldest(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-148: the rows of a company are bounded, and a walk through the pages sees each once."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    await store.write(shop.pool, [call_of(other, 1)])
    for first in range(0, store.SLOTS + 500, 1_500):
        await store.write(shop.pool, [call_of(company, first + at) for at in range(1_500)])
    count = await shop.pool.fetchval("SELECT count(*) FROM request_log WHERE company_id = $1", company.id)
    assert count == store.SLOTS
    seen: list[str] = []
    query = "?limit=200"
    for _ in range(3):
        page = (await shop.call("GET", LOG + query, company)).json()
        seen += [one["requestId"] for one in page["data"]]
        query = f"?limit=200&cursor={page['metadata']['nextCursor']}"
    assert seen == [f"req_{number}" for number in range(10_499, 10_499 - 600, -1)]
    async with shop.pool.acquire() as conn:
        (own,) = await store.page(conn, other.id, State.LIVE, Filters(), size=5)
    assert own.request_id == "req_1"


async def test_calls_are_kept_for_seven_days(quiet_shop: Shop) -> None:
    """OP-148: older ones are shown no more, and removed by the worker."""
    shop = quiet_shop
    company = await shop.company()
    old = datetime.now(UTC) - store.KEPT - timedelta(minutes=1)
    await store.write(shop.pool, [call_of(company, 1, old), call_of(company, 2)])
    page = (await shop.call("GET", LOG, company)).json()["data"]
    assert [one["requestId"] for one in page] == ["req_2"]
    assert await shop.worker.run_once("remove_requests") == 1
    assert await shop.pool.fetchval("SELECT count(*) FROM request_log") == 1


async def test_a_log_that_can_not_be_written_stops_no_call(quiet_shop: Shop) -> None:
    """OP-148: what the database does not take is dropped and counted."""
    shop = quiet_shop
    company = await shop.company()
    await shop.pool.execute("ALTER TABLE request_log RENAME TO away")
    assert (await shop.call("GET", "/api/1.03/account", company)).status_code == 200
    log = shop.program.services.request_log
    before = log.dropped
    await log.flush()
    await shop.call("GET", "/api/1.03/account", company)
    await log.flush()
    assert log.dropped > before
    await shop.pool.execute("ALTER TABLE away RENAME TO request_log")
