"""Contract 7, row by row: each refusal of each operation, provoked over HTTP, in its exact words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from tests.shop import Company, Shop
from voucherd.api.errors import CODES, REFUSALS, Op
from voucherd.ids import State
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    BadInput,
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderExpired,
    OrderNotFound,
    OutOfStock,
    Refusal,
    SeveralItems,
    SpendLimitExceeded,
    WrongStatus,
)

# The rows of Contract 7. Where the contract states no code, the one of OP-20, OP-21, OP-22 or OP-02 stands in brackets.
SECTION_7 = """
### resolve
| 400 | MULTIPLE_ORDER_LINES | Order has more than one item |
| 404 | order not found | Unknown trx |
| 400 | this order can not be confirmed | Order status is not created |
| 400 | this order has expired, orders need confirmation within 24 hours | Order was created more than 24 hours ago |
| 400 | company not verified | The company is not verified |
| 422 | some offers not available: <offer_names> | One or more offers unavailable |
| 422 | Product <product_name> is out of stock | A product is out of stock |
| 402 | insufficient balance | Balance on the account is too low |
### confirm
| (400) | this order can not be confirmed | Order status is not created |
| (402) | insufficient balance | Balance on the account is too low |
| (404) | Order not found | Unknown trx |
| (422) | some offers not available: <offer_names> | One or more offers unavailable |
| (400) | this order has expired, orders need confirmation within 24 hours | Order was created more than 24 hours ago |
| (400) | company not verified | The company is not verified |
| (422) | Product <product_name> is out of stock | A product is out of stock |
### create
| (400) | company not active | The company is not active |
| (422) | Some offers not available: <offer_names> | One or more offers unavailable |
### cancel
| (400) | Invalid order status | Order is not in a cancellable status |
| (404) | order not found | Unknown trx |
### find
| (404) | order not found | Unknown trx |
"""

CONDITIONS: dict[str, type[Refusal]] = {
    "Order has more than one item": SeveralItems,
    "Unknown trx": OrderNotFound,
    "Order status is not created": WrongStatus,
    "Order is not in a cancellable status": WrongStatus,
    "Order was created more than 24 hours ago": OrderExpired,
    "The company is not verified": CompanyNotVerified,
    "The company is not active": CompanyNotActive,
    "One or more offers unavailable": OffersNotAvailable,
    "A product is out of stock": OutOfStock,
    "Balance on the account is too low": InsufficientBalance,
}


def rows() -> list[tuple[str, str, int, str]]:
    """The rows above as (operation, condition, status, message)."""
    found: list[tuple[str, str, int, str]] = []
    operation = ""
    for line in SECTION_7.strip().splitlines():
        if line.startswith("### "):
            operation = line.removeprefix("### ")
        else:
            status, message, condition = (cell.strip() for cell in line.strip("|").split("|"))
            found.append((operation, condition, int(status.strip("()")), message))
    return found


def test_the_table_of_refusals_is_section_7() -> None:
    """Contract 7, OP-20 to OP-22: every row, and beyond them only OP-23's company not active, OP-61's limits and
    OP-101's second person. Other operations follow none of it."""
    wanted: dict[tuple[Op, type[Refusal]], tuple[int, str]] = {}
    for operation, condition, status, message in rows():
        template = message.replace("<offer_names>", "{names}").replace("<product_name>", "{name}")
        wanted[Op(operation), CONDITIONS[condition]] = (status, template)
    for op in (Op.CONFIRM, Op.RESOLVE):
        wanted[op, CompanyNotActive] = (400, "company not active")
        wanted[op, SpendLimitExceeded] = (402, "spend limit exceeded")
        wanted[op, ApprovalNeeded] = (402, "approval needed")
    contract = {Op(operation) for operation, *_ in rows()}
    ours = {pair: words for pair, words in REFUSALS.items() if pair[0] in contract}
    assert ours == wanted


def test_every_refusal_has_a_stable_code() -> None:
    """OP-26: the codes of problem+json are words, and each belongs to one refusal."""
    refusals = {refusal for _, refusal in REFUSALS} | {BadInput}
    assert refusals <= set(CODES)
    assert len(set(CODES.values())) == len(CODES)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in CODES.values())


# ── how each condition comes about ──────────────────────────────────────────────────────────────────────

Provoke = Callable[[Shop, Company], Awaitable[str]]


async def one_gift(shop: Shop, company: Company) -> str:
    """An order that can be finalised."""
    return str((await shop.create(company, ("gift-10", 1)))["trx"])


async def two_items(shop: Shop, company: Company) -> str:
    """An order with two items."""
    return str((await shop.create(company, ("gift-10", 1), ("gift-20", 1)))["trx"])


