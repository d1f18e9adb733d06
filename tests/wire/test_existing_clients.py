"""Programs that were written for other services of this kind, replayed call by call: only host and key are ours.

Their calls are those of public programs: a shop's backend that uses `fetch`, and a library for PHP.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.shop import Company, Shop
from voucherd.api.routes import ROUTES
from voucherd.ids import State

FETCH = {
    "accept": "*/*",
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "user-agent": "node",
    "accept-encoding": "gzip, deflate",
    "content-type": "application/json",
}
LIBRARY = {"accept": "application/json", "user-agent": "GuzzleHttp/7"}
PAGE = 3


class Client:
    """A program that knows one version, and sends the headers that it always sends."""

    def __init__(self, shop: Shop, company: Company, headers: dict[str, str], version: str = "1.02") -> None:
        self._shop = shop
        self._headers = headers | company.bearer(State.LIVE)
        self._version = version

    async def call(self, method: str, resource: str, body: Any = None) -> httpx.Response:
        """Whatever comes of it."""
        content = None if body is None else json.dumps(body).encode()
        more = {"content-type": "application/json"} if body is not None else {}
        return await self._shop.client.request(
            method, f"/api/{self._version}/{resource}", headers=self._headers | more, content=content
        )

    async def get(self, resource: str) -> Any:
        """What a good answer holds."""
        answer = await self.call("GET", resource)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.mark.parametrize("headers", [FETCH, LIBRARY], ids=["fetch", "library"])
async def test_an_existing_client_sells_with_another_address_and_key(
    quiet_shop: Shop, headers: dict[str, str]
) -> None:
    """OP-04, OP-10, OP-13, OP-26: create, confirm, resolve, cancel and find in 1.02, as such programs call them."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    client = Client(shop, company, headers)
    reference = json.dumps({"orderId": "EP-7", "userId": 12})
    cart = {
        "items": [{"productSlug": "gift-10", "amount": 2.0, "faceValue": 10}],
        "paymentCurrency": "eur",
        "reference": reference,
    }

    made = await client.call("POST", "order", cart)
    order = made.json()
    trx = order["trx"]
    assert (made.status_code, made.headers["location"]) == (201, f"/api/1.02/order/{trx}")
    assert (order["orderStatus"], order["paymentCurrency"], order["reference"]) == (
        "created",
        "EUR",
        reference,
    )
    # No body, but the type of one.
    confirmed = await client.call("PATCH", f"order/confirm/{trx}")
    assert (confirmed.status_code, confirmed.json()["orderStatus"]) == (200, "finished")
    codes = [line["voucherCode"] for item in confirmed.json()["items"] for line in item["orderLines"]]
    assert len(set(codes)) == 2
    found = await client.get(f"order/{trx}")
    assert [line["voucherCode"] for item in found["items"] for line in item["orderLines"]] == codes
    assert (await client.get(f"order?trx={trx}"))["data"] == [found]
    assert await client.get(f"order/{trx}") == await shop.find(company, trx, version="1.03")

    second = (await client.call("POST", "order", cart)).json()["trx"]
    resolved = await client.call("PATCH", f"order/resolve/{second}", {})
    assert (resolved.status_code, resolved.json()["orderStatus"]) == (200, "finished")
    third = (
        await client.call("POST", "order", cart | {"items": [{"productSlug": "gift-10", "amount": 1}]})
    ).json()
    cancelled = await client.call("PATCH", f"order/cancel/{third['trx']}")
    assert cancelled.status_code == 204
    again = await client.call("PATCH", f"order/confirm/{trx}")
    assert (again.status_code, again.text) == (400, "this order can not be confirmed")
    assert again.headers["content-type"] == "text/plain; charset=utf-8"
    await shop.assert_books_balance()


