"""The desk: where a call becomes a batch, a batch a transaction, and a transaction an answer.

Every call goes through a gate; a Resolve is a batch of one that waits behind nobody while a place is free. No network
call and no wait happens inside a transaction, and no connection is held while a call waits for a slow order.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import asyncpg
import structlog
from msgspec import Struct
from msgspec.structs import replace

from voucherd.access import approvals, idempotency
from voucherd.access.spending import Purse, purse
from voucherd.db import Connection, Pool, as_tenant, within
from voucherd.fulfilment.book import QuoteInfo
from voucherd.ids import State
from voucherd.orders import decide, store
from voucherd.orders.create import OrderNumbers, create, effects_of
from voucherd.orders.decide import Cancel, Chance, Finalise
from voucherd.orders.export import mark_downloaded
from voucherd.orders.find import Filters, count_orders, page_of_orders
from voucherd.orders.gate import Gate
from voucherd.orders.losses import LossLog
from voucherd.orders.model import INLINE_LINES_MAX, Order, Viewed
from voucherd.orders.place import Create, House
from voucherd.orders.quote import Quote, quote
from voucherd.orders.refusals import OrderNotFound, Refusal, WrongStatus
from voucherd.orders.ruling import Facts, Ruling, Windows
from voucherd.orders.states import Status
from voucherd.orders.store import Memory
from voucherd.orders.watch import Watch
from voucherd.settings import Settings
from voucherd.vault import store as vault
from voucherd.vault.reveals import Recorder, Reveal, Via
from voucherd.vault.seal import SealBroken, Sealer
from voucherd.vault.store import LotInfo, VaultHole

logger = structlog.get_logger(__name__)

READ_ORDERS_MAX: Final = vault.READ_CODES_MAX // INLINE_LINES_MAX
"""So many orders of that size fit in one read of the vault."""

RESOLVES_IN_FLIGHT_MAX: Final = 4
"""So many Resolves run side by side, each a batch of its own. More than that would only queue at the same rows and
take the connections from everyone else: they gather, and the next free place takes them all."""

RESOLVE_MARGIN_S_MAX: Final = 1.0
"""Resolve cancels this long before its limit, so that the answer is there in time."""

_NOT_READ: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
"""The database said no, or its connection is gone: the driver calls that an error of its interface."""

Codes = list[list[tuple[str, str]]]


class Answer(Struct, frozen=True):
    """An order and, unless it is to be streamed, its codes: one list for each delivered outcome, in order."""

    order: Order
    codes: Codes | None
    lots: dict[int, LotInfo]
    """The facts of every lot that the order was offered or delivered from."""
    quotes: dict[int, QuoteInfo] = {}
    """The facts of every supplier's quote that the order was offered."""
    noted: bool = False
    """Whether it is written down already that the codes are shown (OP-94)."""


class Page(Struct, frozen=True):
    """A page of orders, whether more follow and, where pages are counted, how many there are in all."""

    answers: list[Answer]
    more: bool
    total: int | None


class Browsed(Struct, frozen=True):
    """A page of orders without their codes."""

    orders: list[Order]
    more: bool
    total: int | None


class CodesUnreadable(Exception):
    """An order whose codes can't be opened: the vault was tampered with, or its key is another one."""


class StoredUnseen(Exception):
    """What was asked for is done, but the database can't show it now; Find will."""


Reply: TypeAlias = Answer | Refusal | CodesUnreadable
"""What a batch says to each of its calls."""


class _Find(Struct, frozen=True):
    order_id: int | None
    company_id: int
    state: State


