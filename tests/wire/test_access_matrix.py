"""Every route × every caller who must not get at it: the rows are made from the table of routes itself.

A new operation needs a row here that says whose things it takes and what each caller is told; without one this fails.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from tests.shop import Company, Shop, open_shop
from voucherd.api.errors import Op
from voucherd.api.routes import ROUTES, Route
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.keys.key_text import KeyDraft, Scope, key_hash, new_key, read_networks
from voucherd.request_log import store as request_log
from voucherd.request_log.store import Answered

ALL: Final = frozenset(Scope)
LISTED: Final = "198.51.100.7"
CART: Final = {"items": [{"productSlug": "gift", "amount": 1}], "paymentCurrency": "EUR"}
HOOK: Final = {"url": "https://hooks.shop.com/x"}
NO_ORDER: Final = (404, "order not found")
NO_WEBHOOK: Final = (404, "webhook not found")
NO_KEY: Final = (404, "key not found")
NO_EVENT: Final = (404, "event not found")
INACTIVE: Final = (400, "company not active")
SANDBOX_ONLY: Final = (400, "for sandbox keys only")


@dataclass(frozen=True)
class Row:
    """What an operation takes, and what it tells whom."""

    stranger: tuple[int, str] | int
    """What another company, and the same one in the other state, gets for this company's things."""
    inactive: tuple[int, str] | int = 200
    """What a company that is not active gets for its own."""
    takes: str = ""
    """The parameter in its path."""
    body: Any = None
    query: str = ""
    in_sandbox: int | None = None
    """What a sandbox key of the same company gets, where that is something else."""


ROWS: Final[dict[Op, Row]] = {
    Op.CREATE: Row(201, INACTIVE, body=CART),
    Op.QUOTE: Row(200, INACTIVE, body=CART),
    Op.FIND_ALL: Row(200),
    Op.FIND: Row(NO_ORDER, takes="trx"),
    Op.LINES: Row(NO_ORDER, takes="trx"),
    Op.CODES: Row(NO_ORDER, takes="trx"),
    Op.PROTECT: Row(NO_ORDER, takes="trx", body={"pin": None}),
    Op.CONFIRM: Row((404, "Order not found"), INACTIVE, takes="trx"),
    Op.RESOLVE: Row(NO_ORDER, INACTIVE, takes="trx"),
    Op.CANCEL: Row(NO_ORDER, 204, takes="trx"),
    Op.ACCOUNTS: Row(200),
    Op.STATEMENT: Row((404, "account not found"), takes="currency"),
    Op.PRODUCTS: Row(200),
    Op.PRODUCT: Row(200, takes="slug"),
    Op.PRODUCT_CHANGES: Row(200),
    Op.BRANDS: Row(200),
    Op.BRAND: Row(200, takes="brand"),
    Op.CATEGORIES: Row(200),
    Op.FX_RATES: Row(200),
    Op.WEBHOOKS: Row(200),
    Op.ADD_WEBHOOK: Row(201, 201, body=HOOK),
    Op.WEBHOOK: Row(NO_WEBHOOK, takes="webhook"),
    Op.CHANGE_WEBHOOK: Row(NO_WEBHOOK, takes="webhook", body={"description": "mine now"}),
    Op.ROTATE_WEBHOOK: Row(NO_WEBHOOK, takes="webhook"),
    Op.DELIVERIES: Row(NO_WEBHOOK, takes="webhook"),
    Op.TEST_WEBHOOK: Row(NO_WEBHOOK, 202, takes="webhook"),
    Op.RECOVER_WEBHOOK: Row(NO_WEBHOOK, 202, takes="webhook", query=f"?since={datetime.now(UTC):%Y-%m-%d}"),
    Op.REMOVE_WEBHOOK: Row(NO_WEBHOOK, 204, takes="webhook"),
    Op.REPLAY_EVENT: Row(NO_EVENT, 202, takes="event"),
    Op.EVENTS: Row(200),
    Op.EVENT: Row(NO_EVENT, takes="event"),
    # A stream has no end; whom it tells what is proven in test_event_streams.py. A bad cursor shows who gets as far.
    Op.EVENT_STREAM: Row(400, 400, query="?cursor=1"),
    Op.KEYS: Row(200),
    Op.ADD_KEY: Row(201, 201, body={}),
    Op.KEY: Row(NO_KEY, takes="key"),
    Op.CHANGE_KEY: Row(NO_KEY, takes="key", body={"description": "mine now"}),
    Op.ROTATE_KEY: Row(NO_KEY, 201, takes="key"),
    Op.REVOKE_KEY: Row(NO_KEY, 204, takes="key"),
    Op.PLAY_MONEY: Row(SANDBOX_ONLY, SANDBOX_ONLY, in_sandbox=200),
    Op.CLOCK: Row(SANDBOX_ONLY, SANDBOX_ONLY, in_sandbox=200),
    Op.ADVANCE_CLOCK: Row(SANDBOX_ONLY, SANDBOX_ONLY, body={"seconds": 1}, in_sandbox=200),
    Op.RESET_CLOCK: Row(SANDBOX_ONLY, SANDBOX_ONLY, in_sandbox=200),
    Op.TRIGGER_EVENT: Row(SANDBOX_ONLY, SANDBOX_ONLY, body={"type": "order.created"}, in_sandbox=202),
    Op.REQUESTS: Row(200),
    Op.REQUEST: Row((404, "request not found"), takes="request"),
}
LAST: Final = (Op.CANCEL, Op.ROTATE_WEBHOOK, Op.REMOVE_WEBHOOK, Op.ROTATE_KEY, Op.REVOKE_KEY)
"""What ends things, asked after all else."""
UNKNOWN: Final = {
    "trx": "TRX" + "0" * 26,
    "webhook": "wh_" + "0" * 26,
    "event": "evt_" + "0" * 26,
    "key": "key_" + "0" * 26,
    "currency": "SEK",
    "request": "req_unknown",
}


