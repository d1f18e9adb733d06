"""Lives of orders in virtual time: real decisions, real batches and waits, a simulated store, network and clock.

A seed decides everything: what clients want, how long each message takes, which are lost, who crashes, freezes or is
cut off and when, and how far the database's clock jumps. The same seed takes the same course again, step by step.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.proof import virtual_time
from tests.proof.memory_store import Database, Link, Session, Step
from voucherd.batcher import BatcherFull
from voucherd.catalogue.products import Listing, ProductVersion
from voucherd.db import Undone
from voucherd.ids import State
from voucherd.money import RATE_ONE
from voucherd.orders.answers import Answer, Reply, granted
from voucherd.orders.model import Order
from voucherd.orders.rules import cart, decide, waiting
from voucherd.orders.rules.cart import Buyer, CartLine, Create
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.ruling import Facts, Ruling, Windows
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.service import OrderService, _Find, _of_caller
from voucherd.orders.watch import Watch
from voucherd.server.answer_limit import MARGIN_S_MAX
from voucherd.settings import Settings
from voucherd.vault.seal import Sealer

LIVES: Final = 24
"""Orders that each seed lives through."""
COMPANIES: Final = (1, 2)
FACE_MINOR: Final = 1_000
STORM_S: Final = 90.0
RUSHES: Final = 6
FAULTS: Final = ("crash", "crash", "freeze", "cut off", "slow", "clock", "restock", "top up")
CLIENT_S_MAX: Final = 45.0
TRIES_MAX: Final = 4
REST_S_MAX: Final = 4_000.0
WORK_EVERY_S: Final = 1.0
SETTINGS: Final = Settings.load({"data": Path("unused"), "margin_min_bp": -10_000}, {})
SEALER: Final = Sealer(bytes(32))
Codes = tuple[tuple[int, int], ...]
"""Where each code of an order lies, by line."""


class Unheard(Exception):
    """The client got no answer."""


def product(number: int, slug: str, *, later: bool) -> Listing:
    """Something for sale at 9.50 EUR."""
    version = ProductVersion(
        number, number, slug, slug, "brand", "Brand", "giftcard", "gifts", "currency", "ww", "multi_purpose",
        later, False, "EUR", FACE_MINOR, None, None, 950, "EUR", None, None,
    )  # fmt: skip
    return Listing(version, active=True, allow_loss=True)


LISTINGS: Final = {"now": product(1, "now", later=False), "later": product(2, "later", later=True)}


class SimulatedWatch(Watch):
    """The watch, with a look at the simulated store in place of its query."""

    def __init__(self, host: Host) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._host = host

    async def _poll(self) -> None:
        while self._parked:
            await asyncio.sleep(0.5)
            try:
                facts = await self._host.ask(lambda session: session.call(self._read))
            except (OSError, TimeoutError):
                continue
            for order in facts:
                if order.status is not Status.PENDING:
                    self.wake(order.id)

    async def _read(self) -> list[Order]:
        return [self._host.database.orders[number] for number in self._parked]


class SimulatedOrders(OrderService):
    """The order service; only what would be SQL is done to the simulated store."""

    def __init__(self, host: Host) -> None:
        super().__init__(None, SEALER, SETTINGS)  # type: ignore[arg-type]
        self._host = host
        self.watch = SimulatedWatch(host)

    async def _create(self, commands: Sequence[Create]) -> list[Reply]:
        host, database = self._host, self._host.database

        async def look() -> cart.Shop:
            step.now = database.now()
            database.decided(step)
            shelves = {
                (one.version.product_id, FACE_MINOR, 0): database.shelf(
                    (one.version.product_id, FACE_MINOR, 0)
                )
                for one in LISTINGS.values()
            }
            buyers = {number: Buyer(True, "US", None) for number in COMPANIES}
            return cart.Shop(
                database.now(), timedelta(days=1), "NL", buyers, LISTINGS, {"EUR": RATE_ONE}, {}, shelves=shelves
            )  # fmt: skip

        async def insert() -> None:
            database.orders |= {one.id: one for one in placed if isinstance(one, Order)}
            database.changes += 1
            step.answers, step.stored = placed, True

        # Create holds no lock: what it looked at is what it answers, whatever is sold until it is stored.
        step = Step("create", commands)
        session = host.session()
        placed = cart.place(await session.call(look), commands, host.next_id)
        await session.call(insert)
        return [answer_of(one) for one in placed]

    async def _find_archived(self, order_id: int | None, company_id: int, state: State) -> Answer:
        raise OrderNotFound  # Nothing is old enough for an archive.

    async def _granted(self, command: Finalise | Cancel, reply: Reply) -> Answer:
        return granted(reply)

    async def _confirm(self, commands: Sequence[Finalise]) -> list[Reply]:
        return await self._decided("finalise", commands, lambda facts: decide.finalise(facts, commands))

    async def _cancel(self, commands: Sequence[Cancel]) -> list[Reply]:
        replies = await self._decided("cancel", commands, lambda facts: decide.cancel(facts, commands))
        for reply in replies:
            if isinstance(reply, Answer) and reply.order.status is not Status.PENDING:
                self.watch.wake(reply.order.id)
        return replies

    async def _decided(
        self, what: str, commands: Sequence[Finalise | Cancel], decision: Callable[[Facts], Ruling]
    ) -> list[Reply]:
        order_ids = [one.order_id or 0 for one in commands]
        ruling = await self._host.use_case(what, commands, order_ids, decision)
        return [answer_of(one) for one in ruling.answers]

    async def _find(self, wanted: Sequence[_Find]) -> list[Reply]:
        async def read() -> dict[int, Order]:
            return dict(self._host.database.orders)

        orders = await self._host.session().call(read)
        return [
            answer_of(_of_caller(orders.get(one.order_id or 0), one.company_id, one.state)) for one in wanted
        ]


def answer_of(order: Order | Refusal) -> Reply:
    """The reply that a caller gets."""
    return Answer(order, None, {}) if isinstance(order, Order) else order


def codes_of(order: Order) -> Codes:
    """Where the codes of an order lie, line by line."""
    lines = {
        line: (outcome.lot_id, (outcome.seq_from or 0) + line - outcome.line_from)
        for outcome in order.outcomes
        if outcome.lot_id is not None
        for line in outcome.lines
    }
    return tuple(lines[line] for line in sorted(lines))


class Host:
    """A machine that runs a program: it crashes, forgets everything, and starts again."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._number = number
        self._made = 0
        self.database = world.database
        self.link = Link(world.network)
        self.calls: list[asyncio.Task[Any]] = []
        self._sessions: list[Session] = []
        self.service = SimulatedOrders(self)
        self.up = True

    def next_id(self, _state: State) -> int:
        """An order's id; no other host has it."""
        self._made += 1
        return 2 * (self._number * 1_000_000 + self._made)

    def session(self) -> Session:
        """A new connection to the database."""
        made = Session(self.database, self.link)
        self._sessions = [*(one for one in self._sessions if not one.closed), made]
        return made

    async def ask(self, work: Callable[[Session], Awaitable[Any]]) -> Any:
        """What the database says on a connection of its own."""
        return await work(self.session())

    async def use_case(
        self, what: str, about: Sequence[Any], order_ids: Sequence[int], decision: Callable[[Facts], Ruling]
    ) -> Ruling:
        """Load, decide, save: one transaction. What fails before its commit is `Undone`, as in `db.within`."""
        session = self.session()
        try:
            facts = await session.call(lambda: session.lock(order_ids))
            now = facts.now
            ruling = decision(facts)
            step = Step(what, about, ruling.answers, now)
            self.database.decided(step)
            await session.call(lambda: session.stage(ruling, step))
        except (OSError, TimeoutError) as error:
            raise Undone from error
        await session.call(session.commit)
        return ruling

    def crash(self) -> None:
        """Kill it: nothing that it was at goes on, but what it sent is on its way."""
        self.up = False
        self.link.frozen_until_s = 0.0
        tasks = [*self.calls, *(task for one in self.service.batchers.values() for task in one._tasks)]
        if self.service.watch._poller is not None:
            tasks.append(self.service.watch._poller)
        for task in tasks:
            task.cancel()
        for session in self._sessions:
            session.hang_up()
        self.calls, self._sessions = [], []

    def start(self) -> None:
        """Start it again, with nothing in its memory."""
        self.service = SimulatedOrders(self)
        self.up = True


