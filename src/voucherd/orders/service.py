"""The order service: a call joins a batch, a batch is one transaction, and each call gets its answer.

Resolves have batches of their own, so none waits behind Confirms. No network call and no wait happens inside a
transaction, and no connection is held while a call waits for a slow order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from voucherd.archive import store as archive_store
from voucherd.archive.reader import ArchiveReader
from voucherd.batcher import Batcher, bounds_of
from voucherd.db import Connection, Pool, as_tenant, become_tenant, kept_if_writable, within
from voucherd.ids import State
from voucherd.orders import archived, reading, store
from voucherd.orders.answers import Answer, OrderListing, OrderPage, OrderReader, Reply, granted
from voucherd.orders.caches import OrderCaches
from voucherd.orders.confirm import cancel, confirm
from voucherd.orders.counts import SalesCounts
from voucherd.orders.create import LossLog, OrderNumbers, Quote, create, quote
from voucherd.orders.find import OrderFilters, count_orders, count_waiting, page_of_orders
from voucherd.orders.model import Order
from voucherd.orders.rules.cart import Create, SalesPolicy
from voucherd.orders.rules.decide import Cancel, Finalise
from voucherd.orders.rules.refusals import DoneBefore, OrderNotFound, Refusal, WrongStatus
from voucherd.orders.rules.sandbox import ANSWERED_AT_ONCE
from voucherd.orders.rules.states import Status
from voucherd.orders.watch import Watch
from voucherd.replica import ReadPool
from voucherd.settings import Settings
from voucherd.vault.reveals import Recorder
from voucherd.vault.seal import Sealer

RESOLVE_MARGIN_S_MAX: Final = 1.0
"""Resolve cancels this long before its limit, so that the answer is there in time."""


class _Find(Struct, frozen=True):
    order_id: int | None
    company_id: int
    state: State


class OrderService:
    """Everything that can be done with orders."""

    def __init__(self, pool: Pool, sealer: Sealer, settings: Settings, lists: ReadPool | None = None) -> None:
        self._pool = pool
        self._lists = ReadPool(pool) if lists is None else lists
        self._settings = settings
        self._numbers = OrderNumbers()
        self.losses = LossLog()
        self.counts = SalesCounts()
        self._policy = _policy(settings)
        self._caches = OrderCaches.empty(settings)
        self.reader = OrderReader(pool, sealer, self._caches)
        self.archive = ArchiveReader(settings.archive_folder)
        self.watch = Watch(pool)
        bounds = bounds_of(settings)
        self.reveals = Recorder(pool, bounds)
        self.creates: Batcher[Create, Reply] = Batcher(self._create, **bounds, name="create")
        self.quotes: Batcher[Create, Quote | Refusal] = Batcher(
            self._quote, **bounds, stores=False, name="quote"
        )
        self.confirms: Batcher[Finalise, Reply] = Batcher(self._confirm, **bounds, name="confirm")
        self.resolves: Batcher[Finalise, Reply] = Batcher(self._confirm, **bounds, name="resolve")
        self.cancels: Batcher[Cancel, Reply] = Batcher(self._cancel, **bounds, name="cancel")
        self.finds: Batcher[_Find, Reply] = Batcher(self._find, **bounds, stores=False, name="find")

    @property
    def batchers(self) -> dict[str, Batcher[Any, Any]]:
        """The batchers by name, for metrics and for a clean stop."""
        return {
            "create": self.creates,
            "quote": self.quotes,
            "confirm": self.confirms,
            "resolve": self.resolves,
            "cancel": self.cancels,
            "find": self.finds,
        }

    def use(self, settings: Settings) -> None:
        """Sell by these settings from now on."""
        self._settings, self._policy = settings, _policy(settings)
        self._caches.use(settings)

    async def stop(self) -> None:
        """Finish the batches in flight."""
        for batcher in self.batchers.values():
            await batcher.drain()
        await self.reveals.drain()
        await self.watch.stop()

    async def create(self, command: Create) -> Answer:
        """A price, fixed for the confirmation window."""
        return granted(await self.creates.submit(command.company_id, command))

    async def quote(self, command: Create) -> Quote:
        """The price that Create would fix now."""
        answer = await self.quotes.submit(command.company_id, command)
        if isinstance(answer, Refusal):
            raise answer
        return answer

    async def find(self, order_id: int | None, company_id: int, state: State) -> Answer:
        """The order as it stands."""
        reply = await self.finds.submit(company_id, _Find(order_id, company_id, state))
        if isinstance(reply, OrderNotFound):
            return await self._find_archived(order_id, company_id, state)
        return granted(reply)

    async def _find_archived(self, order_id: int | None, company_id: int, state: State) -> Answer:
        """An order that is in no table. A made-up trx is looked for as well, and takes as long to refuse."""
        order_id = reading.NOWHERE if order_id is None else order_id
        found = await archived.read(self._pool, self.archive, order_id, self._caches.versions)
        own = _of_caller(found, company_id, state)
        if isinstance(own, Refusal):
            raise own
        return await self.show(own)

    async def find_apart(self, order_id: int | None, company_id: int, state: State) -> Answer:
        """The same, read by itself under the company's own policies: for files and long lists."""
        order_id = reading.NOWHERE if order_id is None else order_id
        async with self._pool.acquire() as conn:
            async with as_tenant(conn, company_id, state, snapshot=True):
                found = await reading.read(conn, [order_id], self._caches.versions, as_tenant=True)
            own = _of_caller(found.get(order_id), company_id, state)
            (reply,) = await self.reader.found(conn, [own])
        if isinstance(reply, OrderNotFound):
            return await self._find_archived(order_id, company_id, state)
        return granted(reply)

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
        filters: OrderFilters,
        *,
        size: int,
        skip: int | None,
        after: tuple[datetime, int] | None,
    ) -> OrderPage:
        """One page of the company's orders; counted, unless it follows a place (`skip` is None)."""
        found = await self._lists.read(
            lambda conn: self._page(conn, company_id, state, filters, size=size, skip=skip, after=after)
        )
        async with self._pool.acquire() as conn:
            # No tenant reads codes. Which ones to open was read as one, and a code never changes.
            answers = await self.reader.found(conn, found.orders)
        return OrderPage(
            [granted(answer) for answer in answers], found.after, found.total, found.archived_before
        )

    async def browse(
        self,
        company_id: int,
        state: State,
        filters: OrderFilters,
        *,
        size: int,
        skip: int | None = None,
        after: tuple[datetime, int] | None = None,
        count_max: int | None = None,
    ) -> OrderListing:
        """The same without codes, for lists that show none; counted among so many, or as many as pages look at."""
        return await self._lists.read(
            lambda conn: self._page(
                conn, company_id, state, filters, size=size, skip=skip, after=after, count_max=count_max
            )
        )

    async def count_pending(self, company_id: int, state: State) -> int:
        """How many of the company's orders are under way."""
        async with self._pool.acquire() as conn:
            return await count_waiting(conn, company_id, state)

    async def _page(
        self,
        conn: Connection,
        company_id: int,
        state: State,
        filters: OrderFilters,
        *,
        size: int,
        skip: int | None,
        after: tuple[datetime, int] | None,
        count_max: int | None = None,
    ) -> OrderListing:
        # One snapshot for the page, its count and its orders: nothing is deleted or moves in between.
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            found = await page_of_orders(
                conn, company_id, state, filters, size=size, skip=skip or 0, after=after
            )
            total = found.total
            if total is None and skip is not None:
                total = await count_orders(conn, company_id, state, filters, scan_max=count_max)
            ids = [one.id for one in found.rows]
            # Asked on the last page alone: there the list ends, and the archive begins.
            archived_before = await archive_store.begins_at(conn) if found.after is None else None
            await become_tenant(conn, company_id, state)
            orders = await reading.read(conn, ids, self._caches.versions, as_tenant=True)
        shown = [orders[number] for number in ids if number in orders]
        return OrderListing(shown, found.after, total, found.whole, archived_before)

    async def confirm(self, command: Finalise, *, wait_s_max: float = math.inf) -> Answer:
        """Pay and deliver; an order that takes longer than the wait comes back pending."""
        reply = await self.confirms.submit(command.company_id, command)
        if isinstance(reply, DoneBefore):
            return await self.look_again(reply.order_id, command.company_id, command.state, resolve=False)
        answer = await self._granted(command, reply)
        if answer.order.status is not Status.PENDING or command.sandbox_outcome in ANSWERED_AT_ONCE:
            return answer
        await self.watch.until_done(answer.order.id, min(self._settings.confirm_wait_s, wait_s_max))
        return await self.find(command.order_id, command.company_id, command.state)

    async def resolve(self, command: Finalise, *, arrived_at: float = 0.0) -> Answer:
        """Pay and deliver all of it within the limit, which counts from the call's arrival, or cancel without a charge.

        If the database is too slow even for that, the server answers for the call in time, and the deadline in the
        database lets a sweep end the order (OP-46).
        """
        patience_ends = self._patience_ends(arrived_at)
        reply = await self.resolves.submit(command.company_id, command)
        if isinstance(reply, DoneBefore):
            return await self.look_again(
                reply.order_id, command.company_id, command.state, resolve=True, arrived_at=arrived_at
            )
        answer = await self._granted(command, reply)
        if answer.order.status is not Status.PENDING:
            return answer
        cancel = Cancel(
            command.order_id, command.company_id, command.state, at_limit=True, viewer=command.viewer
        )
        return await self._ended(cancel, answer.order.id, patience_ends)

    def _patience_ends(self, arrived_at: float) -> float:
        """When a Resolve cancels what has not come: in time for its answer."""
        limit_s = self._settings.resolve_limit_s
        return (arrived_at or perf_counter()) + limit_s - min(RESOLVE_MARGIN_S_MAX, limit_s / 4)

    async def _ended(self, cancel: Cancel, order_id: int, patience_ends: float) -> Answer:
        """An order that is resolved, once it has ended; at that moment it is cancelled."""
        await self.watch.until_done(order_id, max(0.0, patience_ends - perf_counter()))
        # Done or not: lines that are still open now will not be delivered any more.
        # In a batch: a thousand that end in the same moment must not queue one by one for a wallet.
        ended = await self.cancels.submit(cancel.company_id, cancel)
        if isinstance(ended, WrongStatus):
            return await self.find(cancel.order_id, cancel.company_id, cancel.state)
        return granted(ended)

    async def cancel(self, command: Cancel) -> Answer:
        """Delete an order that is not confirmed, or cancel and refund its undelivered lines, bought for or not."""
        reply = await self.cancels.submit(command.company_id, command)
        if isinstance(reply, DoneBefore):
            return await self.look_again(reply.order_id, command.company_id, command.state, resolve=False)
        return await self._granted(command, reply)

    async def _granted(self, command: Finalise | Cancel, reply: Reply) -> Answer:
        """The answer, or its refusal; an order that is in no table may be in the archive, and is over there."""
        if isinstance(reply, OrderNotFound):
            raise await archived.refusal(self._pool, self.archive, command, self._caches)
        return granted(reply)

    async def look_again(
        self, order_id: int, company_id: int, state: State, *, resolve: bool, arrived_at: float = 0.0
    ) -> Answer:
        """An order that was changed before, deleted ones included; one that is pending is waited for."""
        order = await archived.read_anywhere(self._pool, self.archive, order_id, self._caches.versions)
        if order is None or order.company_id != company_id or order.state != state:
            raise OrderNotFound
        if order.status is not Status.PENDING:
            return await self.show(order)
        if resolve:
            cancel = Cancel(order_id, company_id, state, at_limit=True)
            return await self._ended(cancel, order_id, self._patience_ends(arrived_at))
        await self.watch.until_done(order_id, self._settings.confirm_wait_s)
        return await self.find(order_id, company_id, state)

    async def show(self, order: Order) -> Answer:
        """The order as it is given here, with its codes."""
        async with self._pool.acquire() as conn:
            (answer,) = await self.reader.shown(conn, [order])
        return granted(answer)

    async def _create(self, commands: Sequence[Create]) -> list[Reply]:
        began = perf_counter()
        async with self._pool.acquire() as conn:
            self.counts.waited(perf_counter() - began)
            with kept_if_writable(conn):
                answers = await create(conn, commands, self._numbers, self._caches, self._policy)
            self.losses.note(commands, answers)
            self.counts.note("create", answers)
            return await self.reader.stored(conn, answers)

    async def _quote(self, commands: Sequence[Create]) -> list[Quote | Refusal]:
        async with self._pool.acquire() as conn:
            answers = await quote(conn, commands, self._caches, self._policy)
            self.losses.note(commands, answers)
            return answers

    async def _confirm(self, commands: Sequence[Finalise]) -> list[Reply]:
        began = perf_counter()
        async with self._pool.acquire() as conn:
            self.counts.waited(perf_counter() - began)
            async with within(conn, of_a_batch=True, s_max=self._settings.transaction_s_max) as tx:
                answers, sealed = await confirm(tx, self._caches, commands)
            self.counts.note("resolve" if commands[0].resolve else "confirm", answers)
            return _noted(commands, await self.reader.stored(conn, answers, sealed))

    async def _cancel(self, commands: Sequence[Cancel]) -> list[Reply]:
        async with self._pool.acquire() as conn:
            async with within(conn, of_a_batch=True, s_max=self._settings.transaction_s_max) as tx:
                answers = await cancel(tx, self._caches, commands)
            self.counts.note("cancel", answers)
            for answer in answers:
                if isinstance(answer, Order) and answer.status is not Status.PENDING:
                    self.watch.wake(answer.id)
            return _noted(commands, await self.reader.stored(conn, answers))

    async def _find(self, wanted: Sequence[_Find]) -> list[Reply]:
        order_ids, owners = reading.owned(wanted)
        async with self._pool.acquire() as conn:
            orders = await reading.read(conn, order_ids, self._caches.versions, owners=owners)
            found = [
                _of_caller(
                    None if find.order_id is None else orders.get(find.order_id), find.company_id, find.state
                )
                for find in wanted
            ]
            return await self.reader.found(conn, found)

    async def note_download(self, order: Order) -> None:
        """Remember that codes of the order left as a file."""
        async with self._pool.acquire() as conn:
            await store.mark_downloaded(conn, order.id, order.company_id, order.state)


def _noted(commands: Sequence[Finalise | Cancel], replies: Sequence[Reply]) -> list[Reply]:
    """The replies; those to a viewer say that it is written down already that the codes are shown."""
    return [
        replace(reply, noted=True) if isinstance(reply, Answer) and command.viewer is not None else reply
        for command, reply in zip(commands, replies, strict=True)
    ]


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


def _policy(settings: Settings) -> SalesPolicy:
    return SalesPolicy(
        timedelta(seconds=settings.confirmation_window_s),
        settings.operator_country,
        timedelta(seconds=settings.fx_age_s_max),
        settings.margin_min_bp,
    )
