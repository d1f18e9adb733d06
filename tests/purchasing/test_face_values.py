"""Which face values of a variable product sell now, from our own stock and by suppliers."""

from __future__ import annotations

from typing import Any

from tests.pages.people import someone
from tests.purchasing.conftest import Market
from tests.shop import Company
from voucherd.ids import State
from voucherd.suppliers.store import add_offer, supplier


async def told(
    market: Market, company: Company, query: str = "", *, state: State = State.LIVE
) -> dict[str, Any]:
    """The product, by itself and in a list, which say the same."""
    shop = market.shop
    one = (await shop.call("GET", f"/api/1.03/product/choose{query}", company, state=state)).json()
    (listed,) = (await shop.call("GET", f"/api/1.03/product{query}", company, state=state)).json()["data"]
    assert one == listed
    return dict(one)


async def test_a_variable_product_says_which_face_values_sell_now(market: Market) -> None:
    """OP-10, OP-141: those in stock, and `isStocked` is about the face value that is asked for."""
    shop = market.shop
    await shop.product("choose", face_range="5-100 EUR", fee="1.02")
    company = await shop.company(balance="500.00 EUR")
    empty = await told(market, company)
    assert (empty["faceValues"], empty["isStocked"]) == ([], False)

    await shop.stock("choose", 1, face="25.00 EUR", cost="20.00 EUR")
    await shop.stock("choose", 2, face="10.00 EUR", cost="9.00 EUR")
    await shop.stock("choose", 1, face="10.00 EUR", cost="9.00 EUR")
    some = await told(market, company)
    assert (some["faceValues"], some["isStocked"]) == ([10.0, 25.0], True)
    assert "faceValueRanges" not in some
    stocked = [(await told(market, company, f"?faceValue={face}"))["isStocked"] for face in (10, 25, 30)]
    assert stocked == [True, True, False]
    refused = await shop.try_create(company, {"productSlug": "choose", "amount": 1, "faceValue": 30})
    assert refused.status_code == 422

    owner = await someone(shop, "owner", company)
    assert "10.00\u00a0EUR, 25.00\u00a0EUR" in (await owner.get("/portal/catalogue/choose")).text

    order = await shop.create(company, {"productSlug": "choose", "amount": 1, "faceValue": 25})
    await shop.confirm(company, order["trx"])
    assert (await told(market, company))["faceValues"] == [10.0]
    assert (await told(market, company, state=State.SANDBOX))["faceValues"] is None
    await shop.assert_books_balance()


async def test_where_a_supplier_sells_every_face_value_nothing_is_listed(market: Market) -> None:
    """OP-141: null for all of them; a part of the range is told as a range; a fixed product says nothing."""
    shop = market.shop
    await shop.product("choose", face_range="5-100 EUR", fee="1.05")
    company = await shop.company(balance="500.00 EUR")
    await market.supplier("one", price="4.00 EUR")
    async with shop.pool.acquire() as conn, conn.transaction():
        row, product_id = await supplier(conn, "one"), shop.products["choose"].product_id
        await add_offer(conn, row, product_id, sku="half", face_minor=2_000, face_to_minor=5_000)
        await add_offer(conn, row, product_id, sku="ten", face_minor=1_000)
    await market.quotes()
    part = await told(market, company)
    assert (part["faceValues"], part["faceValueRanges"]) == ([10.0], [{"min": 20.0, "max": 50.0}])
    stocked = [(await told(market, company, f"?faceValue={face}"))["isStocked"] for face in (10, 15, 35)]
    assert stocked == [True, False, True]

    await market.supplier("two", "choose", price="4.00 EUR")
    whole = await told(market, company, "?faceValue=15")
    assert (whole["faceValues"], whole["isStocked"]) == (None, True)
    await shop.product("gift", stock=1)
    fixed = (await shop.call("GET", "/api/1.03/product/gift", company)).json()
    assert "faceValues" not in fixed
    changes = (await shop.call("GET", "/api/1.03/product/changes?since=", company)).json()
    assert "faceValues" not in str(changes)
