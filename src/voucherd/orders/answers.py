"""Answers: orders as they are shown, with their codes and the facts of their offers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeAlias

import asyncpg
import structlog
from msgspec import Struct
from msgspec.structs import replace

from voucherd.db import UNAVAILABLE, Connection, Pool
from voucherd.orders import reading
from voucherd.orders.caches import OrderCaches
from voucherd.orders.find import Total
from voucherd.orders.model import INLINE_LINES_MAX, Item, Order, Viewed
from voucherd.orders.rules.refusals import Refusal
from voucherd.orders.rules.states import Status
from voucherd.orders.sale import wanted
from voucherd.orders.store import SealedCodes
from voucherd.suppliers.offer_book import QuoteInfo
from voucherd.vault import shelf
from voucherd.vault import store as vault
from voucherd.vault.model import Shelf
from voucherd.vault.seal import SealBroken, Sealer
from voucherd.vault.store import LotInfo, VaultHole

logger = structlog.get_logger(__name__)

READ_ORDERS_MAX: Final = vault.READ_CODES_MAX // INLINE_LINES_MAX
"""So many orders of that size fit in one read of the vault."""

_NOT_READ: Final = (asyncpg.PostgresError, *UNAVAILABLE)
"""The database said no, or is away."""

Codes = list[list[tuple[str, str]]]
_NONE: Final[SealedCodes] = {}


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
    stock: dict[Shelf, int] | None = None
    """How many codes could be had when a created order was asked for; None where what Create saw is shown."""

    def stock_of(self, item: Item) -> int:
        """How many codes of the item there are now, or were at Create (OP-142)."""
        if self.stock is None:
            return sum(item.offers[1::2])
        return self.stock[*item.shelf, self.order.id & 1]


class OrderPage(Struct, frozen=True):
    """A page of orders, the place behind which more may follow and, where pages are counted, how many there are."""

    answers: list[Answer]
    after: tuple[datetime, int] | None
    total: Total | None
    archived_before: datetime | None
    """On the last page: orders created before it are in the archive, and in no list."""


class OrderListing(Struct, frozen=True):
    """A page of orders without their codes."""

    orders: list[Order]
    after: tuple[datetime, int] | None
    total: Total | None
    whole: bool
    """Whether all orders were looked at that could be on the page."""
    archived_before: datetime | None
    """On the last page: orders created before it are in the archive, and in no list."""


class CodesUnreadable(Exception):
    """An order whose codes can't be opened: the vault was tampered with, or its key is another one."""


class StoredUnseen(Exception):
    """What was asked for is done, but the database can't show it now; Find will."""


Reply: TypeAlias = Answer | Exception
"""What a batch says to each of its calls: the answer, or what is raised instead, such as a refusal."""


class OrderReader:
    """Makes answers out of orders."""

    def __init__(self, pool: Pool, sealer: Sealer, caches: OrderCaches) -> None:
        self._pool = pool
        self._sealer = sealer
        self._caches = caches
        self._lots = vault.LotBook()

    async def stored(
        self, conn: Connection, answers: Sequence[Order | Refusal], sealed: SealedCodes = _NONE
    ) -> list[Reply]:
        """The answers to stored calls: if something fails here, no call is run again for it."""
        try:
            try:
                return await self.shown(conn, answers, sealed)
            except _NOT_READ as error:
                logger.warning("answer_read_again", error=repr(error))
            except Exception:
                if len(answers) == 1:
                    raise
                # One answer that can't be made must not take the others along.
                return [await self._shown_alone(conn, answer) for answer in answers]
            return await self.shown(conn, answers)
        except (asyncio.CancelledError, *_NOT_READ) as error:
            raise StoredUnseen from error  # The batch's time is over, or the database is away.

    async def _shown_alone(self, conn: Connection, answer: Order | Refusal) -> Reply:
        try:
            (reply,) = await self.shown(conn, [answer])
        except Exception as error:  # noqa: BLE001 - It belongs to the caller of this order alone.
            return error
        return reply

    async def found(self, conn: Connection, answers: Sequence[Order | Refusal]) -> list[Reply]:
        """Orders that were asked for: those that are created with what there is of their products now (OP-142)."""
        replies = await self.shown(conn, answers)
        created = [
            answer
            for answer in answers
            if isinstance(answer, Order) and answer.shown_status is Status.CREATED
        ]
        if not created:
            return replies
        stock = await self._stock(conn, list(wanted(created)))
        return [
            replace(reply, stock=stock)
            if isinstance(reply, Answer) and reply.order.shown_status is Status.CREATED
            else reply
            for reply in replies
        ]

    async def _stock(self, conn: Connection, shelves: Sequence[Shelf]) -> dict[Shelf, int]:
        """How many codes can be had of each shelf: our own, and what suppliers say they have."""
        lots = await shelf.look(conn, shelves)
        elsewhere = await self._caches.offers.sold_elsewhere(conn, shelves)
        offers = await self._caches.offers.look(conn, elsewhere)
        return {
            one: sum(lot.left for lot in lots[one] if not (lot.generated and one in offers))
            + sum(offer.stock for offer in offers.get(one, ()))
            for one in shelves
        }

    async def shown(
        self, conn: Connection, answers: Sequence[Order | Refusal], sealed: SealedCodes = _NONE
    ) -> list[Reply]:
        """The orders with their codes and the facts of their offers: a few reads for all of them."""
        orders = [answer for answer in answers if isinstance(answer, Order)]
        named = {number for order in orders for number in lots_of(order)}
        lots = await self._lots.lots(conn, {number for number in named if number > 0})
        quotes = await self._caches.offers.quotes(conn, {-number for number in named if number < 0})
        small = [order for order in orders if order.lines <= INLINE_LINES_MAX]
        try:
            opened = await self._read_codes(conn, small, sealed)
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

    async def _read_codes(
        self, conn: Connection, orders: Sequence[Order], sealed: SealedCodes = _NONE
    ) -> dict[int, Codes]:
        """The codes of these orders, by order."""
        codes: dict[int, Codes] = {}
        # A batch of the largest orders that are not streamed would be more than one read may open.
        for start in range(0, len(orders), READ_ORDERS_MAX):
            ranges = {order.id: delivered_ranges(order) for order in orders[start : start + READ_ORDERS_MAX]}
            where = [one for found in ranges.values() for one in found]
            opened = iter(await vault.read_codes(conn, self._sealer, where, sealed) if where else ())
            codes |= {order_id: [next(opened) for _ in found] for order_id, found in ranges.items()}
        return codes

    async def views_of(self, order_id: int, line_from: int, line_to: int) -> tuple[Viewed, ...]:
        """What recipients saw of these lines, for an answer that is streamed."""
        async with self._pool.acquire() as conn:
            return await reading.views(conn, order_id, line_from, line_to)

    async def codes_of(self, ranges: Sequence[tuple[int, int, int]]) -> Codes:
        """The codes of these (lot, from, to) ranges, for an answer that is streamed."""
        async with self._pool.acquire() as conn:
            return await vault.read_codes(conn, self._sealer, ranges)


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


def granted(reply: Reply) -> Answer:
    """The answer; a refusal or a failure is raised."""
    if isinstance(reply, Answer):
        return reply
    raise reply
