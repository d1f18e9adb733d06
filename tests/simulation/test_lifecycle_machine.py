"""Random lives of orders, with crashes: the service does what a model of a few counters says, to the cent."""

from __future__ import annotations

import asyncio
import copy
import itertools
import os
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    Bundle,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from structlog.testing import capture_logs

from tests.faults.stumbling import Stumble, Way
from tests.simulation.driver import Driver, Op
from tests.simulation.model import Model, Order, Refused
from tests.simulation.world import open_world
from voucherd.ids import State
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Status

AUDIT_EVERY = 8
STATEMENTS_MAX = 8

KINDS = ("now", "later", "any", "free")
FACES = (1000, 2000)
TIMES = (
    "deliver",
    "deliver",
    "deliver",
    "end_window",
    "end waiting",
    "be_slow_no_longer",
    "expire",
    "remove",
)
carts = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(FACES), st.integers(1, 3)), min_size=1, max_size=2
)
states = st.sampled_from([State.LIVE, State.LIVE, State.SANDBOX])
# A partial delivery ends by itself, by the database's own clock: no machine may wait for that.
lasting = [one for one in SandboxOutcome if one is not SandboxOutcome.PARTIAL]
chances = st.sampled_from([SandboxOutcome.FINISHED, *lasting])
endings = st.sampled_from(["lost", "lost", "lost", "delivered", "delivered", "timed out"])
buyers = st.integers(0, 1)
falls = st.tuples(st.integers(1, STATEMENTS_MAX), st.sampled_from(Way))


