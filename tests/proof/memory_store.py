"""The orders' database in memory, under a simulated network: rows, locks, sessions, and nothing that refuses.

It has no constraint and no trigger. What keeps the books right here is what the program itself does: the locks that it
takes, the decisions that it makes on what it read under them, and one transaction for one use case.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, TypeVar

from msgspec.structs import replace

from voucherd.ids import State
from voucherd.orders.model import Order, Outcome
from voucherd.orders.rules.ruling import CompanyStanding, Facts, Ruling, Windows
from voucherd.orders.rules.waits import Wait
from voucherd.vault.model import Lot, Shelf, selling_order
from voucherd.wallet.ledger import LedgerEntry, Wallet

T = TypeVar("T")
Key: TypeAlias = tuple[int, int]
"""What is locked: the rank of its table, as the program takes them, and its id."""

ORDER, WALLET, LOT = range(3)
BEGAN_AT: Final = datetime(2031, 5, 6, tzinfo=UTC)
COMMAND_S_MAX: Final = 5.0
"""How long a host waits for one statement."""
IDLE_S_MAX: Final = 5.0
"""How long the database keeps a transaction whose host says nothing."""
DELAY_S: Final = (0.0002, 0.003)


@dataclass
class Step:
    """One thing that was done to the rows, for another store to do it again."""

    what: str
    about: Any
    answers: Sequence[Any] = ()
    now: datetime = BEGAN_AT
    changes: int = 0
    stored: bool = True


class ConnectionLost(OSError):
    """The database closed the connection."""


class Link:
    """The network between one host and the database."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.silent = False
        """A black hole: what is sent now never arrives."""
        self.slow_s = 0.0
        self.frozen_until_s = 0.0
        """The host sleeps: nothing leaves it and nothing is read before that."""

    async def carry(self) -> bool:
        """One message, one way; False if it is lost."""
        loop = asyncio.get_running_loop()
        if self.silent:
            return False
        await asyncio.sleep(self._chance.uniform(*DELAY_S) + self.slow_s)
        if self.frozen_until_s > loop.time():
            await asyncio.sleep(self.frozen_until_s - loop.time())
        return not self.silent


@dataclass
class Database:
    """The rows, and who has locked which."""

    loop: asyncio.AbstractEventLoop
    windows: Windows
    locking: bool = True
    """A planted fault: without locks two batches decide on the same facts."""
    skew: timedelta = timedelta(0)
    orders: dict[int, Order] = field(default_factory=dict)
    wallets: dict[int, Wallet] = field(default_factory=dict)
    """A company's wallet has the company's id."""
    lots: dict[int, Lot] = field(default_factory=dict)
    waits: dict[int, list[Wait]] = field(default_factory=dict)
    entries: list[LedgerEntry] = field(default_factory=list)
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)
    paid_in: dict[int, int] = field(default_factory=dict)
    owners: dict[Key, Session] = field(default_factory=dict)
    queues: dict[Key, deque[tuple[Session, asyncio.Future[None]]]] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    journal: list[Step] = field(default_factory=list)
    """All that was done, in the order in which it was decided."""
    changes: int = 0
    overlapped: bool = False
    """Whether something was decided while something else was being stored, so that the order of both matters."""

    def now(self) -> datetime:
        """The database's clock, which alone decides about money."""
        return BEGAN_AT + timedelta(seconds=self.loop.time()) + self.skew

    def top_up(self, company_id: int, amount_minor: int) -> None:
        """Money comes in."""
        before = self.wallets.get(company_id, Wallet(company_id, 0, 0, 0))
        self.wallets[company_id] = replace(before, balance_minor=before.balance_minor + amount_minor)
        self.paid_in[company_id] = self.paid_in.get(company_id, 0) + amount_minor
        self.done(Step("top up", (company_id, amount_minor)))

    def restock(self, product_id: int, face_minor: int, count: int) -> None:
        """Codes come in."""
        number = 2 * (len(self.lots) + 1)
        self.lots[number] = Lot(
            number, product_id, face_minor, int(State.LIVE), 0, count, None, 900, "EUR", 10**8
        )
        self.done(Step("restock", (product_id, count)))

    def done(self, step: Step) -> None:
        """Write down what was done in one moment."""
        self.journal.append(step)
        self.changes += 1

    def decided(self, step: Step) -> None:
        """Write down what is to be stored, if it comes so far."""
        step.changes, step.stored = self.changes, False
        self.journal.append(step)

    def shelf(self, shelf: Shelf) -> list[Lot]:
        """What can be sold of a shelf, next first."""
        lots = [
            lot
            for lot in self.lots.values()
            if (lot.product_id, lot.face_minor, lot.state) == shelf and lot.left
        ]
        return sorted(lots, key=selling_order)

    def facts(self, order_ids: Iterable[int]) -> Facts:
        """What the decisions are made on, as it is now."""
        orders = {number: self.orders[number] for number in order_ids if number in self.orders}
        facts = Facts(self.now(), self.windows, orders)
        for order in orders.values():
            facts.standing[order.company_id] = CompanyStanding(active=True, verified=True)
            facts.wallet_of_order[order.id] = order.company_id
            facts.wallets[order.company_id] = self.wallets[order.company_id]
            facts.waits[order.id] = list(self.waits.get(order.id, ()))
            for item in order.items:
                shelf = (*item.shelf, order.id & 1)
                facts.shelves[shelf] = self.shelf(shelf)
                if item.version.async_delivery and any(
                    wait.shelf == shelf for waits in self.waits.values() for wait in waits
                ):
                    facts.queued.add(shelf)
        return facts

    def keys(self, order_ids: Iterable[int]) -> list[Key]:
        """What a decision about these orders locks: orders, then wallets, then lots, each by id."""
        orders = [self.orders[number] for number in order_ids if number in self.orders]
        shelves = {(*item.shelf, order.id & 1) for order in orders for item in order.items}
        lots = {lot.id for shelf in shelves for lot in self.shelf(shelf)}
        found = {(ORDER, order.id) for order in orders} | {(WALLET, order.company_id) for order in orders}
        return sorted(found | {(LOT, number) for number in lots})

    def apply(self, ruling: Ruling) -> None:
        """Commit: all of it in one moment."""
        self.orders |= ruling.orders
        for number, cursor in ruling.cursors.items():
            self.lots[number] = replace(self.lots[number], cursor=cursor)
        for entry in ruling.entries:
            self.wallets[entry.wallet_id] = Wallet(
                entry.wallet_id, entry.balance_after_minor, entry.held_after_minor, entry.seq
            )
        self.entries += ruling.entries
        self.outcomes += ruling.outcomes
        over = set(ruling.waits_over)
        for order_id in {number for number, _ in over}:
            kept = [one for one in self.waits[order_id] if (order_id, one.line_from) not in over]
            self.waits[order_id] = kept
        for wait in ruling.waits:
            self.waits.setdefault(wait.order_id, []).append(wait)
        self.waits = {number: waits for number, waits in self.waits.items() if waits}

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the database do something, whatever becomes of the host that asked for it."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