async def test_a_walk_by_offset_sees_every_order_once_and_ends(quiet_shop: Shop) -> None:
    """OP-03, OP-136: `limit` and `offset` until a page is short; and until `pagination` says that it was the last."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    made = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(2 * PAGE + 1)]
    client = Client(shop, company, FETCH)

    seen, offset, last = list[str](), 0, False
    for _ in range(len(made)):
        page = await client.get(f"order?limit={PAGE}&offset={offset}")
        seen += [order["trx"] for order in page["data"]]
        assert page["pagination"] == {
            "total": len(made),
            "limit": PAGE,
            "offset": offset,
            "page": offset // PAGE + 1,
            "pages": 3,
        }
        last = len(page["data"]) < PAGE
        if last:
            break
        offset += PAGE
    assert (seen, last) == (made[::-1], True)
    between = await client.get(f"order?limit={PAGE}&offset=1")
    assert [order["trx"] for order in between["data"]] == made[::-1][1 : PAGE + 1]
    beyond = await client.get("order?offset=1000")
    assert (beyond["data"], beyond["pagination"]["total"]) == ([], len(made))
    assert "pagination" not in await client.get("order?cursor=")


@pytest.mark.parametrize("version", ["1.00", "1.02", "1.03", "Next"])
async def test_a_copy_of_the_catalogue_is_made_page_by_page_in_every_version(
    quiet_shop: Shop, version: str
) -> None:
    """OP-04, OP-136: accounts, brands and products, with the fields that such programs copy; none is missing."""
    shop = quiet_shop
    company = await shop.company()
    for at in range(PAGE + 1):
        await shop.product(f"gift-{at}", brand=f"Brand {at % 2}", category="gifts", redeem_type="currency")
    await shop.product("stream", brand="Brand 1", name="Zz", redeem_type="subscription", region="nl")
    client = Client(shop, company, LIBRARY, version)

    async def whole(resource: str) -> list[dict[str, Any]]:
        items = list[dict[str, Any]]()
        for number in range(1, 10):
            page = await client.get(f"{resource}?page={number}&limit={PAGE}")
            items += page["data"]
            if number >= page["pagination"]["pages"]:
                break
        return items

    products = {one["slug"]: one for one in await whole("product")}
    assert set(products) == {"stream", *(f"gift-{at}" for at in range(PAGE + 1))}
    facts = (
        "brandName",
        "brandSlug",
        "category",
        "redeemType",
        "redeemValue",
        "isStocked",
        "faceValueAmount",
    )
    assert [products["gift-0"][name] for name in facts] == [
        *("Brand 0", "brand-0", "gifts", "currency", "eur"),
        *(False, 10.0),
    ]
    assert [products["stream"][name] for name in ("redeemType", "redeemValue")] == ["subscription", "nl"]
    brands = {one["slug"]: one for one in await whole("brand")}
    assert {slug: (one["brandName"], one["category"], one["redeemType"]) for slug, one in brands.items()} == {
        "brand-0": ("Brand 0", "gifts", "currency"),
        "brand-1": ("Brand 1", "gifts", "currency"),
    }
    (account,) = await client.get("account")
    assert (account["currency"], account["state"], account["totalAmount"]) == ("EUR", "live", 1000.0)


async def test_exchange_rates_are_pairs_too(quiet_shop: Shop) -> None:
    """OP-136: `fxRates`, in the order of `data` and with the same digits."""
    shop = quiet_shop
    company = await shop.company()
    await shop.fx("USD", 92_319_055)
    rates = await Client(shop, company, FETCH).get("fx-rate")
    assert {"currencyFrom": "usd", "currencyTo": "eur", "rate": 0.92319055} in rates["fxRates"]
    assert [(one["currencyFrom"], one["currencyTo"], one["rate"]) for one in rates["fxRates"]] == [
        (one["fromCurrency"], one["toCurrency"], one["rate"]) for one in rates["data"]
    ]


async def test_the_other_name_of_the_main_version_answers_the_same_everywhere(quiet_shop: Shop) -> None:
    """OP-04: every path without a parameter that is read, byte for byte; and what is made there is found there."""
    shop = quiet_shop
    company = await shop.company(scopes=frozenset(scope for route in ROUTES for scope in route.scopes))
    await shop.product("gift-10", stock=1)
    await shop.create(company, ("gift-10", 1))
    for route in ROUTES:
        assert "1.02" in route.served, route.path
        if route.method != "GET" or "{" in route.path or route.path == "event/stream":
            continue
        told = [
            await shop.call("GET", f"/api/{version}/{route.path}", company) for version in ("1.02", "1.03")
        ]
        # A live key moves no clock.
        expected = 400 if route.path.startswith("sandbox/") else 200
        assert {one.status_code for one in told} == {expected}, route.path
        # The log of calls has these calls in it, as soon as they are written down.
        assert told[0].content == told[1].content or route.path == "request", route.path
    hook = {"url": "https://hooks.shop.com/x"}
    made = await shop.call("POST", "/api/1.02/webhook", company, json=hook)
    assert made.headers["location"] == f"/api/1.02/webhook/{made.json()['id']}"
    assert (await shop.call("GET", made.headers["location"], company)).status_code == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "text/plain; charset=utf-8"),
        ("*/*", "text/plain; charset=utf-8"),
        ("application/json", "text/plain; charset=utf-8"),
        ("application/json, text/plain, */*;q=0.8", "text/plain; charset=utf-8"),
        ("application/*", "text/plain; charset=utf-8"),
        ("application/problem+json-seq", "text/plain; charset=utf-8"),
        ("application/problem+json;q=0, */*", "text/plain; charset=utf-8"),
        ("application/problem+json; q = 0.000", "text/plain; charset=utf-8"),
        ("application/problem+json", "application/problem+json"),
        ("text/plain, Application/Problem+JSON;q=0.1", "application/problem+json"),
        ("application/json,application/problem+json; charset=utf-8", "application/problem+json"),
    ],
)
async def test_an_error_is_plain_text_unless_the_other_form_is_named(
    quiet_shop: Shop, accept: str | None, kind: str
) -> None:
    """OP-26: whatever else a client accepts, and however much."""
    company = await quiet_shop.company()
    headers = {} if accept is None else {"accept": accept}
    answer = await quiet_shop.call("GET", "/api/1.02/order/TRX0", company, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (404, kind)