class Lifecycle(Driver):
    """Everybody does anything, in any order, and processes die in the middle of it."""

    orders: Bundle[int] = Bundle("orders")

    def open(self) -> None:
        """Two companies, four products, some money and some codes."""
        world, products = self.world, self.model.products
        for _ in range(2):
            company = self.run(world.company())
            self.model.companies[company.id] = company
            self.buyers.append(company.id)
        products["now"] = self.run(world.product("now", price="9.50 EUR", vat_category="single_purpose"))
        products["now"].price_minor, products["now"].single_purpose = 950, True
        products["later"] = self.run(world.product("later", price="9.90 EUR", async_delivery=True))
        products["later"].price_minor = 990
        products["any"] = self.run(world.product("any", fee="1.02+0.10", face_range="5-50 EUR"))
        products["any"].fee = (102, 10)
        # So little of a weak currency that it is nothing in another one.
        products["free"] = self.run(world.product("free", price="1 VND", async_delivery=True))
        self.top_up(0, State.LIVE, 10_000)
        self.top_up(0, State.SANDBOX, 10_000)
        self.top_up(1, State.LIVE, 3_000)
        self.restock("now", FACES[0], 4)
        self.restock("any", FACES[0], 2)
        self.restock("later", FACES[0], 1)

    # ── what the operator does ────────────────────────────────────────────────────────────────────────

    @rule(
        action=st.sampled_from(["restock", "restock", "restock", "top up", "price", "offer"]),
        kind=st.sampled_from(KINDS),
        face_minor=st.sampled_from(FACES),
        buyer=buyers,
        state=states,
        number=st.integers(1, 4),
    )
    def operate(self, action: str, kind: str, face_minor: int, buyer: int, state: State, number: int) -> None:
        """The operator fills shelves and wallets, changes prices, and takes products out and in again."""
        if action == "restock":
            self.restock(kind, face_minor, number)
        elif action == "top up":
            self.top_up(buyer, state, number * 777)
        elif action == "price" and kind in {"now", "later"}:
            self.change_price(kind, number * 333)
        elif action == "offer":
            self.withdraw_or_offer(kind)

    def top_up(self, buyer: int, state: State, amount_minor: int) -> None:
        """Money comes in."""
        key = (self.buyers[buyer], state)
        self.run(self.world.top_up(*key, amount_minor))
        self.model.balance[key] = self.model.balance.get(key, 0) + amount_minor

    def restock(self, kind: str, face_minor: int, count: int) -> None:
        """Codes come in."""
        product = self.model.products[kind]
        face_minor = product.face_minor or face_minor
        fresh = self.run(self.world.stock(product, face_minor, count))
        self.codes |= dict.fromkeys(fresh, (product.id, face_minor))
        shelf = (State.LIVE, product.id, face_minor)
        self.model.stock[shelf] = self.model.stock.get(shelf, 0) + count

    def change_price(self, kind: str, price_minor: int) -> None:
        """OP-42: orders that were made before keep their price."""
        product = self.model.products[kind] = copy.copy(self.model.products[kind])
        product.price_minor = price_minor
        self.run(self.world.set_price(product))

    def withdraw_or_offer(self, kind: str) -> None:
        """A product is taken out of the catalogue, or put back."""
        active = not self.model.products[kind].active
        for product in self.all_of(kind):
            product.active = active
        self.run(self.world.set_active(self.model.products[kind]))

    def forbid(self, order_id: int, flag: str) -> None:
        """A company that may not buy, for the time of one call."""
        company = self.model.companies[self.command(order_id).company_id]
        for allowed in (False, True):
            setattr(company, flag, allowed)
            self.run(self.world.set_company(company))
            if not allowed:
                self.confirm(order_id, SandboxOutcome.FINISHED)

    def all_of(self, kind: str) -> list[Any]:
        """The product and its earlier versions in orders: they are one product to whoever withdraws it."""
        wanted = self.model.products[kind]
        old = [item.product for order in self.model.orders.values() for item in order.items]
        return [wanted, *(product for product in old if product.id == wanted.id)]

    # ── what the buyers do ────────────────────────────────────────────────────────────────────────────

    @initialize(target=orders)
    def begin(self) -> Any:
        """Some orders of every sort, so that no life is empty."""
        self.open()
        wanted = (
            [("now", 1000, 2)],
            [("later", 1000, 3)],
            [("later", 1000, 2), ("any", 1000, 1)],
            [("free", 1000, 2)],
        )
        made = [self.create(at % 2, State.LIVE, cart) for at, cart in enumerate(wanted)]
        return multiple(*made, self.create(0, State.SANDBOX, [("any", 2000, 2)]))

    @rule(
        target=orders,
        buyer=buyers,
        state=states,
        wanted=carts,
        then=st.sampled_from(["", "confirm", "confirm", "resolve", "crash"]),
        fall=falls,
        sandbox_outcome=chances,
        ending=endings,
    )
    def buy(
        self,
        buyer: int,
        state: State,
        wanted: list[tuple[str, int, int]],
        then: str,
        fall: tuple[int, Way],
        sandbox_outcome: SandboxOutcome,
        ending: str,
    ) -> Any:
        """Ask for a price and, mostly, take it."""
        made = self.create(buyer, state, wanted)
        if isinstance(made, int):
            if then == "crash":
                self.crash_in(("confirm", made), fall)
            elif then:
                self.settle(made, then, sandbox_outcome, ending)
        return made

    def create(self, buyer: int, state: State, wanted: list[tuple[str, int, int]]) -> Any:
        """Ask for a price."""
        company = self.buyers[buyer]
        products = [(self.model.products[kind], face, amount) for kind, face, amount in wanted]
        cart = [(product, product.face_minor or face, amount) for product, face, amount in products]
        lines = tuple(
            CartLine(product.slug, amount, None if product.face_minor else Decimal(face) / 100)
            for product, face, amount in cart
        )
        refusal = self.model.refuses_create(company, state, cart)
        answer = self.answer(self.order_service.create(Create(company, state, 0, lines, "EUR")), refusal)
        if answer is None:
            return multiple()
        order = self.model.create(answer.order.id, company, state, cart)
        assert answer.order.total_minor == order.total_minor
        return order.id

    @rule(
        order_id=orders,
        operation=st.sampled_from(["confirm", "confirm", "resolve", "resolve", "cancel"]),
        sandbox_outcome=chances,
        ending=endings,
    )
    def settle(self, order_id: int, operation: str, sandbox_outcome: SandboxOutcome, ending: str) -> None:
        """Pay for an order, or walk away from it."""
        if operation == "confirm":
            self.confirm(order_id, sandbox_outcome)
        elif operation == "resolve":
            self.resolve(order_id, sandbox_outcome, ending)
        else:
            self.cancel(order_id)

    def confirm(self, order_id: int, sandbox_outcome: SandboxOutcome) -> None:
        """Pay, and get what is there."""
        sandbox_outcome = sandbox_outcome if order_id & 1 else SandboxOutcome.FINISHED
        refusal = self.expect(self.model, ("confirm", order_id), sandbox_outcome)
        self.answer(self.order_service.confirm(self.finalise(order_id, sandbox_outcome)), refusal)
        self.keep_slow(order_id)

    def resolve(self, order_id: int, sandbox_outcome: SandboxOutcome, ending: str) -> None:
        """Get all of it in time, or pay nothing; the process may die while the call waits (OP-46)."""
        sandbox_outcome = sandbox_outcome if order_id & 1 else SandboxOutcome.FINISHED
        refusal = self.expect(self.model, ("resolve", order_id), sandbox_outcome)
        command = self.finalise(order_id, sandbox_outcome, resolve=True)
        order = self.model.orders.get(order_id)
        if refusal is not None or order is None or order.status is not Status.PENDING:
            self.answer(self.order_service.resolve(command), refusal)
        elif ending == "timed out":
            self.model.end(order)
            self.run(self.resolve_in_vain(command))
            self.start()
        else:
            self.run(self.resolve_waiting(command, order, deliver=ending == "delivered"))
            self.start()

    async def resolve_in_vain(self, command: Finalise) -> None:
        """A Resolve that waits until its limit, which is over as soon as it waits."""
        call = asyncio.create_task(self.order_service.resolve(command))
        await self.parked(call)
        assert command.order_id is not None
        self.order_service.watch.wake(command.order_id)
        self.checked(await call)
        await self.die(call)

    async def resolve_waiting(self, command: Finalise, order: Order, *, deliver: bool) -> None:
        """A Resolve that waits until its codes come, or until its process dies."""
        call = asyncio.create_task(self.order_service.resolve(command))
        await self.parked(call)
        if deliver:
            await self.world.set_slow(order.id, slow=False)
            order.slow = False
            item = order.items[0]
            if order.state is State.LIVE:
                shelf = order.shelf(item)
                fresh = await self.world.stock(item.product, item.face_minor, item.open)
                self.codes |= dict.fromkeys(fresh, shelf[1:])
                self.model.stock[shelf] = self.model.stock.get(shelf, 0) + item.open
            await self.worker.run_once("deliver")
            self.model.deliver()
        if order.status is Status.FINISHED:
            assert self.checked(await call).order.status is Status.FINISHED
        await self.die(call)

    def cancel(self, order_id: int) -> None:
        """Walk away."""
        refusal = self.expect(self.model, ("cancel", order_id))
        self.answer(self.order_service.cancel(self.command(order_id)), refusal)

    @rule(order_id=orders, action=st.sampled_from(["find", "find", "active", "verified"]))
    def ask(self, order_id: int, action: str) -> None:
        """What changes nothing: a look, or a call that is refused for its caller's sake."""
        if action == "find":
            self.find(order_id)
        else:
            self.forbid(order_id, action)

    def find(self, order_id: int) -> None:
        """Look at an order; nobody else can."""
        mine = self.command(order_id)
        others = next(buyer for buyer in self.buyers if buyer != mine.company_id)
        order = self.model.orders.get(order_id)
        gone = order is None or order.status is Status.DELETED
        self.answer(
            self.order_service.find(order_id, mine.company_id, mine.state), OrderNotFound if gone else None
        )
        self.answer(self.order_service.find(order_id, others, mine.state), OrderNotFound)
        self.answer(self.order_service.find(order_id, mine.company_id, State(1 - mine.state)), OrderNotFound)
        self.answer(
            self.order_service.confirm(Finalise(order_id, others, mine.state, resolve=False)), OrderNotFound
        )

    # ── what time does ────────────────────────────────────────────────────────────────────────────────

    @rule(order_id=orders, action=st.sampled_from(TIMES))
    def pass_time(self, order_id: int, action: str) -> None:
        """What happens without anybody's doing."""
        if action == "deliver":
            self.deliver()
        elif action == "end waiting":
            self.end_waiting()
        else:
            getattr(self, action)(order_id)

    def deliver(self) -> None:
        """Background delivery."""
        self.run(self.worker.run_once("deliver"))
        self.model.deliver()

    def end_window(self, order_id: int) -> None:
        """OP-44: the time of a waiting order is up; from now on it is not sold to, even if codes come."""
        waiting = [order for order in self.model.orders.values() if order.status is Status.PENDING]
        if waiting:
            order = min(waiting, key=lambda one: one.id != order_id)
            self.run(self.world.end_window(order.id))
            order.late = True
            kinds = {product.id: kind for kind, product in self.model.products.items()}
            for item in order.items:
                self.restock(kinds[item.product.id], item.face_minor, 1)
            self.deliver()

    def end_waiting(self) -> None:
        """The sweeper ends what is out of time."""
        self.run(self.worker.run_once("end_waiting"))
        self.model.end_waiting()

    def be_slow_no_longer(self, order_id: int) -> None:
        """OP-49: a slow sandbox order may be delivered now."""
        order = self.model.orders.get(order_id)
        if order is not None and order.slow:
            self.run(self.world.set_slow(order_id, slow=False))
            order.slow = False

    def expire(self, order_id: int) -> None:
        """OP-40: the confirmation window passes, and that is announced once."""
        order = self.model.orders.get(order_id)
        if order is not None and not order.expired:
            self.run(self.world.age(order_id, "24 hours 1 second"))
            order.expired = True
            for _ in range(2):
                self.run(self.worker.run_once("announce_expired"))
            announced = self.run(self.world.expired_events(order_id))
            assert announced == (order.status is Status.CREATED)
            self.confirm(order_id, SandboxOutcome.FINISHED)

    def remove(self, order_id: int) -> None:
        """OP-40: an order that was never confirmed is removed after 30 days, and no other is."""
        order = self.model.orders.get(order_id)
        if order is not None:
            self.run(self.world.age(order_id, "32 days"))
            order.expired = True
            self.run(self.worker.run_once("remove_expired"))
            if order.status is Status.CREATED:
                self.removed[order_id] = self.model.orders.pop(order_id)

    # ── what goes wrong ───────────────────────────────────────────────────────────────────────────────

    @rule(operation=st.sampled_from(["confirm", "confirm", "resolve", "cancel"]), order_id=orders, fall=falls)
    def crash(self, operation: str, order_id: int, fall: tuple[int, Way]) -> None:
        """The process dies in a call; a fresh one finds it done or not begun."""
        self.crash_in((operation, order_id), fall)

    @rule(operation=st.sampled_from(["deliver", "deliver", "end_waiting"]), fall=falls)
    def crash_in_background(self, operation: str, fall: tuple[int, Way]) -> None:
        """The worker dies; each of its transactions is done or not begun."""
        self.crash_in((operation, 0), fall)

    def crash_in(self, op: Op, fall: tuple[int, Way]) -> None:
        """Do it, fall, and take over the one world that the database may be in."""
        stumble = Stumble(*fall, self.world.pool)
        self.run(self.fall(stumble, op))
        # A statement that was cancelled on its way may have been done: the server heard it first.
        most = stumble.commits + (stumble.fell and stumble.way is Way.CANCELLED)
        self.take_over([self.after(op, commits) for commits in range(stumble.commits, most + 1)])
        self.keep_slow(op[1])
        self.start()

    async def fall(self, stumble: Stumble, op: Op) -> None:
        """The operation, until it fell, was done, or waits without an end: then its process dies."""
        call = asyncio.create_task(stumble.during(self.calls(op)))
        await self.parked(call)
        await self.die(call)

    def after(self, op: Op, commits: int) -> Model:
        """The model after so many of the operation's transactions."""
        model = copy.deepcopy(self.model)
        if op[0] == "deliver":
            model.deliver(commits)
        elif commits:
            self.expect(model, op)
        return model

    @rule(
        first=st.sampled_from(["confirm", "cancel", "end_waiting"]),
        second=st.sampled_from(["confirm", "cancel"]),
        orders=st.tuples(orders, orders),
    )
    def race(self, first: str, second: str, orders: tuple[int, int]) -> None:
        """Two processes at once: the outcome is that of one after the other, in some order."""
        ops: list[Op] = [(first, orders[0]), (second, orders[1])]
        answers = self.run(self.both(ops))
        worlds = []
        for turns in itertools.permutations(range(2)):
            model = copy.deepcopy(self.model)
            refusals = {turn: self.expect(model, ops[turn]) for turn in turns}
            if [refusals[0], refusals[1]] == answers:
                worlds.append(model)
        self.take_over(worlds)

    async def both(self, ops: list[Op]) -> list[Refused | None]:
        """The refusals of two calls at two desks."""
        here, there = self.order_service, self.world.order_service()
        calls = [self.calls(ops[0])]
        self.order_service = there
        calls.append(self.calls(ops[1]))
        self.order_service = here
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await there.stop()
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Refusal):
                raise answer
        return [type(answer) if isinstance(answer, Refusal) else None for answer in answers]

    def take_over(self, worlds: list[Model]) -> None:
        """Go on with the one that the database is in."""
        found = self.run(self.world.view(self.model))
        possible = [world.view() for world in worlds]
        assert found in possible, f"the database has {found}, not one of {possible}"
        self.model = worlds[possible.index(found)]

    @invariant()
    def database_is_as_the_model_says(self) -> None:
        """Statuses, payments, lines, balances, holds and stock, to the cent and to the code."""
        assert self.run(self.world.view(self.model)) == self.model.view()
        self.steps += 1
        if self.steps % AUDIT_EVERY == 0:
            self.run(self.world.assert_books_balance())

    def teardown(self) -> None:
        """In the end nothing waits and nothing is held, every code can be read, and the books balance."""
        if self.run(self.world.view(self.model)) != self.model.view():
            self.run(self.order_service.stop())
            return  # The step that went wrong has said so.
        for order in self.model.orders.values():
            if order.status is Status.PENDING:
                self.cancel(order.id)
            if order.delivered:
                self.find(order.id)
        self.run(self.order_service.stop())
        assert not any(order.held_minor for order in self.model.orders.values())
        self.database_is_as_the_model_says()
        self.run(self.world.assert_books_balance())


def live(server_url: str, master: bytes, *, lives: int, steps: int, number: int | None) -> None:
    """So many random lives of so many steps each; the same ones for the same number."""
    chosen = settings(
        max_examples=lives,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        # A life is short enough to be read; to make it shorter would take minutes.
        phases=(Phase.generate,),
    )
    with open_world(server_url, master) as world, capture_logs():
        machine = type("Lifecycle", (Lifecycle,), {"world": world})
        if number is not None:
            machine = seed(number)(machine)
        run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_every_life_of_an_order_goes_as_the_model_says(server_url: str, master: bytes, number: int) -> None:
    """Invariants 1 to 3, 5 and 6 after every step, whatever is done, in whatever order, and whatever dies."""
    live(server_url, master, lives=16, steps=30, number=number)


@pytest.mark.soak
def test_thousands_of_lives_go_as_the_model_says(server_url: str, master: bytes) -> None:
    """The same for long, and different every time."""
    lives = int(os.environ.get("VOUCHERD_TEST_LIVES", "1000"))
    live(server_url, master, lives=lives, steps=60, number=None)
