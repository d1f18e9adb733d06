"""The operator's days without a terminal, in a real browser: a company and its people, keys, suppliers, brands."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.walker import NARROW_FIRST, Walker

PICTURE: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGMQyovCihiGlgQAOgM2gf6gsBwAAAAASUVORK5CYII="
)


async def edit_company(one: Walker, name: str) -> None:
    """A new company, with its VAT number corrected after a mistake."""
    page = one.page
    await page.goto("/console/companies")
    await page.get_by_role("link", name="Add a company").click()
    await one.assert_sound("operator-company-new")
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Country").select_option(label="Germany")
    await page.get_by_label("Verified").check()
    await page.get_by_label("Your purchase prices and suppliers").select_option("no")
    await page.get_by_role("button", name="Add the company").click()
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_label("VAT number").fill("DE123456789")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("is not a VAT number of Germany", exact=False)).to_be_visible()
    await one.assert_sound("operator-company-edit")
    await page.get_by_label("VAT number").fill("DE 123 456 106")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("DE123456106")).to_be_visible()
    await one.assert_sound("operator-company")


async def invite_owner(one: Walker) -> None:
    """The company's owner, by a link that is handed over."""
    page = one.page
    await page.get_by_role("link", name="Invite a person").click()
    await page.get_by_label("E-mail").fill(f"{secrets.token_hex(4)}@acme.example")
    await one.assert_sound("operator-invite")
    await page.get_by_role("button", name="Invite").click()
    await expect(page.get_by_text("/invitation/").first).to_be_visible()
    await one.assert_sound("operator-invited")


async def make_key(one: Walker, home: str) -> None:
    """A key of the company, which is shown once, and revoked after a page that asks."""
    page = one.page
    await page.goto(home)
    await page.get_by_role("link", name="New key").click()
    await page.get_by_label("Description").fill("Web shop")
    await one.assert_sound("operator-key-new")
    await page.get_by_role("button", name="Make the key").click()
    await expect(page.get_by_text("vk_live_").first).to_be_visible()
    await one.assert_sound("operator-key-made")
    await page.get_by_role("link", name="Done").click()
    await page.get_by_role("link", name="vk_live_").click()
    await one.assert_sound("operator-key")
    await page.get_by_role("button", name="Revoke the key").click()
    await one.assert_sound("operator-key-sure")
    await page.get_by_role("button", name="Revoke key").click()
    await expect(page.get_by_role("status").first).to_contain_text("is revoked")


async def add_supplier(one: Walker, name: str) -> None:
    """A test supplier that sells one product, tried before it is saved and after."""
    page = one.page
    await page.goto("/sandbox/console/suppliers")
    await one.assert_sound("operator-suppliers")
    await page.get_by_role("link", name="Add a supplier").first.click()
    await one.assert_sound("operator-supplier-kinds")
    await page.get_by_role("link", name="Choose Test supplier").click()
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_role("button", name="Test first").click()
    await expect(page.get_by_role("table", name="Test results")).to_be_visible()
    await one.assert_sound("operator-supplier-new")
    await page.get_by_role("button", name="Add the supplier").click()
    await page.get_by_role("link", name="Add a product").first.click()
    await page.get_by_label("Product", exact=True).select_option(index=1)
    await one.assert_sound("operator-offer-new")
    await page.get_by_role("button", name="Add the product").click()
    await one.assert_sound("operator-supplier")
    await page.get_by_role("link", name="Test", exact=True).click()
    await page.get_by_role("button", name="Test now").click()
    await expect(page.get_by_text("in stock").first).to_be_visible()
    await one.assert_sound("operator-supplier-test")


async def set_logo(one: Walker) -> None:
    """A brand's logo."""
    page = one.page
    await page.goto("/console/brands")
    await one.assert_sound("operator-brands")
    await page.get_by_role("table", name="Brands").get_by_role("rowheader").first.get_by_role("link").click()
    await page.get_by_label("Picture").set_input_files(
        {"name": "logo.png", "mimeType": "image/png", "buffer": PICTURE}
    )
    await page.get_by_role("button", name="the logo").first.click()
    await expect(page.get_by_role("img", name="Logo of")).to_be_visible()
    await one.assert_sound("operator-brand")


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_an_operator_needs_no_terminal(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-155, OP-156, OP-158, OP-159: every form on the way is within everybody's reach, at both sizes."""
    one = await walk(size)
    await one.sign_in(one.demo.operator)
    await edit_company(one, f"Acme {secrets.token_hex(3)}")
    home = one.page.url
    await invite_owner(one)
    await make_key(one, home)
    await add_supplier(one, f"play-{secrets.token_hex(3)}")
    await set_logo(one)
