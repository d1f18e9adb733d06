"""The sandbox: play money, made-up codes, and outcomes by chance or by choice."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd.api.outcomes import SECONDS_MAX
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money

SANDBOX = State.SANDBOX


async def ask(
    shop: Shop, company: Company, operation: str, outcome: str | None, **options: Any
) -> httpx.Response:
    """A new sandbox order of one gift, finalised with that outcome."""
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    return await shop.finalise(operation, company, order["trx"], state=SANDBOX, outcome=outcome, **options)


@pytest.mark.parametrize("operation", ["confirm", "resolve"])
async def test_each_outcome_can_be_asked_for(quiet_shop: Shop, operation: str) -> None:
    """OP-49: finished, cancelled, out-of-stock, insufficient-balance; play money only, generated codes only."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")  # Without any live stock: the sandbox needs none.

    finished = (await ask(shop, company, operation, "finished")).json()
    assert (finished["orderStatus"], finished["state"]) == ("finished", "sandbox")
    (line,) = finished["items"][0]["orderLines"]
    assert line["voucherCode"].startswith("TEST-")
    assert line["voucherSerial"].startswith("TEST")
    assert (line["state"], line["externalSupplier"]) == ("sandbox", "sandbox")
    assert await shop.balance(company, state=SANDBOX) == Money.read("90.50 EUR")

    cancelled = (await ask(shop, company, operation, "cancelled")).json()
    assert (cancelled["orderStatus"], cancelled["paymentStatus"]) == ("cancelled", "unpaid")
    assert [set(line) for line in cancelled["items"][0]["orderLines"]] == [{"tag", "status"}]
    assert cancelled["items"][0]["orderLines"][0]["status"] == "cancelled"
    assert await shop.balance(company, state=SANDBOX) == Money.read("90.50 EUR")
    assert await shop.events(cancelled["trx"]) == ["order.created", "order.cancelled"]

    for outcome, status, text in (
        ("out-of-stock", 422, "Product Gift 10 is out of stock"),
        ("insufficient-balance", 402, "insufficient balance"),
    ):
        order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
        refused = shop.finalise(operation, company, order["trx"], state=SANDBOX, outcome=outcome)
        await shop.assert_refused(refused, status, text)
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_a_slow_confirm_is_waited_for(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-49: slow:1 finishes after a second, within the wait; one that takes longer comes back pending."""
    async with open_shop(pool, database_url, tmp_path, confirm_wait_s=2 * HANG_S) as shop:
        company = await shop.company()
        await shop.product("gift-10")
        started = time.monotonic()
        slow = (await ask(shop, company, "confirm", "slow:1")).json()
        assert time.monotonic() - started >= 1.0
        assert slow["orderStatus"] == "finished"
        await shop.assert_books_balance()
    async with open_shop(pool, database_url, tmp_path, confirm_wait_s=0.2) as shop:
        slower = (await ask(shop, company, "confirm", f"slow:{SECONDS_MAX}")).json()
        assert (slower["orderStatus"], slower["paymentStatus"]) == ("pending", "paid")
        assert slower["items"][0]["linesCompleted"] == 0
        await shop.assert_books_balance()


async def test_a_slow_resolve_finishes_or_is_cancelled_by_its_limit(shop: Shop) -> None:
    """OP-49, Contract 3: one is ready before the limit, the other is not."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    late = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    waiting = asyncio.create_task(
        shop.finalise("resolve", company, late["trx"], state=SANDBOX, outcome=f"slow:{SECONDS_MAX}")
    )

    quick = await ask(shop, company, "resolve", "slow:1")
    await shop.time_is_up(late["trx"])
    slow = await waiting

    assert quick.json()["orderStatus"] == "finished"
    assert (slow.json()["orderStatus"], slow.json()["paymentStatus"]) == ("cancelled", "unpaid")
    assert await shop.balance(company, state=SANDBOX) == Money.read("90.50 EUR")
    assert await shop.held(company, state=SANDBOX) == 0
    await shop.assert_books_balance()


