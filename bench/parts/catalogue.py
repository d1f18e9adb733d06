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
from voucherd.storefront import feed, stock
from voucherd.storefront.listing import ProductFilters, ProductOrder, page_of_products, plan_for_values
from voucherd.storefront.sorting import Sort

PAGE: Final = 50
TIMES_THE_FIRST_MAX: Final = 3.0
SEARCH_P95_MS_MAX: Final = 30.0
SEARCHES: Final = {
    "a rare word": RARE,
    "two words": "coffee+gift",
    "the beginning of many words": "gi",
    "a word of all products": "brand",
    "a word of all and a rare one": f"brand+{RARE}",
    "a word of none": "nothing",
}
ROUNDS: Final = 20


async def measure(session: Session) -> None:
    """Walk, filter and search, from one connection; then let the worker's sweep look at slices of it all."""
    plan = session.plan
    (buyer,) = await session.seeder.buyers(1)
    await stock_catalogue(session.stage.pool, plan.products, ROUNDS * stock.SLICE)
    await _sweep(session)
    pages = await _pages(session)
    async with session.stage.server() as server:
        firsts_ms: dict[str, float] = {}
        for name, path in pages.items():
            how = {"paths": [path], "warm_s": plan.warm_s, "load_s": plan.load_s}
            tally = sound(await server.load(keys=buyer.keys, connections=1, **how))
            order, _, where = name.partition(", ")
            first_ms = firsts_ms.setdefault(order, tally.first.p50_ms) if where else 0.0
            ratio = tally.first.p50_ms / first_ms if first_ms else 0.0
            goal, more = None, ""
            if name.startswith("search"):
                p95_ms = tally.first.p95_ms
                more = f"p95 {p95_ms:.1f} ms"
                goal = judged(f"p95 ≤ {SEARCH_P95_MS_MAX:g} ms", p95_ms <= SEARCH_P95_MS_MAX)
            elif where.endswith("deep"):
                more = f"{ratio:.2f} × its first page"
                goal = judged(f"≤ {TIMES_THE_FIRST_MAX:g} × its first", ratio <= TIMES_THE_FIRST_MAX)
            what = f"{plan.products:,} products: {name}"
            session.add(Row(what=what, rate=tally.rate, times=tally.first, tally=tally, more=more, goal=goal))


async def _pages(session: Session) -> dict[str, str]:
    """The paths to ask for: each order at both ends, and all that looks for something."""
    walk = f"/api/1.03/product?limit={PAGE}&cursor="
    depth = session.plan.products * 9 // 10
    pages = {}
    async with session.stage.pool.acquire() as conn, conn.transaction():
        await plan_for_values(conn)
        for sort in Sort:
            order = ProductOrder(sort)
            (row,) = await page_of_products(conn, State.LIVE, ProductFilters(), order, size=1, skip=depth)
            pages[f"by {sort.value}, first page"] = f"{walk}&sortBy={sort.value}"
            pages[f"by {sort.value}, {depth:,} deep"] = (
                f"{walk}{place_cursor(session.seeder.ids, row.place, order)}&sortBy={sort.value}"
            )
        since = number_cursor(session.seeder.ids, await feed.newest(conn) - PAGE)
    return pages | {
        "by price with prices in USD": f"{walk}&sortBy=price&paymentCurrency=USD",
        "one category by price": f"{walk}&category=category-3&sortBy=price",
        "a rare category by price": f"{walk}&category={RARE}&sortBy=price",
        "one brand by name": f"{walk}&brandSlug=brand-77",
        "out of stock by name": f"{walk}&isStocked=false",
        **{
            f"search for {what} by {sort}": f"{walk}&q={q}&sortBy={sort}"
            for what, q in SEARCHES.items()
            for sort in (Sort.NAME.value, Sort.PRICE.value)
        },
        "a page with the total": f"/api/1.03/product?limit={PAGE}",
        "one product": "/api/1.03/product/p-4711",
        "the last changes": f"/api/1.03/product/changes?limit={PAGE}&since={since}",
        "all categories": "/api/1.03/category",
        "a page of brands": f"/api/1.03/brand?limit={PAGE}&cursor=",
    }


async def _sweep(session: Session) -> None:
    """Rounds that announce, then rounds that find nothing new."""
    after = 0
    for words in ("three in five of them new", "nothing new"):
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            after = (await stock.announce(session.stage.pool, after)).after
            times.append(time.perf_counter() - began)
        what = f"stock of {stock.SLICE:,} products compared, {words}"
        session.add(Row(what=what, times=spread(times), more="one round of the worker, once a second"))
