"""Crashes at every statement boundary: an order is as before or complete, never between, and a retry works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.faults.stumbling import (
    KILL_MS_MAX,
    NAME,
    ProcessFailed,
    Stumble,
    StumbleAtCommit,
    Way,
    open_stumbling_pool,
)
from tests.patience import HANG_S, until, until_true
from tests.shop import Company, Shop, open_shop
from voucherd import app
from voucherd.db import Pool, transaction
from voucherd.keys import authenticator
from voucherd.money import Money
from voucherd.orders import store
from voucherd.server.bounds import LATE_WRITE
from voucherd.suppliers import offer_book
from voucherd.worker import Worker

STATEMENTS_MAX = 40
UNAVAILABLE = (503, "service unavailable", "1")
MAYBE = (503, LATE_WRITE.text, "1")
UNSEEN = (503, "done, but it can not be shown now: find the order", None)
ALL_WAYS = (Way.KILLED, Way.LOST, Way.RAISED)
WAYS = (Way.KILLED, *(pytest.param(way, marks=pytest.mark.soak) for way in ALL_WAYS[1:]))
"""The server's session is killed in every run; what a program falls over by itself is tried at length."""
RESOLVE_STATEMENTS_MAX = 25
LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ProcessFailed)


class Stage:
    """A shop whose connections can be made to fall, one company in it, and the operations' verbs."""

    def __init__(self, shop: Shop, company: Company, worker: Worker) -> None:
        self.shop = shop
        self.company = company
        self.worker = worker

    async def created(self, slug: str, amount: int = 2) -> str:
        """A new order."""
        return str((await self.shop.create(self.company, (slug, amount)))["trx"])

    async def waiting(self) -> str:
        """A paid order of which one line was delivered and two wait."""
        await self.shop.stock("later", 1)
        trx = await self.created("later", 3)
        order = await self.shop.confirm(self.company, trx)
        assert order["orderStatus"] == "pending"
        return trx

    async def waiting_for_codes_that_came(self) -> str:
        """The same, after the shelf was filled."""
        trx = await self.waiting()
        await self.shop.stock("later", 2)
        return trx

    async def held(self) -> str:
        """An order whose Resolve was lost after it had held the money, with codes on the shelf now."""
        trx = await self.created("later")
        stumble = Stumble(1_000, Way.RAISED, self.shop.pool)
        task = asyncio.create_task(stumble.during(self.call("resolve", trx)))
        await until(lambda: self.shop.held(self.company))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await self.shop.held(self.company) > 0
        await self.shop.stock("later", 2)
        return trx

    async def late(self) -> str:
        """An order whose delivery window is over."""
        trx = await self.waiting()
        await self.end_window(trx)
        return trx

    async def end_window(self, trx: str) -> None:
        """Let the time of a waiting order be up."""
        order_id = self.shop.ids.order_id(trx)
        async with transaction(self.shop.pool) as tx:
            await tx.execute("UPDATE orders SET deadline_at = now() WHERE id = $1", order_id)
            await tx.execute("UPDATE waiting SET deadline_at = now() WHERE order_id = $1", order_id)

    async def call(self, operation: str, trx: str) -> httpx.Response:
        """Confirm, resolve or cancel over HTTP."""
        return await self.shop.finalise(operation, self.company, trx)

    async def status(self, trx: str) -> str:
        """What Find says: the order's status, or that there is none."""
        found = await self.shop.call("GET", f"/api/1.03/order/{trx}", self.company)
        assert found.status_code in {200, 404}, found.text
        return str(found.json()["orderStatus"]) if found.status_code == 200 else "gone"

    async def balance_minor(self) -> int:
        """What the company has, held or not."""
        return (await self.shop.balance(self.company)).minor


@dataclass(frozen=True)
class Operation:
    """Something that happens to an order: what it needs, what it does, and where it leads."""

    prepare: Callable[[Stage], Awaitable[str]]
    perform: Callable[[Stage, str], Awaitable[httpx.Response | int]]
    before: str
    after: str
    cost_minor: int


