"""What a simulated seed did, done again to the real store: every answer and every row must be the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tests.proof.memory_store import Step
from tests.proof.simulated import LISTINGS, SETTINGS, World, codes_of
from tests.shop import Company, Shop
from voucherd.db import transaction
from voucherd.money import Money
from voucherd.orders import store
from voucherd.orders.background import _deliver
from voucherd.orders.caches import OrderCaches
from voucherd.orders.confirm import cancel, confirm
from voucherd.orders.create import OrderNumbers, create
from voucherd.orders.model import Order
from voucherd.orders.rules import waiting
from voucherd.orders.rules.cart import CartLine, SalesPolicy
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Status
from voucherd.orders.service import OrderService


class Replay:
    """The real store, step by step behind a simulated one."""

    def __init__(self, shop: Shop, world: World) -> None:
        self._shop = shop
        self._world = world
        self._caches = OrderCaches.empty(SETTINGS)
        self._numbers = OrderNumbers()
        self._policy: SalesPolicy = OrderService(shop.pool, shop.sealer, SETTINGS)._policy
        self._companies: dict[int, Company] = {}
        self._orders: dict[int, int] = {}
        """The real id of each simulated order."""
        self._lots: dict[int, int] = {}
        """The simulated id of each real lot."""
        self._slugs = {one.version.product_id: f"{slug}-{world.seed}" for slug, one in LISTINGS.items()}

    async def run(self) -> int:
        """Do all of it again; how many steps that were."""
        for slug, listing in LISTINGS.items():
            name = self._slugs[listing.version.product_id]
            await self._shop.product(name, price="9.50 EUR", async_delivery=slug == "later")
        steps = [step for step in self._world.database.journal if step.stored]
        for step in steps:
            answers = await getattr(self, "_" + step.what.replace(" ", "_"))(step)
            if step.what != "create":
                self._compare(step, answers)
        await self._compare_rows()
        return len(steps)

    async def _top_up(self, step: Step) -> Sequence[Any]:
        number, amount_minor = step.about
        if number not in self._companies:
            self._companies[number] = await self._shop.company(balance=None, country="US")
        await self._shop.top_up(self._companies[number], str(Money(amount_minor, "EUR")))
        return ()

    async def _restock(self, step: Step) -> Sequence[Any]:
        product_id, count = step.about
        await self._shop.stock(self._slugs[product_id], count, cost="9.00 EUR")
        lot_id = await self._shop.pool.fetchval("SELECT max(id) FROM lot")
        self._lots[lot_id] = 2 * (len(self._lots) + 1)
        return ()

    async def _create(self, step: Step) -> Sequence[Any]:
        commands = [
            replace(
                one,
                company_id=self._companies[one.company_id].id,
                cart=tuple(CartLine(f"{line.slug}-{self._world.seed}", line.amount) for line in one.cart),
            )
            for one in step.about
        ]
        async with self._shop.pool.acquire() as conn:
            answers = await create(conn, commands, self._numbers, self._caches, self._policy)
        for told, real in zip(step.answers, answers, strict=True):
            assert type(told) is type(real), (told, real)
            if isinstance(told, Order) and isinstance(real, Order):
                assert told.total_minor == real.total_minor
                self._orders[told.id] = real.id
        return answers

    async def _finalise(self, step: Step) -> Sequence[Any]:
        await self._set_deadlines(step)
        async with transaction(self._shop.pool) as tx:
            answers, _ = await confirm(tx, self._caches, self._meant(step.about))
        return answers

    async def _cancel(self, step: Step) -> Sequence[Any]:
        await self._set_deadlines(step)
        async with transaction(self._shop.pool) as tx:
            return await cancel(tx, self._caches, self._meant(step.about))

    async def _deliver(self, step: Step) -> Sequence[Any]:
        await self._set_deadlines(step)
        waits = [replace(wait, order_id=self._orders[wait.order_id]) for wait in step.about]
        async with self._shop.pool.acquire() as conn:
            return await _deliver(conn, waits, self._caches)

    async def _end(self, step: Step) -> Sequence[Any]:
        await self._set_deadlines(step)
        order_ids = [self._orders[number] for number in step.about]
        async with transaction(self._shop.pool) as tx:
            facts = await store.load(tx, order_ids, self._caches)
            ruling = waiting.end_waiting(facts, order_ids)
            await store.save(tx, ruling)
        return ruling.answers

    def _meant(self, commands: Sequence[Any]) -> list[Any]:
        return [
            replace(
                one,
                order_id=self._orders.get(one.order_id),
                company_id=self._companies[one.company_id].id,
            )
            for one in commands
        ]

    async def _set_deadlines(self, step: Step) -> None:
        """Let the orders be late, or not, that were so by the simulated clock."""
        final = self._world.database.orders
        late = [
            real
            for number, real in self._orders.items()
            if (deadline := final[number].deadline_at) is not None and deadline <= step.now
        ]
        for table, key in (("orders", "id"), ("waiting", "order_id")):
            await self._shop.pool.execute(
                f"UPDATE {table} SET deadline_at = now() + CASE WHEN {key} = ANY($1::bigint[])"  # noqa: S608 - Constants.
                " THEN interval '-1 s' ELSE interval '1 h' END WHERE deadline_at IS NOT NULL"
                f" AND {key} = ANY($2::bigint[])",
                late,
                list(self._orders.values()),
            )

    def _codes(self, order: Order, *, real: bool) -> Any:
        return tuple((self._lots[lot] if real else lot, seq) for lot, seq in codes_of(order))

    def _compare(self, step: Step, answers: Sequence[Any]) -> None:
        assert len(step.answers) == len(answers), (step, answers)
        for told, real in zip(step.answers, answers, strict=True):
            if isinstance(told, Refusal):
                assert type(told) is type(real), (step, told, real)
                continue
            assert isinstance(real, Order), (step, told, real)
            assert _view(told) == _view(real), step
            assert self._codes(told, real=False) == self._codes(real, real=True), step

    async def _compare_rows(self) -> None:
        database = self._world.database
        rows = await self._shop.pool.fetch(
            "SELECT id, status, charged_minor, refunded_minor, held_minor, lines_finished, lines_cancelled"
            " FROM orders WHERE id = ANY($1::bigint[])",
            list(self._orders.values()),
        )
        stored = {row["id"]: tuple(row)[1:] for row in rows}
        for number, real in self._orders.items():
            one = database.orders[number]
            counts = (one.charged_minor, one.refunded_minor, one.held_minor, one.lines_finished)
            assert stored[real] == (int(one.status), *counts, one.lines_cancelled)
        for number, company in self._companies.items():
            balance = await self._shop.balance(company)
            assert balance.minor == database.wallets[number].balance_minor
        await self._shop.assert_books_balance()


def _view(order: Order) -> tuple[Any, ...]:
    return (
        Status(order.status),
        order.payment_status,
        order.charged_minor,
        order.refunded_minor,
        order.held_minor,
        order.lines_finished,
        order.lines_cancelled,
        order.version,
    )
