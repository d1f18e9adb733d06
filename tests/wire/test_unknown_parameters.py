"""A parameter that a call does not have is refused, in every call: ignored, it would lead its client astray."""

from __future__ import annotations

import re

import pytest

from tests.shop import Company, Shop
from voucherd.api.operations import OPERATIONS
from voucherd.api.routes import ROUTES, Route
from voucherd.keys.key_text import Scope


def path_of(route: Route, version: str = "1.03") -> str:
    """Its path, with something in place of its parameters."""
    return f"/api/{version}/" + re.sub(r"\{\w+\}", "x", route.path)


def known(route: Route) -> list[str]:
    """The parameters of its query."""
    return [one.name for one in OPERATIONS[route.op].parameters if one.place == "query"]


async def refusal(shop: Shop, company: Company, route: Route, query: str, version: str = "1.03") -> str:
    """What the call is told instead of being served; it changes nothing, so it needs no body."""
    answer = await shop.call(route.method, f"{path_of(route, version)}?{query}", company)
    assert answer.status_code == 400, (route.path, query, answer.text)
    return answer.text


async def test_no_call_ignores_what_it_does_not_know(quiet_shop: Shop) -> None:
    """OP-135: every route in every version; nothing like it is known, so nothing is proposed."""
    company = await quiet_shop.company(scopes=frozenset(Scope))
    before = await quiet_shop.snapshot()
    for route in ROUTES:
        for version in route.served:
            told = await refusal(quiet_shop, company, route, "zzzzz=1", version)
            assert told == "zzzzz: is not a parameter of this call"
    assert await quiet_shop.snapshot() == before


async def test_the_nearest_known_parameter_is_proposed_whatever_its_case(quiet_shop: Shop) -> None:
    """OP-135: each parameter of each call in capitals, and with a letter too many; another case is another name."""
    company = await quiet_shop.company(scopes=frozenset(Scope))
    tried = 0
    for route in ROUTES:
        for name in known(route):
            told = await refusal(quiet_shop, company, route, f"{name.upper()}=1")
            assert told == f"{name.upper()}: is not a parameter of this call, did you mean {name}?"
            if len(name) > 3:
                assert f"did you mean {name}?" in await refusal(quiet_shop, company, route, f"{name}s=1")
            tried += 1
    assert tried > 40


async def test_a_list_that_has_cursors_alone_says_so(quiet_shop: Shop) -> None:
    """OP-03, OP-135: who counts pages is told to walk, and not that there is no such thing."""
    company = await quiet_shop.company(scopes=frozenset(Scope))
    walked = [route for route in ROUTES if "cursor" in known(route) and "page" not in known(route)]
    assert len(walked) > 3
    for route in walked:
        for name in ("page", "offset"):
            told = await refusal(quiet_shop, company, route, f"{name}=2")
            assert told == f"{name}: is not offered here, use cursor"


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("limit=2&colour=red", "colour: is not a parameter of this call"),
        ("order_status=created", "order_status: is not a parameter of this call, did you mean orderStatus?"),
        ("page_size=10", "page_size: is not a parameter of this call, did you mean page?"),
        ("=1", "query: is not a parameter of this call"),
        ("colour", "colour: is not a parameter of this call"),
        ("a%0Ab%00=1", "a?b?: is not a parameter of this call"),
        ("%F0%9F%98%80=1", "\N{GRINNING FACE}: is not a parameter of this call"),
        (f"{'x' * 500}=1", f"{'x' * 50}: is not a parameter of this call"),
        ("%FF=1", "query: is not valid"),
    ],
)
async def test_whatever_a_client_makes_up_is_told_in_one_line(
    quiet_shop: Shop, query: str, told: str
) -> None:
    """OP-25, OP-135: names that are long, empty or not printable are cut and made fit to be read."""
    company = await quiet_shop.company()
    await quiet_shop.assert_refused(quiet_shop.call("GET", f"/api/1.03/order?{query}", company), 400, told)


async def test_a_sale_with_an_unknown_parameter_is_refused_before_anything_is_sold(quiet_shop: Shop) -> None:
    """OP-135: Create, Confirm and Cancel; without the parameter the same call goes through, under the same key."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    cart = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    text = "dryRun: is not a parameter of this call"
    await shop.assert_refused(shop.call("POST", "/api/1.03/order?dryRun=1", company, json=cart), 400, text)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    for operation in ("confirm", "resolve", "cancel"):
        path = f"/api/1.03/order/{operation}/{trx}?dryRun=1"
        await shop.assert_refused(shop.call("PATCH", path, company), 400, text)
    assert (await shop.find(company, trx))["orderStatus"] == "created"
    await shop.confirm(company, trx)
    await shop.assert_books_balance()
