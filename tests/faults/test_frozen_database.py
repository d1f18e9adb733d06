"""A database that hangs: every call is answered in time, nobody is lied to, and sales go on when it is back."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.freezing import FreezingProxy, freezing
from tests.pages.people import HTML, someone
from tests.patience import HANG_S, own_time, until, until_true
from tests.shop import Company, Shop, open_shop
from tests.wire.test_access_matrix import ALL, ROWS, House
from voucherd.api.errors import Op
from voucherd.api.routes import ROUTES
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money
from voucherd.pages.page import SLOW_TIMES, Audience
from voucherd.pages.routes import PAGES
from voucherd.server.protocol import ApiProtocol

LIMIT_S: Final = 1.0
WAIT_S: Final = 0.5
RESOLVE_S: Final = 2.0
BATCH_S: Final = 0.5
BUSY_S: Final = 20.0
"""A busy machine may look at its clocks so much later; without a limit a call hangs for more than a minute."""
LIMITS_S: Final = {Op.CONFIRM: WAIT_S + LIMIT_S, Op.CANCEL: WAIT_S + LIMIT_S, Op.RESOLVE: RESOLVE_S}
LATE: Final = "no answer in time"
LATE_WRITE: Final = "no answer in time: it may be done or not, so look before you send it again"
CART: Final = {"items": [{"productSlug": "gift", "amount": 1}], "paymentCurrency": "EUR"}


@dataclass
class Answered:
    """What a client got, and how long it took by its clock."""

    response: httpx.Response
    took_s: float


@dataclass
class Street:
    """A shop on a port, with a database that can be frozen."""

    shop: Shop
    proxy: FreezingProxy
    client: httpx.AsyncClient
    clock: Callable[[], float]

    def freeze(self, *, answers_only: bool = False) -> None:
        """Let the database hang from now on; keys that were seen before stay known, so that calls get to their work."""
        authenticator = self.shop.program.authenticator
        authenticator._fresh_until = math.inf
        self._bound(LIMIT_S, LIMITS_S, BATCH_S)
        if answers_only:
            self.proxy.hold_answers()
        else:
            self.proxy.freeze()

    def thaw(self) -> None:
        """The database is back; from now on a slow machine is no reason to give up."""
        self.proxy.thaw()
        self._bound(HANG_S, {}, HANG_S)

    def _bound(self, limit_s: float, limits_s: dict[Op, float], batch_s: float) -> None:
        """Change the limits of a running shop: the shop is furnished without haste."""
        services = self.shop.program.services
        services.settings = replace(services.settings, answer_limit_s=limit_s)
        self.shop.app.service.answer_limit.limit_s = limit_s
        self.shop.program.api._limits_s = limits_s
        for batcher in self.shop.order_service.batchers.values():
            batcher._run_s_max = batch_s

    async def call(self, method: str, path: str, company: Company, **options: Any) -> Answered:
        """A call of this company, timed."""
        headers = company.bearer() | options.pop("headers", {})
        return await self.timed(self.client.request(method, path, headers=headers, **options))

    async def timed(self, asking: Awaitable[httpx.Response]) -> Answered:
        """The answer, and how long it took."""
        began = self.clock()
        return Answered(await asking, self.clock() - began)


@asynccontextmanager
async def listening(shop: Shop) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the shop over a real socket."""
    config = uvicorn.Config(
        shop.app, http=ApiProtocol, loop="none", lifespan="off", log_config=None, access_log=False
    )
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: ApiProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    limits = httpx.Limits(max_connections=None)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with httpx.AsyncClient(base_url=address, timeout=HANG_S, limits=limits) as client:
        yield client
    server.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await until_true(lambda: not state.connections)
    await server.wait_closed()


@pytest.fixture
async def street(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Street]:
    """A shop without a worker behind a proxy that flows; `pool` goes past the proxy."""
    async with (
        freezing(database_url) as proxy,
        open_shop(pool, proxy.url, tmp_path, with_worker=False, confirm_wait_s=WAIT_S) as shop,
        listening(shop) as client,
        own_time() as clock,
    ):
        await shop.product("gift", price="1.00 EUR", stock=20)
        yield Street(shop, proxy, client, clock)
        proxy.thaw()