async def test_a_pending_order_comes_back_at_once_and_finishes_by_itself(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-49: Confirm with pending does not wait; ten seconds later the order is finished."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")

    async def waited(*_: object) -> bool:
        raise AssertionError("waited")

    monkeypatch.setattr(shop.order_service.watch, "until_done", waited)
    pending = (await ask(shop, company, "confirm", "pending")).json()
    assert pending["orderStatus"] == "pending"
    assert await shop.pool.fetchval(
        "SELECT w.not_before - o.updated_at FROM waiting w JOIN orders o ON o.id = w.order_id"
    ) == timedelta(seconds=10)

    # Far from now on either side: it is the database's clock that decides, and a slow machine is not asked.
    await shop.pool.execute("UPDATE waiting SET not_before = not_before + interval '1 hour'")
    assert await shop.worker.run_once("deliver") == 0
    await shop.pool.execute("UPDATE waiting SET not_before = not_before - interval '1 hour 10 seconds'")
    assert await shop.worker.run_once("deliver") == 1
    assert (await shop.find(company, pending["trx"], state=SANDBOX))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_pending_resolve_is_cancelled_at_its_limit(quiet_shop: Shop) -> None:
    """OP-49, Contract 3: Resolve never answers pending."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    # Nobody delivers here, so that nothing but the limit ends the wait.
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    resolving = shop.finalise("resolve", company, order["trx"], state=SANDBOX, outcome="pending")
    call = asyncio.create_task(resolving)
    await shop.time_is_up(order["trx"])
    resolved = (await call).json()
    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("cancelled", "unpaid")
    assert await shop.balance(company, state=SANDBOX) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


@pytest.mark.parametrize("operation", ["confirm", "resolve"])
async def test_half_of_the_calls_are_cancelled_by_chance(quiet_shop: Shop, operation: str) -> None:
    """Contract 8: 50%. Of 60 fair throws, fewer than 10 or more than 50 happen once in ten million runs."""
    shop = quiet_shop
    company = await shop.company(balance="1000.00 EUR")
    await shop.product("gift-10")
    answers = await asyncio.gather(*[ask(shop, company, operation, None) for _ in range(60)])
    statuses = [answer.json()["orderStatus"] for answer in answers]
    finished = statuses.count("finished")
    assert finished + statuses.count("cancelled") == 60
    assert 10 <= finished <= 50
    assert await shop.balance(company, state=SANDBOX) == Money(100_000 - 950 * finished, "EUR")
    await shop.assert_books_balance()


async def test_chance_has_no_say_on_a_live_key(quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract 3: sandbox mode only, also when the coin would always decline."""
    shop = quiet_shop
    monkeypatch.setattr("voucherd.api.handlers._coin", lambda: 0.0)
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    for operation in ("confirm", "resolve"):
        order = await shop.create(company, ("gift-10", 1))
        assert (await shop.finalise(operation, company, order["trx"])).json()["orderStatus"] == "finished"
        assert (await ask(shop, company, operation, None)).json()["orderStatus"] == "cancelled"
        assert (await ask(shop, company, operation, "finished")).json()["orderStatus"] == "finished"
    monkeypatch.setattr("voucherd.api.handlers._coin", lambda: 0.5)
    assert (await ask(shop, company, "confirm", None)).json()["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_refusal_comes_before_chance(quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-23, OP-49: an order that can't be paid is refused, whatever the coin says."""
    shop = quiet_shop
    monkeypatch.setattr("voucherd.api.handlers._coin", lambda: 0.0)
    company = await shop.company(balance="1.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    for outcome in (None, "finished", "cancelled", "pending"):
        refused = shop.finalise("confirm", company, order["trx"], state=SANDBOX, outcome=outcome)
        await shop.assert_refused(refused, 402, "insufficient balance")
    await shop.assert_books_balance()


async def test_sandbox_codes_are_never_given_twice_and_a_new_face_value_has_its_own(quiet_shop: Shop) -> None:
    """OP-49: generated, endless, each once; many first looks at a shelf make one lot."""
    shop = quiet_shop
    company = await shop.company(balance="9000.00 EUR")
    await shop.product("choose", face_range="5-50 EUR", fee="1.02")
    wanted = [{"productSlug": "choose", "amount": 20, "faceValue": face} for face in (5, 10, 10, 25, 25, 25)]
    made = await asyncio.gather(*[shop.create(company, item, state=SANDBOX) for item in wanted])
    confirmed = await asyncio.gather(
        *[shop.confirm(company, o["trx"], state=SANDBOX, outcome="finished", version="1.00") for o in made]
    )
    codes = [line["voucherCode"] for order in confirmed for line in order["items"][0]["orderLines"]]
    assert len(set(codes)) == 120
    assert await shop.pool.fetchval("SELECT count(*) FROM lot") == 3
    await shop.assert_books_balance()