def test_every_operation_has_a_row() -> None:
    """Whoever adds a route says here what strangers get of it."""
    assert set(ROWS) == {route.op for route in ROUTES}
    for route in ROUTES:
        assert bool(ROWS[route.op].takes) == ("{" in route.path), route.path


class House:
    """Companies with something of everything."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self._callers = itertools.count(1)

    async def furnish(self, company: Company, name: str) -> dict[str, str]:
        """What a company has, by the parameter that names it; each says whose it is."""
        shop = self.shop
        await shop.top_up(company, "5.00 GBP")
        trx = (await shop.create(company, ("gift", 1), reference=f"canary {name}"))["trx"]
        hook = (await shop.call("POST", "/api/1.03/webhook", company, json=HOOK)).json()["id"]
        event = (await shop.call("POST", f"/api/1.03/webhook/{hook}/test", company)).json()["eventId"]
        made = await shop.call("POST", "/api/1.03/key", company, json={"description": f"canary {name}"})
        shared = {"slug": "gift", "brand": "testbrand", "currency": "GBP", "request": f"call-of-{name}"}
        seen = (datetime.now(UTC), shared["request"], 1, "GET", "/api/1.03/order", 200, 1, "", "")
        await request_log.write(shop.pool, [Answered(company.id, State.LIVE, *seen)])
        return {"trx": trx, "webhook": hook, "event": event, "key": made.json()["id"]} | shared

    async def key(self, company: Company, **rights: Any) -> dict[str, str]:
        """The header of a new live key."""
        plain: dict[str, Any] = {"scopes": ALL, "rate_limit": 1_000_000}
        draft = KeyDraft(**(plain | rights))
        async with transaction(self.shop.pool) as tx:
            issued = await key_store.add_key(tx, company.id, State.LIVE, draft)
        return {"authorization": f"Bearer {issued.text}"}

    async def call(
        self,
        route: Route,
        version: str,
        things: dict[str, str],
        headers: dict[str, str],
        *,
        once: bool = False,
    ) -> httpx.Response:
        """The route, asked for these things; each call seems to come from another place."""
        row, number = ROWS[route.op], next(self._callers)
        path = "/".join(things[row.takes] if part.startswith("{") else part for part in route.path.split("/"))
        origin = {"x-forwarded-for": f"{LISTED}, 203.0.{number // 250}.{number % 250 + 1}"}
        key = {"idempotency-key": f"matrix {number}"} if once and route.writes else {}
        return await self.shop.client.request(
            route.method, f"/api/{version}/{path}{row.query}", headers=origin | headers | key, json=row.body
        )

    async def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that a call could change."""
        tables = {
            "webhook": "*",
            "webhook_delivery": "*",
            "idempotency": "*",
            "trail": "*",
            "order_pin": "*",
            "api_key": "id, description, revoked_at, expires_at",  # Not when it was last used.
        }
        found = await self.shop.snapshot()
        for table, columns in tables.items():
            rows = await self.shop.pool.fetch(f"SELECT {columns} FROM {table} ORDER BY 1, 2")  # noqa: S608 - Words of ours.
            found[table] = [tuple(row) for row in rows]
        return found


