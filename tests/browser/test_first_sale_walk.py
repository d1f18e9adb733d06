"""From an empty database to a sold and opened code, in a browser: nobody types a command after `voucherd serve`."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from base64 import b32decode
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize

from tests.browser.conftest import ACTION_MS_MAX, READY_S_MAX, STOP_S_MAX
from tests.browser.test_recipient_walk import AGENT
from tests.browser.walker import DESKTOP, PHONE, Demo, Walker
from tests.cli.terminal import PROGRAM, Terminal
from tests.patience import until
from voucherd.people import totp

Look: TypeAlias = Callable[[str], Awaitable[None]]
PASSWORD = "correct horse battery staple"
CODE = "NIM1-AAAA-BBBB-0001"
_NO_DEMO = b'{"baseUrl": "", "live": {"company": "", "key": ""}, "sandbox": {"company": "", "key": ""},' + (
    b' "operator": {"email": "", "password": ""}, "buyer": {"email": "", "password": ""}}'
)


@pytest.fixture
async def printed(chromium: str, tmp_path: Path) -> AsyncIterator[str]:
    """What `voucherd serve` prints on an empty data folder, up to the set-up link."""
    del chromium  # Nothing is started for tests that will be skipped.
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("serve", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=Terminal(tmp_path / "data").env,
    )
    assert process.stdout is not None
    said = ""
    try:
        while "voucherd setup-link" not in said:
            line = await asyncio.wait_for(process.stdout.readline(), READY_S_MAX)
            assert line, f"it ended: {said}"
            said += line.decode()
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), STOP_S_MAX)


class Shopkeeper:
    """Everybody who takes part in the first sale, each in a browser of their own."""

    def __init__(self, browser: Browser, address: str, size: ViewportSize, *, scripts: bool) -> None:
        self._browser, self._address, self._size, self._scripts = browser, address, size, scripts
        self._contexts: list[BrowserContext] = []

    async def open(self) -> Walker:
        """A browser in which nobody has been here before."""
        context = await self._browser.new_context(
            base_url=self._address, viewport=self._size, java_script_enabled=self._scripts, user_agent=AGENT
        )
        context.set_default_timeout(ACTION_MS_MAX)
        self._contexts.append(context)
        return Walker(await context.new_page(), Demo.read(_NO_DEMO, Path()))

    async def close(self) -> None:
        """Close all of them."""
        for context in self._contexts:
            await context.close()


async def press(page: Page, name: str) -> None:
    """Press the button of this name."""
    await page.get_by_role("button", name=name, exact=True).click()


async def set_up(page: Page, link: str, look: Look) -> str:
    """The shop from the link to a balance; the invitation of the first company's owner."""
    await page.goto(link)
    await look("setup-begin")
    await page.get_by_label("Name").fill("Corner Shop")
    await page.get_by_label("Country").select_option("NL")
    await page.get_by_label("E-mail").fill("ann@shop.example")
    await page.get_by_label("Password").fill(PASSWORD)
    await press(page, "Create the shop")

    await page.get_by_role("heading", name="Protect your account").wait_for()
    await look("setup-second-factor")
    secret = b32decode(await page.locator(".card .copyable code").inner_text())
    await page.get_by_label("Six digits").fill(totp.code(secret, int(time.time()) // totp.STEP_S))
    await press(page, "Use this app")
    await page.get_by_role("heading", name="Your recovery codes").wait_for()
    await page.get_by_role("link", name="I have saved them").click()

    await look("setup-currencies")
    await press(page, "Sell in euros")
    await page.get_by_role("heading", name="Your first product").wait_for()
    await look("setup-product")
    await page.get_by_label("Brand").fill("Nimbari Play")
    await page.get_by_label("Product name").fill("Nimbari Play 10 EUR")
    await page.get_by_label("Face value").fill("10")
    await page.get_by_label("Your price").fill("9.50")
    await press(page, "Add the product")

    await page.get_by_role("heading", name="Codes to sell").wait_for()
    await look("setup-codes")
    await page.get_by_label("Paste codes").fill(f"{CODE}\nNIM1-AAAA-BBBB-0002\n")
    await page.get_by_label("You paid for each").fill("9")
    await press(page, "Add the codes")
    await page.get_by_text("2 codes are on the shelf").wait_for()

    await look("setup-company")
    await page.get_by_label("Company").fill("Acme")
    await page.get_by_label("Owner’s e-mail").fill("owner@acme.example")
    await press(page, "Add the company")
    await page.get_by_role("heading", name="Acme can buy now").wait_for()
    await look("setup-company-made")
    assert (await page.locator("#key code").inner_text()).startswith("vk_live_")
    invitation = await page.locator("#invitation code").inner_text()
    await page.get_by_role("link", name="I have saved both").click()

    await look("setup-balance")
    await page.get_by_label("Amount").fill("100")
    await press(page, "Top up")
    await page.get_by_role("heading", name="The first sale").wait_for()
    await look("setup-sale")
    return invitation


async def buy(owner: Walker, invitation: str) -> str:
    """The redemption link of a code that the invited owner has bought in the portal."""
    page = owner.page
    await page.goto(invitation)
    await page.locator("input[name=password]").fill(PASSWORD)
    await page.locator("main form button").click()
    await page.wait_for_url(re.compile("/sign-in"))
    await page.locator("input[name=email]").fill("owner@acme.example")
    await page.locator("input[name=password]").fill(PASSWORD)
    await page.locator('main form[action="/sign-in"] button').click()
    await page.wait_for_url(re.compile("/portal"))
    assert "Corner Shop" in await page.locator("header").inner_text()
    await page.goto("/portal/catalogue/nimbari-play-10-eur")
    await page.locator('main form[action="/portal/cart/add"] button[class*=primary]').click()
    await page.goto("/portal/cart")
    await page.locator('main form[action="/portal/cart/order"] button').click()
    await page.wait_for_url(re.compile("/portal/orders/TRX"))
    order = page.url
    await page.locator('main form[action$="/confirm"] button').click()

    async def links_offered() -> bool:
        await page.goto(order)
        return await page.locator('main form[action$="/links/show"]').count() > 0

    await until(links_offered)
    await page.locator('main form[action$="/links/show"] button').first.click()
    await page.wait_for_url(re.compile("/links"))
    await page.wait_for_load_state()
    found = re.search(r"/r/[\w-]+", await page.content())
    assert found is not None
    return found[0]


async def walk_to_the_first_sale(
    browser: Browser, printed: str, size: ViewportSize, *, scripts: bool
) -> None:
    """Everybody's way, from the printed link to the code on the recipient's screen."""
    found = re.search(r"(http://\S+)(/set-up/\S+)", printed)
    assert found is not None
    address, link = found.groups()
    people = Shopkeeper(browser, address, size, scripts=scripts)
    try:
        operator = await people.open()
        # axe itself is a script.
        page, look = operator.page, operator.assert_sound if scripts else operator.assert_fits
        await page.goto("/")
        await page.get_by_text("This shop is not set up yet").wait_for()
        await look("setup-empty")
        invitation = await set_up(page, link, look)
        await page.goto("/console")
        await page.get_by_role("heading", name="Your way to the first sale").wait_for()
        assert await page.locator("section.checklist li.done").count() == 8
        await look("setup-checklist")

        link_to_code = await buy(await people.open(), invitation)
        recipient = (await people.open()).page
        await recipient.goto(link_to_code)
        await recipient.locator("main form button").first.click()
        await recipient.get_by_text(CODE).first.wait_for()

        await page.goto("/console/set-up/sale")
        await page.get_by_role("heading", name="You have sold your first code").wait_for()
        await look("setup-sold")
        await page.goto("/console")
        await page.locator("h1").first.wait_for()
        assert await page.locator("section.checklist").count() == 0

        late = (await people.open()).page
        await late.goto(link)
        await late.get_by_role("heading", name="The shop is set up").wait_for()
        await late.goto("/")
        await late.wait_for_url(re.compile("/sign-in"))
    finally:
        await people.close()


async def test_the_printed_link_leads_to_a_sold_and_opened_code(browser: Browser, printed: str) -> None:
    """OP-150 to OP-154: the operator, the first owner and the first recipient need a browser and nothing else."""
    await walk_to_the_first_sale(browser, printed, DESKTOP, scripts=True)


@pytest.mark.soak
async def test_the_same_on_a_telephone_without_javascript(browser: Browser, printed: str) -> None:
    """OP-150: the set-up works at 390 dots, and with scripts switched off."""
    await walk_to_the_first_sale(browser, printed, PHONE, scripts=False)
