"""Nothing that the program does again and again costs more because more was sold before, whatever plans were made from.

Each statement runs with the plan that was made for empty tables, with one for full tables that nobody has analysed, and
with one for tables that are known. What it touches with a history of so many orders must be about what it touches
with a quarter of it.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.growth.trade import Trade, trading
from voucherd import trail
from voucherd.approvals import lists as approvals
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.metrics.of_shop import ShopWatch
from voucherd.orders import find, register
from voucherd.orders.rules.states import Status
from voucherd.orders.service import OrderService
from voucherd.pages.buyer import order_list
from voucherd.pages.console import search
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES
from voucherd.purchasing import metrics
from voucherd.storefront import metrics as stock_metrics
from voucherd.wallet import statement
from voucherd.webhooks import history
from voucherd.worker import ROUNDS

SMALL: Final = 4_000
LARGE: Final = 4 * SMALL
SCAN_MAX: Final = 500
"""Rows that a list may look at for a rare one, in this test: less than there are of any kind."""
NOBODY: Final = 1_000_000
"""No company has this number."""
GROWS_MAX: Final = 1.2
HALVING: Final = {
    "/portal/balances/{currency}": 2.0,
    "/portal/balances/EUR?kind=hold": 2.0,
    "/portal/orders/{trx}": 2.0,
}
"""A look that halves takes two steps more in a history of four times the size, down an index of a level more."""
SLACK: Final = 15
"""Pages: an index has a level more here and there."""

Work: TypeAlias = Callable[[], Awaitable[Any]]
Row: TypeAlias = Callable[[Trade], Awaitable[Work]]
"""Makes ready what the work needs, which is not counted, and gives the work."""


def reads(path: str) -> Row:
    """A call of the API that reads; {trx}, {cursor} and so on are of the middle of the history."""

    async def ready(trade: Trade) -> Work:
        filled = path.format_map(await trade.names())
        return lambda: trade.get(filled)

    return ready


OWN: Final = {"/console/brands/{slug}": {"slug": "testbrand"}}
"""Places that mean something else in a path than in others."""


def opens(path: str, *, operator: bool = False) -> Row:
    """A page, opened by the owner of the company or by an administrator."""

    async def ready(trade: Trade) -> Work:
        names = await trade.names()
        if path.startswith("/console/staff/"):
            names["person"] = str(trade.admin.user_id)
        # The operator's people know a key by its number, its company's by its name.
        filled = path.format_map(names | OWN.get(path, {}) if operator else names | {"key": names["own_key"]})
        return lambda: trade.open(trade.admin if operator else trade.owner, filled)

    return ready


async def _create(trade: Trade) -> Work:
    return trade.new_order


async def _quote(trade: Trade) -> Work:
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    return lambda: trade.shop.call("POST", "/api/1.03/order/quote", trade.company, json=body)


def _finalise(operation: str) -> Row:
    async def ready(trade: Trade) -> Work:
        trx = await trade.new_order()
        return lambda: trade.shop.finalise(operation, trade.company, trx)

    return ready


async def _look_again(trade: Trade) -> Work:
    order_id = await trade.old_order()
    service = trade.shop.order_service
    return lambda: service.look_again(order_id, trade.company.id, State.LIVE, resolve=False)


async def _show(trade: Trade) -> Work:
    service = trade.shop.order_service
    order = (await service.find(await trade.old_order(), trade.company.id, State.LIVE)).order
    return lambda: service.show(order)


def _listed(company_id: int | None, status: Status | None = None) -> Row:
    """`voucherd order list`, on the program's connection."""

    async def ready(trade: Trade) -> Work:
        async def work() -> None:
            async with trade.pool.acquire() as conn:
                await register.newest(conn, company_id=company_id, status=status, limit=20)

        return work

    return ready


OPERATIONS: Final[dict[str, Row]] = {
    "create": _create,
    "quote": _quote,
    "confirm": _finalise("confirm"),
    "resolve": _finalise("resolve"),
    "cancel": _finalise("cancel"),
    "find": reads("order/{trx}"),
    "find_moved": reads("order/{trx}?wait=1"),
    "find_apart": reads("order/{trx}/line"),
    "note_download": reads("order/{trx}/codes.csv"),
    "find_all": reads("order?cursor="),
    "browse": opens("/portal/orders"),
    "count_pending": opens("/portal"),
    "look_again": _look_again,
    "show": _show,
}
"""Every operation on orders."""
ORDERED: Final = {"create", "look_again", "show"}
"""Those that make an order, or need one."""

