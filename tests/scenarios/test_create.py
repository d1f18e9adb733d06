"""Create order: a price and an availability check, with every field of Contract 2."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.shop import Shop
from voucherd.ids import State
from voucherd.money import Money

STAMP = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")

# Contract 2, the extended line: every field, in the order of the table.
EXTENDED_TABLE = """
    id tag orderId dateCreated brandSlug productSlug productFacevalueAmount productFacevalueCurrency productFacevalueFx
    priceAmount priceCurrency priceFx voucherCode voucherSerial voucherUrl voucherDateExpired purchasePriceAmount
    purchasePriceCurrency purchasePriceFx status commissionEur externalId offerId externalSupplier priceVatAmount
    priceVatTurnover priceInclVat priceAmountInPaymentCurrency priceVatAmountInPaymentCurrency
    priceVatTurnoverInPaymentCurrency priceInclVatInPaymentCurrency paymentCurrency paymentCurrencyFx dateUpdated state
    product token redemptionLink dateVoucherViewed dateLinkViewed dateReturned allowAsyncDelivery productRegion entityId
"""
DESCRIPTION_TABLE = """
    name slug brand offers region inScope bestOffer faceValue isStocked redeemType stockCount priceAmount productType
    vatCategory mainCategory priceCurrency faceValueCurrency isVariableProduct isIncentiveProduct