class Desk:
    """Everything that can be done with orders."""

    def __init__(self, pool: Pool, sealer: Sealer, settings: Settings) -> None:
        self._pool = pool
        self._sealer = sealer
        self._settings = settings
        self._numbers = OrderNumbers()
        self.losses = LossLog()
        self._lots = vault.LotBook()
        self._house = House(
            timedelta(seconds=settings.confirmation_window_s),
            settings.operator_country,
            timedelta(seconds=settings.fx_age_s_max),
            settings.margin_min_bp,
        )
        self._memory = Memory(
            Windows(
                timedelta(seconds=settings.delivery_window_s), timedelta(seconds=settings.resolve_limit_s)
            )
        )
        self.watch = Watch(pool)
        self.reveals = Recorder(pool)
        limit = settings.waiting_calls_max
        self.creates: Gate[Create, Reply] = Gate(self._create, waiting_max=limit)
        self.quotes: Gate[Create, Quote | Refusal] = Gate(self._quote, waiting_max=limit)
        self.confirms: Gate[Finalise, Reply] = Gate(self._finalise, waiting_max=limit)
        self.resolves: Gate[Finalise, Reply] = Gate(
            self._finalise, waiting_max=limit, in_flight_max=RESOLVES_IN_FLIGHT_MAX, next_batch_from=1
        )
        self.cancels: Gate[Cancel, Reply] = Gate(self._cancel, waiting_max=limit)
        self.finds: Gate[_Find, Reply] = Gate(self._find, waiting_max=limit)

    @property
    def gates(self) -> dict[str, Gate[Any, Any]]:
        """The gates by name, for metrics and for a clean stop."""
        return {
            "create": self.creates,
            "quote": self.quotes,
            "confirm": self.confirms,
            "resolve": self.resolves,
            "cancel": self.cancels,
            "find": self.finds,
        }

    async def stop(self) -> None:
        """Finish what is in flight."""
        for gate in self.gates.values():
            await gate.drain()
        await self.reveals.drain()
        await self.watch.stop()

    async def create(self, command: Create) -> Answer:
        """A price, fixed for the confirmation window."""
        return _granted(await self.creates.submit(command.company_id, command))

    async def quote(self, command: Create) -> Quote:
        """The price that Create would fix now."""
        answer = await self.quotes.submit(command.company_id, command)
        if isinstance(answer, Refusal):
            raise answer
        return answer

    async def find(self, order_id: int | None, company_id: int, state: State) -> Answer:
        """The order as it stands."""
        return _granted(await self.finds.submit(company_id, _Find(order_id, company_id, state)))

    async def find_apart(self, order_id: int | None, company_id: int, state: State) -> Answer:
        """The same, read by itself under the company's own policies: for files and long lists."""
        if order_id is None:
            raise OrderNotFound
        async with self._pool.acquire() as conn:
            async with as_tenant(conn, company_id, state, snapshot=True):
                found = await store.read(conn, [order_id], self._memory.versions, as_tenant=True)
            (reply,) = await self._with_codes(conn, [_of_caller(found.get(order_id), company_id, state)])
        return _granted(reply)

    async def find_moved(
        self, order_id: int | None, company_id: int, state: State, *, wait_s: float
    ) -> Answer:
        """The order as it stands; one that is pending is given that long to end or to move first."""
        answer = await self.find(order_id, company_id, state)
        order = answer.order
        if wait_s <= 0 or order.status is not Status.PENDING:
            return answer
        await self.watch.until_moved(order.id, order.version, wait_s)
        return await self.find(order_id, company_id, state)

    async def find_all(
        self,
        company_id: int,
        state: State,
        filters: Filters,
        *,
        size: int,
        page: int | None,
        after: tuple[datetime, int] | None,
    ) -> Page:
        """One page of the company's orders."""
        async with self._pool.acquire() as conn:
            found = await self._page(conn, company_id, state, filters, size=size, page=page, after=after)
            # No tenant reads codes. Which ones to open was read as one, and a code never changes.
            answers = await self._with_codes(conn, found.orders)
        return Page([_granted(answer) for answer in answers], found.more, found.total)

    async def browse(
        self, company_id: int, state: State, filters: Filters, *, size: int, page: int | None = None
    ) -> Browsed:
        """The same without codes, for lists that show none."""
        async with self._pool.acquire() as conn:
            return await self._page(conn, company_id, state, filters, size=size, page=page, after=None)

    async def _page(
        self,
        conn: Connection,
        company_id: int,
        state: State,
        filters: Filters,
        *,
        size: int,
        page: int | None,
        after: tuple[datetime, int] | None,
    ) -> Browsed:
        # One snapshot for the page, its count and its orders: nothing is deleted or moves in between.
        async with as_tenant(conn, company_id, state, snapshot=True):
            skip = 0 if page is None else (page - 1) * size
            # One more than a page tells whether another follows.
            found = await page_of_orders(
                conn, company_id, state, filters, size=size + 1, skip=skip, after=after
            )
            more, found = len(found) > size, found[:size]
            total = None if page is None else await count_orders(conn, company_id, state, filters)
            ids = [one.id for one in found]
            orders = await store.read(conn, ids, self._memory.versions, as_tenant=True)
        return Browsed([orders[number] for number in ids if number in orders], more, total)

    async def confirm(self, command: Finalise, *, wait_s_max: float = math.inf) -> Answer:
        """Pay and deliver; an order that takes longer than the wait comes back pending."""
        answer = _granted(await self.confirms.submit(command.company_id, command))
        if answer.order.status is not Status.PENDING or command.chance is Chance.PENDING:
            return answer
        await self.watch.until_done(answer.order.id, min(self._settings.confirm_wait_s, wait_s_max))
        return await self.find(command.order_id, command.company_id, command.state)

    async def resolve(self, command: Finalise) -> Answer:
        """Pay and deliver all of it within the limit, or cancel without a charge.

        Whatever the database does, the caller hears in time: a TimeoutError when it is too slow even for that, and
        then the deadline in the database lets a sweep end the order (OP-46).
        """
        limit_s = self._settings.resolve_limit_s
        margin_s = min(RESOLVE_MARGIN_S_MAX, limit_s / 4)
        async with asyncio.timeout(limit_s - margin_s / 4):
            patience_ends = asyncio.get_running_loop().time() + limit_s - margin_s
            answer = _granted(await self.resolves.submit(command.company_id, command))
            if answer.order.status is not Status.PENDING:
                return answer
            patience_s = max(0.0, patience_ends - asyncio.get_running_loop().time())
            await self.watch.until_done(answer.order.id, patience_s)
            # Done or not: whatever is still open now will not be delivered any more.
            # Through the gate: a thousand that end in the same moment must not queue one by one for a wallet.
            cancel = Cancel(
                command.order_id, command.company_id, command.state, at_limit=True, viewer=command.viewer
            )
            ended = await self.cancels.submit(command.company_id, cancel)
            if isinstance(ended, WrongStatus):
                return await self.find(command.order_id, command.company_id, command.state)
            return _granted(ended)

    async def cancel(self, command: Cancel) -> Answer:
        """Delete an order that is not confirmed, or cancel and refund what is undelivered.

        What is being bought at a supplier just now ends with its purchase, which is waited for like Confirm waits.
        """
        answer = _granted(await self.cancels.submit(command.company_id, command))
        if answer.order.status is not Status.PENDING:
            return answer
        await self.watch.until_done(answer.order.id, self._settings.confirm_wait_s)
        return await self.find(command.order_id, command.company_id, command.state)

    async def look_again(self, order_id: int, company_id: int, state: State, *, resolve: bool) -> Answer:
        """An order that was changed before, deleted ones included; one that is pending is waited for."""
        wait_s = self._settings.resolve_limit_s if resolve else self._settings.confirm_wait_s
        async with self._pool.acquire() as conn:
            order = (await store.read(conn, [order_id], self._memory.versions)).get(order_id)
        if order is None or order.company_id != company_id or order.state != state:
            raise OrderNotFound
        if order.status is Status.PENDING:
            await self.watch.until_done(order_id, wait_s)
            return await self.find(order_id, company_id, state)
        return await self.show(order)

    async def show(self, order: Order) -> Answer:
        """The order as it is given here, with its codes."""
        async with self._pool.acquire() as conn:
            (answer,) = await self._with_codes(conn, [order])
        return _granted(answer)

    async def _create(self, commands: Sequence[Create]) -> list[Reply]:
        async with self._pool.acquire() as conn:
            answers = await create(conn, commands, self._numbers, self._memory, self._house)
            self.losses.note(commands, answers)
            return await self._shown(conn, answers)

    async def _quote(self, commands: Sequence[Create]) -> list[Quote | Refusal]:
        async with self._pool.acquire() as conn:
            answers = await quote(conn, commands, self._memory, self._house)
            self.losses.note(commands, answers)
            return answers

    async def _finalise(self, commands: Sequence[Finalise]) -> list[Reply]:
        return await self._rule(
            commands,
            lambda facts: decide.finalise(facts, commands),
            with_lines=False,
            purses={
                purse(command.company_id, limit, command.state)
                for command in commands
                for limit in command.limits
                if limit.day_max is not None
            },
        )

    async def _cancel(self, commands: Sequence[Cancel]) -> list[Reply]:
        answers = await self._rule(
            commands,
            lambda facts: decide.cancel(facts, commands),
            with_lines=True,
        )
        for answer in answers:
            if isinstance(answer, Answer) and answer.order.status is not Status.PENDING:
                self.watch.wake(answer.order.id)
        return answers

    async def _rule(
        self,
        commands: Sequence[Finalise | Cancel],
        decision: Callable[[Facts], Ruling],
        *,
        with_lines: bool,
        purses: Collection[Purse] = (),
    ) -> list[Reply]:
        """Load, decide, store: one transaction. The codes are read after it, for the orders that got any."""
        known = {command.order_id for command in commands if command.order_id is not None}
        async with self._pool.acquire() as conn:
            async with within(conn):
                facts = await store.load(
                    conn,
                    known,
                    self._memory,
                    with_lines=with_lines,
                    with_shelves=not with_lines,
                    purses=purses,
                )
                grants = [_grant(command) for command in commands]
                if any(grants):
                    facts.approvals = await approvals.lock(conn, [grant[0] for grant in grants if grant])
                ruling = decision(facts)
                await store.save(conn, ruling, reveals_of(commands, ruling.answers))
                if any(grants):
                    carried_out = zip(grants, ruling.answers, strict=True)
                    decided = [grant for grant, answer in carried_out if grant and isinstance(answer, Order)]
                    await approvals.decide(conn, decided, approvals.Status.APPROVED)
                effects = effects_of(commands, ruling.answers)
                if effects:
                    await idempotency.name_effects(conn, effects)
            shown = await self._shown(conn, ruling.answers)
        return [
            replace(answer, noted=True)
            if isinstance(answer, Answer) and command.viewer is not None
            else answer
            for command, answer in zip(commands, shown, strict=True)
        ]

    async def _shown(self, conn: Connection, answers: Sequence[Order | Refusal]) -> list[Reply]:
        """The answers to what is stored by now: whatever the database says, the gate must not run it again."""
        try:
            return await self._with_codes(conn, answers)
        except _NOT_READ as error:
            logger.warning("answer_read_again", error=repr(error))
        try:
            return await self._with_codes(conn, answers)
        except _NOT_READ as error:
            raise StoredUnseen from error

    async def _find(self, wanted: Sequence[_Find]) -> list[Reply]:
        known = list({find.order_id for find in wanted if find.order_id is not None})
        async with self._pool.acquire() as conn:
            orders = await store.read(conn, known, self._memory.versions)
            found = [
                _of_caller(
                    None if find.order_id is None else orders.get(find.order_id), find.company_id, find.state
                )
                for find in wanted
            ]
            return await self._with_codes(conn, found)

    async def _with_codes(self, conn: Connection, answers: Sequence[Order | Refusal]) -> list[Reply]:
        """The orders with their codes and the facts of their offers: a few reads for all of them."""
        orders = [answer for answer in answers if isinstance(answer, Order)]
        named = {number for order in orders for number in lots_of(order)}
        lots = await self._lots.lots(conn, {number for number in named if number > 0})
        quotes = await self._memory.offers.quotes(conn, {-number for number in named if number < 0})
        small = [order for order in orders if order.lines <= INLINE_LINES_MAX]
        try:
            opened = await self._read_codes(conn, small)
        except (VaultHole, SealBroken):
            # One order whose codes can't be read must not take the answer from its neighbours.
            return [await self._alone(conn, answer, lots, quotes) for answer in answers]
        return [
            Answer(answer, opened.get(answer.id), lots, quotes) if isinstance(answer, Order) else answer
            for answer in answers
        ]

    async def _alone(
        self,
        conn: Connection,
        answer: Order | Refusal,
        lots: dict[int, LotInfo],
        quotes: dict[int, QuoteInfo],
    ) -> Reply:
        if isinstance(answer, Refusal):
            return answer
        try:
            opened = await self._read_codes(conn, [answer] if answer.lines <= INLINE_LINES_MAX else [])
        except (VaultHole, SealBroken) as broken:
            logger.error("codes_unreadable", order_id=answer.id, error=str(broken))
            return CodesUnreadable(answer.id)
        return Answer(answer, opened.get(answer.id), lots, quotes)

    async def _read_codes(self, conn: Connection, orders: Sequence[Order]) -> dict[int, Codes]:
        """The codes of these orders, by order."""
        codes: dict[int, Codes] = {}
        # A batch of the largest orders that are not streamed would be more than one read may open.
        for start in range(0, len(orders), READ_ORDERS_MAX):
            ranges = {order.id: delivered_ranges(order) for order in orders[start : start + READ_ORDERS_MAX]}
            wanted = [one for found in ranges.values() for one in found]
            opened = iter(await vault.read_codes(conn, self._sealer, wanted) if wanted else ())
            codes |= {order_id: [next(opened) for _ in found] for order_id, found in ranges.items()}
        return codes

    async def note_download(self, order: Order) -> None:
        """Remember that codes of the order left as a file."""
        async with self._pool.acquire() as conn:
            await mark_downloaded(conn, order.id, order.company_id, order.state)

    async def views_of(self, order_id: int, line_from: int, line_to: int) -> tuple[Viewed, ...]:
        """What recipients saw of these lines, for an answer that is streamed."""
        async with self._pool.acquire() as conn:
            return await store.views(conn, order_id, line_from, line_to)

    async def codes_of(self, ranges: Sequence[tuple[int, int, int]]) -> Codes:
        """The codes of these (lot, from, to) ranges, for an answer that is streamed."""
        async with self._pool.acquire() as conn:
            return await vault.read_codes(conn, self._sealer, ranges)


