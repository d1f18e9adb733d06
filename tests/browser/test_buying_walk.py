"""The buyer's way in a real browser: on a desk, on a phone, and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.walker import DESKTOP, NARROW_FIRST, PHONE, SIZES, Walker


@pytest.mark.parametrize("size", SIZES)
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
    await page.get_by_role("link", name="Open").first.click()
    await page.get_by_role("button", name="Show the code").wait_for()
    await page.go_back()
    assert await page.get_by_role("row").count() == 4, "Back finds the codes again"
    await page.get_by_role("link", name="← Order").click()
    await page.get_by_role("button", name="Show links").click()
    await look("links")
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
    await page.get_by_text("codes delivered").wait_for()
    await walker.assert_sound("order-in-progress-dark")
    await page.get_by_role("link", name="Cancel remaining codes").click()
    await walker.assert_fits("cancel-dark")
    await page.get_by_role("button", name="Cancel and refund").click()
    await page.get_by_text("is back in your balance").wait_for()
    await page.get_by_role("link", name="Sandbox", exact=True).first.click()
    await page.goto("/sandbox/portal/catalogue/nimbari-play-10-eur")
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_role("button", name="Continue to confirm").click()
    await page.get_by_label("Sandbox: what this order should do").select_option("slow")
    await page.get_by_role("button", name="Confirm and pay").click()
    await expect(page.locator(".head .badge", has_text="Delivered")).to_be_visible()


async def test_everything_works_without_javascript(walk: Callable[..., Awaitable[Walker]]) -> None:
    """OP-91: the same way with scripts switched off."""
    walker = await walk(PHONE, scripts=False)
    page = walker.page
    await walker.sign_in(walker.demo.buyer)
    await page.goto("/portal/catalogue?category=games")
    await page.get_by_role("link", name="Nimbari Play €25").first.click()
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_label("Codes of Nimbari Play €25").fill("2")
    await page.get_by_role("button", name="Update").last.click()
    await page.get_by_role("button", name="Continue to confirm").click()
    await page.get_by_role("button", name="Confirm and pay").click()
    await page.get_by_role("button", name="Show codes").click()
    assert await page.get_by_role("row").count() == 3


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_a_buyer_orders_from_tiles_and_by_file(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-166, OP-167: tiles, a cart with a line that can't be had, and a file of rows, in the dark."""
    walker = await walk(size, scheme="dark")
    page = walker.page
    await walker.sign_in(walker.demo.buyer)
    await page.goto("/portal/catalogue?q=nimbari")
    await page.get_by_role("button", name="Add (Nimbari Play €10)").click()
    await page.get_by_role("status").get_by_text("is in your cart").wait_for()
    await expect(page.get_by_role("searchbox", name="Search")).to_have_value("nimbari")
    await page.goto("/portal/catalogue/runevault-collectors-key")
    await page.get_by_label("How many codes").fill("9999")
    await page.get_by_role("button", name="Put into cart").click()
    await page.get_by_text("left.").wait_for()
    await walker.assert_sound("cart-short")
    await page.get_by_role("button", name="Take what is available").click()
    await page.get_by_role("button", name="Continue to confirm").wait_for()
    await page.goto("/portal/bulk")
    await walker.assert_sound("bulk")
    await page.get_by_label("Or paste rows").fill("nimbari-play-10-eur,1,,Walk 1\nvelfox-any-eur,1,1,Walk 2")
    await page.get_by_role("button", name="Check and show prices").click()
    await page.get_by_text("1 row can’t be ordered.").wait_for()
    await walker.assert_sound("bulk-wrong")
    await page.get_by_label("Rows").fill("nimbari-play-10-eur,1,,Walk 1\nnimbari-play-25-eur,1,,Walk 2")
    await page.get_by_role("button", name="Check again").click()
    await page.get_by_role("button", name="Continue with 2 orders").click()
    await walker.assert_sound("bulk-orders")
    await page.get_by_role("button", name="Confirm and pay").click()
    await page.get_by_text("Confirmed: 2.").wait_for()
    await page.goto("/portal/orders?q=walk")
    await walker.assert_sound("orders-found")
