"""Quote: what Create would answer, without an order."""

from __future__ import annotations

from typing import Any

import httpx

from tests.shop import Company, Shop
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope

QUOTE = "/api/1.03/order/quote"
ONLY_AN_ORDER_HAS = {
    *("trx", "dateCreated", "dateExpires", "paymentStatus", "orderStatus", "type", "isBalancePayment"),
    "downloaded",
}


async def ask(
    shop: Shop,
    company: Company,
    *items: tuple[str, int] | dict[str, Any],
    currency: str = "EUR",
    state: State = State.LIVE,
    **more: Any,
) -> httpx.Response:
    """A quote, whatever comes of it."""
    body = {
        "items": [i if isinstance(i, dict) else {"productSlug": i[0], "amount": i[1]} for i in items],
        "paymentCurrency": currency,
        **more,
    }
    return await shop.call("POST", QUOTE, company, state=state, json=body)


async def everything(shop: Shop) -> dict[str, Any]:
    """Every row of every table, and how far every sequence is; but not who called how often, and who beats."""
    tables = await shop.pool.fetch(
        "SELECT relname::text, relkind::text AS kind FROM pg_class WHERE relkind IN ('r', 'S') "
        "AND relnamespace = current_schema()::regnamespace"
        " AND relname NOT IN ('rate_window', 'process_seen', 'request_log', 'request_count')"
    )
    found: dict[str, Any] = {}
    for name, kind in tables:
        what = "last_value, is_called" if kind == "S" else f"{name}::text"
        rows = await shop.pool.fetch(f"SELECT {what} FROM {name} ORDER BY 1")  # noqa: S608 - Names of ours.
        found[name] = [tuple(row) for row in rows]
    return found


async def test_a_quote_is_the_order_that_create_would_make_and_leaves_no_trace(quiet_shop: Shop) -> None:
    """OP-70: the same prices in the same fields, and not a row or a number is different afterwards."""
    shop = quiet_shop
    company = await shop.company(balance="500.00 USD")
    await shop.fx("USD", 92_319_055)
    await shop.product("gift-10", stock=5)
    await shop.product("open-usd", face=None, face_range="5-100 USD", fee="1.02+0.10", async_delivery=True)
    cart: tuple[Any, ...] = (("gift-10", 3), {"productSlug": "open-usd", "amount": 2, "faceValue": 25})
    before = await everything(shop)

    for state in State:
        answer = await ask(shop, company, *cart, currency="usd", state=state, reference="PO-1")
        assert answer.status_code == 200, answer.text
        assert await everything(shop) == before
        assert answer.json()["state"] == state.word

    quote = (await ask(shop, company, *cart, currency="usd", reference="PO-1")).json()
    order = await shop.create(company, *cart, currency="USD", reference="PO-1")
    assert set(order) - set(quote) == ONLY_AN_ORDER_HAS
    # The variable product has nothing in stock but may come later.
    assert quote.pop("isAvailable") is False
    assert [item.pop("isAvailable") for item in quote["items"]] == [True, False]
    for item in order["items"]:
        del item["orderLines"], item["linesCompleted"]
    assert quote == {name: order[name] for name in quote}
    await shop.assert_books_balance()


async def test_items_of_one_product_share_what_is_there(quiet_shop: Shop) -> None:
    """OP-70: what the first item takes is not there for the second."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5, async_delivery=True)

    async def at_hand(*amounts: int) -> list[bool]:
        quote = (await ask(shop, company, *(("gift-10", amount) for amount in amounts))).json()
        assert quote["isAvailable"] is all(item["isAvailable"] for item in quote["items"])
        return [item["isAvailable"] for item in quote["items"]]

    assert await at_hand(5) == [True]
    assert await at_hand(6) == [False]
    assert await at_hand(3, 2) == [True, True]
    assert await at_hand(3, 3) == [True, False]


async def test_a_quote_is_refused_as_create_is(quiet_shop: Shop) -> None:
    """OP-70, OP-21, OP-25: the same checks in the same words, and nothing changes."""
    shop = quiet_shop
    company = await shop.company()
    idle = await shop.company(active=False)
    await shop.product("gift-10", stock=5)
    refused = [
        (422, "Some offers not available: Gift 10", ask(shop, company, ("gift-10", 6))),
        (422, "Some offers not available: no-such", ask(shop, company, ("no-such", 1), ("gift-10", 1))),
        (400, "company not active", ask(shop, idle, ("gift-10", 1))),
        (400, "items: must hold between 1 and 100 products", ask(shop, company)),
        (400, "items[0].amount: must be between 1 and 10000", ask(shop, company, ("gift-10", 0))),
        (
            400,
            "paymentCurrency: there is no exchange rate for USD",
            ask(shop, company, ("gift-10", 1), currency="USD"),
        ),
        (400, "the body is not valid JSON", shop.call("POST", QUOTE, company, content=b"{")),
    ]
    for status, text, call in refused:
        await shop.assert_refused(call, status, text)
    assert (await shop.call("GET", QUOTE, company)).status_code == 405
    assert (await shop.call("POST", "/api/1.00/order/quote", company)).status_code == 405


async def test_a_quote_needs_the_catalogues_scope_and_knows_its_caller(quiet_shop: Shop) -> None:
    """OP-70, OP-24, OP-52: no key that may only order, and each company's own VAT."""
    shop = quiet_shop
    dutch, german = await shop.company(), await shop.company(country="DE", vat_number="DE123456789")
    await shop.product("month", price="10.00 EUR", stock=5, vat_category="single_purpose")
    blind = Company(dutch.id, dutch.name, await shop.keys(dutch, SCOPES_DEFAULT - {Scope.CATALOGUE_READ}))
    window = Company(dutch.id, dutch.name, await shop.keys(dutch, frozenset({Scope.CATALOGUE_READ})))

    await shop.assert_refused(ask(shop, blind, ("month", 1)), 403, "forbidden")
    assert (await shop.client.post(QUOTE, json={})).status_code == 401
    assert (await ask(shop, window, ("month", 2))).json()["priceInclVat"] == 24.2
    assert (await ask(shop, german, ("month", 2))).json()["priceInclVat"] == 20