OPERATIONS = {
    "confirm": Operation(
        lambda s: s.created("now"), lambda s, trx: s.call("confirm", trx), "created", "finished", 1900
    ),
    "confirm that waits": Operation(
        lambda s: s.created("later"), lambda s, trx: s.call("confirm", trx), "created", "pending", 1900
    ),
    "resolve": Operation(
        lambda s: s.created("now"), lambda s, trx: s.call("resolve", trx), "created", "finished", 1900
    ),
    "cancel, unconfirmed": Operation(
        lambda s: s.created("now"), lambda s, trx: s.call("cancel", trx), "created", "gone", 0
    ),
    "cancel, confirmed": Operation(
        lambda s: s.waiting(), lambda s, trx: s.call("cancel", trx), "pending", "cancelled", -1900
    ),
    "delivery": Operation(
        lambda s: s.waiting_for_codes_that_came(),
        lambda s, _: s.worker.run_once("deliver"),
        "pending",
        "finished",
        0,
    ),
    "delivery to a resolve": Operation(
        lambda s: s.held(), lambda s, _: s.worker.run_once("deliver"), "created", "finished", 1900
    ),
    "end of the window": Operation(
        lambda s: s.late(), lambda s, _: s.worker.run_once("end_waiting"), "pending", "cancelled", -1900
    ),
}


@pytest.fixture
async def stage(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    """A shop without a worker of its own, so that nothing happens between two statements but the fall."""
    monkeypatch.setattr(app, "open_pool", open_stumbling_pool)
    # What the process knows it keeps: a slow machine must not add a statement to an operation.
    monkeypatch.setattr(authenticator, "TRUST_S", 2 * HANG_S)
    monkeypatch.setattr(offer_book, "EPOCH_AGE_S_MAX", 2 * HANG_S)
    async with open_shop(
        pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0, resolve_limit_s=3600
    ) as shop:
        fragile = await open_stumbling_pool(database_url, size_max=2)
        company = await shop.company(balance="100000.00 EUR")
        await shop.product("now", stock=300)
        await shop.product("later", async_delivery=True)
        yield Stage(shop, company, Worker(fragile, shop.sealer, shop.settings))
        await fragile.close()


async def attempt(work: Awaitable[httpx.Response | int]) -> httpx.Response | int | None:
    """The operation's answer; None if it was the worker's, and lost."""
    try:
        return await work
    except LOST:
        return None


def assert_honest(answer: httpx.Response | int | None, stumble: Stumble) -> None:
    """A call that fell is told so: to try again if it may, to find the order if it is done, or that it is our fault."""
    if not isinstance(answer, httpx.Response):
        return
    told = (answer.status_code, answer.text, answer.headers.get("retry-after"))
    if stumble.way is Way.RAISED:
        assert told == (500, "internal error", None)
    elif stumble.commits and not stumble.statements[-1].startswith("COMMIT"):
        # The commit was heard. An answer that needs only what is remembered may even be given.
        assert told in {UNSEEN, UNAVAILABLE} or answer.is_success
    elif stumble.statements[-1].startswith("COMMIT"):
        assert told == MAYBE
    else:
        assert told == UNAVAILABLE


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name.lower())
@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_crash_at_any_statement_leaves_the_order_as_before_or_complete(
    stage: Stage, name: str, way: Way
) -> None:
    """One use case, one transaction: nothing is half done (invariants 1 to 3), whatever falls and wherever."""
    operation, shop = OPERATIONS[name], stage.shop
    for at in range(1, STATEMENTS_MAX):
        trx = await operation.prepare(stage)
        before, had_minor = await shop.snapshot(), await stage.balance_minor()
        stumble = Stumble(at, way, shop.pool)
        answer = await attempt(stumble.during(operation.perform(stage, trx)))
        if stumble.fell:
            assert_honest(answer, stumble)
            if not stumble.commits:
                assert await shop.snapshot() == before, f"undone by a crash at {stumble.statements[-1]}"
                assert await stage.status(trx) == operation.before
                await operation.perform(stage, trx)
        assert await stage.status(trx) == operation.after, f"after a crash at {stumble.statements[-1]}"
        assert await stage.balance_minor() == had_minor - operation.cost_minor
        await shop.assert_books_balance()
        if not stumble.fell:
            assert stumble.commits == 1
            return
        await shop.cancel(stage.company, trx)  # What still waits would be served before the next one.
    pytest.fail(f"more than {STATEMENTS_MAX} statements")


