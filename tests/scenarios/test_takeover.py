"""A repeated request on another host: what its own key did is not refused, and nobody waits for who is gone."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.patience import HANG_S, until
from tests.scenarios.test_idempotency import same, send
from tests.shop import Company, Shop, open_shop
from voucherd import heartbeat
from voucherd.api import idempotent
from voucherd.api.idempotent import RENEW_AFTER_S, IdempotentCalls
from voucherd.batcher import Batcher
from voucherd.db import Pool
from voucherd.heartbeat import EVERY_S, GONE_S, Heartbeat
from voucherd.idempotency import store
from voucherd.money import Money

ITEMS = {"items": [{"productSlug": "gift", "amount": 2}], "paymentCurrency": "EUR"}


@pytest.fixture
async def hosts(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Shop, Shop]]:
    """Two hosts on one database, whose hearts beat when the test says so."""
    monkeypatch.setattr(heartbeat, "EVERY_S", HANG_S)
    options: dict[str, Any] = {"with_worker": False, "confirm_wait_s": 0}
    async with (
        open_shop(pool, database_url, tmp_path, **options) as one,
        open_shop(pool, database_url, tmp_path, **options) as two,
    ):
        await one.product("gift", price="10.00 EUR", stock=100)
        await one.product("later", price="10.00 EUR", async_delivery=True)
        yield one, two


@pytest.fixture
async def company(hosts: tuple[Shop, Shop]) -> Company:
    """A company with money."""
    return await hosts[0].company(balance="100.00 EUR")


def idempotent_calls(shop: Shop) -> IdempotentCalls:
    """What holds the claims of a host."""
    return shop.program.api._idempotent


def park(monkeypatch: pytest.MonkeyPatch, batcher: Batcher[Any, Any]) -> tuple[asyncio.Event, asyncio.Event]:
    """Let the host stand still before what this batcher does; what is set once it does, and what lets it go on."""
    arrived, goes_on, run = asyncio.Event(), asyncio.Event(), batcher._run

    async def waits(commands: Sequence[Any]) -> Sequence[Any]:
        arrived.set()
        await goes_on.wait()
        return await run(commands)

    monkeypatch.setattr(batcher, "_run", waits)
    return arrived, goes_on


async def silence(shop: Shop) -> None:
    """The host was last seen a while ago, as after it froze."""
    await shop.pool.execute(
        "UPDATE process_seen SET seen_at = seen_at - make_interval(secs => $1) WHERE id = $2",
        GONE_S + 1,
        idempotent_calls(shop)._process,
    )


async def order(shop: Shop, company: Company, operation: str) -> str:
    """An order that the operation is good for."""
    created = await shop.create(company, ("later" if operation == "cancel-paid" else "gift", 2))
    if operation == "cancel-paid":
        await shop.confirm(company, created["trx"])
    return str(created["trx"])


def batcher_of(shop: Shop, operation: str) -> Batcher[Any, Any]:
    """What does the operation, whatever waits for it."""
    return shop.order_service.batchers[operation.removesuffix("-paid")]


@pytest.mark.parametrize("first", [0, 1], ids=["the sleeper first", "the heir first"])
async def test_two_hosts_that_do_one_request_do_it_once_and_say_the_same(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """OP-112: the claim ran out while its host stood still, another took over, and then both did the work."""
    await both_do(hosts, company, monkeypatch, first, "create")
    assert await hosts[0].pool.fetchval("SELECT count(*) FROM orders") == 1
    for operation, left in (("confirm", "80"), ("resolve", "60"), ("cancel", "60"), ("cancel-paid", "60")):
        await both_do(hosts, company, monkeypatch, first, operation)
        assert await hosts[0].balance(company) == Money.read(f"{left}.00 EUR")
    await hosts[0].assert_books_balance()


async def both_do(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch, first: int, operation: str
) -> None:
    """Both hosts have claimed a request one after the other, and one goes on before the other."""
    method, path, arguments = "POST", "order", {"json": ITEMS}
    if operation != "create":
        trx = await order(hosts[0], company, operation)
        method, path, arguments = "PATCH", f"order/{operation.removesuffix('-paid')}/{trx}", {}

    async def ask(host: Shop) -> httpx.Response:
        return await send(host, company, method, path, operation, **arguments)

    calls = []
    with monkeypatch.context() as parking:
        doors = [park(parking, batcher_of(host, operation)) for host in hosts]
        for host, (arrived, _) in zip(hosts, doors, strict=True):
            calls.append(asyncio.create_task(ask(host)))
            await arrived.wait()
            await silence(host)
        doors[first][1].set()
        await asyncio.wait([calls[first]])
        doors[1 - first][1].set()
        answers = await asyncio.gather(*calls)
    later = [await ask(host) for host in hosts]

    wanted = {"create": 201, "cancel": 204}.get(operation, 200)
    assert {answer.status_code for answer in answers} <= {wanted, 409}
    assert [answer.status_code for answer in later] == [wanted, wanted]
    good = [answer for answer in (*answers, *later) if answer.status_code != 409]
    assert len(good) > len(later)
    assert {answer.content for answer in good} == {good[0].content}


async def test_the_deed_itself_asks_whether_its_own_key_did_it(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-112: also when a program of before, which raises no fence, did it under the same key."""
    shop = hosts[0]
    for operation in ("confirm", "resolve", "cancel", "cancel-paid"):
        trx, name = await order(shop, company, operation), operation.removesuffix("-paid")
        path = f"order/{name}/{trx}"
        with monkeypatch.context() as parking:
            arrived, goes_on = park(parking, batcher_of(shop, operation))
            call = asyncio.create_task(send(shop, company, "PATCH", path, operation))
            await arrived.wait()
            done = await hosts[1].finalise(name, company, trx)
            await shop.pool.execute(
                "UPDATE idempotency SET order_id = $1 WHERE answer IS NULL", shop.ids.order_id(trx)
            )
            goes_on.set()
            answer = await call

        assert (answer.status_code, answer.content) == (done.status_code, done.content)
        assert same(answer, await send(hosts[1], company, "PATCH", path, operation))
        other = await send(hosts[1], company, "PATCH", path, f"another {operation}")
        assert other.status_code in (400, 404), "what another key did is refused as ever"
    await shop.assert_books_balance()


