"""Whatever many clients are told at once, one order of their calls explains it; and planted faults are found."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from tests.faults.processes import servers
from tests.faults.test_kill import shop_of
from tests.proof.histories import SENDS, History, Send, begun
from tests.proof.linearizable import Call, check
from tests.proof.small_shop import DONE, NO_STOCK, Rules, SmallShop
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.orders import store
from voucherd.orders.answers import Answer, OrderReader
from voucherd.orders.rules.ruling import Ruling
from voucherd.orders.service import OrderService

HISTORIES: Final = 30
HISTORIES_SOAK: Final = int(os.environ.get("VOUCHERD_SOAK_HISTORIES", "500"))
AT_ONCE: Final = 25
PLANTED_AT_ONCE: Final = 10
PLANTED_MAX: Final = 60
"""Within so many histories a planted fault must be found."""
QUICK: Final[dict[str, Any]] = {"resolve_limit_s": 0.6, "confirm_wait_s": 0.02}


def sender(client: httpx.AsyncClient, url: str = "") -> Send:
    """Sends requests to one server."""

    async def send(method: str, path: str, **arguments: Any) -> httpx.Response:
        if not url:
            # In this process nobody connects, so nobody says that it is done.
            await arguments["extensions"]["trace"](SENDS, {})
        return await client.request(method, url + path, **arguments)

    return send


async def run_histories(shop: Shop, sends: list[Send], seeds: Sequence[int]) -> list[History]:
    """So many histories, some at a time: their batches meet, their shops do not."""
    done: list[History] = []
    for at in range(0, len(seeds), AT_ONCE):
        some = [await begun(shop, sends, seed) for seed in seeds[at : at + AT_ONCE]]
        await asyncio.gather(*(history.run() for history in some))
        done += some
    return done


@pytest.mark.parametrize(
    "count", [HISTORIES, pytest.param(HISTORIES_SOAK, marks=pytest.mark.soak)], ids=["short", "long"]
)
async def test_every_history_of_two_servers_and_a_worker_is_linearizable(
    pool: Pool, database_url: str, tmp_path: Path, count: int
) -> None:
    """Invariants 1 to 3, OP-41, OP-46 to OP-48: what clients are told at once could have happened one by one."""
    lost = calls = 0
    async with (
        shop_of(pool, tmp_path) as shop,
        servers(2, database_url, tmp_path, **QUICK) as running,
    ):
        sends = [sender(shop.client, server.url) for server in running]
        for history in await run_histories(shop, sends, range(count)):
            assert not history.strange, history.strange
            verdict = history.verdict()
            assert verdict.explained, f"history {history.seed}\n{verdict.told(history.calls)}"
            calls += len(history.calls)
            lost += sum(call.lost for call in history.calls)
        await shop.assert_books_balance()
    assert calls > 10 * count
    assert lost, "nobody hung up, so nothing was learnt about lost answers"


# ── planted faults ────────────────────────────────────────────────────────────────────────────────────


def plant_stale_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find remembers an order for ever."""
    seen: dict[Any, Any] = {}
    find = OrderService.find

    async def stale(self: OrderService, *whose: Any) -> Any:
        if whose not in seen:
            seen[whose] = await find(self, *whose)
        return seen[whose]

    monkeypatch.setattr(OrderService, "find", stale)


def plant_code_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order shows the codes that the one before it has got."""
    last: list[Any] = []
    stored = OrderReader.stored

    async def wrong(self: OrderReader, *arguments: Any) -> Any:
        replies = list(await stored(self, *arguments))
        for at, reply in enumerate(replies):
            if not isinstance(reply, Answer) or not reply.codes or len(reply.codes[0]) != 1:
                continue
            if last:
                replies[at] = replace(reply, codes=last[0])
            last[:] = [reply.codes]
        return replies

    monkeypatch.setattr(OrderReader, "stored", wrong)


def plant_double_spend(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sale does not reach the wallet: the same money is spent again."""
    save = store.save

    async def forgetful(tx: Any, ruling: Ruling, *more: Any) -> Any:
        ruling.entries.clear()
        return await save(tx, ruling, *more)

    monkeypatch.setattr(store, "save", forgetful)


PLANTED: Final = {
    "stale read": plant_stale_read,
    "code twice": plant_code_twice,
    "double spend": plant_double_spend,
}


@asynccontextmanager
async def one_process(pool: Pool, database_url: str, folder: Path) -> AsyncIterator[tuple[Shop, Send]]:
    """A shop in this process, where a fault can be planted; called over HTTP all the same."""
    async with open_shop(pool, database_url, folder, **QUICK) as shop:
        yield shop, sender(shop.client)


