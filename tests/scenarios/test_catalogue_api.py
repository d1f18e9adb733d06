"""The catalogue over HTTP: products with prices, search, sorting, walks, brands, categories, rates."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.shop import Company, Shop
from voucherd.clock import now
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope

PATHS = ("product", "product/gift-10", "product/changes", "brand", "brand/testbrand", "category", "fx-rate")


async def get(shop: Shop, company: Company, path: str, **options: Any) -> dict[str, Any]:
    """The answer, its numbers exact."""
    response = await shop.call("GET", f"/api/1.03/{path}", company, **options)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return dict(json.loads(response.content, parse_float=Decimal))


async def slugs(shop: Shop, company: Company, query: str = "", **options: Any) -> list[str]:
    """The products of one page."""
    return [product["slug"] for product in (await get(shop, company, f"product?{query}", **options))["data"]]


async def walk(shop: Shop, company: Company, query: str, size: int = 2) -> list[str]:
    """All products, by cursor."""
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await get(shop, company, f"product?{query}&limit={size}&cursor={cursor}")
        assert set(page["metadata"]) == {"pageSize", "nextCursor"}
        seen += [product["slug"] for product in page["data"]]
        assert len(seen) < 1_000
        cursor = page["metadata"]["nextCursor"]
    return seen


async def test_a_product_shows_its_price_its_texts_and_its_stock(quiet_shop: Shop) -> None:
    """Contract 2, OP-06, OP-07, OP-49, OP-51, OP-52: the contract's fields, and the caller's own price and VAT."""
    shop = quiet_shop
    dutch, abroad = await shop.company(), await shop.company(country="DE", vat_number="DE123456789")
    await shop.product(
        "gift-10",
        vat_category="single_purpose",
        async_delivery=True,
        redeem_instructions="Scratch.\nThen type.",
        terms="No refunds.",
        image_url="https://img.example/g.png",
    )
    shown = await get(shop, dutch, "product/gift-10")
    updated = shown.pop("dateUpdated")
    assert abs(now().timestamp() - _seconds(updated)) < 60
    assert shown == {
        "slug": "gift-10",
        "name": "Gift 10",
        "brand": "Testbrand",
        "brandName": "Testbrand",
        "brandSlug": "testbrand",
        "productType": "giftcard",
        "region": "ww",
        "faceValueAmount": Decimal("10.00"),
        "faceValueCurrency": "eur",
        "faceValueMin": Decimal("10.00"),
        "faceValueMax": Decimal("10.00"),
        "mainCategory": "gifts",
        "category": "gifts",
        "redeemType": "currency",
        "redeemValue": "eur",
        "isStocked": False,
        "isVariableProduct": False,
        "isIncentiveProduct": False,
        "isActive": True,
        "allowAsyncDelivery": True,
        "vatCategory": "single_purpose",
        "priceAmount": Decimal("9.50"),
        "priceCurrency": "eur",
        "priceVat": Decimal("2.00"),
        "priceInclVat": Decimal("11.50"),
        "feeVariable": None,
        "feeFixed": None,
        "feeCurrency": None,
        "redeemInstructions": "Scratch.\nThen type.",
        "terms": "No refunds.",
        "imageUrl": "https://img.example/g.png",
    }
    assert (await get(shop, abroad, "product/gift-10"))["priceVat"] == 0
    assert (await get(shop, dutch, "product/gift-10", state=State.SANDBOX))["isStocked"] is True
    await shop.stock("gift-10", 1, expires=now() + timedelta(days=1))
    assert (await get(shop, dutch, "product/gift-10"))["isStocked"] is True
    trx = (await shop.create(dutch, ("gift-10", 1)))["trx"]
    await shop.confirm(dutch, trx)
    assert (await get(shop, dutch, "product/gift-10"))["isStocked"] is False
    await shop.assert_books_balance()


def _seconds(moment: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(moment).timestamp()


async def test_prices_in_another_currency_are_those_that_create_would_fix(quiet_shop: Shop) -> None:
    """OP-50, OP-51, OP-52: the same arithmetic as Create, to the last digit, whatever the kind of price."""
    shop = quiet_shop
    company = await shop.company(country="DE")
    for currency, worth in (("USD", 92_319_055), ("JPY", 611_808), ("KWD", 301_204_819)):
        await shop.fx(currency, worth)
    await shop.product("fixed", stock=1, vat_category="single_purpose")
    await shop.product("dollar", face="25.00 USD", price="24.37 USD", stock=1, vat_category="exempt")
    await shop.product("fee", face="10 KWD", fee="1.0231+0.105", stock=1)
    await shop.product("choose", face_range="5-500 USD", fee="1.02+0.25")
    await shop.stock("choose", 1, face="33.33 USD")
    for currency in ("EUR", "jpy", "KWD"):
        page = await get(shop, company, f"product?paymentCurrency={currency}&faceValue=33.33")
        shown = {product["slug"]: product for product in page["data"]}
        assert set(shown) == {"choose"}
        shown |= {
            slug: await get(shop, company, f"product/{slug}?paymentCurrency={currency}")
            for slug in ("fixed", "dollar", "fee")
        }
        for slug, product in shown.items():
            item: dict[str, Any] = {"productSlug": slug, "amount": 1}
            if slug == "choose":
                item["faceValue"] = 33.33
            response = await shop.try_create(company, item, currency=currency)
            order = json.loads(response.content, parse_float=Decimal)
            line = order["items"][0]["orderLines"][0]
            assert product["priceAmount"] == line["priceAmount"]
            assert product["priceVat"] == line["priceVatAmount"]
            assert product["priceInclVat"] == line["priceInclVat"]
            assert product["priceCurrency"] == line["priceCurrency"]
            assert product["paymentCurrency"] == currency.lower()
            assert product["priceAmountInPaymentCurrency"] == line["priceAmountInPaymentCurrency"]
            assert product["priceVatInPaymentCurrency"] == line["priceVatAmountInPaymentCurrency"]
            assert product["priceInclVatInPaymentCurrency"] == line["priceInclVatInPaymentCurrency"]
    # The price of a variable product depends on the face value, so without one there is only the fee.
    choose = await get(shop, company, "product/choose?paymentCurrency=EUR")
    assert (choose["priceAmount"], choose["priceInclVatInPaymentCurrency"]) == (None, None)
    assert (choose["feeVariable"], choose["feeFixed"], choose["feeCurrency"]) == (
        Decimal("1.02000000"),
        Decimal("0.25"),
        "usd",
    )
    assert (choose["faceValueAmount"], choose["faceValueMin"], choose["faceValueMax"]) == (None, 5, 500)
    priced = await get(shop, company, "product/choose?faceValue=5&paymentCurrency=EUR")
    assert priced["priceAmount"] == Decimal("5.35")
    assert (await get(shop, company, "product/choose?faceValue=501"))["priceAmount"] is None


async def test_a_currency_without_a_rate_is_refused_and_a_product_without_one_is_shown(
    quiet_shop: Shop,
) -> None:
    """OP-25, OP-50: one product that can't be converted does not take the page from the others."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    await shop.product("rand", face="10 ZAR", price="9 ZAR")
    for path in ("product", "product/gift-10", "product/changes"):
        await shop.assert_refused(
            shop.call("GET", f"/api/1.03/{path}?paymentCurrency=ZAR", company),
            400,
            "paymentCurrency: there is no exchange rate for ZAR",
        )
    rand = await get(shop, company, "product/rand?paymentCurrency=EUR")
    assert (rand["priceAmount"], rand["priceAmountInPaymentCurrency"]) == (9, None)
    assert sorted(await slugs(shop, company, "sortBy=price&paymentCurrency=EUR")) == ["gift-10", "rand"]


