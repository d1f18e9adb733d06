"""The buyer's way in a real browser: on a desk, on a phone, and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.walker import DESKTOP, PHONE, Walker


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_buyer_walks_from_the_catalogue_to_the_codes(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-91: every page on the way is within everybody's reach, at both sizes."""
    walker = await walk(size)
    page = walker.page
    # The same page again, only narrower: what axe finds there it finds on the desk.
    look = walker.assert_sound if size is DESKTOP else walker.assert_fits
    await walker.sign_in(walker.demo.buyer)
    await page.get_by_role("link", name="Buy codes").click()
    await walker.assert_sound("catalogue")
    await page.get_by_label("Search", exact=True).fill("nimbari")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="Nimbari Play €10").first.click()
    await look("product")
    await page.get_by_label("How many codes").fill("3")
    await page.get_by_role("button", name="Put into cart").click()
    await expect(page.get_by_role("status").first).to_contain_text("is in your cart")
    await walker.assert_sound("cart")
    await page.get_by_label("Your reference").fill("PO 4711")
    await page.get_by_role("button", name="Continue to confirm").click()
    await look("order-to-confirm")
    await page.get_by_role("button", name="Confirm and pay").click()
    await page.get_by_text("Paid and delivered").wait_for()
    await walker.assert_sound("order-delivered")
    async with page.expect_download() as file:
        await page.get_by_role("button", name="PDF to print").click()
    assert re.fullmatch(r"codes-.+\.pdf", (await file.value).suggested_filename)
    await page.get_by_role("button", name="Show codes").click()
    await look("codes")
    assert await page.get_by_role("row").count() == 4
    await page.goto("/portal/orders")
    await look("orders")
    await page.goto("/portal/alerts")
    await look("alerts")
    await page.goto("/portal")
    await look("overview")


async def test_progress_comes_by_itself(walk: Callable[..., Awaitable[Walker]]) -> None:
    """OP-91: what waits can be cancelled for a refund that is told before; what takes a while ends on the screen."""
    walker = await walk(scheme="dark")
    page = walker.page
    await walker.sign_in(walker.demo.buyer)
    await page.goto("/portal/catalogue/runevault-founder-edition")
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_role("button", name="Continue to confirm").click()
    await page.get_by_role("button", name="Confirm and pay").click()
    await page.get_by_text("codes are there").wait_for()
    await walker.assert_sound("order-in-progress-dark")
    await page.get_by_role("link", name="Cancel what is open").click()
    await walker.assert_fits("cancel-dark")
    await page.get_by_role("button", name="Cancel, and refund").click()
    await page.get_by_text("is back in your balance").wait_for()
    await page.get_by_role("button", name="Sandbox").click()
    await page.goto("/portal/catalogue/nimbari-play-10-eur")
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_role("button", name="Continue to confirm").click()
    await page.get_by_label("What this sandbox order should do").select_option("slow")
    await page.get_by_role("button", name="Confirm and pay").click()
    await expect(page.get_by_text("Delivered", exact=True)).to_be_visible()


async def test_everything_works_without_javascript(walk: Callable[..., Awaitable[Walker]]) -> None:
    """OP-91: the same way with scripts switched off."""
    walker = await walk(PHONE, scripts=False)
    page = walker.page
    await walker.sign_in(walker.demo.buyer)
    await page.goto("/portal/catalogue?category=games")
    await page.get_by_role("link", name="Nimbari Play €25").first.click()
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_label("How many Nimbari Play €25").fill("2")
    await page.get_by_role("button", name="Update").click()
    await page.get_by_role("button", name="Continue to confirm").click()
    await page.get_by_role("button", name="Confirm and pay").click()
    await page.get_by_role("button", name="Show codes").click()
    assert await page.get_by_role("row").count() == 3