"""
EXTENDED = EXTENDED_TABLE.split()
DESCRIPTION = DESCRIPTION_TABLE.split()
COSTS = [
    "purchasePriceAmount",
    "purchasePriceCurrency",
    "purchasePriceFx",
    "commissionEur",
    "externalSupplier",
]


def exactly(body: bytes) -> Any:
    """JSON with its numbers as they were written."""
    return json.loads(body, parse_float=Decimal)


async def test_a_new_order_shows_every_field_of_the_order_and_item_tables(quiet_shop: Shop) -> None:
    """Contract 2, OP-01: 201 with Location, prices fixed, nothing paid and nothing delivered."""
    shop = quiet_shop
    company = await shop.company(balance="50.00 EUR")
    product = await shop.product("gift-10", price="9.50 EUR", vat_category="single_purpose", stock=5)

    began = datetime.now(UTC)
    response = await shop.try_create(company, ("gift-10", 3), reference="my 1")

    assert response.status_code == 201
    assert response.headers["content-type"] == "application/json"
    order = exactly(response.content)
    assert response.headers["location"] == f"/api/1.03/order/{order['trx']}"
    (item,) = order.pop("items")
    created, expires = order.pop("dateCreated"), order.pop("dateExpires")
    assert STAMP.fullmatch(created)
    window = datetime.fromisoformat(expires) - datetime.fromisoformat(created)
    assert window == timedelta(hours=24)
    assert began - timedelta(seconds=1) < datetime.fromisoformat(created) <= datetime.now(UTC)
    assert order == {
        "trx": order["trx"],
        "priceCurrency": "EUR",
        "priceAmount": Decimal("28.50"),
        "priceVat": Decimal("6.00"),
        "priceInclVat": Decimal("34.50"),
        "priceFx": Decimal("1.00000000"),
        "paymentCurrency": "EUR",
        "paymentStatus": "unpaid",
        "type": "api",
        "reference": "my 1",
        "state": "live",
        "orderStatus": "created",
        "isBalancePayment": True,
        "downloaded": False,
    }
    assert len(item.pop("orderLines")) == 3
    assert item.pop("product") == {
        "slug": "gift-10",
        "name": "Gift 10",
        "brand": "Testbrand",
        "productType": "giftcard",
        "region": "ww",
        "faceValueAmount": Decimal("10.00"),
        "faceValueCurrency": "eur",
        "faceValueMin": Decimal("10.00"),
        "faceValueMax": Decimal("10.00"),
        "mainCategory": "gifts",
        "redeemType": "currency",
        "isStocked": True,
    }
    assert item == {
        "amount": 3,
        "priceCurrency": "eur",
        "singlePriceAmount": Decimal("9.50"),
        "totalPriceAmount": Decimal("28.50"),
        "totalPriceVat": Decimal("6.00"),
        "totalPriceInclVat": Decimal("34.50"),
        "priceFx": Decimal("1.00000000"),
        "paymentCurrency": "eur",
        "singlePriceAmountInPaymentCurrency": Decimal("9.50"),
        "totalPriceAmountInPaymentCurrency": Decimal("28.50"),
        "totalPriceVatInPaymentCurrency": Decimal("6.00"),
        "totalPriceInclVatInPaymentCurrency": Decimal("34.50"),
        "linesCompleted": 0,
        "productSlug": product.slug,
        "faceValueAmount": Decimal("10.00"),
        "faceValueCurrency": "eur",
        "faceValueFx": Decimal("1.00000000"),
    }
    assert await shop.balance(company) == Money.read("50.00 EUR")
    assert await shop.events(order["trx"]) == ["order.created"]
    await shop.assert_books_balance()


async def test_a_new_line_shows_every_field_of_the_extended_table(quiet_shop: Shop) -> None:
    """Contract 2, OP-05, OP-41: pending, with the code's fields null, and the best offer that Create saw."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    await shop.fx("USD", 90_000_000)
    await shop.product("gift-10", price="9.50 EUR", vat_category="single_purpose")
    await shop.stock("gift-10", 7, cost="8.80 EUR", supplier="cheap")
    await shop.stock("gift-10", 4, cost="9.00 EUR", supplier="dear")

    order = await shop.create(company, ("gift-10", 2), currency="USD")

    first, second = order["items"][0]["orderLines"]
    assert sorted(first) == sorted(EXTENDED)
    assert re.fullmatch(
        "TAG-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", first["tag"]
    )
    assert second["id"] == first["id"] + 1
    assert second["tag"] != first["tag"]
    described = json.loads(first.pop("product"))
    lots = [row[0] for row in await shop.pool.fetch("SELECT id FROM lot ORDER BY purchase_minor")]
    expected = {
        "id": first["orderId"] * 10_000,
        "tag": first["tag"],
        "orderId": shop.ids.order_number(shop.ids.order_id(order["trx"]) or 0),
        "dateCreated": order["dateCreated"],
        "brandSlug": "testbrand",
        "productSlug": "gift-10",
        "productFacevalueAmount": 10.0,
        "productFacevalueCurrency": "eur",
        "productFacevalueFx": 1.0,
        "priceAmount": 9.5,
        "priceCurrency": "eur",
        "priceFx": 1.0,
        "purchasePriceAmount": 8.8,
        "purchasePriceCurrency": "eur",
        "purchasePriceFx": 1.0,
        "status": "pending",
        "commissionEur": 0.7,
        "offerId": f"LOT-{lots[0]}",
        "externalSupplier": "cheap",
        "priceVatAmount": 2.0,
        "priceVatTurnover": 9.5,
        "priceInclVat": 11.5,
        "priceAmountInPaymentCurrency": 10.56,
        "priceVatAmountInPaymentCurrency": 2.22,
        "priceVatTurnoverInPaymentCurrency": 10.56,
        "priceInclVatInPaymentCurrency": 12.78,
        "paymentCurrency": "usd",
        "paymentCurrencyFx": 0.9,
        "dateUpdated": order["dateCreated"],
        "state": "live",
        "allowAsyncDelivery": False,
        "productRegion": "ww",
        "entityId": company.id,
    }
    nothing_yet = dict.fromkeys(set(EXTENDED) - set(expected) - {"product"})
    assert set(nothing_yet) == {
        *("voucherCode", "voucherSerial", "voucherUrl", "voucherDateExpired", "externalId", "token"),
        *("redemptionLink", "dateVoucherViewed", "dateLinkViewed", "dateReturned"),
    }
    assert first == expected | nothing_yet
    assert sorted(described) == sorted(DESCRIPTION)
    offers = described.pop("offers")
    assert described.pop("bestOffer") == offers[0]
    price = {"price": 9.5, "currency": "eur", "purchasePriceCurrency": "eur"}
    assert offers == [
        price | {"offerId": f"LOT-{lots[0]}", "supplier": "cheap", "stockCount": 7, "purchasePrice": 8.8},
        price | {"offerId": f"LOT-{lots[1]}", "supplier": "dear", "stockCount": 4, "purchasePrice": 9.0},
    ]
    assert described == {
        "name": "Gift 10",
        "slug": "gift-10",
        "brand": "Testbrand",
        "region": "ww",
        "inScope": True,
        "faceValue": 10.0,
        "isStocked": True,
        "redeemType": "currency",
        "stockCount": 11,
        "priceAmount": 9.5,
        "productType": "giftcard",
        "vatCategory": "single_purpose",
        "mainCategory": "gifts",
        "priceCurrency": "eur",
        "faceValueCurrency": "eur",
        "isVariableProduct": False,
        "isIncentiveProduct": False,
    }
    await shop.assert_books_balance()


