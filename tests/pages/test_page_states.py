"""Live and sandbox are part of a page's address: two tabs can differ, and a link keeps its meaning."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.pages.people import HTML, someone
from tests.pages.test_every_page import filled
from tests.shop import Shop
from voucherd.http import HTML as HTML_TYPE
from voucherd.http import Response
from voucherd.ids import State
from voucherd.pages import addresses
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES

LINKS = re.compile(r' (?:href|action|formaction|data-live)="([^"]*)"')
SWITCH = re.compile(r'<nav class="switch".*?</nav>', re.DOTALL)
BALANCE = re.compile(r"/console/companies/[0-9]+/statement\?currency=[A-Z]{3}")
"""The operator's page of a company has its balances of both states, each with its own statement."""
OURS = ("/portal", "/console", "/account")


def strays(page: str) -> list[str]:
    """Links of a page of the sandbox, the switch and balances of live left out, that lead out of the sandbox."""
    found = [str(link) for link in LINKS.findall(SWITCH.sub("", page))]
    return [link for link in found if link.startswith((*OURS, "/live")) and not BALANCE.fullmatch(link)]


def switch(answer: httpx.Response) -> list[str]:
    """Where the switch of a page leads: to live, and to the sandbox."""
    found = SWITCH.search(answer.text)
    assert found is not None
    return [str(link) for link in LINKS.findall(found[0])]


async def test_two_tabs_of_one_browser_differ(shop: Shop) -> None:
    """OP-170: the same session shows live in one tab and the sandbox in another, each with its own orders and cart."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=5)
    buyer = await someone(shop, "owner", company)
    live = await shop.create(company, ("gift-10", 1))
    play = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    one, two = await buyer.get("/portal/orders"), await buyer.get("/sandbox/portal/orders")
    assert (live["trx"] in one.text, play["trx"] in one.text) == (True, False)
    assert (live["trx"] in two.text, play["trx"] in two.text) == (False, True)
    assert (await buyer.get(f"/portal/orders/{play['trx']}")).status_code == 404
    added = await buyer.post("/sandbox/portal/cart/add", {"slug": "gift-10", "amount": "2"})
    assert added.headers["location"].startswith("/sandbox/portal/")
    assert "gift-10" not in (await buyer.get("/portal/cart")).text
    assert "gift-10" in (await buyer.get("/sandbox/portal/cart")).text


async def test_every_link_of_a_sandbox_page_stays_in_the_sandbox(shop: Shop) -> None:
    """OP-170: links, forms and live parts of every page, with objects in their paths and without."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=1)
    owner = await someone(shop, "owner", company, state=State.SANDBOX)
    admin = await someone(shop, "admin", state=State.SANDBOX)
    order = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    for person, path in (
        (owner, f"/portal/orders/{order['trx']}"),
        (owner, "/portal/catalogue/gift-10"),
        (admin, f"/console/orders/{order['trx']}"),
        (admin, "/console/products/gift-10"),
        (admin, f"/console/companies/{company.id}"),
    ):
        answer = await person.get(path)
        assert (answer.status_code, strays(answer.text)) == (200, []), path
    walked = 0
    for page in PAGES:
        if page.method != "GET" or not page.path.startswith(OURS):
            continue
        path = await filled(shop, company, page)
        answer = await (admin if page.audience is Audience.OPERATOR else owner).get(path)
        assert answer.headers.get("location", "/sandbox/").startswith("/sandbox/"), page.path
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert strays(answer.text) == [], page.path
            walked += 1
    assert walked > 40


async def test_the_switch_leads_to_the_same_page_or_to_its_list(shop: Shop) -> None:
    """OP-170: an order is in one state only, so its switch leads to the orders of the other one."""
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    owner = await someone(shop, "owner", company)
    order = await shop.create(company, ("gift-10", 1), state=State.SANDBOX)
    for path, beside in (
        ("/portal/orders", "/portal/orders"),
        ("/portal/catalogue/gift-10", "/portal/catalogue/gift-10"),
        ("/account", "/account"),
        ("/portal/nothing/here", "/portal"),
    ):
        for prefix in ("", "/sandbox"):
            assert switch(await owner.get(prefix + path)) == [beside, "/sandbox" + beside], path
    page = await owner.get(f"/sandbox/portal/orders/{order['trx']}")
    assert switch(page) == ["/portal/orders", "/sandbox/portal/orders"]


async def test_signing_in_leads_back_to_the_state_that_was_asked_for(shop: Shop) -> None:
    """OP-170: a link into the sandbox still leads there after signing in."""
    out = await shop.client.get("/sandbox/portal/orders?q=x", headers=HTML)
    assert out.headers["location"] == "/sign-in?next=/sandbox/portal/orders%3Fq%3Dx"
    page = await shop.client.get(out.headers["location"], headers=HTML)
    assert 'value="/sandbox/portal/orders?q=x"' in page.text


async def test_no_other_address_has_a_state(shop: Shop) -> None:
    """OP-170: `/live/…` is for links that we write, and only pages of people have two states."""
    owner = await someone(shop, "owner", await shop.company())
    for path in ("/live/portal", "/sandbox/docs", "/sandbox/sign-in", "/sandbox", "/sandbox/sandbox/portal"):
        assert (await owner.get(path)).status_code == 404, path


@pytest.mark.parametrize("root", ["", "/shop"])
def test_links_get_the_state_and_the_root_of_a_proxy_together(root: str) -> None:
    """OP-91, OP-170: what we write leads to our own pages wherever they are; what others write is left alone."""
    body = (
        b'<a href="/portal/orders"><a href="/live/portal"><a href="/portals"><img src="/static/x">'
        b'<form action="/console?x=1"><div data-live="/portal/a"><a href="//portal/x"><p>href=&quot;/portal&quot;'
    )
    answer = Response(303, body, HTML_TYPE, [(b"location", b"/account"), (b"allow", b"/portal")])
    addresses.lead(answer, State.SANDBOX, root)
    assert isinstance(answer.body, bytes)
    assert answer.body.decode() == (
        f'<a href="{root}/sandbox/portal/orders"><a href="{root}/portal"><a href="{root}/portals">'
        f'<img src="{root}/static/x"><form action="{root}/sandbox/console?x=1">'
        f'<div data-live="{root}/sandbox/portal/a"><a href="//portal/x"><p>href=&quot;/portal&quot;'
    )
    assert dict(answer.headers) == {b"location": f"{root}/sandbox/account".encode(), b"allow": b"/portal"}
