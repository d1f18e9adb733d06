"""Another company's order and one that does not exist are the same to a client: in words, in headers and in time."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from itertools import product
from pathlib import Path

import pytest

from tests.faults.stumbling import Stumble, Way, open_stumbling_pool
from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd import app
from voucherd.db import Pool
from voucherd.ids import Identifiers, State
from voucherd.keys import authenticator
from voucherd.suppliers import offer_book

ROUNDS = 250
STATEMENTS_MAX = 100
KINDS = ("foreign", "foreign and finished", "of no order", "of another master key")
CALLS = (
    ("GET", "/api/1.03/order/{trx}"),
    ("GET", "/api/Next/order/{trx}"),
    ("GET", "/api/1.03/order/{trx}?wait=5"),
    ("GET", "/api/1.03/order/{trx}/line"),
    ("GET", "/api/1.03/order/{trx}/codes.csv"),
    ("PATCH", "/api/1.03/order/confirm/{trx}"),
    ("PATCH", "/api/1.00/order/confirm/{trx}"),
    ("PATCH", "/api/1.03/order/resolve/{trx}"),
    ("PATCH", "/api/1.03/order/cancel/{trx}"),
)
MOVING = ("x-request-id", "ratelimit")
"""Headers that differ from call to call."""


async def trxs(shop: Shop, company: Company) -> dict[str, str]:
    """Names that are all nobody's to this company."""
    other = await shop.company()
    large = await shop.create(other, *[("gift-10", 1) for _ in range(20)])
    finished = await shop.create(other, ("gift-10", 3))
    await shop.confirm(other, finished["trx"])
    sandbox = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    deleted = await shop.create(company, ("gift-10", 1))
    await shop.cancel(company, deleted["trx"])
    return {
        "foreign": large["trx"],
        "foreign and finished": finished["trx"],
        "of the other state": sandbox["trx"],
        "deleted": deleted["trx"],
        "of no order": shop.ids.trx(1 << 40),
        "of another master key": Identifiers(bytes(32)).trx(2),
        "malformed": "TRX0",
        "nothing of ours": "x" * 200,
    }


async def test_what_is_not_ours_is_not_there(quiet_shop: Shop) -> None:
    """OP-02, OP-20, OP-22: the same status, words and headers, whatever the reason; and nothing was locked for it."""
    shop = quiet_shop
    await shop.product("gift-10", stock=50)
    company = await shop.company()
    names = await trxs(shop, company)
    # Whoever is not the owner must not so much as wait for the owner's locks.
    foreign = [shop.ids.order_id(names[name]) for name in ("foreign", "foreign and finished")]
    async with asyncio.timeout(HANG_S), shop.pool.acquire() as holder, holder.transaction():
        await holder.execute("SELECT FROM orders WHERE id = ANY ($1::bigint[]) FOR UPDATE", foreign)
        for method, path in CALLS:
            answers = []
            for trx in names.values():
                answer = await shop.call(method, path.format(trx=trx), company)
                fixed = {k: v for k, v in answer.headers.items() if k not in MOVING}
                answers.append((answer.status_code, answer.text.lower(), fixed))
            expected = (404, "order not found", answers[-1][2])
            assert [one for one in answers if one != expected] == [], (method, path)
    await shop.assert_books_balance()


async def test_a_foreign_order_is_as_much_work_as_one_that_is_not_there(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-02: the database is asked the same, in the same order, so that no clock can tell them apart."""
    monkeypatch.setattr(app, "open_pool", open_stumbling_pool)
    # What the process knows it keeps, or a slow machine would ask for it again in some of the calls.
    monkeypatch.setattr(authenticator, "TRUST_S", 2 * HANG_S)
    monkeypatch.setattr(offer_book, "EPOCH_AGE_S_MAX", 2 * HANG_S)
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        await shop.product("gift-10", stock=50)
        company = await shop.company()
        names = await trxs(shop, company)
        alike = [names[kind] for kind in KINDS]
        for method, path in CALLS:
            asked = []
            for trx in (*alike, *alike):
                plan = Stumble(STATEMENTS_MAX, Way.RAISED, shop.pool)
                await plan.during(shop.call(method, path.format(trx=trx), company))
                asked.append(plan.statements)
            # The first round fills what the process remembers.
            assert {tuple(statements) for statements in asked[len(alike) :]} == {tuple(asked[-1])}, (
                method,
                path,
            )
            assert len(asked[-1]) < STATEMENTS_MAX


@pytest.mark.soak
async def test_a_foreign_order_takes_as_long_as_one_that_is_not_there(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-02: alternating, the medians differ by little, and neither is usually the slower one."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        await shop.product("gift-10", stock=50)
        company = await shop.company()
        names = await trxs(shop, company)
        chance = random.Random(2)
        kinds = KINDS
        for method, path in (("GET", "/api/1.03/order/{trx}"), ("PATCH", "/api/1.03/order/confirm/{trx}")):
            took: dict[str, list[float]] = {kind: [] for kind in kinds}
            for at in range(ROUNDS + 20):
                # In another order each time: whoever comes after a slow one is slow, too.
                for kind in chance.sample(kinds, len(kinds)):
                    began = time.perf_counter()
                    await shop.call(method, path.format(trx=names[kind]), company)
                    if at >= 20:
                        took[kind].append(time.perf_counter() - began)
            medians = {kind: statistics.median(times) for kind, times in took.items()}
            print(method, {kind: f"{1e6 * median:.0f} µs" for kind, median in medians.items()})  # noqa: T201
            assert max(medians.values()) < 1.4 * min(medians.values()), medians
            for foreign, unknown in product(kinds[:2], kinds[2:]):
                # The part of pairs in which the foreign one was slower: a half if nothing can be told.
                slower = sum(a > b for a, b in zip(took[foreign], took[unknown], strict=True)) / ROUNDS
                assert 0.3 < slower < 0.7, (method, foreign, unknown, slower)