async def test_a_product_without_stock_that_comes_later_has_no_offer_yet(quiet_shop: Shop) -> None:
    """Contract 2, OP-43: allowAsyncDelivery is true, isStocked false, and the offer's fields are null."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("later", async_delivery=True)

    (item,) = (await shop.create(company, ("later", 1)))["items"]

    (line,) = item["orderLines"]
    assert line["allowAsyncDelivery"] is True
    assert [line[name] for name in ["offerId", *COSTS]] == [None] * 6
    described = json.loads(line["product"])
    assert (described["offers"], described["bestOffer"], described["stockCount"]) == ([], None, 0)
    assert (described["isStocked"], item["product"]["isStocked"]) == (False, False)
    await shop.assert_books_balance()


async def test_a_company_that_may_not_see_costs_gets_null(quiet_shop: Shop) -> None:
    """OP-58: at Create, Confirm, Find and Find all; a change is seen within a second."""
    shop = quiet_shop
    company = await shop.company(expose_costs=False)
    await shop.product("gift-10")
    await shop.stock("gift-10", 3, supplier="secret supplier")

    order = await shop.create(company, ("gift-10", 1))
    confirmed = await shop.confirm(company, order["trx"])
    found = await shop.find(company, order["trx"])
    page = (await shop.call("GET", "/api/1.03/order", company)).json()

    for shown in (order, confirmed, found, page["data"][0]):
        (line,) = shown["items"][0]["orderLines"]
        assert [line[name] for name in COSTS] == [None] * 5
        described = json.loads(line["product"])
        assert (described["offers"], described["bestOffer"]) == ([], None)
        assert line["offerId"] is None
        assert line["externalId"] in {None, line["tag"]}
        assert described["stockCount"] == 3
        assert "secret" not in json.dumps(shown)
    await shop.assert_books_balance()


async def test_money_is_written_with_the_digits_of_its_currency(quiet_shop: Shop) -> None:
    """OP-07, OP-50: the bytes: JPY none, EUR two, KWD three, rates eight."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    await shop.fx("JPY", 611_808)
    await shop.fx("KWD", 301_204_819)
    await shop.product("yen", face="1000 JPY", price="990 JPY", stock=5)
    await shop.product("dinar", face="10.000 KWD", price="9.875 KWD", stock=5)

    in_yen = (await shop.try_create(company, ("dinar", 2), ("yen", 3), currency="JPY")).content
    in_dinar = (await shop.try_create(company, ("yen", 3), currency="KWD")).content
    in_euro = (await shop.try_create(company, ("dinar", 1), currency="EUR")).content

    # 9.875 KWD × 3.01204819 ÷ 0.00611808 = 4861.68 yen a unit; 2 × 4862 + 3 × 990.
    assert b'"priceCurrency":"JPY","priceAmount":12694,"priceVat":0,"priceInclVat":12694' in in_yen
    assert b'"singlePriceAmount":9.875,"totalPriceAmount":19.750,"totalPriceVat":0.000' in in_yen
    assert b'"singlePriceAmountInPaymentCurrency":4862,"totalPriceAmountInPaymentCurrency":9724' in in_yen
    assert b'"priceFx":0.00611808' in in_yen
    assert b'"faceValueAmount":10.000,"faceValueCurrency":"kwd","faceValueFx":3.01204819' in in_yen
    # 990 JPY × 0.00611808 ÷ 3.01204819 = 2.0109 dinar a unit.
    assert b'"priceCurrency":"KWD","priceAmount":6.033,"priceVat":0.000,"priceInclVat":6.033' in in_dinar
    assert b'"priceCurrency":"EUR","priceAmount":29.74,"priceVat":0.00,"priceInclVat":29.74' in in_euro
    await shop.assert_books_balance()