async def test_every_call_is_answered_within_its_limit_while_the_database_hangs(street: Street) -> None:
    """OP-109, OP-46: 503 with Retry-After, by the client's clock; no call is told that nothing has happened."""
    shop = street.shop
    company = await shop.company(scopes=ALL)
    things = await House(shop).furnish(company, "one")
    street.freeze()
    asked: list[tuple[Op, float, Awaitable[Answered]]] = []
    for route, version in [(one, version) for one in ROUTES for version in one.versions]:
        row = ROWS[route.op]
        path = "/".join(things[row.takes] if part.startswith("{") else part for part in route.path.split("/"))
        # A stream begins before it has anything to tell, and its bad cursor is refused without the database.
        query = "" if route.op is Op.EVENT_STREAM else row.query
        limit_s = LIMITS_S.get(route.op, LIMIT_S)
        # What is there in the sandbox alone refuses a live key before it asks the database.
        own = company.bearer(State.LIVE if row.in_sandbox is None else State.SANDBOX)
        call = street.call(route.method, f"/api/{version}/{path}{query}", company, json=row.body, headers=own)
        asked.append((route.op, limit_s, call))
    answers = await asyncio.gather(*[call for *_, call in asked])

    for (op, limit_s, _), answer in zip(asked, answers, strict=True):
        response = answer.response
        assert response.status_code == 503, (op, response.status_code, response.text)
        assert response.headers["retry-after"] == "1", op
        assert response.text in (LATE, LATE_WRITE, "service unavailable"), (op, response.text)
        assert answer.took_s < limit_s + BUSY_S, op

    street.thaw()
    await _sells(street, company)
    await shop.assert_books_balance()


async def test_every_page_is_answered_within_its_limit_while_the_database_hangs(street: Street) -> None:
    """OP-109: a page that says so, in time; those that need no database are shown."""
    shop = street.shop
    people = {
        Audience.OPERATOR: await someone(shop, "admin"),
        Audience.COMPANY: await someone(shop, "owner", await shop.company()),
    }
    # What is asked for need not be there: the session is looked for first.
    paths = [page.path.replace("{", "").replace("}", "") for page in PAGES]
    street.freeze()
    calls = [
        street.timed(
            street.client.request(
                page.method,
                path,
                headers=HTML
                | {"cookie": f"voucherd={people.get(page.audience, people[Audience.COMPANY]).token}"},
            )
        )
        for page, path in zip(PAGES, paths, strict=True)
    ]
    answers = await asyncio.gather(*calls)
    late = 0
    for page, answer in zip(PAGES, answers, strict=True):
        response = answer.response
        named = f"{page.method} {page.path}: {response.status_code}"
        assert answer.took_s < SLOW_TIMES * LIMIT_S + BUSY_S, named
        if page.audience is Audience.LINK and response.status_code < 500:
            continue
        assert response.status_code == 503, named
        assert response.headers["retry-after"] == "1", named
        assert "text/html" in response.headers["content-type"], named
        late += 1
    assert late > len(PAGES) * 9 // 10

    street.thaw()
    owner = people[Audience.COMPANY]
    assert (await owner.get("/portal")).status_code == 200
    await shop.assert_books_balance()


async def test_who_was_answered_late_finds_what_became_of_the_order(street: Street) -> None:
    """OP-109, OP-28: it was stored and its answer got lost; Find and the same key tell so, and it is paid once."""
    shop = street.shop
    company = await shop.company(balance="10.00 EUR")
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    key = {"idempotency-key": "once"}
    path = f"/api/1.03/order/confirm/{trx}"
    street.freeze(answers_only=True)
    lost = await street.call("PATCH", path, company, headers=key)
    assert lost.response.status_code == 503, lost.response.text
    street.thaw()

    async def again() -> httpx.Response | None:
        answer = (await street.call("PATCH", path, company, headers=key)).response
        return None if answer.status_code in (409, 503) else answer

    repeated = await until(again)

    assert repeated is not None
    assert repeated.status_code == 200, repeated.text
    assert repeated.json()["orderStatus"] == "finished"
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert await shop.balance(company) == Money.read("8.00 EUR")
    assert await shop.left("gift") == 18
    await shop.assert_books_balance()


async def test_a_resolve_is_never_answered_with_a_lie(street: Street) -> None:
    """OP-46, OP-109: 503 does not say what became of it; afterwards it is paid whole or not at all."""
    shop = street.shop
    company = await shop.company(balance="10.00 EUR")
    orders = [(await shop.create(company, ("gift", 1)))["trx"] for _ in range(6)]
    street.freeze(answers_only=True)
    half = [street.call("PATCH", f"/api/1.03/order/resolve/{trx}", company) for trx in orders[:3]]
    answers = list(await asyncio.gather(*half))
    street.proxy.freeze()
    other = [street.call("PATCH", f"/api/Next/order/resolve/{trx}", company) for trx in orders[3:]]
    answers += await asyncio.gather(*other)
    assert {answer.response.status_code for answer in answers} == {503}
    assert max(answer.took_s for answer in answers) < RESOLVE_S + BUSY_S
    street.thaw()

    async def settled() -> list[str] | None:
        if await shop.pool.fetchval("SELECT EXISTS (SELECT FROM orders WHERE status = 1)"):
            return None
        return [(await shop.find(company, trx))["orderStatus"] for trx in orders]

    statuses = await until(settled) or []

    assert len(statuses) == len(orders)
    assert set(statuses) <= {"created", "finished", "cancelled"}
    paid = statuses.count("finished")
    assert await shop.balance(company) == Money.read(f"{10 - paid}.00 EUR")
    assert await shop.held(company) == 0
    await shop.assert_books_balance()