LISTS: Final[dict[str, Row]] = (
    {
        path: reads(path)
        for path in (
            "order",
            "order?sortOrder=asc",
            "order?cursor={cursor}",
            "order?cursor={cursor}&sortOrder=asc",
            "order?cursor=&orderStatus=created",
            "order?cursor=&orderStatus=pending",
            "order?orderStatus=pending",
            "order?cursor={cursor}&orderStatus=cancelled",
            "order?cursor=&type=portal",
            "order?type=portal",
            "order?cursor=&productSlug=bought-10",
            "order?cursor=&productSlug=past-10",
            "order?cursor=&paymentCurrency=USD",
            "order?cursor=&dateFrom={moment}&dateTo={moment}",
            "order?dateFrom={moment}",
            "order?reference=invoice%202000",
            "order?trx={trx}",
            "event",
            "event?cursor={event}",
            "event?type=order.expired",
            "event?trx={trx}",
            "event?dateFrom={moment}",
            "account",
            "account/EUR/entry",
            "account/EUR/entry?cursor={place}",
            "account/EUR/entry?kind=refund",
            "account/EUR/entry?kind=hold",
            "account/EUR/entry?trx={trx}",
            "account/EUR/entry?dateFrom={moment}&sortOrder=asc",
            "webhook/{webhook}/delivery",
            "webhook/{webhook}/delivery?cursor={event}",
            "webhook/{webhook}/delivery?status=failed",
            "webhook/{webhook}/delivery?eventType=order.expired",
            "product/changes",
        )
    }
    | {
        path: opens(path, operator=path.startswith("/console"))
        for path in (
            "/portal/orders?status=pending",
            "/portal/orders?status=created&type=portal",
            "/portal/orders?q=invoice%202000",
            "/portal/orders?q=none%20such",
            "/portal/orders?sort=created",
            "/portal/balances/EUR?kind=hold",
            "/portal/balances/EUR?sort=at",
            "/portal/requests?sort=at",
            "/portal/webhooks/{webhook}?status=failed",
            "/console/orders?status=pending",
            "/console/orders?status=created&from={day}&to={day}",
            "/console/orders?company={buyer}",
            "/console/orders?company={buyer}&status=pending",
            "/console/orders?q=invoice%202000",
            "/console/orders?before={trx}",
            "/console/orders?sort=created",
            "/console/orders?sort=created&status=pending&from={day}&to={day}",
            "/console/orders?sort=created&company={buyer}&before={trx}",
            "/console/search?q=invoice%202000",
            "/console/search?q=one",
            "/console/search?q={purchase}",
            "/console/search?q={trx}",
            "/console/search?q=ZZZZZZ",
            "/console/trail?company={buyer}",
            "/console/trail?actor=nobody",
            "/console/trail?action=key.made",
            "/console/trail?from={day}&to={day}",
            "/console/trail?sort=at",
            "/console/trail?sort=at&company={buyer}",
            "/console/trail?sort=at&actor=nobody",
            "/console/trail?sort=at&from={day}&to={day}",
            "/console/purchases?problem=any",
            "/console/purchases?problem=any&status=bought",
            "/console/purchases?problem=any&status=calling",
            "/console/purchases?supplier=one",
            "/console/purchases?sort=placed",
            "/console/purchases?sort=placed&supplier=one",
            "/console/purchases?sort=placed&status=unknown",
            "/console/late-codes?sort=placed",
            "/console/reveals?trx={trx}",
            "/console/lots?slug=bought-10&sold_out=yes",
            "/console/lots?sold_out=yes&sort=added",
            "/console/lots?sort=-expires",
            "/console/lots?slug=bought-10&sort=-expires",
            "/console/products?sort=name",
            "/console/products?sort=-brand&q=gift",
        )
    }
    | {
        "order list": _listed(None),
        "order list --status pending": _listed(None, Status.PENDING),
        "order list --company, of one without orders": _listed(NOBODY),
    }
)
"""Lists with their filters: those that find a page, those that find nothing, and those that begin in the middle."""

BY_DESIGN: Final = {
    "/console/trail/check": "it checks every block of the trail",
    "/console/reports/{report}/csv": "a report adds up all that was sold in its span",
    "/console/reports/{report}": "as above",
    "/console/reports": "as above",
    "/portal/balances/{currency}/statement.csv": "a file of all movements",
    "/portal/orders/{trx}/live": "it does not end",
    "/portal/orders/-/export": "a file of all orders",
    "/portal/requests/{number}": "the log of requests has a bound of its own, and this history none in it",
    "/console/products/-/files/{upload}": "nobody uploaded anything",
    "/console/products/-/files/{upload}/progress": "as above",
    "/console/stock/import/{upload}": "as above",
    "/console/stock/import/{upload}/progress": "as above",
    "/console/products/-/export": "a file of all products",
    "/console/products/-/list": "as above",
    "/console/orders/-/file": "a file of all orders",
    "/console/purchases/-/file": "a file of all purchases",
    "/console/lots/-/file": "a file of all lots",
    "/console/late-codes/-/file": "a file of all late codes",
    "/console/trail/-/file": "a file of all deeds",
    "/console/money/{number}": "nobody proposed anything",
    "/console/fx/{currency}": "there is one currency only",
    "/console/fx/{currency}/file": "as above",
    "/console/prices/{list}": "there is no price list",
    "/console/prices/{list}/file": "as above",
    "/console/suppliers/{name}/test": "it calls the supplier",
    "/console/suppliers/{name}/offers/edit": "its address names an offer",
    "/console/companies/{company}/statement/file": "a file of all movements",
    "/account/passkeys/{passkey}/remove": "nobody has a passkey",
    "/account/sessions/{session}/end": "one browser is signed in",
}
"""Pages that may walk through everything, or that this history has nothing for."""