async def test_lines_add_up_to_items_and_items_to_the_order_to_the_cent(quiet_shop: Shop) -> None:
    """OP-50: each unit is rounded once, so thirds of a cent do not add up to anything."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    await shop.fx("USD", 92_319_055)
    await shop.product("single", price="3.33 EUR", vat_category="single_purpose", stock=50)
    await shop.product("fee", price=None, fee="1.0333+0.07", vat_category="multi_purpose", stock=50)
    await shop.product("exempt", price="0.01 EUR", vat_category="exempt", stock=50)

    response = await shop.try_create(company, ("single", 7), ("fee", 11), ("exempt", 13), currency="USD")

    order = exactly(response.content)
    for item in order["items"]:
        lines = item["orderLines"]
        for total, line in (
            ("totalPriceAmount", "priceAmount"),
            ("totalPriceVat", "priceVatAmount"),
            ("totalPriceInclVat", "priceInclVat"),
            ("totalPriceAmountInPaymentCurrency", "priceAmountInPaymentCurrency"),
            ("totalPriceVatInPaymentCurrency", "priceVatAmountInPaymentCurrency"),
            ("totalPriceInclVatInPaymentCurrency", "priceInclVatInPaymentCurrency"),
        ):
            assert item[total] == sum(one[line] for one in lines)
    for total, part in (
        ("priceAmount", "totalPriceAmountInPaymentCurrency"),
        ("priceVat", "totalPriceVatInPaymentCurrency"),
        ("priceInclVat", "totalPriceInclVatInPaymentCurrency"),
    ):
        assert order[total] == sum(item[part] for item in order["items"])
    _, fee, exempt = order["items"]
    # 10 EUR × 1.0333 + 0.07 = 10.40; VAT on the fee of 0.40 only (OP-52).
    assert (fee["singlePriceAmount"], fee["orderLines"][0]["priceVatTurnover"]) == (
        Decimal("10.40"),
        Decimal("0.40"),
    )
    assert fee["orderLines"][0]["priceVatAmount"] == Decimal("0.08")
    assert exempt["totalPriceVat"] == 0
    await shop.assert_books_balance()


async def test_a_variable_product_is_ordered_with_a_face_value(quiet_shop: Shop) -> None:
    """OP-10, OP-51: the range is shown in 1.03 only; each face value has a shelf of its own."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("choose", face_range="5-50 EUR", fee="1.02+0.25")
    await shop.stock("choose", 2, face="25.00 EUR")

    wanted = {"productSlug": "choose", "amount": 2, "faceValue": 25}
    order = await shop.create(company, wanted)

    (item,) = order["items"]
    assert (item["faceValueAmount"], item["singlePriceAmount"]) == (25.0, 25.75)
    assert (item["product"]["faceValueMin"], item["product"]["faceValueMax"]) == (5.0, 50.0)
    assert json.loads(item["orderLines"][0]["product"])["isVariableProduct"] is True
    short = await shop.find(company, order["trx"], version="1.00")
    assert not {"faceValueMin", "faceValueMax"} & set(short["items"][0]["product"])
    missing = shop.try_create(company, wanted | {"faceValue": 30})
    await shop.assert_refused(missing, 422, "Some offers not available: Choose")
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_code_that_expires_is_sold_before_one_that_does_not_and_never_after(quiet_shop: Shop) -> None:
    """Contract 2: voucherDateExpired is the code's own; an expired code is no stock."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    await shop.stock("gift-10", 1, cost="1.00 EUR")
    await shop.stock("gift-10", 1, expires=datetime.now(UTC) + timedelta(seconds=-1))
    soon = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    await shop.stock("gift-10", 1, expires=soon)

    order = await shop.create(company, ("gift-10", 2))
    lines = (await shop.confirm(company, order["trx"]))["items"][0]["orderLines"]

    assert [line["voucherDateExpired"] for line in lines] == ["2031-02-03T04:05:06.000Z", None]
    missing = shop.try_create(company, ("gift-10", 1))
    await shop.assert_refused(missing, 422, "Some offers not available: Gift 10")
    await shop.assert_books_balance()


async def test_create_needs_no_money_and_an_unverified_company_may_do_it(quiet_shop: Shop) -> None:
    """Contract 1, 7: the balance must cover the order before it is confirmed, not before it is created."""
    shop = quiet_shop
    company = await shop.company(balance=None, verified=False)
    await shop.product("gift-10", stock=3)
    for state in State:
        assert (await shop.create(company, ("gift-10", 3), state=state))["orderStatus"] == "created"
    # An order reserves nothing: the same codes can be priced again.
    assert (await shop.create(company, ("gift-10", 3)))["orderStatus"] == "created"
    await shop.assert_books_balance()