async def test_filters_and_search_find_what_they_say(quiet_shop: Shop) -> None:
    """OP-03, OP-12: every filter, alone and together; inactive products never appear."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product(
        "cafe-10", name="Café Noir 10", brand="Café Ändere", category="food", region="nl", stock=1
    )
    await shop.product(
        "game-25",
        name="Star Game",
        brand="Star",
        product_type="gamecard",
        face="25 USD",
        redeem_type="product",
    )
    await shop.product("yen-1000", name="Yen", face="1000 JPY", price="990 JPY", region="jp")
    await shop.product("open", name="Open Card", face_range="5-50 EUR", fee="1.01")
    await shop.product("hidden", name="Star Hidden", active=False)
    await shop.worker.run_once("announce_stock")
    found = {
        "": ["cafe-10", "open", "game-25", "yen-1000"],
        "slug=open": ["open"],
        "slug=hidden": [],
        "brandSlug=cafe-andere": ["cafe-10"],
        "category=food": ["cafe-10"],
        "category=nothing": [],
        "productType=gamecard": ["game-25"],
        "redeemType=product": ["game-25"],
        "region=NL": ["cafe-10"],
        "currency=jpy": ["yen-1000"],
        "faceValue=10": ["cafe-10", "open"],
        "faceValue=10.00": ["cafe-10", "open"],
        "faceValue=1000": ["yen-1000"],
        "faceValue=1000.5": [],
        "faceValue=25&currency=USD": ["game-25"],
        "isVariableProduct=true": ["open"],
        "isVariableProduct=false&currency=EUR": ["cafe-10"],
        "isStocked=true": ["cafe-10"],
        "isStocked=false": ["open", "game-25", "yen-1000"],
        "q=cafe": ["cafe-10"],
        "q=CAF%C3%89": ["cafe-10"],
        "q=andere+noi": ["cafe-10"],
        "q=sta": ["game-25"],
        "q=star+yen": [],
        "q=1000": ["yen-1000"],
        "q=yen-1000": ["yen-1000"],
        "q=card%27%3A%2A+%7C+%21x": [],
        "q=": ["cafe-10", "open", "game-25", "yen-1000"],
        "q=%27%5C%26%7C": ["cafe-10", "open", "game-25", "yen-1000"],
        "q=sta&sortBy=price": ["game-25"],
    }
    for query, expected in found.items():
        page = await get(shop, company, f"product?{query}")
        assert [product["slug"] for product in page["data"]] == expected, query
        assert page["metadata"]["totalItems"] == len(expected), query
    for query, expected in found.items():
        assert await slugs(shop, company, query) == expected, query
        assert await walk(shop, company, query, 1) == expected, query
    assert len(await slugs(shop, company, "isStocked=true", state=State.SANDBOX)) == 4
    assert await slugs(shop, company, "isStocked=false", state=State.SANDBOX) == []
    await shop.assert_refused(shop.call("GET", "/api/1.03/product/hidden", company), 404, "product not found")


async def test_every_order_is_walked_in_both_directions_without_losing_any(quiet_shop: Shop) -> None:
    """OP-03: by page with totals or by cursor without, equal keys included; amounts by their worth in EUR."""
    shop = quiet_shop
    company = await shop.company()
    await shop.fx("USD", 92_000_000)
    await shop.fx("JPY", 600_000)
    await shop.product("b", name="Same", brand="Zed", face="10 EUR", price="9 EUR")
    await shop.product("a", name="same", brand="Zed", face="10 EUR", price="9 EUR")
    await shop.product("c", name="Éclair", brand="alpha", face="10 USD", price="10 USD")
    await shop.product("d", name="Other", brand="Zed", face="1700 JPY", price="1500 JPY")
    await shop.product("e", name="Yet", brand="Mid", face_range="1-99 USD", fee="1")
    orders = {
        "": ["c", "d", "b", "a", "e"],
        "sortBy=name": ["c", "d", "b", "a", "e"],
        "sortBy=brand": ["c", "e", "d", "b", "a"],
        # 0.92, 9.00 three times (1,500 yen, too), 9.20.
        "sortBy=price": ["e", "b", "a", "d", "c"],
        "sortBy=faceValueAmount": ["e", "c", "b", "a", "d"],
    }
    for query, expected in orders.items():
        assert await slugs(shop, company, query) == expected, query
        assert await slugs(shop, company, f"{query}&sortOrder=desc") == expected[::-1], query
        for size in (1, 2, 5):
            assert await walk(shop, company, query, size) == expected
        assert await walk(shop, company, f"{query}&sortOrder=DESC") == expected[::-1]
        page = await get(shop, company, f"product?{query}&limit=2&page=2")
        assert [one["slug"] for one in page["data"]] == expected[2:4]
        cursor = page["metadata"].pop("nextCursor")
        assert page["metadata"] == {"page": 2, "pageSize": 2, "totalItems": 5, "totalPages": 3}
        assert await slugs(shop, company, f"{query}&cursor={cursor}") == expected[4:]
    # The place between two amounts of another currency: a rate that changes on the way moves no one twice.
    first = await get(shop, company, "product?sortBy=price&limit=4&cursor=")
    await shop.fx("USD", 92_000_001)
    cursor = first["metadata"]["nextCursor"]
    assert await slugs(shop, company, f"sortBy=price&cursor={cursor}") == ["c"]
    await shop.assert_refused(
        shop.call("GET", f"/api/1.03/product?sortBy=name&cursor={cursor}", company),
        400,
        "cursor: is of another sortBy or sortOrder",
    )


async def test_brands_categories_and_rates_are_listed(quiet_shop: Shop) -> None:
    """OP-50, OP-136: only what has something for sale; rates without where they came from, in both names."""
    shop = quiet_shop
    company = await shop.company()
    await shop.fx("USD", 92_319_055)
    await shop.product("a", brand="Bean & Co", category="food-and-drink")
    await shop.product("b", brand="Bean & Co", category="games", redeem_type="product")
    await shop.product("c", brand="Arcade", category="games")
    await shop.product("d", brand="Gone", category="gone", active=False)
    currency, food = {"redeemType": "currency"}, {"category": "food-and-drink"}
    bean = (
        {"slug": "bean-co", "name": "Bean & Co", "brandName": "Bean & Co", "productCount": 2}
        | food
        | currency
    )
    arcade = {"slug": "arcade", "name": "Arcade", "brandName": "Arcade", "productCount": 1} | currency
    arcade |= {"category": "games"}
    assert await get(shop, company, "brand") == {
        "data": [arcade, bean],
        "metadata": {"page": 1, "pageSize": 50, "totalItems": 2, "totalPages": 1, "nextCursor": None},
        "pagination": {"total": 2, "limit": 50, "offset": 0, "page": 1, "pages": 1},
    }
    assert (await get(shop, company, "brand?offset=1&limit=1"))["data"] == [bean]
    first = await get(shop, company, "brand?cursor=&limit=1")
    assert first["data"] == [arcade]
    cursor = first["metadata"]["nextCursor"]
    second = await get(shop, company, f"brand?limit=1&cursor={cursor}")
    assert second == {"data": [bean], "metadata": {"pageSize": 1, "nextCursor": None}}
    assert await get(shop, company, "brand/bean-co") == bean
    for slug in ("gone", "nobody", "%00", "x" * 200):
        await shop.assert_refused(
            shop.call("GET", f"/api/1.03/brand/{slug}", company), 404, "brand not found"
        )
    assert await get(shop, company, "category") == {
        "data": [
            {"slug": "food-and-drink", "name": "Food and drink", "productCount": 1},
            {"slug": "games", "name": "Games", "productCount": 2},
        ],
        "metadata": {"totalItems": 2},
    }
    day = now().date().isoformat()
    assert await get(shop, company, "fx-rate") == {
        "data": [{"fromCurrency": "usd", "toCurrency": "eur", "rate": Decimal("0.92319055"), "date": day}],
        "metadata": {"totalItems": 1},
        "fxRates": [{"currencyFrom": "usd", "currencyTo": "eur", "rate": Decimal("0.92319055")}],
    }


@pytest.mark.parametrize("path", PATHS)
async def test_the_catalogue_needs_its_scope_and_a_key(quiet_shop: Shop, path: str) -> None:
    """OP-04, OP-24: catalogue:read, in every version that has it; another method is a 405."""
    shop = quiet_shop
    await shop.product("gift-10")
    without = await shop.company(scopes=SCOPES_DEFAULT - {Scope.CATALOGUE_READ})
    reader = await shop.company(scopes=frozenset({Scope.CATALOGUE_READ}), active=False)
    for state in State:
        answer = await shop.call("GET", f"/api/1.03/{path}", without, state=state)
        assert (answer.status_code, answer.text) == (403, "forbidden")
        await get(shop, reader, path, state=state)
    assert (await shop.client.get(f"/api/1.03/{path}")).status_code == 401
    shared = path.startswith(("product", "brand"))
    assert (await shop.call("GET", f"/api/1.00/{path}", reader)).status_code == (200 if shared else 404)
    assert (await shop.call("GET", f"/api/1.02/{path}", without)).status_code == 403
    assert (await shop.call("POST", f"/api/1.03/{path}", reader)).status_code == 405


async def test_a_bad_parameter_is_named_with_its_rule(quiet_shop: Shop) -> None:
    """OP-25: one line, never a 5xx."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    wrong = {
        "product?limit=0": "limit: must be between 1 and 200",
        "product?limit=201": "limit: must be between 1 and 200",
        "product?page=0": "page: must be between 1 and 1000000",
        "product?page=1&cursor=": "page: can not be combined with cursor",
        "product?page=1&offset=1": "offset: can not be combined with page",
        "brand?offset=x": "offset: must be between 0 and 200000000",
        "product?cursor=x": "cursor: is not one of ours",
        "product?cursor=%FF": "query: is not valid",
        "product?cursor=WyJuYW1lIl0": "cursor: is not one of ours",
        "product?cursor=" + "A" * 3_000: "cursor: is not one of ours",
        "product?sortBy=colour": "sortBy: must be name, brand, price or faceValueAmount",
        "product?sortOrder=up": "sortOrder: must be asc or desc",
        "product?slug=": "slug: must be 1 to 100 characters",
        "product?slug=a&slug=b": "slug: must be given once",
        "product?slug=a%00": "slug: must have no control characters",
        "product?brandSlug=" + "x" * 101: "brandSlug: must be 1 to 100 characters",
        "product?category=": "category: must be 1 to 100 characters",
        "product?region=" + "x" * 21: "region: must be 1 to 20 characters",
        "product?productType=car": (
            "productType: must be giftcard, gamecard, topup, paymentcard or subscription"
        ),
        "product?redeemType=car": "redeemType: must be currency, product or subscription",
        "product?currency=EURO": "currency: must be an ISO 4217 currency code",
        "product?paymentCurrency=xxx": "paymentCurrency: must be an ISO 4217 currency code",
        "product?faceValue=ten": "faceValue: must be a number",
        "product?faceValue=1e3": "faceValue: must be a number",
        "product?faceValue=-1": "faceValue: must be a number",
        "product?isStocked=yes": "isStocked: must be true or false",
        "product?isVariableProduct=1": "isVariableProduct: must be true or false",
        "product?q=" + "x" * 201: "q: must be at most 200 characters",
        "product?q=a+b+c+d+e+f+g+h+i+j+k": "q: must be at most 10 words",
        "product/gift-10?faceValue=x": "faceValue: must be a number",
        "product/changes?since=x": "since: is not one of ours",
        "product/changes?since=LTE": "since: is not one of ours",
        "product/changes?since=" + "OTk5OTk5OTk5OTk5OTk5OTk5OQ": "since: is not one of ours",
        "product/changes?limit=x": "limit: must be between 1 and 200",
        "brand?limit=0": "limit: must be between 1 and 200",
        "brand?cursor=%3F": "cursor: is not one of ours",
    }
    for path, text in wrong.items():
        answer = await shop.call("GET", f"/api/1.03/{path}", company)
        assert (answer.status_code, answer.text) == (400, text), path
    for slug in ("nothing", "GIFT-10", "%00", "%FF", "x" * 300):
        answer = await shop.call("GET", f"/api/1.03/product/{slug}", company)
        assert (answer.status_code, answer.text) == (404, "product not found")


async def test_a_country_without_a_vat_rate_is_refused_by_name_wherever_it_would_see_a_price(
    quiet_shop: Shop,
) -> None:
    """OP-52: Create, Quote, the catalogue and one product say the same, and nothing is an error of ours."""
    shop = quiet_shop
    await shop.product("gift-10", stock=1)
    company, neighbour = await shop.company(country="FI"), await shop.company()
    await shop.pool.execute("DELETE FROM vat_rate WHERE country = 'FI'")
    cart = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    for method, path, body in (
        ("POST", "order", cart),
        ("POST", "order/quote", cart),
        ("GET", "product", None),
        ("GET", "product/gift-10", None),
    ):
        answers = [
            await shop.client.request(method, f"/api/1.03/{path}", json=body, headers=one.bearer())
            for one in (company, neighbour)
        ]
        said = "company: there is no VAT rate for its country, FI, today"
        assert (answers[0].status_code, answers[0].text) == (400, said), path
        assert answers[1].status_code < 300, path
    await shop.assert_books_balance()