class Session:
    """One connection of a host, and the transaction that is open on it."""

    def __init__(self, database: Database, link: Link) -> None:
        self._database = database
        self._link = link
        self._keys: list[Key] = []
        self._staged: Ruling | None = None
        self._step: Step | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.closed = False

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the database answers; an OSError or a TimeoutError if nobody can tell whether it did it."""
        answer: asyncio.Future[T] = self._database.loop.create_future()
        self._database.spawn(self._serve(work, answer))
        try:
            async with asyncio.timeout(COMMAND_S_MAX):
                return await answer
        except TimeoutError:
            self.hang_up()
            raise

    async def _serve(self, work: Callable[[], Awaitable[T]], answer: asyncio.Future[T]) -> None:
        if not await self._link.carry():
            return
        error: Exception | None = None
        result: Any = None
        try:
            if self.closed:
                raise ConnectionLost
            self._stay()
            result = await work()
        except (ConnectionLost, asyncio.CancelledError) as lost:
            error = ConnectionLost(str(lost))
        if not await self._link.carry() or answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def _stay(self) -> None:
        """The host was heard of: its transaction may stay open for a while."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._database.loop.call_later(IDLE_S_MAX, self.abort)

    async def lock(self, order_ids: Sequence[int]) -> Facts:
        """Lock what these orders need, and read it."""
        await self._take(self._database.keys(order_ids))
        return self._database.facts(order_ids)

    async def top_up(self, company_id: int, amount_minor: int) -> None:
        """Money comes in, in a transaction of its own."""
        await self._take([(WALLET, company_id)])
        self._database.top_up(company_id, amount_minor)
        self._release()

    async def _take(self, keys: Sequence[Key]) -> None:
        """Lock these, waiting for those who came first."""
        database = self._database
        for key in keys if database.locking else ():
            while database.owners.get(key, self) is not self:
                turn: asyncio.Future[None] = database.loop.create_future()
                database.queues.setdefault(key, deque()).append((self, turn))
                await turn
                if self.closed:
                    raise ConnectionLost
            database.owners[key] = self
            self._keys.append(key)
            self._stay()

    async def stage(self, ruling: Ruling, step: Step) -> None:
        """Write the ruling, for nobody else to see yet."""
        self._staged, self._step = ruling, step

    async def commit(self) -> None:
        """Make it true."""
        if self._staged is not None:
            database, step = self._database, self._step
            database.apply(self._staged)
            assert step is not None
            step.stored = True
            database.overlapped |= database.changes != step.changes
            database.changes += 1
            # Who holds no lock, such as Create, sees nothing of it before.
            database.journal = [one for one in database.journal if one is not step] + [step]
        self._staged = None
        self._release()

    def hang_up(self) -> None:
        """The host is gone, or gave up: the database hears of it if the network lets it."""

        async def heard() -> None:
            if await self._link.carry():
                self.abort()

        self._database.spawn(heard())

    def abort(self) -> None:
        """Undo what was not committed."""
        self.closed = True
        self._staged = None
        self._release()

    def _release(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        database = self._database
        for queue in database.queues.values():
            for session, turn in queue:
                if session is self and not turn.done():
                    turn.set_result(None)
        for key in self._keys:
            if database.owners.get(key) is self:
                del database.owners[key]
            for _, turn in database.queues.pop(key, ()):
                if not turn.done():
                    turn.set_result(None)
        self._keys = []
