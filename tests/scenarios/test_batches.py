"""A batch serves many calls with one transaction; one that goes wrong must not take the others along."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.money import Money
from voucherd.orders import answers as showing
from voucherd.orders import model
from voucherd.orders.rules import cart, decide
from voucherd.orders.rules.cart import Create
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.rules.ruling import Facts, Ruling
from voucherd.vault import store as vault


async def test_an_order_that_the_database_refuses_fails_alone(quiet_shop: Shop) -> None:
    """OP-48: a lot whose cursor was set back would sell a code twice; its batch mates are served."""
    shop = quiet_shop
    company = await shop.company()
    for slug in ("good", "broken"):
        await shop.product(slug, stock=30)
    sold = await shop.create(company, ("broken", 2))
    await shop.confirm(company, sold["trx"])
    await shop.pool.execute("ALTER TABLE lot DISABLE TRIGGER lot_forwards")
    await shop.pool.execute("UPDATE lot SET cursor = 0 WHERE cursor = 2")
    slugs = ["good", "good", "broken", "good", "broken", "good"]
    made = [(slug, (await shop.create(company, (slug, 1)))["trx"]) for slug in slugs]

    answers = await asyncio.gather(*[shop.finalise("confirm", company, trx) for _, trx in made])

    assert [answer.status_code for answer in answers] == [200 if slug == "good" else 500 for slug in slugs]
    assert {answer.text for answer in answers if answer.status_code == 500} == {"internal error"}
    for (slug, trx), answer in zip(made, answers, strict=True):
        found = await shop.find(company, trx)
        assert found["orderStatus"] == ("finished" if slug == "good" else "created")
        assert answer.status_code == 500 or answer.json()["orderStatus"] == "finished"
    await shop.pool.execute("UPDATE lot SET cursor = 2 WHERE cursor = 0")
    await shop.assert_books_balance()


async def test_a_decision_that_raises_for_one_company_fails_its_order_alone(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-48: whatever a decision raises, the orders of the others in its batch are paid and delivered, once."""
    shop = quiet_shop
    companies = [await shop.company(balance="50.00 EUR") for _ in range(3)]
    unlucky = companies[1]
    await shop.product("gift-10", stock=30)
    made = [(one, (await shop.create(one, ("gift-10", 1)))["trx"]) for one in companies for _ in range(4)]
    refuse, price = decide._refuse_unpayable, cart._price_cart
    sizes: list[int] = []
    finalise = decide.finalise

    def counted(facts: Facts, commands: Sequence[Finalise]) -> Ruling:
        sizes.append(len(commands))
        return finalise(facts, commands)

    def refuse_or_raise(facts: Facts, order: model.Order, command: Finalise) -> None:
        if order.company_id == unlucky.id:
            raise ZeroDivisionError("a bug")
        refuse(facts, order, command)

    def price_or_raise(prices: Any, command: Create, *others: Any) -> Any:
        if command.company_id == unlucky.id:
            raise ZeroDivisionError("a bug")
        return price(prices, command, *others)

    monkeypatch.setattr(decide, "finalise", counted)
    monkeypatch.setattr(decide, "_refuse_unpayable", refuse_or_raise)
    monkeypatch.setattr(cart, "_price_cart", price_or_raise)
    answers = await asyncio.gather(*[shop.finalise("confirm", one, trx) for one, trx in made])
    created = await asyncio.gather(
        *[shop.try_create(one, ("gift-10", 1)) for one in companies for _ in range(2)]
    )
    monkeypatch.undo()

    wanted = [500 if one is unlucky else 200 for one, _ in made]
    assert [answer.status_code for answer in answers] == wanted
    assert [answer.status_code for answer in created] == [201, 201, 500, 500, 201, 201]
    assert max(sizes) > 1, "they were in one batch"
    for one, trx in made:
        assert (await shop.find(one, trx))["orderStatus"] == ("created" if one is unlucky else "finished")
    for one in companies:
        assert await shop.balance(one) == Money.read("50.00 EUR" if one is unlucky else "12.00 EUR")
    await shop.assert_books_balance()


