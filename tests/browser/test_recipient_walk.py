"""A recipient opens his link, on a phone and on a desk, in light and dark, with and without scripts, and prints it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import PdfMargins, ViewportSize

from tests.browser.walker import DESKTOP, PHONE, Demo, Walker
from tests.patience import HANG_S

AGENT = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1"
)
"""The browser of these tests says that nobody looks through it, and would be shown no code."""
PRODUCT = "nimbari-play-25-eur"
WIDE = PdfMargins(top="20mm", right="20mm", bottom="20mm", left="20mm")
LONG_STEPS = """() => {
  const list = document.querySelector(".how ol") || document.querySelector(".how");
  const step = "Open the app, go to your account, choose “Redeem a code” and type the code as it is printed here.";
  for (let at = 0; at < 8; at++) { const one = document.createElement("li"); one.textContent = step; list.append(one); }
}"""
"""Makes the instructions as long as operators write them."""


async def ordered(demo: Demo, *, sandbox: bool = False, pin: str | None = None) -> dict[str, Any]:
    """The line of a new order of one code."""
    key = (demo.sandbox if sandbox else demo.live).key
    headers = {"authorization": f"Bearer {key}", "x-sandbox-outcome": "finished"}
    if not sandbox:
        del headers["x-sandbox-outcome"]
    body = {"items": [{"productSlug": PRODUCT, "amount": 1}], "paymentCurrency": "EUR"}
    async with httpx.AsyncClient(base_url=demo.url + "/api/1.03", headers=headers, timeout=HANG_S) as client:
        trx = (await client.post("/order", json=body)).json()["trx"]
        if pin is not None:
            assert (await client.patch(f"/order/{trx}/redemption", json={"pin": pin})).status_code == 200
        order = (await client.patch(f"/order/confirm/{trx}")).json()
    return dict(order["items"][0]["orderLines"][0])


@pytest.mark.parametrize(
    ("size", "scheme", "language"),
    [(PHONE, "light", "nl-NL"), (DESKTOP, "dark", "de-DE")],
    ids=["phone", "desktop-dark"],
)
async def test_a_recipient_sees_his_code(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize, scheme: str, language: str
) -> None:
    """OP-57: one click, in his language, sound for everyone, with a button to copy and nothing that moves about."""
    walker = await walk(size, scheme=scheme, agent=AGENT, language=language)
    line, page = await ordered(walker.demo), walker.page
    await page.goto(line["redemptionLink"])
    assert await page.locator("html").get_attribute("lang") == language[:2]
    assert line["voucherCode"] not in await page.content()
    await walker.assert_sound(f"recipient-{scheme}")
    await page.locator("form.ask button").click()
    await page.get_by_text(line["voucherCode"]).wait_for()
    # The ticket fades in, and axe would read it half faded.
    await page.evaluate("Promise.all(document.getAnimations().map(one => one.finished)).then(() => null)")
    assert await page.locator("[data-copy]").is_visible()
    assert await page.locator(".qr svg").is_visible()
    assert await page.locator(".bars svg").is_visible()
    await walker.assert_sound(f"recipient-code-{scheme}")
    await page.get_by_role("link", name="Español").click()
    await page.get_by_role("button", name="Mostrar el código").wait_for()


async def test_without_scripts_and_with_a_pin_it_works_as_well(
    walk: Callable[..., Awaitable[Walker]],
) -> None:
    """OP-96: forms alone do it; what needs scripts is not shown; by keyboard; a test voucher says that it is one."""
    walker = await walk(PHONE, scripts=False, agent=AGENT, language="en-GB")
    line, page = await ordered(walker.demo, sandbox=True, pin="2749"), walker.page
    await page.goto(line["redemptionLink"])
    await page.get_by_text("Test voucher").wait_for()
    await page.get_by_label("PIN").fill("1111")
    await page.keyboard.press("Enter")
    await page.get_by_text("Tries left: 4").wait_for()
    await page.get_by_label("PIN").fill("2749")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.get_by_text(line["voucherCode"]).wait_for()
    assert await page.locator("[data-copy]").is_hidden()
    assert await page.locator("[data-print]").is_hidden()
    await page.get_by_role("link", name="Hide the code").click()
    await page.get_by_role("button", name="Show the code").wait_for()


async def test_what_is_printed_is_one_page(walk: Callable[..., Awaitable[Walker]], tmp_path: Path) -> None:
    """OP-57: the card with its code, QR code and barcode, without buttons and languages."""
    walker = await walk(DESKTOP, agent=AGENT, language="en-GB")
    line, page = await ordered(walker.demo), walker.page
    await page.goto(line["redemptionLink"])
    await page.locator("form.ask button").click()
    await page.get_by_text(line["voucherCode"]).wait_for()
    await page.evaluate(LONG_STEPS)
    for paper in ("A4", "Letter"):
        # With the margins that the page asks for, and with wide ones of a printer.
        for margin in (None, WIDE):
            printed = await page.pdf(path=tmp_path / f"{paper}.pdf", format=paper, margin=margin)
            assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1, (paper, margin)
    await page.emulate_media(media="print")
    await page.set_viewport_size(ViewportSize(width=690, height=1010))
    await walker.assert_fits("recipient-printed")
    assert await page.get_by_text(line["voucherCode"]).is_visible()
    assert await page.locator(".qr svg").is_visible()
    assert await page.locator("footer").is_hidden()
    assert await page.locator("[data-print]").is_hidden()