@pytest.mark.parametrize("fault", PLANTED)
async def test_a_planted_fault_is_found(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Invariants 1 to 3: a checker that finds no planted fault would prove nothing."""
    PLANTED[fault](monkeypatch)
    with capture_logs():
        async with one_process(pool, database_url, tmp_path) as (shop, send):
            for seed in range(0, PLANTED_MAX, PLANTED_AT_ONCE):
                seeds = range(seed, seed + PLANTED_AT_ONCE)
                for history in await run_histories(shop, [send], seeds):
                    if not history.verdict().explained:
                        return
    raise AssertionError(f"{PLANTED_MAX} histories hid a {fault}")


async def test_where_nothing_is_planted_nothing_is_found(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Invariants 1 to 3: in the same shop without a fault every history has its explanation."""
    async with one_process(pool, database_url, tmp_path) as (shop, send):
        for history in await run_histories(shop, [send], range(PLANTED_AT_ONCE)):
            assert history.verdict().explained, history.verdict().told(history.calls)


# ── the checker itself ────────────────────────────────────────────────────────────────────────────────

SHOP: Final = SmallShop(2_000, (("now", ("A", "B")), ("later", ())))


def calls_of(*calls: tuple[Any, ...]) -> list[Call]:
    """Calls from (what, about, answer, began, ended) each."""
    return [Call(*call) for call in calls]


def test_calls_that_overlap_may_have_come_in_either_order() -> None:
    """Contract 3: of two Confirms at once either may get the first code."""
    calls = calls_of(
        ("create", (1, "now", 1), DONE, 0.0, 1.0),
        ("create", (2, "now", 1), DONE, 0.0, 1.0),
        ("pay", 1, DONE, 2.0, 5.0),
        ("pay", 2, DONE, 3.0, 4.0),
        ("find", 1, ("finished", "paid", ("B",)), 6.0, 7.0),
        ("find", 2, ("finished", "paid", ("A",)), 6.0, 7.0),
    )
    assert check(Rules(), SHOP, calls).explained


def test_a_call_that_ended_came_before_one_that_began_later() -> None:
    """OP-47: a Find that begins after a Confirm was answered can't show the order as it was before."""
    calls = calls_of(
        ("create", (1, "now", 1), DONE, 0.0, 1.0),
        ("pay", 1, DONE, 2.0, 3.0),
        ("find", 1, ("created", "unpaid", ()), 4.0, 5.0),
    )
    verdict = check(Rules(), SHOP, calls)
    assert not verdict.explained
    assert "none of these fits next" in verdict.told(calls)


def test_a_lost_call_may_have_been_done_or_not() -> None:
    """OP-28: who never heard of a Confirm may find the order either way, but not first one way and then the other."""
    created = ("create", (1, "now", 1), DONE, 0.0, 1.0)
    lost = ("pay", 1, None, 2.0, math.inf)
    before = ("find", 1, ("created", "unpaid", ()), 3.0, 4.0)
    after = ("find", 1, ("finished", "paid", ("A",)), 5.0, 6.0)
    again = ("find", 1, ("created", "unpaid", ()), 7.0, 8.0)
    assert check(Rules(), SHOP, calls_of(created, lost, before)).explained
    assert check(Rules(), SHOP, calls_of(created, lost, before, after)).explained
    assert not check(Rules(), SHOP, calls_of(created, lost, before, after, again)).explained


def test_a_code_for_two_and_money_spent_twice_have_no_explanation() -> None:
    """Invariants 1 and 3: one code is on one line, and a wallet pays for what it has."""
    created = [("create", (number, "now", 1), DONE, 0.0, 1.0) for number in (1, 2)]
    paid = [("pay", number, DONE, 2.0, 3.0) for number in (1, 2)]
    twice = [("find", number, ("finished", "paid", ("A",)), 4.0, 5.0) for number in (1, 2)]
    assert not check(Rules(), SHOP, calls_of(*created, *paid, *twice)).explained
    poor = SHOP._replace(balance_minor=1_000)
    assert not check(Rules(), poor, calls_of(*created, *paid)).explained


def test_the_worker_may_deliver_between_two_looks() -> None:
    """OP-44: what waits is served when codes come in, without a call of anybody."""
    calls = calls_of(
        ("create", (1, "later", 2), DONE, 0.0, 1.0),
        ("pay", 1, DONE, 2.0, 3.0),
        ("find", 1, ("pending", "paid", ()), 4.0, 5.0),
        ("restock", ("later", ("C",)), DONE, 6.0, 7.0),
        ("find", 1, ("pending", "paid", ("C",)), 8.0, 9.0),
        ("create", (0, "now", 3), NO_STOCK, 8.0, 9.0),
    )
    assert check(Rules(), SHOP, calls).explained
