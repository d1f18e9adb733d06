"""A developer plays with the sandbox and looks for a call in the request log: in a real browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import httpx

from tests.browser.walker import PHONE, Walker
from tests.patience import until


async def shown_again(walker: Walker) -> int:
    """Load the list again; how many of its rows are orders."""
    await walker.page.reload()
    return await walker.page.locator("tr", has_text="/api/1.03/order").count()


async def test_a_developer_moves_the_clock_and_finds_a_call(walk: Callable[..., Awaitable[Walker]]) -> None:
    """OP-144, OP-146, OP-148: both pages fit a phone, are in reach for everyone, and work without a mouse."""
    owner, phone = await walk(), await walk(PHONE)
    async with httpx.AsyncClient(base_url=owner.demo.url) as client:
        headers = {"authorization": f"Bearer {owner.demo.live.key}", "x-request-id": "walk-through-the-log"}
        cart = {"items": [{"productSlug": "nothing", "amount": 1}], "paymentCurrency": "EUR"}
        refused = await client.post("/api/1.03/order", headers=headers, json=cart | {"reference": "order 7"})
        assert refused.status_code == 422
    for walker in (owner, phone):
        await walker.sign_in(walker.demo.buyer)
        await walker.page.goto("/portal/sandbox")
        await walker.page.get_by_label("Amount").fill("12.50")
        await walker.page.get_by_role("button", name="Add play money").click()
        await walker.page.get_by_text("The sandbox has").wait_for()
        await walker.page.get_by_label("Move ahead by").select_option("86400")
        await walker.page.get_by_role("button", name="Move clock").click()
        await walker.page.get_by_text("moved ahead by one day").wait_for()
        await walker.assert_sound("sandbox")
        await walker.page.get_by_role("button", name="Reset clock").click()
        await walker.page.get_by_role("button", name="Reset clock").click()
        await walker.page.get_by_text("shows the real time again").wait_for()

        await walker.page.goto("/portal/requests?status=422")
        # The log is written a moment after the answer.
        await until(partial(shown_again, walker), "the call is not in the log")
        await walker.assert_sound("requests")
        await walker.page.get_by_label("X-Request-Id").fill("walk-through-the-log")
        await walker.page.get_by_role("button", name="Search").click()
        await walker.page.get_by_role("link", name="POST").click()
        await walker.page.get_by_text("Some offers not available: nothing").wait_for()
        await walker.page.get_by_text('"reference": "order 7"').wait_for()
        await walker.assert_sound("request")
