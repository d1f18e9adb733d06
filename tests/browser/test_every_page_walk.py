"""Every page of the tables in a real browser: found by its links, within everybody's reach, inside the edges."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import Page as Tab
from playwright.async_api import ViewportSize

from tests.browser.walker import DESKTOP, PHONE, Demo, Sign, Walker
from tests.cli.terminal import Terminal
from tests.patience import HANG_S
from voucherd.pages import routes
from voucherd.pages.page import Audience
from voucherd.pages.routes import PAGES

PAGES_MAX: Final = 400
"""Pages that a walk opens at most."""
ELSEWHERE: Final = re.compile(
    r"/(live|test|progress|export|file|csv|list|sample|statement\.csv)$|^/(r|logo|docs|invitation|reset|set-up)(/|$)"
    r"|/-/(export|list)|set-up|format="
)
"""Files, streams, calls to suppliers, and pages that links in letters lead to; their own tests open them."""


def route(address: str) -> str:
    """The path of an address as the table of pages writes it; empty for what is no page."""
    found = routes.match(urlsplit(address).path.removeprefix("/sandbox"))
    return "" if found is None or "GET" not in found[0] else found[2]


async def addresses(tab: Tab) -> list[str]:
    """Where the links of a page lead, within this site."""
    found: list[str] = await tab.evaluate(
        "[...document.querySelectorAll('a[href]:not([download])')].map(a => a.href)"
        ".filter(href => href.startsWith(location.origin)).map(href => href.slice(location.origin.length))"
    )
    return [one.partition("#")[0] for one in found]


async def walk_all(walker: Walker, starts: list[str]) -> tuple[set[str], list[str]]:
    """Open one page of each kind that links lead to; the kinds that were opened, and what was wrong with them."""
    seen: set[str] = set()
    wrong: list[str] = []
    waiting = deque(starts)
    while waiting and len(seen) < PAGES_MAX:
        address = waiting.popleft()
        kind = route(address)
        if not kind or kind in seen or ELSEWHERE.search(address):
            continue
        seen.add(kind)
        answer = await walker.page.goto(address)
        assert answer is not None
        if answer.status != 200:
            wrong.append(f"{address}: {answer.status}")
            continue
        try:
            await walker.assert_sound("every" + re.sub(r"[^a-z]+", "-", kind))
        except AssertionError as problem:
            wrong.append(str(problem))
        waiting.extend(await addresses(walker.page))
    return seen, wrong


def prepare(demo: Demo, shell: Terminal) -> str:
    """One of each thing that has a page, so that there is something to open; the number of an order in progress."""
    with httpx.Client(base_url=demo.url, headers={"Authorization": f"Bearer {demo.live.key}"}) as client:
        for slug, amount in (("nimbari-play-10-eur", 2), ("runevault-founder-edition", 1)):
            order = {"items": [{"productSlug": slug, "amount": amount}], "paymentCurrency": "EUR"}
            trx = client.post("/api/1.03/order", json=order).json()["trx"]
            client.patch(f"/api/1.00/order/confirm/{trx}", timeout=HANG_S)
    # They may be there from the walk before.
    shell.run("price", "list", "add", "every-page")
    shell.run(
        *("supplier", "add", "every-page", "--kind", "voucherd", "--url", "https://supplier.example.com"),
        *("--currency", "EUR", "--key", "-"),
        stdin="a key",
    )
    shell.run("supplier", "offer", "every-page", "starlanea-beta-bundle")
    shell.run("webhook", "add", demo.live.company, "https://hooks.example.com/every-page")
    return str(trx)


def expected(audience: Audience) -> set[str]:
    """The kinds of pages that a walk of this audience has to come by."""
    return {
        page.path
        for page in PAGES
        if page.method == "GET" and page.audience is audience and not ELSEWHERE.search(page.path)
    }


SEARCHED: Final = {"operator": ["/console/search?q=nimbari"], "buyer": []}
"""Pages that a field leads to, instead of a link."""
UNLINKED: Final = frozenset(
    {
        "/console/money/{number}",
        "/console/products/-/files/{upload}",
        "/console/purchases/{purchase}",
        "/console/purchases/{purchase}/settle",
        "/console/stock/import/{upload}",
        "/portal/bulk/orders",
        "/portal/orders/{trx}/codes",
    }
)
"""Pages of a payment, a file or a purchase that somebody has to make first: their own walks open them."""


@pytest.mark.parametrize(
    ("size", "scheme"),
    [(DESKTOP, "light"), pytest.param(PHONE, "dark", marks=pytest.mark.soak)],
    ids=["desktop", "phone"],
)
@pytest.mark.parametrize("who", ["operator", "buyer"])
async def test_every_page_is_linked_and_within_reach(
    walk: Callable[..., Awaitable[Walker]], shell: Terminal, who: str, size: ViewportSize, scheme: str
) -> None:
    """OP-91: axe finds nothing on any page of the tables, however small; nothing sticks out of the edge."""
    walker = await walk(size, scheme=scheme)
    trx = await asyncio.to_thread(prepare, walker.demo, shell)
    signs: dict[str, tuple[Sign, str, Audience]] = {
        "operator": (walker.demo.operator, "/console", Audience.OPERATOR),
        "buyer": (walker.demo.buyer, "/portal", Audience.COMPANY),
    }
    sign, start, audience = signs[who]
    await walker.sign_in(sign)
    # Other walks order, too, and only an order in progress leads to the page that cancels it.
    first = [f"/portal/orders/{trx}"] if who == "buyer" else []
    seen, wrong = await walk_all(walker, [*first, start, *SEARCHED[who]])
    assert wrong == []
    assert expected(audience) - seen - UNLINKED == set()
