"""Signing in, in a real browser, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import ViewportSize

from tests.browser.walker import PHONE, SIZES, Walker


@pytest.mark.parametrize("size", SIZES)
async def test_people_sign_in_and_look_around(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-90, OP-91: a buyer and one of the operator's people find their pages, and axe finds nothing serious."""
    walker = await walk(size)
    await walker.page.goto("/portal")
    await walker.assert_sound("sign-in")
    await walker.sign_in(walker.demo.buyer)
    await walker.page.get_by_role("link", name="Sandbox", exact=True).first.click()
    await walker.page.get_by_text("Nothing here is real").wait_for()
    await walker.assert_sound("portal-sandbox")
    await walker.page.goto("/no/such/page")
    await walker.assert_fits("problem")
    if size is PHONE:
        return
    other = await walk(size, scheme="dark")
    await other.sign_in(other.demo.operator)
    await other.assert_sound("console-dark")
