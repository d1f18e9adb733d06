"""A catalogue of a million products: a page at both ends of each order, filters, search, and the sweep for stock."""

from __future__ import annotations

import time
from typing import Final

from bench.figures import Row, judged
from bench.goods import RARE, stock_catalogue
from bench.jobs import spread
from bench.session import Session, sound
from voucherd.api.catalogue_requests import number_cursor, place_cursor
from voucherd.ids import State
from voucherd.storefront import changes, stock
from voucherd.storefront.listing import Filters, Order, page_of_products, plan_for_values
from voucherd.storefront.sorting import Sort

PAGE: Final = 50
TIMES_THE_FIRST_MAX: Final = 3.0
ROUNDS: Final = 20


async def measure(session: Session) -> None:
    """Walk, filter and search, from one connection; then let the worker's sweep look at slices of it all."""
    plan = session.plan
    (buyer,) = await session.seeder.buyers(1)
    await stock_catalogue(session.stage.pool, plan.products)
    await _sweep(session)
    pages = await _pages(session)
    async with session.stage.server() as server:
        first_ms = 0.0
        for name, (path, bounded) in pages.items():
            how = {"paths": [path], "warm_s": plan.warm_s, "load_s": plan.load_s}
            tally = sound(await server.load(keys=buyer.keys, connections=1, **how))
            first_ms = first_ms or tally.first.p50_ms
            ratio = tally.first.p50_ms / first_ms
            goal = judged(f"≤ {TIMES_THE_FIRST_MAX:g} × the first", ratio <= TIMES_THE_FIRST_MAX)
            session.add(
                Row(
                    what=f"{plan.products:,} products: {name}",
                    rate=tally.rate,
                    times=tally.first,
                    tally=tally,
                    more=f"{ratio:.2f} × the first page",
                    goal=goal if bounded else None,
                )
            )


async def _pages(session: Session) -> dict[str, tuple[str, bool]]:
    """The paths to ask for, and whether each is to cost no more than a first page does."""
    start = f"/api/1.03/product?limit={PAGE}"
    depth = session.plan.products * 9 // 10
    pages = {"by name, first page": (f"{start}&cursor=", True)}
    async with session.stage.pool.acquire() as conn, conn.transaction():
        await plan_for_values(conn)
        for sort in Sort:
            order = Order(sort)
            (row,) = await page_of_products(conn, State.LIVE, Filters(), order, size=1, skip=depth)
            cursor = place_cursor(row.place, order)
            pages[f"by {sort.value}, {depth:,} deep"] = (f"{start}&sortBy={sort.value}&cursor={cursor}", True)
        newest = await changes.newest(conn)
    walk = f"{start}&cursor="
    return pages | {
        "by price in USD, first page": (f"{walk}&sortBy=price&paymentCurrency=USD", True),
        "one category by price": (f"{walk}&category=category-3&sortBy=price", False),
        "a rare category by price": (f"{walk}&category={RARE}&sortBy=price", True),
        "one brand by name": (f"{walk}&brandSlug=brand-77", True),
        "out of stock by name": (f"{walk}&isStocked=false", True),
        "search for a rare word": (f"{walk}&q={RARE}", True),
        "search for two words": (f"{walk}&q=coffee+gift", False),
        "search for the beginning of many words": (f"{walk}&q=gi", False),
        "first page with the total": (start, True),
        "one product": ("/api/1.03/product/p-4711", True),
        "the last changes": (
            f"/api/1.03/product/changes?limit={PAGE}&since={number_cursor(newest - PAGE)}",
            True,
        ),
        "all categories": ("/api/1.03/category", True),
        "a page of brands": (f"/api/1.03/brand?limit={PAGE}&cursor=", True),
    }


async def _sweep(session: Session) -> None:
    """Rounds that announce, then rounds that find nothing new."""
    pool, after = session.stage.pool, 0
    times: dict[bool, list[float]] = {True: [], False: []}
    announced = 1
    rounds_max = session.plan.products // stock.SLICE + 2
    for _ in range(rounds_max):
        began = time.perf_counter()
        done = await stock.announce(pool, after)
        times[True].append(time.perf_counter() - began)
        announced, after = announced + done.announced, done.after
    for _ in range(ROUNDS):
        began = time.perf_counter()
        after = (await stock.announce(pool, after)).after
        times[False].append(time.perf_counter() - began)
    for news, words in ((True, "3,000 of them new"), (False, "nothing new")):
        what = f"stock of {stock.SLICE:,} products compared, {words}"
        session.add(Row(what=what, times=spread(times[news]), more="one round of the worker, once a second"))