async def test_sales_go_on_when_the_database_is_back(street: Street) -> None:
    """OP-109: batches that hung are over, their connections dropped, and nobody waits for them."""
    shop = street.shop
    company = await shop.company()
    service_pool = shop.program.services.pool
    for _ in range(2):
        trx = (await shop.create(company, ("gift", 1)))["trx"]
        street.freeze()
        hung = [
            street.call("PATCH", f"/api/1.03/order/confirm/{trx}", company),
            street.call("POST", "/api/1.03/order", company, json=CART),
            street.call("GET", f"/api/1.03/order/{trx}", company),
            *(street.call("GET", "/api/1.03/account", company) for _ in range(30)),
        ]
        answers = await asyncio.gather(*hung)
        assert {answer.response.status_code for answer in answers} == {503}

        def is_idle() -> bool:
            return not any(one.in_flight for one in shop.order_service.batchers.values())

        # They end while the database still hangs.
        await until_true(is_idle)
        street.thaw()
        await _sells(street, company)
    assert service_pool.get_size() <= shop.settings.pool_size
    await shop.assert_books_balance()


@pytest.mark.soak
async def test_resolves_are_answered_within_30_seconds_whenever_the_database_hangs(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-46: with the limits as they are, by the client's clock, from a freeze at any time of a Resolve's life."""
    limits: dict[str, Any] = {
        "resolve_limit_s": 30.0,
        "answer_limit_s": 15.0,
        "batch_limit_s": 4.0,
        "confirm_wait_s": 25.0,
    }
    async with (
        freezing(database_url) as proxy,
        open_shop(pool, proxy.url, tmp_path, **limits) as shop,
        listening(shop) as client,
    ):
        street = Street(shop, proxy, client, time.monotonic)
        company = await shop.company(balance="1000.00 EUR")
        await shop.product("later", price="1.00 EUR", async_delivery=True)
        took_s: list[float] = []
        for frozen_after_s in (0.0, 2.0, 15.0, 27.0, 28.9, 29.3):
            orders = [(await shop.create(company, ("later", 1)))["trx"] for _ in range(20)]
            calls = [
                asyncio.create_task(street.call("PATCH", f"/api/1.03/order/resolve/{trx}", company))
                for trx in orders
            ]
            await asyncio.sleep(frozen_after_s)
            proxy.freeze()
            answers = await asyncio.gather(*calls)
            proxy.thaw()
            took_s += [answer.took_s for answer in answers]
            for answer in answers:
                assert answer.response.status_code == 503 or (
                    answer.response.json()["orderStatus"] == "cancelled"
                )
            for trx in orders:
                found = await until(partial(_settled, shop, company, trx))
                assert found in ("created", "cancelled")
        assert max(took_s) <= 30.0
        assert await shop.balance(company) == Money.read("1000.00 EUR")
        await shop.assert_books_balance()


async def _settled(shop: Shop, company: Company, trx: str) -> str | None:
    order_id = shop.ids.order_id(trx)
    if await shop.pool.fetchval("SELECT status = 1 FROM orders WHERE id = $1", order_id):
        return None
    answer = await shop.call("GET", f"/api/1.03/order/{trx}", company)
    return str(answer.json()["orderStatus"]) if answer.status_code == 200 else None


async def _sells(street: Street, company: Company) -> None:
    """A sale from Create to its codes; the first tries may meet connections that are being opened."""

    async def sold() -> bool:
        made = (await street.call("POST", "/api/1.03/order", company, json=CART)).response
        if made.status_code == 503:
            return False
        assert made.status_code == 201, made.text
        path = f"/api/1.03/order/confirm/{made.json()['trx']}"
        paid = (await street.call("PATCH", path, company)).response
        assert paid.status_code in (200, 503), paid.text
        return paid.status_code == 200 and paid.json()["orderStatus"] == "finished"

    began = street.clock()
    await until(sold, "sales did not go on")
    assert street.clock() - began < BUSY_S