async def test_an_order_whose_code_is_missing_fails_alone(quiet_shop: Shop) -> None:
    """OP-48: what was sold to the others is shown to them."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("good", stock=9)
    await shop.product("hollow", stock=1)
    await shop.pool.execute(
        "UPDATE lot SET size = 3 WHERE product_id = $1", shop.products["hollow"].product_id
    )
    slugs = ["good", "hollow", "hollow", "good", "good"]
    trxs = [(await shop.create(company, (slug, 1)))["trx"] for slug in slugs]

    answers = await asyncio.gather(*[shop.finalise("confirm", company, trx) for trx in trxs])

    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 500]
    assert [answers[at].status_code for at in (0, 3, 4)] == [200] * 3


async def test_a_batch_of_many_codes_is_read_in_pieces(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-48: a full batch of 500-line orders is more than one read of the vault may hold."""
    shop = quiet_shop
    assert showing.READ_ORDERS_MAX * model.INLINE_LINES_MAX <= vault.READ_CODES_MAX
    monkeypatch.setattr(showing, "READ_ORDERS_MAX", 2)
    monkeypatch.setattr(vault, "READ_CODES_MAX", 60)
    company = await shop.company(balance="9000.00 EUR")
    await shop.product("gift-10", stock=300)
    trxs = [(await shop.create(company, ("gift-10", 30)))["trx"] for _ in range(9)]

    answers = await asyncio.gather(*[shop.finalise("confirm", company, trx, version="1.00") for trx in trxs])

    assert [answer.status_code for answer in answers] == [200] * 9
    codes = {line["voucherCode"] for a in answers for line in a.json()["items"][0]["orderLines"]}
    assert len(codes) == 270
    page = (await shop.call("GET", "/api/1.00/order", company)).json()
    assert {line["voucherCode"] for o in page["data"] for line in o["items"][0]["orderLines"]} == codes
    await shop.assert_books_balance()


async def test_calls_beyond_the_limit_are_told_to_come_back(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-26: 503, retryable, with Retry-After; and the others are served."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, waiting_calls_max=5) as shop:
        company = await shop.company()
        await shop.product("gift-10", stock=5)
        trx = (await shop.create(company, ("gift-10", 1)))["trx"]
        accept = {"accept": "application/problem+json"}
        calls = [shop.call("GET", f"/api/1.03/order/{trx}", company, headers=accept) for _ in range(60)]

        answers = await asyncio.gather(*calls)

        assert {answer.status_code for answer in answers} == {200, 503}
        busy = next(answer for answer in answers if answer.status_code == 503)
        assert busy.headers["retry-after"] == "1"
        assert (busy.json()["code"], busy.json()["retryable"]) == ("busy", True)
        await shop.assert_books_balance()


async def test_a_failure_after_the_money_moved_does_not_run_the_call_again(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract 3: an order that was paid and delivered is never answered with "can not be confirmed"."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    trxs = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(3)]
    read = vault.read_codes
    failures = 0
    failures_wanted = 1

    async def fails_once(*arguments: object) -> object:
        nonlocal failures
        failures += 1
        if failures <= failures_wanted:
            await arguments[0].execute("SELECT 1 / 0")  # type: ignore[attr-defined]
        return await read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(vault, "read_codes", fails_once)
    answers = await asyncio.gather(*[shop.finalise("confirm", company, trx) for trx in trxs[:2]])
    assert [answer.json()["orderStatus"] for answer in answers] == ["finished"] * 2
    failures, failures_wanted = 0, 99
    unseen = await shop.finalise("confirm", company, trxs[2])
    assert (unseen.status_code, unseen.text) == (503, "done, but it can not be shown now: find the order")
    assert "retry-after" not in unseen.headers
    monkeypatch.undo()

    for trx in trxs:
        assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()
