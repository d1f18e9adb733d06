"""The docs in a real browser: from the first page to an order in the sandbox, and whatever else a reader does there."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Locator, ViewportSize, expect

from tests.browser.walker import DESKTOP, PHONE, Walker
from tests.patience import HANG_S

Walk = Callable[..., Awaitable[Walker]]

GUIDE = (
    "",
    "/authentication",
    "/orders",
    "/sandbox",
    "/errors",
    "/webhooks",
    "/events",
    "/catalogue",
    "/lists",
)
MORE = ("/money", "/versions", "/reference", "/objects", "/search?q=order", "/search?q=nothingofthekind")
SOME = ("/reference/create-order", "/reference/find-orders", "/reference/stream-events", "/objects/order")
ERRORS = ("/errors/bad_input", "/errors/insufficient_balance", "/errors/late")
ALL = (*GUIDE, *MORE, *SOME, *ERRORS)
SHORT = (
    ("", PHONE, "dark"),
    ("/reference/create-order", DESKTOP, "dark"),
    ("/errors", PHONE, "light"),
)
"""The walks above look at others."""
WHOLE = [(path, size, scheme) for path in ALL for size in (DESKTOP, PHONE) for scheme in ("light", "dark")]


def requests_of(walker: Walker) -> list[str]:
    """The address of everything that the page asks for from now on."""
    asked: list[str] = []
    walker.page.on("request", lambda request: asked.append(request.url))
    return asked


async def send(form: Locator) -> Locator:
    """Send a call from its form; what was answered."""
    await form.get_by_role("button", name="Send").click()
    answer = form.locator(".answer")
    await answer.wait_for()
    return answer


async def order_from(walker: Walker) -> None:
    """Create and confirm an order with the forms of the first page, whose key is filled in."""
    create = walker.page.get_by_role("form", name="Try Create order")
    confirm = walker.page.get_by_role("form", name="Try Confirm order")
    created = await send(create)
    await expect(created.locator(".status")).to_have_text("201")
    trx = await confirm.get_by_label("trx").input_value()
    assert trx.startswith("TRX")
    confirmed = await send(confirm)
    await expect(confirmed.locator(".status")).to_have_text("200")
    body = json.loads(await confirmed.locator("code").inner_text())
    assert body["orderStatus"] == "finished"
    assert [line["voucherCode"][:4] for line in body["items"][0]["orderLines"]] == ["TEST", "TEST"]


async def test_a_stranger_with_a_key_gets_from_the_docs_to_a_sandbox_order(walk: Walk) -> None:
    """OP-49: one field and two buttons, and the key is kept nowhere: not in the browser, not in an address."""
    for size in (DESKTOP, PHONE):
        stranger = await walk(size)
        asked = requests_of(stranger)
        await stranger.page.goto("/docs")
        await stranger.page.get_by_label("Sandbox key").fill(stranger.demo.sandbox.key)
        await order_from(stranger)
        await stranger.assert_sound("docs-tried")
        kept = await stranger.page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        )
        assert "vk_" not in kept
        assert not [url for url in asked if "vk_" in url]
        assert [url for url in asked if not url.startswith(stranger.demo.url)] == []
        await stranger.page.reload()
        await expect(stranger.page.get_by_label("Sandbox key")).to_have_value("")


async def test_a_reader_signs_in_has_a_key_filled_in_and_goes_back_to_the_portal(walk: Walk) -> None:
    """OP-91: from the header of the docs and back again, with an order of the sandbox on the way."""
    reader = await walk()
    await reader.page.goto("/docs")
    await reader.page.get_by_role("banner").get_by_role("link", name="Sign in").click()
    await reader.page.get_by_label("E-mail").fill(reader.demo.buyer.email)
    await reader.page.get_by_label("Password").fill(reader.demo.buyer.password)
    await reader.page.get_by_role("button", name="Sign in").click()
    await reader.page.wait_for_url(re.compile("/docs$"))
    await reader.page.get_by_role("button", name="Fill in a sandbox key of mine").click()
    await reader.page.get_by_text("This sandbox key is yours and new").wait_for()
    await order_from(reader)
    await reader.page.get_by_role("banner").get_by_role("link", name="Back to the portal").click()
    await reader.page.wait_for_url(re.compile("/portal$"))


async def test_a_live_key_is_refused_on_the_page_and_sent_nowhere(walk: Walk) -> None:
    """A page is no place for a key that spends money; it says why, and asks for another."""
    reader = await walk()
    asked = requests_of(reader)
    await reader.page.goto("/docs/reference/create-order")
    form = reader.page.get_by_role("form", name="Try Create order")
    key = reader.page.get_by_label("Sandbox key")
    for given, told in (
        (reader.demo.live.key, "This is a live key"),
        ("nonsense", "This is no sandbox key"),
        ("", "Put a sandbox key here first"),
    ):
        await key.fill(given)
        await form.get_by_role("button", name="Send").click()
        await expect(reader.page.locator("#try-key-problem")).to_contain_text(told)
        await expect(key).to_have_attribute("aria-invalid", "true")
    assert not [url for url in asked if "/api/" in url]
    await reader.assert_sound("docs-live-key")


async def test_an_answer_is_shown_digit_by_digit_and_a_refusal_as_it_is(walk: Walk) -> None:
    """OP-07, OP-26: amounts keep their digits, and an error is shown with its status."""
    reader = await walk()
    await reader.page.goto("/docs/reference/find-accounts")
    await reader.page.get_by_label("Sandbox key").fill(reader.demo.sandbox.key)
    answer = await send(reader.page.get_by_role("form", name="Try Find accounts"))
    text = await answer.locator("code").inner_text()
    assert re.search(r'"totalAmount": [0-9]+\.[0-9]{2},', text)
    assert json.loads(text)
    await reader.page.goto("/docs/reference/find-order")
    await reader.page.get_by_label("Sandbox key").fill(reader.demo.sandbox.key)
    form = reader.page.get_by_role("form", name="Try Find order")
    await form.get_by_role("button", name="Send").click()
    await form.get_by_text("Fill in trx first").wait_for()
    await form.get_by_label("trx").fill("a/b?c")
    refused = await send(form)
    await expect(refused.locator(".status")).to_have_text("404")


async def test_the_first_sample_works_as_it_is_copied(walk: Walk) -> None:
    """What a reader copies and pastes into a shell makes an order; not one letter is changed."""
    reader = await walk()
    await reader.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await reader.page.goto("/docs")
    await reader.page.locator(".samples").first.get_by_role("button", name="Copy").first.click()
    await reader.page.get_by_role("button", name="Copied").wait_for()
    copied = await reader.page.evaluate("navigator.clipboard.readText()")
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", copied),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"KEY": reader.demo.sandbox.key},
    )
    printed, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    assert json.loads(printed)["orderStatus"] == "finished"


async def test_search_finds_the_same_with_and_without_a_script(walk: Walk) -> None:
    """While one types, and as a page of its own."""
    quick, plain = await walk(), await walk(scripts=False)
    for words in ("insufficient balance", "verify sig", "nothingofthekind"):
        await quick.page.goto("/docs")
        await quick.page.get_by_role("searchbox").fill(words)
        found = quick.page.locator(".found")
        await found.wait_for()
        titles = [await one.get_attribute("href") for one in await found.get_by_role("link").all()]
        await plain.page.goto("/docs")
        await plain.page.get_by_role("searchbox").fill(words)
        await plain.page.get_by_role("button", name="Search").click()
        results = await plain.page.locator(".results a").all()
        assert titles == [await one.get_attribute("href") for one in results][:8], words
    await quick.page.get_by_role("searchbox").fill("insufficient balance")
    await quick.page.keyboard.press("ArrowDown")
    await quick.page.keyboard.press("Enter")
    await quick.page.wait_for_url(re.compile("/docs/errors/insufficient_balance$"))


async def test_the_docs_can_be_read_without_a_script(walk: Walk) -> None:
    """Samples change with their tabs, contents are there, and the page says what does need a script."""
    for size in (DESKTOP, PHONE):
        reader = await walk(size, scripts=False)
        await reader.page.goto("/docs")
        python = reader.page.get_by_text("import httpx")
        await expect(python).to_be_hidden()
        await reader.page.locator(".samples label", has_text="Python").click()
        await expect(python).to_be_visible()
        await expect(reader.page.get_by_text("needs JavaScript")).to_be_visible()
        await expect(reader.page.locator("form.try").first).to_be_hidden()
        if size is PHONE:
            await reader.page.locator(".menu > summary").click()
        contents = reader.page.locator(".sidebar" if size is DESKTOP else ".menu")
        await contents.get_by_role("link", name="Webhooks", exact=True).click()
        await reader.page.wait_for_url(re.compile("/docs/webhooks$"))


async def test_the_contents_follow_and_the_language_is_kept(walk: Walk) -> None:
    """The contents stay in sight and say where one is; the next page speaks the language that was chosen."""
    reader = await walk()
    await reader.page.goto("/docs/webhooks")
    await reader.page.locator(".samples label", has_text="PHP").click()
    await reader.page.get_by_role("heading", name="Retries").scroll_into_view_if_needed()
    await reader.page.evaluate("document.getElementById('retries').scrollIntoView()")
    await expect(reader.page.locator(".sidebar")).to_be_in_viewport()
    here = reader.page.locator(".headings [aria-current]")
    await expect(here).to_have_text("Retries")
    await reader.page.goto("/docs/reference/create-order")
    await expect(reader.page.get_by_text("<?php")).to_be_visible()


@pytest.mark.parametrize(("path", "size", "scheme"), SHORT)
async def test_a_page_of_the_docs_is_within_everyones_reach(
    walk: Walk, path: str, size: ViewportSize, scheme: str
) -> None:
    """WCAG 2.2 AA by axe, on a desk and on a phone, in the light and in the dark; nothing sticks out of the edge."""
    await look(walk, path, size, scheme)


@pytest.mark.soak
@pytest.mark.parametrize(("path", "size", "scheme"), WHOLE)
async def test_every_page_of_the_docs_is_within_everyones_reach(
    walk: Walk, path: str, size: ViewportSize, scheme: str
) -> None:
    """The same for every page that looks different."""
    await look(walk, path, size, scheme)


async def look(walk: Walk, path: str, size: ViewportSize, scheme: str) -> None:
    """Open a page and look at it."""
    reader = await walk(size, scheme=scheme)
    await reader.page.goto("/docs" + path)
    name = re.sub("[^a-z]+", "-", f"docs{path}-{scheme}")
    await reader.assert_sound(name)
