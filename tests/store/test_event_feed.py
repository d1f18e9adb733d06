"""The feed: a follower sees each event once, in order, whoever commits when."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from datetime import timedelta

import pytest

from tests.patience import HANG_S
from voucherd import clock
from voucherd.db import Pool, Tx, transaction
from voucherd.events import feed, kinds
from voucherd.events.feed import Cursor, Event, EventFilters
from voucherd.ids import State

WRITERS = 7
CHANGES = 25
"""Of each writer."""
ORDERS = 12
FOLLOW_S_MAX = HANG_S

_INSERT = (
    "INSERT INTO event (at, company_id, state, type, order_id, seq)"
    " VALUES (now() - $1::interval, $2, $3, $4, $5, $6) RETURNING id"
)


async def put(
    tx: Tx | Pool,
    type_: str = kinds.ORDER_CREATED,
    *,
    company_id: int | None = 1,
    state: int | None = 0,
    order_id: int | None = None,
    seq: int | None = None,
    ago: timedelta = timedelta(),
) -> int:
    """Append one event; its id."""
    return int(await tx.fetchval(_INSERT, ago, company_id, state, type_, order_id, seq))


async def read(
    pool: Pool,
    cursor: Cursor | None = None,
    filters: EventFilters = feed.EVERYTHING,
    *,
    company_id: int | None = None,
    state: State | None = None,
) -> list[int]:
    """The ids of all that follows a cursor, in pages of three."""
    found: list[int] = []
    async with pool.acquire() as conn:
        for _ in range(10_000):
            page = await feed.after(
                conn, cursor, limit=3, company_id=company_id, state=state, filters=filters
            )
            assert len(page.events) <= 3
            found += [event.id for event in page.events]
            cursor = page.cursor
            if not page.more:
                return found
    raise AssertionError("the feed has no end")


class Ledger:
    """Writers that commit in any order, and what they have committed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._chance = random.Random(20)
        self._orders = {2 * number: asyncio.Lock() for number in range(1, ORDERS + 1)}
        self.versions: dict[int, int] = defaultdict(int)

    async def write(self, writer: int) -> None:
        """Change orders: most at once, some slowly, some for nothing."""
        for _ in range(CHANGES):
            order_id = self._chance.choice(list(self._orders))
            async with self._orders[order_id]:
                count = self._chance.randint(1, 3)
                slow = self._chance.random() < (0.2 if writer else 0.9)
                kept = self._chance.random() < 0.9
                await self._change(order_id, count, self._chance.uniform(0, 0.15) if slow else 0, kept=kept)

    async def _change(self, order_id: int, count: int, pause_s: float, *, kept: bool) -> None:
        before = self.versions[order_id]
        async with self._pool.acquire() as conn:
            change = conn.transaction()
            await change.start()
            for seq in range(before + 1, before + count + 1):
                await put(conn, kinds.ORDER_PENDING, order_id=order_id, seq=seq)
            await asyncio.sleep(pause_s)
            if kept:
                await change.commit()
                self.versions[order_id] = before + count
            else:
                await change.rollback()


async def follow(pool: Pool, over: asyncio.Event) -> list[Event]:
    """What a follower sees that begins before everybody and ends after them."""
    seen: list[Event] = []
    cursor: Cursor | None = None
    async with pool.acquire() as conn, asyncio.timeout(FOLLOW_S_MAX):
        while True:
            last = over.is_set()
            page = await feed.after(conn, cursor, limit=7)
            seen += page.events
            cursor = page.cursor
            if last and not page.more:
                return seen
            await asyncio.sleep(0.002)


async def test_followers_see_each_event_once_and_those_of_an_order_in_sequence(pool: Pool) -> None:
    """OP-54, OP-80: ids commit in any order, and no follower misses one or sees one twice."""
    ledger = Ledger(pool)
    over = asyncio.Event()
    followers = [asyncio.create_task(follow(pool, over)) for _ in range(2)]
    await asyncio.gather(*[ledger.write(writer) for writer in range(WRITERS)])
    over.set()

    written = [row["id"] for row in await pool.fetch("SELECT id FROM event ORDER BY id")]
    assert len(written) == sum(ledger.versions.values()) > CHANGES
    for seen in await asyncio.gather(*followers):
        assert [event.id for event in seen] == written
        sequences: dict[int | None, list[int | None]] = defaultdict(list)
        for event in seen:
            sequences[event.order_id].append(event.seq)
        assert sequences == {order: [*range(1, last + 1)] for order, last in ledger.versions.items() if last}


