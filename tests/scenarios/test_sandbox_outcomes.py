"""Outcomes that a sandbox call asks for by header, beyond those of Confirm and Resolve that end well or at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import httpx
import pytest

from tests.shop import Company, Shop
from voucherd.api.outcomes import OUTCOMES
from voucherd.ids import State
from voucherd.money import Money

SANDBOX = State.SANDBOX


async def create(shop: Shop, company: Company, outcome: str, path: str = "order") -> httpx.Response:
    """Create, or Quote, of two gifts with an outcome."""
    body = {"items": [{"productSlug": "gift-10", "amount": 2}], "paymentCurrency": "EUR"}
    return await shop.call(
        "POST",
        f"/api/1.03/{path}",
        company,
        state=SANDBOX,
        json=body,
        headers={"x-sandbox-outcome": outcome},
    )


@pytest.mark.parametrize("operation", ["confirm", "resolve"])
@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        ("offer-withdrawn", 422, "some offers not available: Gift 10"),
        ("expired", 400, "this order has expired, orders need confirmation within 24 hours"),
        ("unverified", 400, "company not verified"),
    ],
)
async def test_a_refusal_can_be_asked_for_and_changes_nothing(
    quiet_shop: Shop, operation: str, outcome: str, status: int, text: str
) -> None:
    """OP-145: the words are those of the real refusal, and the order can be finished afterwards."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    refused = shop.finalise(operation, company, order["trx"], state=SANDBOX, outcome=outcome)
    await shop.assert_refused(refused, status, text)
    done = await shop.finalise(operation, company, order["trx"], state=SANDBOX, outcome="finished")
    assert done.json()["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_half_is_delivered_and_the_rest_refunded(quiet_shop: Shop) -> None:
    """OP-145: a partial Confirm answers at once with half of the codes; the others are cancelled seconds later."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    await shop.product("gift-5", price="5.00 EUR")
    order = await shop.create(company, ("gift-10", 3), ("gift-5", 2), state=SANDBOX)

    partly = await shop.confirm(company, order["trx"], state=SANDBOX, outcome="partial", version="1.00")

    assert (partly["orderStatus"], partly["paymentStatus"]) == ("pending", "paid")
    statuses = [[line["status"] for line in item["orderLines"]] for item in partly["items"]]
    assert statuses == [["finished", "finished", "pending"], ["pending", "pending"]]
    assert await shop.worker.run_once("deliver") == 0, "what waits is never delivered"
    await shop.pool.execute("UPDATE waiting SET deadline_at = now()")
    await shop.pool.execute("UPDATE orders SET deadline_at = now() WHERE status = 1")
    assert await shop.worker.run_once("end_waiting") == 1
    ended = await shop.find(company, order["trx"], state=SANDBOX)
    assert (ended["orderStatus"], ended["paymentStatus"]) == ("cancelled", "partially_refunded")
    assert await shop.balance(company, state=SANDBOX) == Money.read("81.00 EUR")
    await shop.assert_books_balance()


async def test_a_partial_resolve_delivers_nothing(quiet_shop: Shop) -> None:
    """OP-145, Contract 3: Resolve is all or nothing, so it waits for its limit and cancels without a charge."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 4), state=SANDBOX)
    call = asyncio.create_task(
        shop.finalise("resolve", company, order["trx"], state=SANDBOX, outcome="partial")
    )
    await shop.time_is_up(order["trx"])
    resolved = (await call).json()
    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("cancelled", "unpaid")
    assert await shop.balance(company, state=SANDBOX) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_create_and_quote_can_find_an_offer_withdrawn(quiet_shop: Shop) -> None:
    """OP-145: as if nothing in the cart were for sale any more."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    for path in ("order", "order/quote"):
        refused = await create(shop, company, "offer-withdrawn", path)
        assert (refused.status_code, refused.text) == (422, "Some offers not available: Gift 10")
    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 0


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [("rate-limited", 429, "rate_limit_exceeded"), ("unavailable", 503, "unavailable")],
)
async def test_any_call_can_come_in_a_bad_moment(
    quiet_shop: Shop, outcome: str, status: int, code: str
) -> None:
    """OP-145: 429 and 503 with Retry-After on every call; nothing is done, and the same key may be sent again."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    headers = {"accept": "application/problem+json", "idempotency-key": "again"}
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    for method, path, sent in (
        ("POST", "order", body),
        ("GET", "order", None),
        ("GET", "product", None),
        ("GET", "account", None),
    ):
        refused = await shop.call(
            method,
            f"/api/1.03/{path}",
            company,
            state=SANDBOX,
            json=sent,
            headers=headers | {"x-sandbox-outcome": outcome},
        )
        told = refused.json()
        assert (refused.status_code, told["code"], told["retryable"]) == (status, code, True)
        assert refused.headers["retry-after"] == "1"
    made = await shop.call("POST", "/api/1.03/order", company, state=SANDBOX, json=body, headers=headers)
    assert made.status_code == 201
    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 1


async def test_an_outcome_of_another_call_does_nothing_here(quiet_shop: Shop) -> None:
    """OP-145: a client may send the header with all of its calls; chance has no say where it is sent."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    made = await create(shop, company, "expired")
    assert made.status_code == 201
    for outcome in ("slow-webhook:5", "finished"):
        order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
        done = await shop.confirm(company, order["trx"], state=SANDBOX, outcome=outcome)
        assert done["orderStatus"] == "finished"
    seen = await shop.call(
        "GET", "/api/1.03/order", company, state=SANDBOX, headers={"x-sandbox-outcome": "expired"}
    )
    assert seen.status_code == 200
    await shop.assert_books_balance()


async def test_what_can_not_be_meant_is_refused_on_every_call(quiet_shop: Shop) -> None:
    """OP-49, OP-145: an unknown word, seconds where there are none or too many, and any of it with a live key."""
    shop = quiet_shop
    company = await shop.company()
    forms = [said.form for said in OUTCOMES.values()]
    words = f"X-Sandbox-Outcome: must be {', '.join(forms[:-1])} or {forms[-1]}"
    for outcome in (
        "Finished",
        "finished:1",
        "slow",
        "slow:3601",
        "slow-webhook:0",
        "slow:x",
        "",
        "partial:",
    ):
        refused = await shop.call(
            "GET", "/api/1.03/product", company, state=SANDBOX, headers={"x-sandbox-outcome": outcome}
        )
        assert (refused.status_code, refused.text) == (400, words), outcome
    live = await shop.call("GET", "/api/1.03/product", company, headers={"x-sandbox-outcome": "unavailable"})
    assert (live.status_code, live.text) == (400, "X-Sandbox-Outcome: is for sandbox keys only")


async def test_sandbox_codes_expire(quiet_shop: Shop) -> None:
    """OP-145: at the end of the next year; a shelf from before codes had a date gets another lot."""
    shop = quiet_shop
    company = await shop.company()
    product = await shop.product("gift-10")
    # As a program before made it.
    await shop.pool.execute(
        """INSERT INTO lot (id, product_id, face_minor, state, generated, supplier, purchase_minor,
                            purchase_currency, purchase_fx_e8, size)
           VALUES (nextval('lot_number') * 2 + 1, $1, 1000, 1, true, 'sandbox', 0, 'EUR', 100000000, 2000000000)""",
        product.product_id,
    )
    for _ in range(2):
        order = await shop.create(company, ("gift-10", 2), state=SANDBOX)
        done = await shop.confirm(company, order["trx"], state=SANDBOX, outcome="finished")
        (first, second) = done["items"][0]["orderLines"]
        assert first["voucherDateExpired"] == second["voucherDateExpired"]
        assert first["voucherDateExpired"] == f"{datetime.now(UTC).year + 2}-01-01T00:00:00.000Z"
    assert await shop.pool.fetchval("SELECT count(*) FROM lot WHERE generated") == 2
    await shop.assert_books_balance()
