"""A real browser before a real voucherd: one Chromium and one demo for all tests, a context of its own for each."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect

from tests.browser.walker import DESKTOP, Demo, Walker
from tests.cli.terminal import PROGRAM, Terminal
from tests.patience import HANG_S

READY_S_MAX: Final = HANG_S
STOP_S_MAX: Final = HANG_S
ACTION_MS_MAX: Final = 1_000 * HANG_S
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is; without one these tests are skipped, but never where the suite decides about a change."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is not None:
        return found
    why = "there is no Chromium on this machine: the pages were NOT tried in a browser"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A shell beside the demo, for what is done at the command line meanwhile."""
    return Terminal(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
async def demo(chromium: str, shell: Terminal) -> AsyncIterator[Demo]:
    """`voucherd demo` on a free port."""
    del chromium  # Nothing is started for tests that will be skipped.
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("demo", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # By name: browsers allow no passkeys at a bare address.
        env=shell.env | {"VOUCHERD_HOST": "localhost"},
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), READY_S_MAX)
        yield Demo.read(line, shell.data)
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), STOP_S_MAX)


@pytest.fixture(scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One Chromium."""
    async with async_playwright() as playwright:
        expect.set_options(timeout=ACTION_MS_MAX)
        started = await playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield started
        await started.close()


@pytest.fixture
async def walk(browser: Browser, demo: Demo) -> AsyncIterator[Callable[..., Awaitable[Walker]]]:
    """Opens a browser of its own for somebody; whatever it logs as an error fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    async def opened(
        size: ViewportSize = DESKTOP,
        *,
        scripts: bool = True,
        scheme: str | None = None,
        agent: str | None = None,
        language: str | None = None,
    ) -> Walker:
        context = await browser.new_context(
            base_url=demo.url,
            viewport=size,
            java_script_enabled=scripts,
            color_scheme="dark" if scheme == "dark" else "light",
            has_touch=size["width"] < 600,
            user_agent=agent,
            locale=language,
        )
        context.set_default_timeout(ACTION_MS_MAX)
        contexts.append(context)
        page: Page = await context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
        return Walker(page, demo)

    yield opened
    for context in contexts:
        await context.close()
    assert wrong == []