def pages() -> dict[str, Row]:
    """Every page that shows something of a company's or the operator's, with places of the history in its path."""
    rows = {}
    for page in PAGES:
        shown = page.audience in (Audience.COMPANY, Audience.OPERATOR, Audience.SIGNED_IN)
        if page.method == "GET" and shown and page.path not in BY_DESIGN:
            rows[page.path] = opens(page.path, operator=page.audience is Audience.OPERATOR)
    return rows


async def _figures(trade: Trade) -> Work:
    """What a scrape asks the database."""

    async def scrape() -> None:
        watch = ShopWatch(trade.shop.program.services.pool)
        await watch.refresh()
        assert watch._answered

    return scrape


def rounds() -> dict[str, Row]:
    """Every round of the worker, when it finds nothing to do."""

    def row(name: str) -> Row:
        async def ready(trade: Trade) -> Work:
            return lambda: trade.worker.run_once(name)

        return ready

    return {f"round {round_.name}": row(round_.name) for round_ in ROUNDS}


def test_every_operation_on_orders_has_a_row() -> None:
    """A new one has to be added above."""
    known = {
        name
        for name, value in vars(OrderService).items()
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    }
    assert known - {"stop"} == set(OPERATIONS)


async def measure(trade: Trade, rows: dict[str, Row]) -> dict[str, Counter[str]]:
    """What each touches, when the rounds have nothing left to do."""
    await trade.drain()
    return {name: await trade.touched(await ready(trade)) for name, ready in rows.items()}


def grown(
    small: dict[str, Counter[str]], large: dict[str, Counter[str]], plans: str, most: float = GROWS_MAX
) -> dict[str, str]:
    """Those that cost more, and where."""
    return {
        name: f"{name}, {plans}: {before.total()} → {large[name].total()}: {(large[name] - before).most_common(3)}"
        for name, before in small.items()
        if large[name].total() > HALVING.get(name, most) * before.total() + SLACK
    }


async def grown_twice(
    trade: Trade, rows: dict[str, Row], small: dict[str, Counter[str]], plans: str, most: float = GROWS_MAX
) -> list[str]:
    """Those that cost more in two looks.

    Tables that other tests make in the same server may push out what a session knows of ours: it reads that again.
    """
    costly = grown(small, await measure(trade, rows), plans, most)
    again = await measure(trade, {name: rows[name] for name in costly}) if costly else {}
    return list(grown({name: small[name] for name in costly}, again, plans, most).values())


async def test_nothing_grows(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds, operations, pages and lists touch as much with four times the orders, statistics or none."""
    for module in (find, history, register, statement, trail):
        monkeypatch.setattr(module, "SCAN_MAX", SCAN_MAX)
    for name, most in {"PURCHASES_MAX": 20, "WAITS_COUNTED_MAX": 20, "WAITS_COUNTED_MIN": 1}.items():
        monkeypatch.setattr(metrics, name, most)
    monkeypatch.setattr(order_list, "COUNT_MAX", SCAN_MAX)
    monkeypatch.setattr(stock_metrics, "SALES_LOOKED_AT", 20)
    monkeypatch.setattr(search, "TRXS_MAX", 20)
    monkeypatch.setattr(approvals, "LOOKED_AT_MAX", 20)
    monkeypatch.setattr(trail, "ABOUT_SCAN_MAX", 20)
    rows = rounds() | OPERATIONS | LISTS | {"figures": _figures} | pages()
    async with trading(pool, database_url, tmp_path, monkeypatch, LARGE) as trade:
        await trade.begin()
        # Once with nothing there, so that as many statements as can be are planned for tables without a row.
        await measure(trade, {name: row for name, row in rows.items() if name not in ORDERED})
        trade.untouched = False
        await measure(trade, rows)
        await trade.grow(SMALL)
        small = await measure(trade, rows)
        await trade.grow(LARGE)
        faults = await grown_twice(trade, rows, small, "planned when empty")
        await trade.pool.expire_connections()
        # Joins may begin elsewhere from now on, which costs a page some more look-ups and nothing that grows.
        faults += await grown_twice(trade, rows, small, "planned without statistics", most=2.0)
        await pool.execute("ANALYZE")
        faults += await grown_twice(trade, rows, small, "planned with statistics", most=2.0)
    assert not faults, "\n".join(faults)