@dataclass
class World:
    """Everything of one seed."""

    seed: int
    locking: bool = True
    trace: list[str] = field(default_factory=list)
    promised: dict[int, Codes] = field(default_factory=dict)
    refused: list[tuple[int, str]] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    resolve_s: float = 0.0
    """The longest that a host took for a Resolve."""

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wishes = random.Random(f"{self.seed} wishes")
        self.network = random.Random(f"{self.seed} network")
        self.weather = random.Random(f"{self.seed} weather")
        windows = Windows(
            timedelta(seconds=SETTINGS.delivery_window_s), timedelta(seconds=SETTINGS.resolve_limit_s)
        )
        self.database = Database(self.loop, windows, self.locking)
        self.hosts = [Host(self, number) for number in (1, 2)]
        self.worker = Host(self, 3)
        self.over = False

    def note(self, what: str) -> None:
        """Write down what happened, for a replay to be compared with."""
        self.trace.append(f"{self.loop.time():.6f} {what}")

    async def run(self) -> None:
        """Live through the storm, let everything come to rest, and look at the books."""
        for company_id in COMPANIES:
            self.database.top_up(company_id, self.wishes.randint(3_000, 20_000))
        for listing in LISTINGS.values():
            self.database.restock(listing.version.product_id, FACE_MINOR, self.wishes.randint(5, 20))
        working = asyncio.create_task(self._work())
        storm = asyncio.create_task(self._storm())
        lives = [asyncio.create_task(self._life(number)) for number in range(LIVES)]
        await asyncio.gather(*lives, storm)
        await self._come_to_rest()
        self.over = True
        await working
        self._check()

    # ── what clients do ───────────────────────────────────────────────────────────────────────────────

    async def _life(self, number: int) -> None:
        wish = random.Random(f"{self.seed} life {number}")
        company_id = wish.choice(COMPANIES)
        # Some come alone, most in a rush: then they are in each other's way.
        rush_s = STORM_S * wish.randrange(RUSHES) / RUSHES
        await asyncio.sleep(rush_s + wish.choice([0.01, 0.1, STORM_S / RUSHES]) * wish.random())
        line = CartLine(wish.choice(["now", "now", "later"]), wish.randint(1, 3))
        command = Create(company_id, State.LIVE, 0, (line,), "EUR")
        created = await self._try(wish, "create", lambda service: service.create(command))
        if not isinstance(created, Answer):
            return
        order_id = created.order.id
        for operation in wish.choices(
            ["confirm", "resolve", "cancel"], [6, 4, 1], k=wish.choice([1, 1, 1, 2])
        ):
            await asyncio.sleep(wish.choice([0.0, 0.0, 0.01, 5.0]) * wish.random())
            await self._settle(wish, operation, order_id, company_id)
        await self._settle(wish, "find", order_id, company_id)

    async def _settle(self, wish: random.Random, operation: str, order_id: int, company_id: int) -> None:
        whose = (order_id, company_id, State.LIVE)
        calls: dict[str, Callable[[OrderService], Awaitable[Answer]]] = {
            "confirm": lambda service: service.confirm(Finalise(*whose, resolve=False)),
            "resolve": lambda service: service.resolve(Finalise(*whose, resolve=True)),
            "cancel": lambda service: service.cancel(Cancel(*whose)),
            "find": lambda service: service.find(*whose),
        }
        answer = await self._try(wish, operation, calls[operation])
        if isinstance(answer, Answer) and answer.order.status is Status.FINISHED:
            codes = codes_of(answer.order)
            assert self.promised.setdefault(order_id, codes) == codes, (
                "an order shows other codes than before"
            )

    async def _try(
        self, wish: random.Random, operation: str, call: Callable[[OrderService], Awaitable[Answer]]
    ) -> Answer | Refusal | None:
        """What the client hears in the end, of whichever host; None if it gave up."""
        for _ in range(TRIES_MAX):
            try:
                answer: Answer | Refusal = await self._heard(wish.choice(self.hosts), operation, call)
            except Unheard:
                self.seen[f"{operation} unheard"] += 1
                await asyncio.sleep(wish.uniform(0.1, 3.0))
                continue
            said = answer.order.status.name if isinstance(answer, Answer) else type(answer).__name__
            self.seen[f"{operation} {said}"] += 1
            self.note(f"{operation} {said}")
            return answer
        return None

    async def _heard(
        self, host: Host, operation: str, call: Callable[[OrderService], Awaitable[Answer]]
    ) -> Answer | Refusal:
        """One call over a network that loses requests and answers."""
        await asyncio.sleep(self.network.uniform(0.0005, 0.02))
        if not host.up or self.network.random() < 0.02:
            raise Unheard
        task = asyncio.create_task(self._at_host(host, operation, call))
        host.calls.append(task)
        done, _ = await asyncio.wait([task], timeout=CLIENT_S_MAX)
        if task in host.calls:
            host.calls.remove(task)
        if not done or task.cancelled():
            task.cancel()
            raise Unheard
        answer = task.result()
        await asyncio.sleep(self.network.uniform(0.0005, 0.02))
        if answer is None or self.network.random() < 0.02:
            raise Unheard
        return answer

    async def _at_host(
        self, host: Host, operation: str, call: Callable[[OrderService], Awaitable[Answer]]
    ) -> Answer | Refusal | None:
        began_s = self.loop.time()
        # Over a link that is too slow for the service, the server in front of it answers in time (OP-109).
        limit_s = SETTINGS.resolve_limit_s - MARGIN_S_MAX if operation == "resolve" else None
        try:
            async with asyncio.timeout(limit_s):
                return await call(host.service)
        except Refusal as refusal:
            return refusal
        except (OSError, TimeoutError, Undone, BatcherFull, RuntimeError):
            return None  # A 503: nobody knows.
        finally:
            if operation == "resolve":
                self.resolve_s = max(self.resolve_s, self.loop.time() - began_s)

    # ── what time and chance do ───────────────────────────────────────────────────────────────────────

    async def _storm(self) -> None:
        for _ in range(self.weather.randint(3, 10)):
            await asyncio.sleep(self.weather.expovariate(8 / STORM_S))
            fault = self.weather.choice(FAULTS)
            self.note(fault)
            self.seen[fault] += 1
            host = self.weather.choice([*self.hosts, self.worker])
            if fault == "crash":
                host.crash()
                self.loop.call_later(self.weather.uniform(0.1, 10.0), host.start)
            elif fault == "freeze":
                host.link.frozen_until_s = self.loop.time() + self.weather.uniform(0.5, 25.0)
            elif fault == "cut off":
                host.link.silent = True
                self.loop.call_later(self.weather.uniform(0.5, 25.0), setattr, host.link, "silent", False)
            elif fault == "slow":
                host.link.slow_s = self.weather.choice([0.05, 0.3, 1.5])
                self.loop.call_later(self.weather.uniform(0.5, 25.0), setattr, host.link, "slow_s", 0.0)
            elif fault == "clock":
                self.database.skew += timedelta(hours=self.weather.choice([-2, 2]))
            else:
                self._goods_or_money(fault)

    def _goods_or_money(self, which: str) -> None:
        if which == "top up":
            operator = Session(self.database, Link(self.network))
            self.database.spawn(
                operator.top_up(self.weather.choice(COMPANIES), self.weather.randint(500, 5_000))
            )
        else:
            listing = self.weather.choice(list(LISTINGS.values()))
            self.database.restock(listing.version.product_id, FACE_MINOR, self.weather.randint(1, 8))

    async def _work(self) -> None:
        """The worker's rounds about orders: deliver, and end what is late."""
        while not self.over:
            await asyncio.sleep(WORK_EVERY_S)
            if not self.worker.up:
                continue
            rounds = asyncio.create_task(self._round())
            self.worker.calls.append(rounds)
            await asyncio.wait([rounds])
            self.worker.calls.clear()

    async def _round(self) -> None:
        database, worker = self.database, self.worker

        async def look() -> list[Any]:
            return [one for _, waits in sorted(database.waits.items()) for one in waits]

        try:
            waits = await worker.session().call(look)
            if waits:
                ids = sorted({wait.order_id for wait in waits})
                await worker.use_case(
                    "deliver", waits, ids, lambda facts: waiting.deliver_waiting(facts, waits)
                )
                await worker.use_case("end", ids, ids, lambda facts: waiting.end_waiting(facts, ids))
        except (OSError, TimeoutError, Undone):
            return

    async def _come_to_rest(self) -> None:
        """Heal everything, fill the shelves, and wait until nobody waits."""
        ends_s = self.loop.time() + REST_S_MAX
        for host in (*self.hosts, self.worker):
            host.link.silent, host.link.slow_s, host.link.frozen_until_s = False, 0.0, 0.0
        waited = {wait.shelf: 0 for waits in self.database.waits.values() for wait in waits}
        for waits in self.database.waits.values():
            for wait in waits:
                waited[wait.shelf] += wait.line_to - wait.line_from
        for (product_id, face_minor, _), count in waited.items():
            self.database.restock(product_id, face_minor, count)
        while any(order.status is Status.PENDING for order in self.database.orders.values()):
            assert self.loop.time() < ends_s, "orders wait for ever"
            await asyncio.sleep(WORK_EVERY_S)

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────

    def _check(self) -> None:
        """The invariants of the contract, on the rows that are there now."""
        database = self.database
        given: list[tuple[int, int]] = []
        for order in database.orders.values():
            codes = codes_of(order)
            given += codes
            unit_minor = order.items[0].unit_charge_minor
            assert order.charged_minor - order.refunded_minor == unit_minor * len(codes), "a wrong charge"
            assert not order.held_minor, "money of an order that ended is held"
            assert order.lines_finished == len(codes), "a line without its code"
            paid = order.payment_status in {Payment.PAID, Payment.PARTIALLY_REFUNDED}
            assert paid == bool(codes) or not codes, "codes without money"
        assert len(set(given)) == len(given), "a code is on two lines"
        for lot in database.lots.values():
            assert lot.cursor == sum(number == lot.id for number, _ in given), "a code is lost"
        for company_id, wallet in database.wallets.items():
            mine = [entry for entry in database.entries if entry.wallet_id == company_id]
            moved = sum(entry.amount_minor for entry in mine)
            assert wallet.balance_minor == database.paid_in[company_id] + moved, "the books do not balance"
            assert wallet.balance_minor >= 0 == wallet.held_minor, "a wallet is overdrawn or holds money"
            assert sorted(entry.seq for entry in mine) == list(range(1, len(mine) + 1)), "entries are missing"
        for order_id, codes in self.promised.items():
            found = database.orders[order_id]
            assert (found.status, codes_of(found)) == (Status.FINISHED, codes), "a promise is broken"
        assert self.resolve_s <= SETTINGS.resolve_limit_s, "a Resolve was answered too late"


def simulate(seed: int, *, locking: bool = True) -> World:
    """One seed, from its beginning to its books; an AssertionError says what is wrong."""

    async def live() -> World:
        world = World(seed, locking)
        await world.run()
        return world

    return virtual_time.run(live())