def _of_caller(order: Order | None, company_id: int, state: State) -> Order | Refusal:
    """The order, if it is there for this company in this state."""
    if (
        order is None
        or order.company_id != company_id
        or order.state != state
        or order.status is Status.DELETED
    ):
        return OrderNotFound()
    return order


def reveals_of(commands: Sequence[Finalise | Cancel], answers: Sequence[Order | Refusal]) -> list[Reveal]:
    """What the answers to these commands show to whom."""
    return [
        Reveal(answer.id, answer.company_id, answer.lines_finished, _via(command), command.viewer)
        for command, answer in zip(commands, answers, strict=True)
        if command.viewer is not None and isinstance(answer, Order) and answer.lines_finished
    ]


def _via(command: Finalise | Cancel) -> Via:
    if isinstance(command, Cancel):
        return Via.RESOLVE if command.at_limit else Via.CANCEL
    return Via.RESOLVE if command.resolve else Via.CONFIRM


def delivered_ranges(order: Order) -> list[tuple[int, int, int]]:
    """The (lot, from, to) ranges that the order's delivered lines were served from, in order."""
    return [
        (outcome.lot_id, outcome.seq_from, outcome.seq_from + outcome.count)
        for outcome in order.outcomes
        if outcome.lot_id is not None and outcome.seq_from is not None
    ]


def lots_of(order: Order) -> list[int]:
    """The lots that the order was offered or delivered from, and the quotes it was offered (as negative numbers)."""
    offered = [lot_id for item in order.items for lot_id in item.offers[::2]]
    return offered + [outcome.lot_id for outcome in order.outcomes if outcome.lot_id is not None]


def _grant(command: Finalise | Cancel) -> tuple[int, int] | None:
    """The request that a second person grants with this call, and who that is."""
    if isinstance(command, Finalise) and command.approval is not None:
        return command.approval, command.approved_by
    return None


def _granted(reply: Reply) -> Answer:
    if isinstance(reply, Answer):
        return reply
    raise reply
