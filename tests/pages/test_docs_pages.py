"""The docs for people who signed in: the way back, a key of their own, and nothing that others may see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.people import HTML, someone
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State


async def test_the_header_of_the_docs_leads_in_and_back(shop: Shop) -> None:
    """OP-91: to the form to sign in, which leads back to the same page; to the portal; to the console."""
    buyer, operator = await someone(shop, "viewer", await shop.company()), await someone(shop, "admin")
    for path in ("/docs", "/docs/errors/bad_input", "/docs/search"):
        out = await shop.client.get(path, headers=HTML)
        assert f'href="/sign-in?next={path}">Sign in</a>' in out.text
        inside = await buyer.get(path)
        assert 'href="/portal">Back to the portal</a>' in inside.text
        assert "/sign-in" not in inside.text
        assert inside.headers["cache-control"] == "no-store"
        assert 'href="/console">Back to the console</a>' in (await operator.get(path)).text


async def test_a_key_can_be_filled_in_on_every_page_that_tries_a_call(shop: Shop) -> None:
    """OP-91: the page that asked comes back with the key in its field, and no other company's page can be asked for."""
    company = await shop.company()
    developer = await someone(shop, "developer", company)
    path = "/docs/reference/find-accounts"
    offered = await developer.get(path)
    assert f'<input type="hidden" name="page" value="{path}">' in offered.text
    filled = await developer.post("/portal/guide-key", {"page": path})
    assert "<h1>Find accounts</h1>" in filled.text
    found = re.search('<input id="try-key"[^>]* value="(vk_test_[0-9A-Za-z]+)"', filled.text)
    assert found is not None
    answer = await shop.client.get("/api/1.03/account", headers={"authorization": f"Bearer {found[1]}"})
    assert answer.status_code == 200
    assert (await developer.post("/portal/guide-key", {"page": "/portal/keys"})).status_code == 404
    viewer = await someone(shop, "viewer", company, state=State.SANDBOX)
    assert "/portal/guide-key" not in (await viewer.get(path)).text


async def test_a_key_is_not_made_for_a_page_that_does_not_exist(shop: Shop) -> None:
    """A form that somebody changed leaves no key behind."""
    developer = await someone(shop, "developer", await shop.company())
    before = await shop.pool.fetchval("SELECT count(*) FROM api_key")
    assert (await developer.post("/portal/guide-key", {"page": "/docs/nothing"})).status_code == 404
    assert await shop.pool.fetchval("SELECT count(*) FROM api_key") == before


@pytest.mark.parametrize("path", ["/docs", "/docs/reference/create-order", "/docs/search?q=order"])
async def test_the_docs_lie_below_the_public_address(
    pool: Pool, database_url: str, tmp_path: Path, path: str
) -> None:
    """Behind a proxy that serves us under a path of its own, links, forms and what is fetched begin with that path."""
    public_url = "https://codes.example.org/shop"
    async with open_shop(pool, database_url, tmp_path, with_worker=False, public_url=public_url) as shop:
        page = (await shop.client.get(path)).text
    led = re.findall(r' (?:href|src|action)="([^"]*)"', page)
    assert led
    assert not [one for one in led if not one.startswith(("/shop/", "#", "https://www.standardwebhooks.com"))]


async def test_a_search_takes_whatever_is_typed(shop: Shop) -> None:
    """Nothing of it is run or believed, and none of it is an error."""
    for words in ("<script>alert(1)</script>", "", " ", "%00", "'\"&", "ß€💶", "a" * 5_000, "order " * 1_000):
        answer = await shop.client.get("/docs/search", params={"q": words})
        assert answer.status_code in (200, 400), words
        assert "<script>alert" not in answer.text
