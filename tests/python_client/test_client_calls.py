"""The Python client against the real service: orders, money, lists, events, and answers that get lost."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, assert_type

import pytest

from tests.patience import HANG_S, until_true
from tests.python_client.roads import (
    PLAYED,
    QUICK,
    Road,
    arrives,
    async_client_of,
    client_of,
    lost,
    proxy_says,
    url_of,
)
from tests.shop import MOMENT, Shop, open_shop
from tests.wire.test_sockets import Street, listening
from voucherd.api.routes import ROUTES
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.limits.rate_store import Lender
from voucherd_client import (
    AsyncClient,
    CartItem,
    Client,
    LineStatus,
    Order,
    OrderStatus,
    StillPending,
    engine,
    errors,
)
from voucherd_client.engine import AsyncPages, Pages


async def test_an_order_is_bought_by_a_program_that_blocks(shop: Shop, street: Street) -> None:
    """Contract 1, 2: create, confirm, find; money is Decimal with the digits of its currency."""
    company = await shop.company()

    def buy() -> None:
        with client_of(street, company) as client:
            quoted = client.orders.quote([CartItem("gift", 2)], payment_currency="EUR")
            order = client.orders.create([CartItem("gift", 2)], payment_currency="EUR", reference="PO-1")
            assert_type(order, Order)
            assert order.price_incl_vat == quoted.price_incl_vat == Decimal("19.00")
            assert str(order.price_incl_vat) == "19.00", "two digits, as the euro has"
            assert order.date_expires is not None
            assert order.date_expires - order.date_created == timedelta(hours=24)
            bought = client.orders.confirm(order.trx)
            assert bought.order_status is OrderStatus.FINISHED
            assert len(set(bought.codes)) == 2
            found = client.orders.find(order.trx)
            assert [line.voucher_code for line in found.lines] == bought.codes
            assert found.lines[0].status is LineStatus.FINISHED
            description = found.lines[0].description
            assert description is not None
            assert (description.slug, description.price_amount) == ("gift", Decimal("9.50"))
            (balance,) = client.accounts.find_all()
            assert balance.available_amount == Decimal("981.00")
            assert client.orders.codes_csv(order.trx).decode().count("\r\n") == 3

    await asyncio.to_thread(buy)
    await shop.assert_books_balance()


async def test_the_same_description_is_awaited_by_a_program_of_asyncio(shop: Shop, street: Street) -> None:
    """Contract 1: every operation is there for both kinds of programs, with the types of each."""
    company = await shop.company()
    async with async_client_of(street, company) as client:
        awaited = client.orders.create([CartItem("gift")], payment_currency="EUR")
        order = await assert_type(awaited, Coroutine[Any, Any, Order])
        assert_type(order, Order)
        assert_type(client.orders.find_all(), AsyncPages[Order])
        deleted = await client.orders.cancel(order.trx)
        assert deleted is None
        with pytest.raises(errors.OrderNotFound):
            await client.orders.find(order.trx)
        order = await client.orders.create([CartItem("gift", 3)], payment_currency="EUR")
        assert len((await client.orders.resolve(order.trx)).codes) == 3
        assert len([line async for line in client.orders.lines(order.trx, limit=2)]) == 3
    await shop.assert_books_balance()


async def test_lost_answers_and_failing_proxies_make_no_second_order_and_no_second_charge(
    shop: Shop, street: Street
) -> None:
    """OP-28: the service did it each time, and the client asked again under the same key until it heard of it."""
    company = await shop.company()
    troubles = [lost, proxy_says(503, **{"retry-after": "0"}), proxy_says(502), lost, arrives]
    for whose in ("async", "sync"):
        road = Road(*troubles, *troubles)
        if whose == "async":
            async with async_client_of(street, company, road=road) as client:
                order = await client.orders.create(
                    [CartItem("gift")], payment_currency="EUR", reference=whose
                )
                bought = await client.orders.confirm(order.trx)
        else:
            with client_of(street, company, road=road) as blocking:
                order, bought = await asyncio.to_thread(_buy_one, blocking, whose)
        assert bought.order_status is OrderStatus.FINISHED
        created, confirmed = road.keys[:5], road.keys[5:]
        assert len(created) == len(confirmed) == 5
        assert len(set(created)) == len(set(confirmed)) == 1
        assert created[0] != confirmed[0]
        assert road.statuses == [201] * 5 + [200] * 5, "the first answer each time"
    async with async_client_of(street, company) as client:
        references = [order.reference async for order in client.orders.find_all(sort_order="asc")]
        assert references == ["async", "sync"]
        charges = [entry.amount async for entry in client.accounts.entries("EUR", kind="order")]
        assert charges == [Decimal("-9.50")] * 2
    await shop.assert_books_balance()


def _buy_one(client: Client, reference: str) -> tuple[Order, Order]:
    order = client.orders.create([CartItem("gift")], payment_currency="EUR", reference=reference)
    return order, client.orders.confirm(order.trx)


async def test_a_call_that_was_given_up_goes_on_under_the_key_that_the_failure_names(
    shop: Shop, street: Street
) -> None:
    """OP-28: after the last attempt a program can still learn what became of its call, without doing it twice."""
    company = await shop.company()
    road = Road(*[lost] * QUICK.attempts_max)
    async with async_client_of(street, company, road=road) as client:
        cart = [CartItem("gift")]
        with pytest.raises(errors.NoAnswer) as given_up:
            await client.orders.create(cart, payment_currency="EUR")
        assert len(road.requests) == QUICK.attempts_max
        key = given_up.value.idempotency_key
        order = await client.orders.create(cart, payment_currency="EUR", idempotency_key=key)
        assert [found.trx async for found in client.orders.find_all()] == [order.trx]
        with pytest.raises(errors.IdempotencyKeyReused):
            await client.orders.create([CartItem("gift", 2)], payment_currency="EUR", idempotency_key=key)
    await shop.assert_books_balance()


async def test_a_call_whose_first_attempt_still_runs_waits_for_its_answer(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28: 409 until the first attempt is answered, then that answer; the order is paid once."""
    monkeypatch.setattr(engine, "asyncio", SimpleNamespace(sleep=lambda _seconds: asyncio.sleep(0.01)))
    async with open_shop(pool, database_url, tmp_path, confirm_wait_s=2 * HANG_S) as shop:
        company = await shop.company()
        await shop.product("later", async_delivery=True)
        async with listening(shop) as street:
            road = Road()
            async with (
                async_client_of(street, company) as first,
                async_client_of(street, company, road=road) as second,
            ):
                order = await first.orders.create([CartItem("later")], payment_currency="EUR")
                one = asyncio.create_task(first.orders.confirm(order.trx, idempotency_key="PO-7"))
                await shop.waits(order.trx)
                two = asyncio.create_task(second.orders.confirm(order.trx, idempotency_key="PO-7"))
                await until_true(lambda: 409 in road.statuses)
                await shop.stock("later", 1)
                assert (await one).codes == (await two).codes
                assert len((await one).codes) == 1
        await shop.assert_books_balance()