async def test_the_feed_waits_for_an_id_that_may_still_come_and_for_nothing_else(pool: Pool) -> None:
    """OP-54: a late commit is told before what was numbered after it; other people's work holds nothing up."""
    async with pool.acquire() as slow:
        change = slow.transaction()
        await change.start()
        late = await put(slow)
        early = await put(pool)
        assert late < early
        assert await read(pool) == [], "the late one may still come"
        await change.commit()
    assert await read(pool) == [late, early]

    async with (
        pool.acquire() as slow,
        pool.acquire() as backup,
        slow.transaction(),
        backup.transaction(isolation="repeatable_read", readonly=True),
    ):
        # One that writes for long and one that reads for long, as an import and a dump do.
        await slow.execute("INSERT INTO brand (slug, name) VALUES ('slow', 'Slow')")
        await backup.fetchval("SELECT count(*) FROM event")
        third = await put(pool)
        assert await read(pool, Cursor(early)) == [third]

    async with pool.acquire() as slow:
        change = slow.transaction()
        await change.start()
        await put(slow)
        fourth = await put(pool)
        assert await read(pool, Cursor(third)) == []
        await change.rollback()
    assert await read(pool, Cursor(third)) == [fourth], "an id that was given up holds nothing back"
    assert await read(pool, Cursor(10**12)) == []


async def test_a_reader_gets_what_settled_while_others_go_on_writing(pool: Pool) -> None:
    """OP-54: there is always somebody writing on a busy day; the mark follows those who were there before."""
    first = await put(pool)
    async with pool.acquire() as one, pool.acquire() as other:
        before = one.transaction()
        await before.start()
        second = await put(one)
        assert await read(pool) == [], "nobody knows yet what the writer has taken"
        after = other.transaction()
        await after.start()
        await put(other)
        await before.commit()
        assert await read(pool) == [first, second], (
            "the writer of the last look is gone, another one is there"
        )
        await after.rollback()


async def test_a_company_reads_what_concerns_it(pool: Pool) -> None:
    """OP-80: its own events of the key's state and the catalogue's; never another's, nor the operator's."""
    own = await put(pool)
    play = await put(pool, state=1)
    other = await put(pool, company_id=2)
    product = await put(pool, kinds.PRODUCT_UPDATED, company_id=None, state=None)
    stock = await put(pool, kinds.PRODUCT_UPDATED, company_id=None, state=0)
    bought = await put(pool, kinds.ATTEMPT_SETTLED, company_id=None, state=0)
    own_order = await put(pool, order_id=8, seq=1)
    other_order = await put(pool, company_id=2, order_id=10, seq=1)

    assert await read(pool) == [own, play, other, product, stock, bought, own_order, other_order]
    assert await read(pool, company_id=1, state=State.LIVE) == [own, product, stock, own_order]
    assert await read(pool, company_id=1, state=State.SANDBOX) == [play, product]
    for order_id, found in ((8, [own_order]), (10, [])):
        filters = EventFilters(order_id=order_id)
        assert await read(pool, None, filters, company_id=1, state=State.LIVE) == found
    async with pool.acquire() as conn:
        seen = [
            number
            for number in range(1, other_order + 2)
            if await feed.find(conn, number, 1, State.LIVE) is not None
        ]
    assert seen == [own, product, stock, own_order]


async def test_filters_pass_over_most_events_in_bounded_steps(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-80: a rare type, an hour of long ago: a read looks at so many events and no more, and says where to go on."""
    monkeypatch.setattr(feed, "SCAN_MAX", 10)
    hour = timedelta(hours=1)
    made = [
        await put(
            pool, kinds.KEY_ROTATED if number % 25 == 7 else kinds.ORDER_CREATED, ago=(60 - number) * hour
        )
        for number in range(60)
    ]
    rare = EventFilters(types=[kinds.KEY_ROTATED])
    assert await read(pool, None, rare) == [made[7], made[32], made[57]]
    assert await read(pool, Cursor(made[7]), rare, company_id=1, state=State.LIVE) == [made[32], made[57]]

    now = clock.now()
    dated = EventFilters(date_from=now - 40.5 * hour, date_to=now - 30.5 * hour)
    assert await read(pool, None, dated) == made[20:30]
    assert await read(pool, Cursor(made[24]), dated, company_id=1, state=State.LIVE) == made[25:30]
    assert await read(pool, None, EventFilters(date_from=now)) == []
    assert await read(pool, None, EventFilters(date_to=now - 100 * hour)) == []


async def test_events_are_kept_for_their_time(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-80: the oldest are removed in bounded rounds; a cursor from before is told so, and none is lost quietly."""
    monkeypatch.setattr(feed, "REMOVE_MAX", 3)
    day = timedelta(days=1)
    # An old one that is numbered after a young one waits for it, so that what is kept has no holes.
    made = [await put(pool, ago=days * day) for days in (120, 110, 100, 95, 10, 99, 5)]

    assert [await feed.remove_old(pool) for _ in range(3)] == [3, 1, 0]

    assert await read(pool) == made[4:]
    assert await read(pool, Cursor(made[3])) == made[4:]
    with pytest.raises(feed.Removed):
        await read(pool, Cursor(made[2]))
    assert await pool.fetchval("SELECT removed FROM event_mark") == made[3]
    async with transaction(pool) as tx:
        assert await tx.fetchval("SELECT removed_at < now() - interval '94 days' FROM event_mark")