async def unknown(shop: Shop, company: Company) -> str:
    """A trx that nobody made."""
    return "TRX" + "0" * 26


async def finished(shop: Shop, company: Company) -> str:
    """An order that is finished."""
    trx = await one_gift(shop, company)
    await shop.confirm(company, trx)
    return trx


async def expired(shop: Shop, company: Company) -> str:
    """An order that is a little older than 24 hours."""
    trx = await one_gift(shop, company)
    await shop.age(trx, "24 hours 1 second")
    return trx


async def unverified(shop: Shop, company: Company) -> str:
    """An order of a company that lost its verification."""
    trx = await one_gift(shop, company)
    await shop.set_company(company, verified=False)
    return trx


async def withdrawn(shop: Shop, company: Company) -> str:
    """An order of a product that went off sale."""
    trx = await one_gift(shop, company)
    await shop.set_product("gift-10", active=False)
    return trx


async def sold_out(shop: Shop, company: Company) -> str:
    """An order of a product that others bought meanwhile."""
    trx = await one_gift(shop, company)
    other = await shop.company()
    rest = await shop.create(other, ("gift-10", await shop.left("gift-10")))
    await shop.confirm(other, rest["trx"])
    return trx


async def poor(shop: Shop, company: Company) -> str:
    """An order one cent dearer than the balance: 10 × 9.50 of 94.99 EUR."""
    return str((await shop.create(company, ("gift-10", 10)))["trx"])


PROVOKE: dict[type[Refusal], Provoke] = {
    SeveralItems: two_items,
    OrderNotFound: unknown,
    WrongStatus: finished,
    OrderExpired: expired,
    CompanyNotVerified: unverified,
    OffersNotAvailable: withdrawn,
    OutOfStock: sold_out,
    InsufficientBalance: poor,
}
FINAL = [row for row in rows() if row[0] in ("confirm", "resolve", "cancel", "find")]


@pytest.mark.parametrize(("operation", "condition", "status", "message"), FINAL)
async def test_each_row_is_what_a_client_gets(
    quiet_shop: Shop, operation: str, condition: str, status: int, message: str
) -> None:
    """Contract 7: status, words, text/plain; and nothing has changed. In every version of the operation."""
    shop = quiet_shop
    company = await shop.company(balance="94.99 EUR")
    await shop.product("gift-10", name="Gift of 10", stock=12)
    await shop.product("gift-20", stock=2)
    trx = await PROVOKE[CONDITIONS[condition]](shop, company)
    text = message.replace("<offer_names>", "Gift of 10").replace("<product_name>", "Gift of 10")

    method, path = ("GET", "order") if operation == "find" else ("PATCH", f"order/{operation}")
    versions = {"confirm": ("1.03", "1.00"), "resolve": ("1.03", "Next"), "find": ("1.00", "1.03", "Next")}
    for version in versions.get(operation, ("1.03",)):
        await shop.assert_refused(shop.call(method, f"/api/{version}/{path}/{trx}", company), status, text)
    await shop.assert_books_balance()


async def test_create_is_refused_to_an_inactive_company(quiet_shop: Shop) -> None:
    """Contract 7: company not active; Confirm and Resolve say the same (OP-23), Find and Cancel still work."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    trx = await one_gift(shop, company)
    await shop.set_company(company, active=False)

    await shop.assert_refused(shop.try_create(company, ("gift-10", 1)), 400, "company not active")
    for operation in ("confirm", "resolve"):
        await shop.assert_refused(shop.finalise(operation, company, trx), 400, "company not active")
    assert (await shop.find(company, trx))["orderStatus"] == "created"
    assert (await shop.cancel(company, trx)).status_code == 204
    await shop.assert_books_balance()


async def test_create_names_all_that_is_missing_in_the_order_of_the_request(quiet_shop: Shop) -> None:
    """Contract 7, OP-21: unknown (by slug), withdrawn and short of stock; what can come later is not missing."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", name="Gift, of 10", stock=2)
    await shop.product("gift-20", name="Gift of 20", stock=5)
    await shop.product("later", async_delivery=True)
    await shop.set_product("gift-20", active=False)

    for items, names in [
        ([("gift-20", 1), ("nothing", 1), ("gift-10", 3)], "Gift of 20, nothing, Gift, of 10"),
        ([("gift-10", 2), ("gift-10", 1)], "Gift, of 10"),
        ([("later", 1), ("NOTHING", 1), ("nothing", 1), ("nothing", 1)], "NOTHING, nothing"),
    ]:
        message = f"Some offers not available: {names}"
        await shop.assert_refused(shop.try_create(company, *items), 422, message)
    await shop.create(company, ("later", 10_000))
    await shop.assert_books_balance()


