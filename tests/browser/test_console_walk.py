"""The operator's way in a real browser: from a company to a payment that two people agree on, to a report."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.walker import DESKTOP, NARROW_FIRST, PHONE, Sign, Walker
from tests.cli.terminal import Terminal


async def colleague(shell: Terminal) -> Sign:
    """A second person of the operator's, added at the command line beside the running demo."""
    words = ("user", "add", f"{secrets.token_hex(4)}@demo.example", "--role", "finance")
    sign = msgspec.convert(await asyncio.to_thread(shell.json, *words), Sign)
    await asyncio.to_thread(shell.json, "user", "confirm", sign.email)
    return sign


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_two_people_of_the_operator_top_up_a_company(
    walk: Callable[..., Awaitable[Walker]], shell: Terminal, size: ViewportSize
) -> None:
    """OP-91, OP-93: every page on the way is within everybody's reach, at both sizes; without JavaScript, too."""
    one, two = await walk(size), await walk(size, scripts=size is DESKTOP)
    page = one.page
    # Whoever is alone needs nobody's approval.
    other = await colleague(shell)
    await one.sign_in(one.demo.operator)
    await one.assert_sound("console-overview")
    await page.goto("/console/companies")
    await one.assert_fits("console-companies")
    await page.get_by_role("link", name=one.demo.live.company).click()
    await one.assert_sound("console-company")
    await page.get_by_role("link", name="Top up or correct").click()
    await page.get_by_label("Amount").fill("250.00")
    reference = f"bank {secrets.token_hex(4)}"
    await page.get_by_label("Reference").fill(reference)
    await one.assert_fits("console-payment-new")
    await page.get_by_role("button", name="Propose").click()
    await expect(page.get_by_role("status").first).to_contain_text("Proposed")
    await one.assert_sound("console-payment")
    await two.sign_in(other)
    await two.page.get_by_role("link", name="for your approval").first.click()
    await two.page.get_by_role("link", name=reference).click()
    await two.page.get_by_role("button", name="Approve").click()
    await expect(two.page.get_by_role("status").first).to_contain_text("Approved: 250.00")
    await page.goto("/console/reports")
    await page.get_by_label("Group by").select_option("product")
    await page.get_by_role("button", name="Show").click()
    await one.assert_sound("console-report")
    for name in ("fx", "vat", "prices", "trail", "money"):
        await page.goto(f"/console/{name}")
        # The words and colours are the same at both sizes: one look at them is enough.
        await (one.assert_sound if size is PHONE else one.assert_fits)(f"console-{name}")