async def test_no_caller_gets_at_what_is_not_his(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-24, OP-29, isolation: each route and version, each caller who lacks something, and no row is different."""
    options: dict[str, Any] = {"with_worker": False, "confirm_wait_s": 0, "trusted_proxies": "127.0.0.0/8"}
    async with open_shop(pool, database_url, tmp_path, **options) as shop:
        house = House(shop)
        await shop.product("gift", price="1.00 EUR", stock=9)
        company, other, idle = [await shop.company(scopes=ALL) for _ in range(3)]
        things, _ = await house.furnish(company, "one"), await house.furnish(other, "two")
        own = await house.furnish(idle, "three")
        await shop.set_company(idle, active=False)
        await _turned_away(house, company, things)
        await _strangers(house, company, other, things)
        await shop.program.authenticator._poll(5)  # It has heard by now who is not active.
        await _inactive(house, idle, own)
        await shop.assert_books_balance()


async def _turned_away(house: House, company: Company, things: dict[str, str]) -> None:
    """No key, none of ours, a revoked one, an expired one, one for elsewhere, one without the scope."""
    shop = house.shop
    made_up = {"authorization": f"Bearer {new_key(State.LIVE).text}"}
    revoked, expired = await house.key(company), await house.key(company)
    elsewhere = await house.key(company, allow_ips=read_networks([LISTED, "127.0.0.1"]))
    lacking = {scope: await house.key(company, scopes=ALL - {scope}) for scope in Scope}
    await shop.pool.execute(
        "UPDATE api_key SET revoked_at = now() WHERE hash = $1", key_hash(revoked["authorization"][7:])
    )
    await shop.pool.execute(
        "UPDATE api_key SET expires_at = $2 WHERE hash = $1",
        key_hash(expired["authorization"][7:]),
        datetime.now(UTC) - timedelta(seconds=1),
    )
    before = await house.rows()
    for route in ROUTES:
        away = [(who, 401, "unauthorized") for who in ({}, made_up, revoked, expired)]
        away += [(who, 403, "forbidden") for who in (elsewhere, *(lacking[scope] for scope in route.scopes))]
        for version in route.served:
            for headers, status, text in away:
                answer = await house.call(route, version, things, headers, once=True)
                assert (answer.status_code, answer.text) == (status, text), (route.op, headers)
                assert ("www-authenticate" in answer.headers) == (status == 401)
    assert await house.rows() == before


async def _strangers(house: House, company: Company, other: Company, things: dict[str, str]) -> None:
    """Another company, and the other state: for them what is there is not there, in the very same words."""
    canaries = ["canary one", *(things[name] for name in ("trx", "webhook", "event", "key", "request"))]
    before = await house.rows()
    own = {
        route.op: await house.call(route, "1.03", things | UNKNOWN, company.bearer()) for route in _by_id()
    }
    for route, version in [(one, version) for one in ROUTES for version in one.served]:
        row = ROWS[route.op]
        for who, state in ((other, State.LIVE), (company, State.SANDBOX)):
            # Whoever has an account of this currency, or the same product, has one of his own.
            asked = things | ({"currency": "SEK"} if who is other else {})
            answer = await house.call(route, version, asked, who.bearer(state))
            if state is State.SANDBOX and row.in_sandbox is not None:
                assert answer.status_code == row.in_sandbox, (route.op, answer.text)
                continue
            expected = row.stranger if isinstance(row.stranger, tuple) else (row.stranger, answer.text)
            assert (answer.status_code, answer.text) == expected, (route.op, answer.text)
            # The names that a stranger tried are in the paths of his own calls, and so in his own log of them.
            foreign = ("canary one", things["request"]) if route.op is Op.REQUESTS else canaries
            assert not any(canary in answer.text for canary in foreign), route.op
            if isinstance(row.stranger, tuple) and version == "1.03":
                assert _told(answer) == _told(own[route.op]), route.op
    after = await house.rows()
    trx = things["trx"]
    assert (await house.shop.find(company, trx))["orderStatus"] == "created"
    mine = house.shop.ids.order_id(trx)
    assert [row for row in before["orders"] if row[0] == mine] == [
        row for row in after["orders"] if row[0] == mine
    ]


def _by_id() -> list[Route]:
    return [
        route for route in ROUTES if isinstance(ROWS[route.op].stranger, tuple) and "1.03" in route.versions
    ]


def _told(answer: httpx.Response) -> tuple[Any, ...]:
    """All that a client can tell answers apart by."""
    passing = ("x-request-id", "ratelimit", "date")
    return answer.status_code, answer.content, [h for h in answer.headers.items() if h[0] not in passing]


async def _inactive(house: House, idle: Company, own: dict[str, str]) -> None:
    """A company that is not active still sees and tidies up what it has, and orders nothing."""
    for route in sorted(ROUTES, key=lambda route: route.op in LAST and LAST.index(route.op) + 1):
        version = "1.03" if "1.03" in route.versions else route.versions[0]
        expected = ROWS[route.op].inactive
        answer = await house.call(route, version, own, idle.bearer())
        if isinstance(expected, int):
            expected = (expected, answer.text)
        assert (answer.status_code, answer.text) == expected, (route.op, answer.text)
