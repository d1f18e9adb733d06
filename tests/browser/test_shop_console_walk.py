"""The console as the operator of a shop uses it: overview, search, lists and an order, in both sizes."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import httpx
import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.walker import DESKTOP, PHONE, Demo, Walker

HEIGHT_MAX: Final = 10_000
"""Pixels of a list on a phone."""
LISTS: Final = {
    "health": "/console/health",
    "purchases": "/console/purchases",
    "lots": "/console/lots",
    "late": "/console/late-codes",
    "products": "/console/products",
    "trail": "/console/trail",
    "reveals": "/console/reveals",
    "stock-report": "/console/reports/stock",
    "search": "/console/search?q=play",
}
_CUT: Final = (
    "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1).length"
)


async def sold(demo: Demo, reference: str) -> str:
    """A paid order with this reference."""
    bearer = {"authorization": f"Bearer {demo.live.key}"}
    async with httpx.AsyncClient(base_url=demo.url, headers=bearer, timeout=60) as client:
        wish = {"items": [{"productSlug": "nimbari-play-10-eur", "amount": 3}], "paymentCurrency": "EUR"}
        made = await client.post("/api/1.03/order", json={**wish, "reference": reference})
        assert made.status_code == 201, made.text
        trx = str(made.json()["trx"])
        assert (await client.patch(f"/api/1.03/order/confirm/{trx}")).status_code == 200
    return trx


@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop-light", "phone-dark"]
)
async def test_the_operator_sees_the_shop_and_finds_an_order(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize, scheme: str
) -> None:
    """OP-160 to OP-163: nothing is cut off nor out of anybody's reach, and no list is endless on a phone."""
    one = await walk(size, scheme=scheme)
    page = one.page
    reference = f"PO {secrets.token_hex(4)}"
    trx = await sold(one.demo, reference)
    await one.sign_in(one.demo.operator)
    await page.locator(".health-line summary").click()
    await expect(page.get_by_role("link", name="See every check")).to_be_visible()
    await one.assert_sound("shop-overview")
    await page.goto("/console/orders")
    await expect(page.locator("tbody tr").first).to_contain_text("3 × Nimbari Play €10")
    await one.assert_sound("shop-orders")
    assert await page.evaluate(_CUT) == 0
    codes = page.locator("tbody td[data-label='Codes']").first
    assert await codes.evaluate("cell => cell.getClientRects().length") == 1
    await page.keyboard.press("/")
    await page.keyboard.type(reference)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/console/orders/{trx}")
    for happened in ("Order created", "Paid", "Delivered", "Codes shown"):
        await expect(page.locator(".timeline")).to_contain_text(happened)
    await one.assert_sound("shop-order")
    for name, path in LISTS.items():
        await page.goto(path)
        # The words are the same at both sizes: one look at them is enough.
        await (one.assert_sound if size is PHONE else one.assert_fits)(f"shop-{name}")
        assert await page.evaluate(_CUT) == 0, name
        assert await page.evaluate("document.documentElement.scrollHeight") < HEIGHT_MAX, name
