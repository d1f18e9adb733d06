"""What each operation may cost the database: round trips, rows written and pages touched. These never depend on luck.

A change that exceeds a figure makes every sale slower. If it has to be, raise the figure here, and say why.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.growth.trade import Trade, trading
from voucherd.actors import ActorKind
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.vault.model import Viewer

MANY: Final = 100


class Cost(NamedTuple):
    """What a batch takes: round trips, rows inserted, updated or deleted, and pages of tables and indexes."""

    round_trips: int
    rows: int
    pages: int


BUDGET: Final = {
    # An order, its item and its event.
    ("create", 1): Cost(2, 3, 24),
    ("create", MANY): Cost(2, 3 * MANY, 1_850),
    # The order, an outcome, an entry, an event and a reveal; the wallet and the lot once for all.
    ("confirm", 1): Cost(4, 7, 75),
    ("confirm", MANY): Cost(4, 5 * MANY + 2, 5_200),
    ("resolve", 1): Cost(4, 7, 75),
    ("cancel", 1): Cost(6, 2, 30),
    ("cancel", MANY): Cost(6, 2 * MANY, 2_600),
    # They are created, so the stock of now is looked at (OP-142).
    ("find", 1): Cost(2, 0, 7),
    ("find", MANY): Cost(2, 0, 600),
}
"""What each costs, alone and a hundred at once; the pages are the most."""

_ROWS: Final = (
    "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables"
    " WHERE schemaname = current_schema()"
)
_NOW_AND_THEN: Final = re.compile(
    r"SELECT epoch FROM (access|offer)_epoch|SELECT nextval\('order_block'\)|SELECT pg_stat_force_next_flush\(\)"
    r"|SELECT .* FROM vault_key .*|SELECT .* FROM vault_master.*",
    re.DOTALL,
)
"""Asked once a second, once for many orders, or by the test itself."""


@pytest.fixture
async def trade(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Trade]:
    """A trade whose program has one connection, and has sold before."""
    async with trading(pool, database_url, tmp_path, monkeypatch, stock=0) as opened:
        await opened.begin()
        opened.untouched = False
        await opened.shop.stock("gift-10", 10 * MANY)
        yield opened


class Sales:
    """Orders of one company, made and finished in batches."""

    def __init__(self, trade: Trade) -> None:
        self._trade = trade
        self._orders = trade.shop.order_service
        self._viewer = Viewer(ActorKind.KEY, 1, "127.0.0.1")

    async def create(self, count: int) -> list[int]:
        """So many orders at once."""
        cart = (CartLine("gift-10", 1),)
        command = Create(self._trade.company.id, State.LIVE, 0, cart, "EUR")
        return [
            answer.order.id
            for answer in await asyncio.gather(*[self._orders.create(command) for _ in range(count)])
        ]

    async def finalise(self, order_ids: Sequence[int], *, resolve: bool) -> None:
        """Confirm or resolve them, and open their codes."""
        company_id = self._trade.company.id
        call = self._orders.resolve if resolve else self._orders.confirm
        commands = [Finalise(one, company_id, State.LIVE, resolve, viewer=self._viewer) for one in order_ids]
        for answer in await asyncio.gather(*map(call, commands)):
            assert answer.codes, "a sale shows its code"

    async def cancel(self, order_ids: Sequence[int]) -> None:
        """Cancel orders that nobody confirmed."""
        company_id = self._trade.company.id
        await asyncio.gather(*[self._orders.cancel(Cancel(one, company_id, State.LIVE)) for one in order_ids])

    async def find(self, order_ids: Sequence[int]) -> None:
        """Look at them."""
        company_id = self._trade.company.id
        await asyncio.gather(*[self._orders.find(one, company_id, State.LIVE) for one in order_ids])

    async def work(self, operation: str, count: int) -> Callable[[], Awaitable[Any]]:
        """The operation on so many orders, ready to begin."""
        if operation == "create":
            return lambda: self.create(count)
        order_ids = await self.create(count)
        match operation:
            case "cancel":
                return lambda: self.cancel(order_ids)
            case "find":
                return lambda: self.find(order_ids)
        return lambda: self.finalise(order_ids, resolve=operation == "resolve")


@pytest.mark.parametrize(("operation", "count"), BUDGET)
async def test_no_operation_costs_more_than_its_budget(trade: Trade, operation: str, count: int) -> None:
    """Features cost nothing on the way of a sale: the figures above are constants, whatever the machine does."""
    sales = Sales(trade)
    for _ in range(2):
        # Statements are prepared, and what is remembered is known.
        await (await sales.work(operation, count))()

    cost = await _cost(trade, await sales.work(operation, count))

    budget = BUDGET[operation, count]
    assert (cost.round_trips, cost.rows) == (budget.round_trips, budget.rows), cost
    # Where an index page is full one more is touched. A budget that is far from the truth would guard nothing.
    assert 0.7 * budget.pages < cost.pages <= budget.pages, cost


async def _cost(trade: Trade, work: Callable[[], Awaitable[Any]]) -> Cost:
    asked: list[str] = []
    async with trade.pool.acquire() as connection:
        connection.add_query_logger(lambda record: asked.append(record.query))
    await trade.touched(_nothing)  # The counts of all that came before are in.
    rows = await trade.shop.pool.fetchval(_ROWS)
    pages = await trade.touched(work)
    rows = await trade.shop.pool.fetchval(_ROWS) - rows
    asked = [query for query in asked if not _NOW_AND_THEN.fullmatch(query.strip())]
    return Cost(len(asked), rows, pages.total())


async def _nothing() -> None:
    pass
