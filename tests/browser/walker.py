"""Somebody who walks through pages in a browser."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from axe_playwright_python.async_playwright import Axe
from msgspec import Struct
from playwright.async_api import Page, ViewportSize

DESKTOP: Final = ViewportSize(width=1280, height=800)
PHONE: Final = ViewportSize(width=390, height=844)
SIZES: Final = (pytest.param(DESKTOP, id="desktop"), pytest.param(PHONE, id="phone"))
"""For each person's main path."""
NARROW_FIRST: Final = (pytest.param(DESKTOP, id="desktop", marks=pytest.mark.soak), SIZES[1])
"""For side paths: the wider window is for `make soak`."""
PICTURES: Final = os.environ.get("VOUCHERD_TEST_PICTURES", "")
"""A folder for pictures of every page that is checked, for people who want to look."""


class Sign(Struct):
    """How somebody signs in."""

    email: str
    password: str


class Account(Struct):
    """The demo's company in one state, and its key."""

    company: str
    key: str


class Demo(Struct, rename="camel"):
    """A running demo, as `voucherd demo --json` tells of it."""

    base_url: str
    live: Account
    sandbox: Account
    operator: Sign
    buyer: Sign
    voucher: str = ""
    """A link for a recipient."""
    folder: str = ""
    """Where its data is."""

    @property
    def url(self) -> str:
        """Where its pages are."""
        return self.base_url

    @classmethod
    def read(cls, line: bytes, folder: Path) -> Demo:
        """What the demo said when it was ready."""
        made = msgspec.json.decode(line, type=cls)
        made.folder = str(folder)
        return made


class Walker:
    """A page in a browser, and what people do with it."""

    def __init__(self, page: Page, demo: Demo) -> None:
        self.page = page
        self.demo = demo

    async def sign_in(self, who: Sign) -> None:
        """Fill in the form."""
        await self.page.goto("/sign-in")
        await self.page.get_by_label("E-mail").fill(who.email)
        await self.page.get_by_label("Password").fill(who.password)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(re.compile("/(portal|console)"))

    async def assert_sound(self, name: str) -> None:
        """Nothing on the page is out of reach for anyone, and nothing sticks out of a phone's edge."""
        await self.assert_fits(name)
        found: dict[str, Any] = (await Axe().run(self.page)).response
        wrong = [(one["id"], [node["target"] for node in one["nodes"]]) for one in found["violations"]]
        assert wrong == [], f"{name} at {self.page.url}"

    async def assert_fits(self, name: str) -> None:
        """Nothing sticks out of the edge; a picture is taken for whoever wants to look."""
        # A click returns as soon as the next page begins, which then has no element yet.
        await self.page.wait_for_load_state()
        size = self.page.viewport_size
        assert size is not None
        if PICTURES:
            path = Path(PICTURES) / f"{name}-{size['width']}.png"
            await self.page.screenshot(path=path, full_page=True)
        width = await self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{name} is {width} wide"