async def test_a_rate_limit_is_waited_for_as_long_as_the_service_says(
    shop: Shop, street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-27: 429 with Retry-After; the client comes back when the next minute has begun, not before."""
    shop.stop_the_minute()
    company = await shop.company(rate_limit=2)
    pauses: list[float] = []

    async def next_minute(seconds: float) -> None:
        pauses.append(seconds)
        limiter = shop.program.authenticator.limiter
        later = MOMENT + timedelta(seconds=seconds)
        limiter._lend = Lender(shop.pool, lambda: later).lend
        limiter._clock = lambda: 1_000.0 + seconds

    monkeypatch.setattr(engine, "asyncio", SimpleNamespace(sleep=next_minute))
    road = Road()
    async with async_client_of(street, company, road=road) as client:
        for _ in range(3):
            await client.accounts.find_all()
    assert road.statuses == [200, 200, 429, 200]
    asked_s = int(road.answers[2].headers["retry-after"])
    assert asked_s > 1
    assert [asked_s <= pause_s <= asked_s * 1.25 for pause_s in pauses] == [True]


async def test_a_pending_order_is_waited_for(shop: Shop, street: Street) -> None:
    """Contract 4: Confirm may answer pending; `wait` has the order once it is over, or says how it stands."""
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    async with async_client_of(street, company) as client:
        order = await client.orders.create([CartItem("later")], payment_currency="EUR")
        pending = await client.orders.confirm(order.trx)
        assert pending.order_status is OrderStatus.PENDING
        assert (pending.codes, pending.lines[0].description) == ([], None)
        with pytest.raises(StillPending) as still:
            await client.orders.wait(order.trx, timeout_s=0)
        assert still.value.order is not None
        assert still.value.order.order_status is OrderStatus.PENDING
        waiting = asyncio.create_task(client.orders.wait(order.trx, timeout_s=HANG_S))
        await shop.waits(order.trx)
        await shop.stock("later", 1)
        assert len((await waiting).codes) == 1
        cancelled = await client.orders.create([CartItem("gift")], payment_currency="EUR")
        await client.orders.cancel(cancelled.trx)
        with pytest.raises(errors.OrderNotFound):
            await client.orders.wait(cancelled.trx)
    await shop.assert_books_balance()


async def test_refusals_are_classes_with_what_is_known_of_them(shop: Shop, street: Street) -> None:
    """Contract 7, OP-26: a program catches what it can do something about."""
    poor = await shop.company(balance="5.00 EUR")
    async with async_client_of(street, poor) as client:
        order = await client.orders.create([CartItem("gift")], payment_currency="EUR")
        with pytest.raises(errors.InsufficientBalance) as broke:
            await client.orders.confirm(order.trx)
        assert (broke.value.status, broke.value.message) == (402, "insufficient balance")
        assert broke.value.request_id
        assert isinstance(broke.value, errors.NotPaid)
        with pytest.raises(errors.OffersNotAvailable, match="Some offers not available: nothing"):
            await client.orders.create([CartItem("nothing")], payment_currency="EUR")
        with pytest.raises(errors.BadInput) as bad:
            await client.orders.create([CartItem("gift", 0)], payment_currency="EUR")
        assert bad.value.field == "items[0].amount"
        with pytest.raises(errors.OrderNotFound):
            await client.orders.find("TRX1?wait=60#top")
        with pytest.raises(errors.NoSuchPath):
            await client.call("GET", "moon")
    stranger = AsyncClient(url_of(street), "vk_live_nobody", retries=QUICK)
    async with stranger:
        with pytest.raises(errors.Unauthorized):
            await stranger.accounts.find_all()
    await shop.assert_books_balance()


async def test_lists_are_walked_page_by_page_without_a_gap_or_a_repeat(shop: Shop, street: Street) -> None:
    """OP-03: by cursor, of any size, from any page on."""
    company = await shop.company()
    async with async_client_of(street, company) as client:
        made = [
            (await client.orders.create([CartItem("gift")], payment_currency="EUR")).trx for _ in range(5)
        ]
        assert [order.trx async for order in client.orders.find_all(limit=2)] == made[::-1]
        pages = [page async for page in client.orders.find_all(limit=2, sort_order="asc").pages()]
        assert [[order.trx for order in page.data] for page in pages] == [made[:2], made[2:4], made[4:]]
        assert [page.next_cursor is None for page in pages] == [False, False, True]
        rest = client.orders.find_all(limit=2, sort_order="asc", cursor=pages[0].next_cursor or "")
        assert [order.trx async for order in rest] == made[2:]
        told = [event async for event in client.events.find_all(limit=2, type="order.created")]
        assert [event.trx for event in told] == made
    await shop.assert_books_balance()


async def test_a_stream_goes_on_after_every_break(shop: Shop, street: Street) -> None:
    """OP-80: events as they happen, each once, though the service lets all its listeners go in between."""
    company = await shop.company()
    heard: list[tuple[str, str | None]] = []

    async with async_client_of(street, company) as client:

        async def listen() -> None:
            async with aclosing(client.events.stream(type=["order.created", "order.finished"])) as stream:
                async for event in stream:
                    heard.append((event.type, event.trx))
                    if len(heard) == 4:
                        return

        listening = asyncio.create_task(listen())
        streams = shop.program.services.streams
        await until_true(lambda: streams.open == 1)
        expected = []
        for _ in range(2):
            order = await client.orders.create([CartItem("gift")], payment_currency="EUR")
            await client.orders.confirm(order.trx)
            expected += [("order.created", order.trx), ("order.finished", order.trx)]
            await until_true(lambda: len(heard) >= len(expected))  # noqa: B023 - It is called at once.
            for listener in streams._everybody():
                listener.end()
        await asyncio.wait_for(listening, HANG_S)
    assert heard == expected
    await shop.assert_books_balance()


async def test_every_operation_of_the_service_can_be_called(shop: Shop, street: Street) -> None:
    """OP-04: the client has all that the service has; a new route needs a method, or a word why it has none."""
    company = await shop.company(scopes=frozenset(Scope))
    road = Road()
    with client_of(street, company, State.SANDBOX, road) as client:
        for part in (_order, _look_around, _manage_webhooks, _manage_keys):
            await asyncio.to_thread(part, client)
    elsewhere = {("GET", "event/stream"), *PLAYED}
    assert road.operations == {(route.method, route.path) for route in ROUTES} - elsewhere
    await shop.assert_books_balance()


def _order(client: Client) -> None:
    cart = [CartItem("gift")]
    client.orders.quote(cart, payment_currency="EUR")
    orders = [client.orders.create(cart, payment_currency="eur") for _ in range(3)]
    trx = client.orders.confirm(orders[0].trx, sandbox_outcome="finished").trx
    assert client.orders.resolve(orders[1].trx, sandbox_outcome="cancelled").is_over
    client.orders.cancel(orders[2].trx)
    assert_type(client.orders.find_all(), Pages[Order])
    today = datetime.now(UTC).date()
    assert [one.trx for one in client.orders.find_all(order_status=["finished"], date_from=today)] == [trx]
    assert client.orders.find(trx, wait_s=1).codes == client.orders.wait(trx).codes
    assert len(list(client.orders.lines(trx))) == 1
    assert b"TEST" in client.orders.codes_csv(trx)
    assert client.orders.protect(trx, "123456").has_pin
    assert not client.orders.protect(trx, None).has_pin


def _look_around(client: Client) -> None:
    (product,) = client.products.find_all(q="gift", is_stocked=True, payment_currency="EUR", face_value=10)
    assert product.price_incl_vat_in_payment_currency == Decimal("9.50")
    assert client.products.find("gift").slug == "gift"
    changes = client.products.changes()
    assert client.products.changes(since=changes.next_cursor or "").data == []
    (brand,) = client.brands.find_all()
    assert client.brands.find(brand.slug) == brand
    assert [category.slug for category in client.categories.find_all()] == ["gifts"]
    assert isinstance(client.fx_rates.find_all(), list)
    assert client.accounts.find_all(currency="EUR")[0].total_amount == Decimal("990.50")
    entries = list(client.accounts.entries("EUR", limit=1))
    assert entries[0].balance_after == Decimal("990.50")
    assert client.accounts.statement_csv("EUR").startswith(b"seq,")
    events = list(itertools.islice(client.events.find_all(), 3))
    assert client.events.find(events[0].id) == events[0]
    balances = client.call("GET", "account", currency="EUR")
    assert balances[0]["totalAmount"] == Decimal("990.50")


def _manage_webhooks(client: Client) -> None:
    made = client.webhooks.add(url="http://127.0.0.1:9/hook", event_types=["order.finished"], enabled=True)
    assert made.secret is not None
    assert made.secret not in repr(made)
    changed = client.webhooks.change(made.id, description="till", event_types=None)
    assert (changed.description, changed.event_types, changed.secret) == ("till", [], None)
    assert client.webhooks.find(made.id).description == "till"
    assert [one.id for one in client.webhooks.find_all()] == [made.id]
    assert client.webhooks.rotate(made.id, overlap_seconds=60).secret != made.secret
    client.webhooks.test(made.id)
    (event,) = itertools.islice(client.events.find_all(type="order.finished"), 1)
    assert client.events.replay(event.id, webhook_id=made.id).queued == 1
    assert client.webhooks.recover(made.id, datetime.now(UTC) - timedelta(hours=1)).queued >= 0
    assert list(client.webhooks.deliveries(made.id, limit=1))
    client.webhooks.remove(made.id)


def _manage_keys(client: Client) -> None:
    expires = datetime.now(UTC) + timedelta(days=30)
    made = client.keys.add(
        description="till", scopes=["orders:read"], spend_day_eur=Decimal("500.00"), date_expires=expires
    )
    assert made.key is not None
    assert made.key not in repr(made)
    assert (made.spend_day_eur, made.date_expires) == (
        Decimal("500.00"),
        expires.replace(microsecond=expires.microsecond // 1_000 * 1_000),
    )
    assert client.keys.change(made.id, spend_day_eur=None, rate_limit=10).spend_day_eur is None
    assert client.keys.rotate(made.id, overlap_seconds=60).id != made.id
    assert client.keys.find(made.id).standing == "replaced"
    assert len(list(client.keys.find_all(limit=1))) >= 3
    client.keys.revoke(made.id, children="keep")
