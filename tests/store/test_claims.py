"""Claims: many workers, no line twice, no call too many, companies in turns; and what becomes of a dead one's work."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from tests.patience import HANG_S
from tests.store.stalls import COMPANIES, ground, queue_up, stall
from voucherd.db import Pool, transaction
from voucherd.orders import wait_store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.rules.ruling import Windows
from voucherd.purchasing import attempts, claims, outcomes, routing
from voucherd.purchasing.attempts import Attempt, AttemptChange, AttemptPhase
from voucherd.purchasing.claims import Turns, claim
from voucherd.purchasing.outcomes import SupplierCall
from voucherd.suppliers.offer_book import OfferBook
from voucherd.suppliers.store import SupplierRow


async def claimed(
    pool: Pool, row: SupplierRow, *, bulk_max: int = 10, worker: str = "w", turns: Turns | None = None
) -> list[Attempt]:
    """One claim."""
    return await claim(pool, OfferBook(), row, bulk_max=bulk_max, worker=worker, turns=turns or Turns())


async def places(pool: Pool) -> list[tuple[int, int, int, bool]]:
    """Every wait: its order, its lines, and whether it is being bought."""
    rows = await pool.fetch(
        "SELECT order_id, line_from, line_to, attempt_id IS NOT NULL FROM waiting ORDER BY 1, 2"
    )
    return [tuple(row) for row in rows]


async def test_a_wait_that_is_too_large_is_cut_and_what_is_left_waits_on(pool: Pool) -> None:
    """Invariant 4: no line is lost and none is bought twice; the rest stays with the supplier."""
    await ground(pool)
    row = await stall(pool, concurrency_max=2)
    await queue_up(pool, 2, (0, 25), (30, 33))

    made = await claimed(pool, row, bulk_max=10)

    assert sorted(attempt.count for attempt in made) == [10, 10]
    assert await places(pool) == [(2, 0, 10, True), (2, 10, 20, True), (2, 20, 25, False), (2, 30, 33, False)]
    assert await pool.fetchval("SELECT count(*) FROM waiting WHERE supplier_id = $1", row.id) == 2
    lines = await pool.fetch("SELECT line_from, line_to FROM attempt_line ORDER BY 1")
    assert [tuple(line) for line in lines] == [(0, 10), (10, 20)]
    stocks = await pool.fetch("SELECT stock FROM offer ORDER BY product_id")
    assert [one[0] for one in stocks] == [1_000_000 - 20, 1_000_000]
    assert await claimed(pool, row) == [], "all the calls that may be made at once are under way"


async def test_claims_of_many_workers_never_meet_and_keep_to_the_limit(pool: Pool) -> None:
    """The limit of calls at once holds across all workers on all machines, exactly."""
    await ground(pool)
    row = await stall(pool, concurrency_max=3)
    for order_id in range(2, 42, 2):
        await queue_up(pool, order_id, (0, 1))
    got: list[Attempt] = []
    for _ in range(5):
        rounds = await asyncio.gather(
            *(claimed(pool, row, bulk_max=1, worker=f"w{at}") for at in range(6) for _ in range(2))
        )
        made = [attempt for claimed_ in rounds for attempt in claimed_]
        assert len(made) == 3
        got += made
        await pool.execute("UPDATE attempt SET status = 4, ended_at = now() WHERE status = 0")

    lines = await pool.fetch("SELECT order_id, line_from FROM attempt_line")
    assert len({tuple(line) for line in lines}) == len(lines) == len(got) == 15


async def test_a_claim_waits_for_no_other_and_counts_what_that_has_begun(pool: Pool) -> None:
    """Lock, then read; a call whose lease ended is not under way any more."""
    await ground(pool)
    row = await stall(pool, concurrency_max=1)
    await queue_up(pool, 2, (0, 1))
    await queue_up(pool, 4, (0, 1))

    async with transaction(pool) as tx:
        await tx.execute("SELECT FROM supplier_health FOR UPDATE")
        assert await asyncio.wait_for(claimed(pool, row), HANG_S) == []
    assert len(await claimed(pool, row, bulk_max=1)) == 1
    assert await claimed(pool, row) == []
    await pool.execute("UPDATE attempt SET lease_until = now() - interval '1 second'")
    assert len(await claimed(pool, row)) == 1


async def test_companies_take_turns_at_a_supplier_however_long_their_queues_are(pool: Pool) -> None:
    """OP-48: a long queue delays another company by at most one batch, here of two purchases of three."""
    await ground(pool)
    row = await stall(pool, concurrency_max=2)
    for at in range(6):
        await queue_up(pool, 2 + at * COMPANIES * 2, (0, 4_000))
    for order_id in (4, 6, 8):
        await queue_up(pool, order_id, (0, 3))
    turns, served = Turns(), []
    for _ in range(4):
        made = await claimed(pool, row, bulk_max=3, turns=turns)
        rows = await pool.fetch(
            "SELECT o.company_id, sum(l.line_to - l.line_from) FROM attempt_line l JOIN orders o ON o.id = l.order_id"
            " WHERE l.attempt_id = ANY($1::uuid[]) GROUP BY 1 ORDER BY 1",
            [attempt.id for attempt in made],
        )
        served.append({row[0]: row[1] for row in rows})
        await pool.execute("UPDATE attempt SET status = 4, ended_at = now() WHERE status = 0")

    assert served == [{1: 6}, {2: 3, 3: 3}, {1: 3, 4: 3}, {1: 6}]


async def test_a_resolve_is_claimed_first_alone_and_only_if_all_of_it_can_be_had(pool: Pool) -> None:
    """OP-47: Resolve never waits behind others; a supplier that lacks some of it is not asked."""
    await ground(pool)
    row = await stall(pool, stock=5, concurrency_max=3)
    await queue_up(pool, 2, (0, 2))
    await queue_up(pool, 4, (0, 4), urgent=True)
    await queue_up(pool, 6, (0, 6), urgent=True)

    made = await claimed(pool, row)

    assert [(attempt.urgent, attempt.count) for attempt in sorted(made, key=lambda one: -one.count)] == [
        (True, 4),
        (False, 1),
    ]
    away = await pool.fetchrow("SELECT supplier_id, ask_at IS NOT NULL FROM waiting WHERE order_id = 6")
    assert tuple(away or ()) == (None, True)


async def test_nothing_is_claimed_for_a_cancelled_order_or_one_whose_time_is_up(pool: Pool) -> None:
    """OP-44, OP-45."""
    await ground(pool)
    row = await stall(pool)
    await queue_up(pool, 2, (0, 1))
    await queue_up(pool, 4, (0, 1))
    await pool.execute("UPDATE orders SET cancelling = true WHERE id = 2")
    await pool.execute("UPDATE waiting SET deadline_at = now() WHERE order_id = 4")

    assert await claimed(pool, row) == []


async def test_a_dead_workers_purchase_is_taken_over_and_its_no_counts_no_more(pool: Pool) -> None:
    """Decision 12: the fence grows with each owner; a yes is taken from anyone, a no only from the last."""
    await ground(pool)
    row = await stall(pool)
    await queue_up(pool, 2, (0, 1))
    caches = OrderCaches(Windows(timedelta(hours=72), timedelta(seconds=30)))
    [mine] = await claimed(pool, row)
    assert await attempts.take_over(pool, "b", 5) == [], "its lease has not ended"
    await pool.execute("UPDATE attempt SET lease_until = now() - interval '1 second'")

    two = await asyncio.gather(attempts.take_over(pool, "b", 5), attempts.take_over(pool, "c", 5))
    [theirs] = [attempt for taken in two for attempt in taken]
    assert (theirs.id, theirs.fence, theirs.look_ups) == (mine.id, mine.fence + 1, 1)
    assert await attempts.take_asking(pool, "d", 5) == [], "it is leased while it is looked up"
    await outcomes.fail(pool, caches, mine, "no", SupplierCall())
    await outcomes.ask_again(pool, mine, "who knows", SupplierCall(), None)
    await outcomes.give_up(pool, caches, mine, "who knows", SupplierCall(), rebuy=True)
    assert await pool.fetchval("SELECT status FROM attempt") == AttemptPhase.ASKING
    assert await places(pool) == [(2, 0, 1, True)]

    await pool.execute("UPDATE attempt SET ask_at = now()")
    [last] = await attempts.take_asking(pool, "d", 5)
    await outcomes.fail(pool, caches, theirs, "no", SupplierCall())
    assert await pool.fetchval("SELECT status FROM attempt") == AttemptPhase.ASKING
    await outcomes.fail(pool, caches, last, "no", SupplierCall())
    assert await pool.fetchval("SELECT status FROM attempt") == AttemptPhase.FAILED
    assert await places(pool) == [(2, 0, 1, False)]


async def test_a_wait_can_not_be_moved_off_a_purchase_that_is_under_way(pool: Pool) -> None:
    """Invariant 4: the schema refuses what the code must not do, in every phase."""
    await ground(pool)
    row = await stall(pool)
    await queue_up(pool, 2, (0, 1))
    [attempt] = await claimed(pool, row)

    async def leave() -> None:
        async with transaction(pool) as tx:
            waits = await wait_store.lock(tx, [2])
            await wait_store.move(tx, waits[2])

    async def note(phase: AttemptPhase, ask_in_s: float | None = None) -> None:
        async with transaction(pool) as tx:
            assert (await attempts.lock(tx, attempt.id)).fence == 1
            await attempts.note(tx, attempt.id, AttemptChange(phase, ask_in_s=ask_in_s))

    for phase, ask_in_s in ((AttemptPhase.CALLING, None), (AttemptPhase.ASKING, 1.0)):
        await note(phase, ask_in_s)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="under way"):
            await leave()
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
        await note(AttemptPhase.CALLING)
    await note(AttemptPhase.FAILED)
    for phase, ask_in_s in ((AttemptPhase.ASKING, 1.0), (AttemptPhase.UNKNOWN, None)):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="append-only"):
            await note(phase, ask_in_s)
    await leave()
    assert await places(pool) == [(2, 0, 1, False)]


async def test_waits_are_routed_away_from_and_to_suppliers(pool: Pool) -> None:
    """OP-44: the best supplier first, another when it can't be used, a pause when nobody is left."""
    await ground(pool)
    one, two = await stall(pool, "one"), await stall(pool, "two")
    book = OfferBook()
    await queue_up(pool, 2, (0, 1), place="ask_at = now() - interval '1 second'")
    await queue_up(pool, 4, (0, 1), place="ask_at = now() + interval '1 hour'")
    await queue_up(pool, 6, (0, 1), place="rounds = 0")
    await queue_up(pool, 8, (0, 1), place="rounds = 0, not_before = now() + interval '1 hour'")

    async def at() -> list[int | str | None]:
        rows = await pool.fetch(
            "SELECT supplier_id, ask_at <= now() + interval '1 second' FROM waiting ORDER BY order_id"
        )
        return [row[0] or {True: "now", False: "later", None: None}[row[1]] for row in rows]

    assert (await routing.route(pool, book)).count == 1
    assert await at() == [one.id, "later", None, None]
    async with pool.acquire() as conn:
        faces = await routing.waiting_faces(conn, 0, 1, 1, 5_000)
        assert faces == [(1, 1_000, 0)]
        await routing.wake(conn, faces)
    assert await at() == [one.id, "now", "now", "later"], "what asked to be slow stays so (OP-49)"
    await pool.execute("UPDATE supplier SET active = false WHERE id = $1", one.id)
    assert (await routing.leave(pool, book, one.id)).count == 1
    assert (await routing.route(pool, book)).count == 2
    assert await at() == [two.id, two.id, two.id, "later"]
    await pool.execute("UPDATE supplier SET active = false WHERE id = $1", two.id)
    assert (await routing.leave(pool, book, two.id)).count == 3
    assert None not in await at()
    assert await claims.wanted_suppliers(pool) == []  # type: ignore[arg-type]