async def test_several_withdrawn_products_are_named_in_the_order_of_the_items(quiet_shop: Shop) -> None:
    """Contract 7: some offers not available, with commas between."""
    shop = quiet_shop
    company = await shop.company()
    for slug in ("one", "two", "three"):
        await shop.product(slug, stock=2)
    order = await shop.create(company, ("three", 1), ("two", 1), ("one", 1))
    await shop.set_product("one", active=False)
    await shop.set_product("three", active=False)

    refused = shop.finalise("confirm", company, order["trx"])
    await shop.assert_refused(refused, 422, "some offers not available: Three, One")
    await shop.assert_books_balance()


async def test_the_first_refusal_wins_over_http_too(quiet_shop: Shop) -> None:
    """OP-23: an order that breaks every condition at once is told the first, then the next as each is mended."""
    shop = quiet_shop
    company = await shop.company(balance="0.01 EUR")
    await shop.product("gift-10", stock=1)
    await shop.product("gift-20", stock=1)
    single = (await shop.create(company, ("gift-10", 1)))["trx"]
    double = (await shop.create(company, ("gift-10", 1), ("gift-20", 1)))["trx"]
    stranger = await shop.company()
    rest = await shop.create(stranger, ("gift-10", 1))
    await shop.confirm(stranger, rest["trx"])
    await shop.set_product("gift-10", active=False)
    for trx in (single, double):
        await shop.age(trx, "25 hours")
    await shop.set_company(company, active=False, verified=False)

    async def refused(caller: Company, trx: str, operation: str, status: int, text: str) -> None:
        await shop.assert_refused(shop.finalise(operation, caller, trx), status, text)

    await refused(stranger, double, "resolve", 404, "order not found")
    await refused(company, double, "resolve", 400, "company not active")
    await shop.set_company(company, active=True)
    await refused(company, double, "resolve", 400, "company not verified")
    await shop.set_company(company, verified=True)
    expired_text = "this order has expired, orders need confirmation within 24 hours"
    await refused(company, double, "resolve", 400, expired_text)
    for trx in (single, double):
        await shop.age(trx, "-25 hours")
    await refused(company, double, "resolve", 400, "MULTIPLE_ORDER_LINES")
    for operation in ("confirm", "resolve"):
        await refused(company, single, operation, 422, "some offers not available: Gift 10")
    await shop.set_product("gift-10", active=True)
    for operation in ("confirm", "resolve"):
        await refused(company, single, operation, 422, "Product Gift 10 is out of stock")
    await shop.stock("gift-10", 1)
    for operation in ("confirm", "resolve"):
        await refused(company, single, operation, 402, "insufficient balance")
    await shop.top_up(company, "9.49 EUR")
    assert (await shop.resolve(company, single))["orderStatus"] == "finished"
    await shop.set_company(company, verified=False)
    await refused(company, single, "resolve", 400, "company not verified")
    await shop.set_company(company, verified=True)
    await shop.age(single, "25 hours")
    await refused(company, single, "resolve", 400, "this order can not be confirmed")
    await shop.assert_books_balance()


@pytest.mark.parametrize("state", list(State))
async def test_every_other_status_is_refused_by_confirm_resolve_and_cancel(
    quiet_shop: Shop, state: State
) -> None:
    """Contract 4: only created can be finalised, only created or pending cancelled; a deleted order is not found."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    await shop.product("later", async_delivery=True)
    made: dict[str, str] = {}
    for status, slug in (("finished", "gift-10"), ("cancelled", "later"), ("deleted", "gift-10")):
        made[status] = (await shop.create(company, (slug, 1), state=state))["trx"]
    outcome: dict[str, Any] = {} if state is State.LIVE else {"outcome": "finished"}
    slow: dict[str, Any] = {} if state is State.LIVE else {"outcome": "pending"}
    await shop.confirm(company, made["finished"], state=state, **outcome)
    await shop.confirm(company, made["cancelled"], state=state, **slow)
    assert (await shop.cancel(company, made["cancelled"], state=state)).status_code == 200
    assert (await shop.cancel(company, made["deleted"], state=state)).status_code == 204

    def call(operation: str, status: str) -> Awaitable[httpx.Response]:
        return shop.finalise(operation, company, made[status], state=state, **outcome)

    for status in ("finished", "cancelled"):
        for operation in ("confirm", "resolve"):
            await shop.assert_refused(call(operation, status), 400, "this order can not be confirmed")
        await shop.assert_refused(call("cancel", status), 400, "Invalid order status")
    await shop.assert_refused(call("confirm", "deleted"), 404, "Order not found")
    for operation in ("resolve", "cancel"):
        await shop.assert_refused(call(operation, "deleted"), 404, "order not found")
    await shop.assert_books_balance()