async def test_a_refusal_that_was_told_stays_true_when_a_sleeper_wakes(
    hosts: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-112: a host that froze before it confirmed does not confirm after its client was told 402."""
    sleeper, heir = hosts
    poor = await sleeper.company(balance="1.00 EUR")
    trx = (await sleeper.create(poor, ("gift", 1)))["trx"]
    arrived, goes_on = park(monkeypatch, sleeper.order_service.confirms)
    call = asyncio.create_task(send(sleeper, poor, "PATCH", f"order/confirm/{trx}", "k"))
    await arrived.wait()
    await silence(sleeper)
    refused = await send(heir, poor, "PATCH", f"order/confirm/{trx}", "k")
    await sleeper.top_up(poor, "50.00 EUR")

    goes_on.set()
    woken = await call

    assert (refused.status_code, refused.text) == (402, "insufficient balance")
    assert same(refused, woken)
    assert await sleeper.balance(poor) == Money.read("51.00 EUR")
    assert (await sleeper.find(poor, trx))["orderStatus"] == "created"
    await sleeper.assert_books_balance()


async def test_a_repeated_resolve_ends_the_order_at_its_own_limit(
    hosts: tuple[Shop, Shop], company: Company
) -> None:
    """OP-46, OP-112: also when the first one's host is gone and no worker runs; all or nothing, and no charge."""
    trx = (await hosts[0].create(company, ("later", 2)))["trx"]
    path, calls = f"order/resolve/{trx}", []
    for host in hosts:
        calls.append(asyncio.create_task(send(host, company, "PATCH", path, "k")))
        await host.waits(trx)
        await silence(host)
    await hosts[1].time_is_up(trx)
    first, second = await asyncio.gather(*calls)

    assert (second.status_code, second.json()["orderStatus"]) == (200, "cancelled")
    assert same(second, first)
    assert await hosts[0].balance(company) == Money.read("100.00 EUR")
    assert await hosts[0].held(company) == 0
    await hosts[0].assert_books_balance()


async def test_a_sleeper_does_not_free_what_another_holds(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: a host that wakes and fails leaves the claim of the one that took over alone."""
    sleeper, heir = hosts
    trx = await order(sleeper, company, "confirm")
    doors = [park(monkeypatch, host.order_service.confirms) for host in hosts]
    calls = []
    for host, (arrived, _) in zip(hosts, doors, strict=True):
        calls.append(asyncio.create_task(send(host, company, "PATCH", f"order/confirm/{trx}", "k")))
        await arrived.wait()
        if host is sleeper:
            await silence(host)
    calls[0].cancel()
    doors[0][1].set()
    await asyncio.gather(calls[0], return_exceptions=True)
    await idempotent_calls(sleeper)._answers.drain()

    busy = await send(sleeper, company, "PATCH", f"order/confirm/{trx}", "k")
    doors[1][1].set()
    done = await calls[1]

    assert (busy.status_code, done.status_code) == (409, 200)
    assert await heir.balance(company) == Money.read("80.00 EUR")
    await heir.assert_books_balance()


async def claim_of(pool: Pool, process: Any) -> None:
    """Let all claims that have no answer be of this process, as if it had died in the middle."""
    await pool.execute("UPDATE idempotency SET held_by = $1 WHERE answer IS NULL", process)


async def died_in(shop: Shop, company: Company, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a Confirm whose process died after its effect and before its answer was kept."""

    async def forgets(*_: object) -> None:
        """The process dies here."""

    path = f"order/confirm/{await order(shop, company, 'confirm')}"
    with monkeypatch.context() as dying:
        dying.setattr(IdempotentCalls, "_settle", forgets)
        first = await send(shop, company, "PATCH", path, "k")
    assert first.status_code == 200
    assert (await send(shop, company, "PATCH", path, "k")).status_code == 409
    return path


async def test_a_retry_waits_for_a_silent_process_no_longer_than_its_bound(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: a process that has not been seen for a few seconds holds nothing, however long its claims last."""
    shop, gone = hosts[0], uuid4()
    path = await died_in(shop, company, monkeypatch)
    await shop.pool.execute(
        "INSERT INTO process_seen (id, host, pid, works) VALUES ($1, 'elsewhere', 1, false)", gone
    )
    await claim_of(shop.pool, gone)

    busy = await send(shop, company, "PATCH", path, "k")
    await shop.pool.execute("UPDATE process_seen SET seen_at = now() - make_interval(secs => $1)", GONE_S)
    through = await send(shop, company, "PATCH", path, "k")

    assert (busy.status_code, busy.headers["retry-after"]) == (409, "1")
    assert through.json()["orderStatus"] == "finished"
    assert same(through, await send(hosts[1], company, "PATCH", path, "k"))
    assert GONE_S <= 5.0 < store.LEASE_S
    await shop.assert_books_balance()


async def test_a_neighbour_finds_out_at_its_next_heartbeat_that_a_process_has_died(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: on one machine nobody waits for silence: the number of the process is gone."""
    shop, place = hosts[0], heartbeat._place()
    if place is None:
        pytest.skip("this system does not say where a process's number means something")
    path = await died_in(shop, company, monkeypatch)
    rows = []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        for pid, where in ((process.pid, place), (os.getpid(), place), (process.pid, "another machine")):
            rows.append(uuid4())
            await shop.pool.execute(
                "INSERT INTO process_seen (id, host, pid, place, works) VALUES ($1, 'here', $2, $3, false)",
                rows[-1],
                pid,
                where,
            )
        neighbour = Heartbeat(shop.pool, works=False)
        await neighbour.beat()
        alive = await shop.pool.fetch("SELECT id FROM process_seen WHERE host = 'here'")
    finally:
        process.kill()
        await process.wait()
    await claim_of(shop.pool, rows[0])
    busy = await send(shop, company, "PATCH", path, "k")
    await neighbour.beat()
    left = await shop.pool.fetch("SELECT id FROM process_seen WHERE host = 'here'")
    through = await send(shop, company, "PATCH", path, "k")
    await neighbour.leave()

    # Whoever had our own number before us is gone; about other machines nothing is known.
    assert {row[0] for row in alive} == {rows[0], rows[2]}
    assert {row[0] for row in left} == {rows[2]}
    assert (busy.status_code, through.status_code) == (409, 200)


async def test_a_process_that_ends_in_good_order_frees_what_it_held(
    pool: Pool,
    database_url: str,
    tmp_path: Path,
    hosts: tuple[Shop, Shop],
    company: Company,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OP-113: the retry gets through at once."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as ending:
        path = await died_in(ending, company, monkeypatch)
        before = await pool.fetchval("SELECT count(*) FROM process_seen")

    through = await send(hosts[0], company, "PATCH", path, "k")

    assert through.status_code == 200
    assert await pool.fetchval("SELECT count(*) FROM process_seen") == before - 1


async def test_a_claim_is_renewed_while_its_call_is_under_way_and_no_statement_is_made_for_none(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: one statement for all claims of a process that are due, and none where none is."""
    shop, asked = hosts[0], []
    calls = idempotent_calls(shop)
    renew = store.renew

    async def counted(pool: Pool, tickets: Sequence[Any]) -> None:
        asked.append(len(tickets))
        await renew(pool, tickets)

    monkeypatch.setattr(store, "renew", counted)
    now = time.monotonic()
    monkeypatch.setattr(idempotent, "monotonic", lambda: now)
    arrived, goes_on = park(monkeypatch, shop.order_service.confirms)
    paths = [f"order/confirm/{await order(shop, company, 'confirm')}" for _ in range(3)]
    await calls.renew()
    under_way = [asyncio.create_task(send(shop, company, "PATCH", path, path)) for path in paths]
    await arrived.wait()
    await until(lambda: shop.pool.fetchval("SELECT count(*) = 3 FROM idempotency"))
    await calls.renew()
    assert asked == []

    now += RENEW_AFTER_S
    await shop.pool.execute("UPDATE idempotency SET running_until = now()")
    await calls.renew()
    assert asked == [3]
    busy = await send(hosts[1], company, "PATCH", paths[0], paths[0])
    assert await shop.pool.fetchval("SELECT min(running_until) > now() FROM idempotency")
    goes_on.set()
    answers = await asyncio.gather(*under_way)
    now += RENEW_AFTER_S
    await calls.renew()

    assert asked == [3]
    assert busy.status_code == 409
    assert {answer.status_code for answer in answers} == {200}


async def test_an_answer_that_the_database_did_not_take_is_kept_with_the_next_heartbeat(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-28, OP-113: what was done is told, and told again in the same words; a refusal is told once it is kept."""
    shop = hosts[0]
    poor = await shop.company(balance="1.00 EUR")
    paths = [f"order/confirm/{await order(shop, one, 'confirm')}" for one in (company, poor)]

    async def away(*_: object) -> None:
        raise OSError("the database is away")

    with monkeypatch.context() as broken:
        broken.setattr(store, "keep", away)
        done = await send(shop, company, "PATCH", paths[0], "k")
        unsaid = await send(shop, poor, "PATCH", paths[1], "k")
    busy = [
        await send(hosts[1], one, "PATCH", path, "k")
        for one, path in zip((company, poor), paths, strict=True)
    ]
    await shop.top_up(poor, "50.00 EUR")
    await idempotent_calls(shop).renew()
    again = await send(hosts[1], company, "PATCH", paths[0], "k")
    refused = await send(hosts[1], poor, "PATCH", paths[1], "k")

    assert (done.status_code, unsaid.status_code) == (200, 503)
    assert [answer.status_code for answer in busy] == [409, 409]
    assert same(done, again)
    assert refused.status_code == 402
    assert not idempotent_calls(shop)._unkept
    await shop.assert_books_balance()


async def test_a_call_that_is_given_up_while_it_claims_leaves_no_claim(
    hosts: tuple[Shop, Shop], company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: a client that leaves, or a deadline that ends the call, does not make the next one wait."""
    shop, calls = hosts[0], idempotent_calls(hosts[0])
    path = f"order/confirm/{await order(shop, company, 'confirm')}"
    arrived, goes_on = park(monkeypatch, calls._claims)
    call = asyncio.create_task(send(shop, company, "PATCH", path, "k"))
    await arrived.wait()

    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    goes_on.set()
    await calls.stop()
    again = await send(hosts[1], company, "PATCH", path, "k")

    assert again.json()["orderStatus"] == "finished"
    assert not calls._held
    await shop.assert_books_balance()


async def test_a_repeatable_confirm_costs_three_statements_more_than_a_plain_one(
    hosts: tuple[Shop, Shop], company: Company
) -> None:
    """OP-113: its claim, its name and its answer, as ever; a heartbeat is none of its own."""
    shop, asked = hosts[0], list[str]()
    pool = shop.program.services.pool
    trx = await order(shop, company, "confirm")
    for holder in pool._holders:  # type: ignore[attr-defined]
        if holder._con is not None:
            holder._con.add_query_logger(lambda record: asked.append(record.query))

    await send(shop, company, "PATCH", f"order/confirm/{trx}", "k")

    assert len([query for query in asked if "idempotency" in query]) == 3


async def test_a_heart_that_misses_a_beat_beats_on(
    hosts: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-113: a database that is away for a moment ends no heartbeat, and one missed beat makes nobody gone."""
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.01)
    heart, failed = Heartbeat(hosts[0].pool, works=True), 0
    beat = heart.beat

    async def stumbles() -> None:
        nonlocal failed
        failed += 1
        if failed < 3:
            raise OSError("the database is away")
        await beat()

    monkeypatch.setattr(heart, "beat", stumbles)
    await heart.start(stumbles)
    seen = "SELECT seen_at > started_at FROM process_seen WHERE id = $1"
    await until(lambda: hosts[0].pool.fetchval(seen, heart.id))
    await heart.stop()

    assert await hosts[0].pool.fetchval(seen, heart.id) is None
    assert 2 * EVERY_S + heartbeat.BEAT_S_MAX < GONE_S