@pytest.mark.parametrize("way", ALL_WAYS, ids=lambda way: way.name.lower())
async def test_a_crash_at_any_statement_of_create_makes_one_whole_order_or_none(
    stage: Stage, way: Way
) -> None:
    """Create writes an order, its items and its event together."""
    shop = stage.shop
    for at in range(1, STATEMENTS_MAX):
        before = await shop.snapshot()
        stumble = Stumble(at, way, shop.pool)
        answer = await stumble.during(shop.try_create(stage.company, ("now", 2)))
        after = await shop.snapshot()
        await shop.assert_books_balance()
        if not stumble.fell:
            assert answer.status_code == 201
            return
        assert_honest(answer, stumble)
        made = len(after["orders"]) - len(before["orders"])
        assert made <= 1
        assert made or after == before
        assert (await shop.try_create(stage.company, ("now", 2))).status_code == 201
    pytest.fail(f"more than {STATEMENTS_MAX} statements")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name.lower())
async def test_a_resolve_that_crashes_anywhere_is_ended_by_the_sweeper(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    """OP-46: its hold and its deadline are in the database, so the hold is released whoever began it."""
    monkeypatch.setattr(app, "open_pool", open_stumbling_pool)
    monkeypatch.setattr(authenticator, "TRUST_S", 2 * HANG_S)
    stumbles = [Stumble(at, way, pool) for at in range(1, RESOLVE_STATEMENTS_MAX)]
    async with AsyncExitStack() as open_shops, asyncio.TaskGroup() as group:

        async def opened() -> Shop:
            opening = open_shop(pool, database_url, tmp_path, with_worker=False)
            return await open_shops.enter_async_context(opening)

        shop = await opened()
        company = await shop.company(balance="1000.00 EUR")
        await shop.product("later", async_delivery=True)
        stage = Stage(shop, company, shop.worker)
        trxs = [await stage.created("later", 1) for _ in stumbles]
        calls = []
        for stumble, trx in zip(stumbles, trxs, strict=True):
            # Side by side, or this would take a minute. Each in a service of its own: calls that one service gets
            # together are one batch, which follows the plan of one of them.
            one = Stage(await opened(), company, shop.worker)
            calls.append(group.create_task(stumble.during(one.call("resolve", trx))))
            group.create_task(end_wait(one.shop, trx, calls[-1]))
        answers = await asyncio.gather(*calls)
        for trx in trxs:
            await stage.end_window(trx)
        await shop.worker.run_once("end_waiting")

        fates = {(one.commits, await stage.status(trx)) for one, trx in zip(stumbles, trxs, strict=True)}
        # Before its hold was written nothing had happened; after it the order ended, by itself or by the sweeper.
        assert fates == {(0, "created"), (1, "cancelled"), (2, "cancelled")}
        assert await shop.held(company) == 0
        assert await shop.balance(company) == Money.read("1000.00 EUR")
        await shop.assert_books_balance()
        for stumble, answer in zip(stumbles, answers, strict=True):
            if stumble.fell:
                assert_honest(answer, stumble)
            else:
                assert (answer.status_code, answer.json()["orderStatus"]) == (200, "cancelled")
        assert not stumbles[-1].fell


async def end_wait(shop: Shop, trx: str, call: asyncio.Task[httpx.Response]) -> None:
    """Let the time of a call be up once it waits, unless it fell before."""
    order_id = shop.ids.order_id(trx)
    assert order_id is not None
    await until_true(lambda: call.done() or order_id in shop.order_service.watch._parked)
    shop.order_service.watch.wake(order_id)


async def test_a_retry_after_a_lost_commit_is_told_that_the_order_was_confirmed(stage: Stage) -> None:
    """OP-23: the second Confirm is refused by the order's status, charged is once, and Find has the codes."""
    trx = await stage.created("now")
    had_minor = await stage.balance_minor()

    stumble = StumbleAtCommit(Way.LOST, stage.shop.pool)
    lost = await stumble.during(stage.call("confirm", trx))
    again = await stage.call("confirm", trx)
    found = await stage.shop.find(stage.company, trx)

    assert (lost.status_code, stumble.statements[-1], stumble.commits) == (503, "COMMIT;", 1)
    assert lost.text == LATE_WRITE.text
    assert (again.status_code, again.text) == (400, "this order can not be confirmed")
    assert found["orderStatus"] == "finished"
    assert len(set(delivered(found))) == 2
    assert await stage.balance_minor() == had_minor - 1900
    await stage.shop.assert_books_balance()


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("operation", ["confirm", "cancel", "find", "create"])
async def test_a_backend_that_is_terminated_at_work_fails_its_whole_batch_with_503(
    stage: Stage, operation: str, calls: int
) -> None:
    """A server that shuts down says so in its own words; that is no reason for a 500 nor to try each call again."""
    shop = stage.shop
    trxs = [await stage.created("now") for _ in range(calls)]
    before = await shop.snapshot()

    def call(trx: str) -> Awaitable[httpx.Response]:
        if operation == "find":
            return shop.call("GET", f"/api/1.03/order/{trx}", stage.company)
        if operation == "create":
            return shop.try_create(stage.company, ("now", 1))
        return stage.call(operation, trx)

    async with transaction(shop.pool) as blocker:
        await blocker.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        batch = asyncio.gather(*map(call, trxs))
        assert await terminate_blocked(shop.pool) == 1
        answers = await batch

    assert [(answer.status_code, answer.text) for answer in answers] == [(503, "service unavailable")] * calls
    assert await shop.snapshot() == before
    assert {(await call(trx)).status_code for trx in trxs} <= {200, 201, 204}
    await shop.assert_books_balance()


async def test_a_batch_that_was_paid_is_not_tried_again_when_its_codes_can_not_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second try would refuse what the first one sold; the client is told to find the order, and Find has it."""
    _read_codes_after_the_commit(monkeypatch)
    shop = stage.shop
    trxs = [await stage.created("now") for _ in range(3)]
    lost = StumbleAtCommit(Way.KILLED, shop.pool, after=True)
    answers = await lost.during(gather([stage.call("confirm", trx) for trx in trxs]))

    assert lost.fell
    assert [(answer.status_code, answer.text) for answer in answers] == [UNSEEN[:2]] * 3
    assert [await stage.status(trx) for trx in trxs] == ["finished"] * 3
    await shop.assert_books_balance()


def _read_codes_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a large batch are: the codes of a small one come with the statement that sells them."""
    monkeypatch.setattr(store, "SAVED_CODES_MAX", 0)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("committed", [False, True], ids=["before its commit", "after it"])
async def test_a_database_that_can_not_serve_now_is_no_internal_error(
    stage: Stage, error: Exception, committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart of the database is answered with 503 and "try again", never with 500 nor with a wrong refusal."""
    _read_codes_after_the_commit(monkeypatch)
    trxs = [await stage.created("now") for _ in range(3)]

    pool = stage.shop.pool
    after = StumbleAtCommit(Way.RAISED, pool, error, after=True)
    stumble = after if committed else Stumble(1, Way.RAISED, pool, error)
    answers = await stumble.during(gather([stage.call("confirm", trx) for trx in trxs]))

    assert stumble.fell
    # What is stored is read once more; before that there is nothing to tell.
    expected = (200, "finished") if committed else (503, "created")
    assert [answer.status_code for answer in answers] == [expected[0]] * 3
    assert [await stage.status(trx) for trx in trxs] == [expected[1]] * 3
    await stage.shop.assert_books_balance()


async def gather(calls: list[Awaitable[httpx.Response]]) -> list[httpx.Response]:
    """The answers to calls that are made at once, and so in one batch."""
    return await asyncio.gather(*calls)


async def test_connections_that_died_while_idle_are_replaced(stage: Stage) -> None:
    """A restart of the database costs at most the calls that meet it, never the process."""
    shop = stage.shop
    trx = await stage.created("now")
    killed = await shop.pool.fetch(
        "SELECT pg_terminate_backend(pid, $2) FROM pg_stat_activity WHERE application_name = $1",
        NAME,
        KILL_MS_MAX,
    )
    assert killed
    answers = [(await stage.call("confirm", trx)).status_code for _ in range(len(killed) + 1)]

    assert 200 in answers
    assert set(answers) <= {503, 200, 400}
    assert await stage.status(trx) == "finished"
    await shop.assert_books_balance()


async def terminate_blocked(pool: Pool) -> int:
    """Terminate the service's backends that wait for a lock; how many there were."""

    async def terminated() -> int:
        rows = await pool.fetch(
            "SELECT pg_terminate_backend(pid, $2) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND application_name = $1",
            NAME,
            KILL_MS_MAX,
        )
        return len(rows)

    return await until(terminated)


def delivered(order: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes and serials of an order's lines."""
    return [
        (line["voucherCode"], line["voucherSerial"]) for item in order["items"] for line in item["orderLines"]
    ]
