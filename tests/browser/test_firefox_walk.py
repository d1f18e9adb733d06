"""The main paths in Debian's Firefox: what works in one browser works in another."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Final

import pytest

from tests.browser.firefox import Firefox, firefox, opened
from tests.browser.walker import Demo, Sign

AXE: Final = "axe.min.js"
_LOOK: Final = """
const done = arguments[arguments.length - 1];
axe.run().then(
  found => done(found.violations.map(one => [one.id, one.nodes.map(node => node.target)])),
  error => done(String(error)),
);
"""


@pytest.fixture(scope="module")
async def browser_window(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Firefox]:
    """A window of Firefox; without one this is skipped, but never where the suite decides about a change."""
    program = firefox()
    if program is None:
        why = "there is no Firefox on this machine: the pages were NOT tried in it"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(why)
        pytest.skip(why)
    async with opened(program, tmp_path_factory.mktemp("firefox")) as found:
        yield found


@pytest.fixture
async def window(browser_window: Firefox) -> Firefox:
    """The same window, in which nobody is signed in."""
    await browser_window.say("WebDriver:DeleteAllCookies")
    return browser_window


async def sign_in(window: Firefox, demo: Demo, who: Sign) -> None:
    """Fill in the form."""
    await window.goto(f"{demo.url}/sign-in")
    await window.fill("E-mail", who.email)
    await window.fill("Password", who.password)
    await window.click("Sign in")
    await window.see("Overview")


async def assert_sound(window: Firefox) -> None:
    """Nothing is out of reach, and nothing sticks out of the edge, in a wide window and in a narrow one."""
    axe = next(file for file in files("axe_playwright_python").iterdir() if file.name == AXE)
    for width in (1280, 500):
        await window.resize(width, 844)
        inner, wide = await window.run("return [innerWidth, document.documentElement.scrollWidth];")
        address = await window.run("return location.href;")
        assert wide <= inner, f"{address} is {wide} wide"
        await window.run(axe.read_text("utf-8") + "; window.axe = axe;")
        assert await window.run_async(_LOOK) == [], address


async def test_a_buyer_gets_from_the_catalogue_to_a_code_in_firefox(window: Firefox, demo: Demo) -> None:
    """OP-91: the buyer's main path."""
    await sign_in(window, demo, demo.buyer)
    await assert_sound(window)
    await window.goto(f"{demo.url}/portal/catalogue/nimbari-play-10-eur")
    await assert_sound(window)
    await window.click("Put into cart")
    await window.click("Continue to confirm")
    await window.see("Confirm and pay")
    await assert_sound(window)
    await window.click("Confirm and pay")
    await window.see("Paid and delivered")
    await window.click("Show codes")
    await window.see("Valid until")
    await assert_sound(window)


@pytest.mark.soak
async def test_the_operator_looks_around_in_firefox(window: Firefox, demo: Demo) -> None:
    """OP-91: the operator's main pages."""
    await sign_in(window, demo, demo.operator)
    for path in ("/console", "/console/orders", "/console/style"):
        await window.goto(demo.url + path)
        await assert_sound(window)


async def test_a_recipient_opens_a_link_in_firefox(window: Firefox, demo: Demo) -> None:
    """OP-91: a voucher shows its code when it is asked to."""
    await window.goto(demo.voucher)
    await assert_sound(window)
    await window.click("Show the code")
    await window.see("Your code")
    await assert_sound(window)
