"""A shop with a history, and how many pages of the database's tables each thing that it does touches."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.growth import history
from tests.pages.people import Someone, someone
from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd import app, db, heartbeat
from voucherd.actors import SYSTEM
from voucherd.api import query, requests
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.money import RATE_ONE
from voucherd.request_log import collector
from voucherd.suppliers.store import FreshQuote, SupplierDraft, add_offer, add_supplier, save_quotes
from voucherd.webhooks import deeds as webhook_deeds
from voucherd.webhooks.endpoints import Draft
from voucherd.worker import ROUNDS, Worker

DRAINS_MAX: Final = 1_000
STATEMENTS_MAX: Final = 10_000
_STOCK: Final = 500

_BLOCKS: Final = """
    SELECT relname, pg_stat_get_blocks_fetched(oid) FROM pg_class
    WHERE relkind IN ('r', 'i', 't')
      AND (relnamespace = current_schema()::regnamespace OR relnamespace = 'pg_toast'::regnamespace AND oid >= 16384)
"""
"""Of our tables, their indexes and what they keep apart; the system's own have smaller numbers."""


class Trade:
    """A shop whose program has one connection, so that each statement keeps the plan of its first run."""

    def __init__(self, shop: Shop, stock: int) -> None:
        self.shop = shop
        self._stock = stock
        self.filled = 0
        self.untouched = True
        """Whether there is no order yet at all."""
        self.places: dict[str, object] = {}
        self.company: Company
        self.owner: Someone
        self.admin: Someone
        services = shop.program.services
        self.pool: Pool = services.pool
        self.worker = Worker(self.pool, services.sealer, shop.settings, ids=services.ids)

    async def begin(self) -> None:
        """What is there before the first order."""
        shop, pool = self.shop, self.shop.pool
        await history.keep_unknown(pool)
        self.company = await shop.company(balance="100000.00 EUR", scopes=frozenset(Scope))
        rows = await pool.fetch(
            "INSERT INTO company (name, country) SELECT 'Other ' || n, 'NL' FROM generate_series(1, $1) n RETURNING id",
            history.OTHERS,
        )
        assert [row[0] for row in rows] == [self.company.id + 1 + at for at in range(history.OTHERS)]
        await pool.execute(
            "INSERT INTO wallet (id, company_id, currency, state) SELECT nextval('wallet_number') * 2, id, 'EUR', 0"
            " FROM company WHERE id <> $1",
            self.company.id,
        )
        past = await shop.product("past-10")
        for _ in range(0, self._stock, history.LOT_SIZE):
            await shop.stock("past-10", history.LOT_SIZE)
        lots = await pool.fetchval("SELECT array_agg(id ORDER BY id)::text FROM lot")
        await shop.product("gift-10", stock=_STOCK)
        later = await shop.product("later", async_delivery=True)
        bought = await shop.product("bought-10")
        self.owner, asker = (
            await someone(shop, "owner", self.company),
            await someone(shop, "buyer", self.company),
        )
        self.admin = await someone(shop, "admin")
        async with transaction(pool) as tx:
            draft = SupplierDraft("one", "http", State.LIVE, {}, quote_age_s=86_400)
            supplier = await add_supplier(tx, draft, shop.sealer)
            await add_offer(tx, supplier, bought.product_id, sku="B", face_minor=1_000)
            fresh = [FreshQuote(bought.product_id, 1_000, 5, 900, None, "EUR", RATE_ONE)]
            await save_quotes(tx, supplier, fresh, ())
            quote = await tx.fetchval("SELECT max(id) FROM quote")
            hook = Draft("https://hooks.example.com/")
            webhook, _ = await webhook_deeds.add(tx, SYSTEM, shop.sealer, self.company.id, State.LIVE, hook)
        self.places = {
            "company": self.company.id,
            "gift": past.version_id,
            "later": later.version_id,
            "later_product": later.product_id,
            "bought_product": bought.product_id,
            "lots": f"'{lots}'::bigint[]",
            "asker": asker.user_id,
            "decider": self.owner.user_id,
            "supplier": supplier.id,
            "quote": quote,
            "webhook": webhook.id,
        }

    async def grow(self, upto: int) -> None:
        """Let the history have so many orders."""
        await history.fill(self.shop.pool, self.filled, upto, self.places)
        self.filled = upto

    async def drain(self) -> None:
        """Run every round until it finds nothing more to do."""
        for round_ in ROUNDS:
            for _ in range(DRAINS_MAX):
                if await round_.work(self.worker) == 0:
                    break

    async def old_order(self) -> int:
        """A finished order of the company from the middle of its history; any number before there is one."""
        found = await self.shop.pool.fetchval(
            "SELECT id FROM orders WHERE id >= $1 AND company_id = $2 AND status = 2 ORDER BY id LIMIT 1",
            history.FIRST + self.filled // 2 * 2,
            self.company.id,
        )
        return int(found or history.FIRST)

    async def names(self) -> dict[str, str]:
        """What stands for places in paths, from the middle of the history."""
        ids, order_id = self.shop.ids, await self.old_order()
        at, event_id, place = await self.shop.pool.fetchrow(  # type: ignore[misc]
            """
            SELECT coalesce((SELECT created_at FROM orders WHERE id = $1), now()),
                   coalesce((SELECT max(id) FROM event WHERE order_id = $1), 1),
                   coalesce((SELECT max(seq) FROM entry WHERE order_id = $1), 1)
            """,
            order_id,
        )
        return {
            "trx": ids.trx(order_id),
            "cursor": requests.cursor_of(ids, at, order_id),
            "moment": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "day": at.strftime("%Y-%m-%d"),
            "event": ids.event(event_id),
            "place": query.write_place(place),
            "webhook": ids.webhook(int(str(self.places["webhook"]))),
            "company": str(self.company.id),
            "person": str(self.owner.user_id),
            "key": str(await self._key()),
            "buyer": self.company.name,
            "currency": "EUR",
            "slug": "gift-10",
            "own_key": ids.key(await self._key()),
            "name": "one",
            "purchase": str(
                uuid.UUID(hashlib.md5(str(order_id).encode(), usedforsecurity=False).hexdigest())
            ),
        }

    async def _key(self) -> int:
        """A key of the company."""
        found = await self.shop.pool.fetchval(
            "SELECT min(id) FROM api_key WHERE company_id = $1", self.company.id
        )
        return int(found)

    async def new_order(self, slug: str = "gift-10") -> str:
        """A new order of the company; before the very first one, the name of one that is not there."""
        if self.untouched:
            return self.shop.ids.trx(history.FIRST)
        return str((await self.shop.create(self.company, (slug, 1)))["trx"])

    async def get(self, path: str) -> None:
        """A call of the API that reads."""
        self._fine(await self.shop.call("GET", f"/api/1.03/{path}", self.company))

    async def open(self, person: Someone, path: str) -> None:
        """A page, opened by somebody."""
        self._fine(await person.get(path))

    async def touched(self, work: Callable[[], Awaitable[Any]]) -> Counter[str]:
        """How many pages of each table and each index the work touches, those of its triggers included."""
        before = await self._blocks()
        await work()
        after = await self._blocks()
        return after - before

    def _fine(self, answer: httpx.Response) -> None:
        # A page of the history is not there before the history is, but it has been looked for.
        fine = (200, 303) if self.filled else (200, 303, 404)
        assert answer.status_code in fine, (answer.request.url, answer.status_code, answer.text[:500])

    async def _blocks(self) -> Counter[str]:
        # Of the program's connection, and of the test's own: what it looked up before must not be counted later.
        for pool in (self.pool, self.shop.pool):
            await pool.execute("SELECT pg_stat_force_next_flush()")
        return Counter({row[0]: row[1] for row in await self.shop.pool.fetch(_BLOCKS)})


@asynccontextmanager
async def trading(
    pool: Pool, database_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, stock: int
) -> AsyncIterator[Trade]:
    """A trade that begins; the settings of its connection are the service's own."""
    monkeypatch.setattr(app, "open_pool", partial(_one_connection, db.open_pool))
    # Nothing is counted that a process does by itself.
    monkeypatch.setattr(heartbeat, "EVERY_S", HANG_S)
    monkeypatch.setattr(collector, "EVERY_S", HANG_S)
    async with open_shop(pool, database_url, folder, with_worker=False, confirm_wait_s=0) as shop:
        yield Trade(shop, stock)


async def _one_connection(open_pool: Callable[..., Awaitable[Pool]], url: str, **options: Any) -> Pool:
    pool = await open_pool(url, **options | {"size_max": 1, "size_min": 1})
    async with pool.acquire() as connection:
        # The driver forgets what was not asked for lately. A busy connection asks for all of it again and again.
        cache: Any = connection._stmt_cache  # type: ignore[attr-defined]
        cache.set_max_size(STATEMENTS_MAX)
        cache.set_max_lifetime(0)
    return pool
