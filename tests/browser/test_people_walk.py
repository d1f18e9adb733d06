"""A colleague is invited, chooses a password, registers a passkey and signs in with it: in a real browser."""

from __future__ import annotations

import re
import time
from base64 import b32decode
from collections.abc import Awaitable, Callable
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from playwright.async_api import ViewportSize

from tests.browser.walker import NARROW_FIRST, PHONE, Demo, Walker
from tests.patience import until
from voucherd.people import totp

PASSWORD = "correct horse battery staple"


async def newest_link(demo: Demo, email: str) -> str:
    """The path of the link that was mailed to this address."""

    async def look() -> str | None:
        for file in sorted((Path(demo.folder) / "mail").glob("*.eml"), reverse=True):
            mail = message_from_bytes(file.read_bytes(), policy=default)
            found = re.search(r"/(?:reset|invitation)/\S+", mail.get_content())
            if mail["To"] == email and found is not None:
                return found[0]
        return None

    link = await until(look, f"no mail to {email}")
    assert link is not None
    return link


async def see_what_waits(owner: Walker) -> None:
    """Somebody new and a looser rule, on the page of approvals, at a desk and on a telephone (OP-102, OP-103)."""
    page = owner.page
    for amount, said in (("100", "The rules are saved."), ("", "or once another approver confirms it")):
        await page.get_by_label("Orders need approval from").fill(amount)
        await page.get_by_role("button", name="Save rules").click()
        await page.get_by_text(said).first.wait_for()
    await owner.assert_sound("team-waits")
    await page.goto("/portal/approvals")
    await owner.assert_sound("approvals-wait")
    size = page.viewport_size
    await page.set_viewport_size(PHONE)
    await owner.assert_sound("approvals-wait-phone")
    assert size is not None
    await page.set_viewport_size(size)


async def joined(walk: Callable[..., Awaitable[Walker]], email: str, walker: Walker) -> None:
    """Somebody whom the owner invites, and who chooses a password and signs in."""
    owner = await walk()
    await owner.sign_in(owner.demo.buyer)
    await owner.page.goto("/portal/team")
    await owner.assert_sound("team")
    await owner.page.get_by_label("E-mail").fill(email)
    await owner.page.get_by_role("button", name="Send invitation").click()
    await owner.page.get_by_text("hand the link over yourself").wait_for()
    await owner.assert_sound("invited")
    await owner.page.get_by_role("link", name="Done").click()
    await see_what_waits(owner)
    await walker.page.goto(await newest_link(walker.demo, email))
    await walker.assert_sound("invitation")
    await walker.page.get_by_label("New password").fill(PASSWORD)
    await walker.page.get_by_role("button", name="Save password").click()
    await walker.page.get_by_text("Your password is saved").wait_for()
    await walker.page.get_by_label("E-mail").fill(email)
    await walker.page.get_by_label("Password").fill(PASSWORD)
    await walker.page.get_by_role("button", name="Sign in").click()
    await walker.page.wait_for_url(re.compile("/portal"))


async def test_a_colleague_joins_registers_a_passkey_and_signs_in_with_it(
    walk: Callable[..., Awaitable[Walker]],
) -> None:
    """OP-92: a passkey alone signs in, once its device knows its person; a password wants a code of the app, too."""
    walker = await walk()
    page = walker.page
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("WebAuthn.enable")
    await cdp.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )
    await joined(walk, "new@demo.example", walker)
    for path in ("/account", "/account/sessions", "/account/security"):
        await page.goto(path)
        await walker.assert_sound(path[1:].replace("/", "-"))
    await page.get_by_label("Name of a new passkey").fill("My laptop")
    await page.get_by_role("button", name="Add a passkey").click()
    await page.get_by_role("heading", name="Your recovery codes").wait_for()
    await walker.assert_sound("recovery-codes")
    await page.get_by_role("link", name="I have saved them").click()
    await page.get_by_text("My laptop").first.wait_for()
    await sign_out(walker)
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url(re.compile("/portal"))

    await page.goto("/account/app")
    await walker.assert_sound("app")
    secret = b32decode(await page.locator(".card .copyable code").inner_text())
    step = int(time.time()) // totp.STEP_S
    await page.get_by_label("Six digits").fill(totp.code(secret, step))
    await page.get_by_role("button", name="Use this app").click()
    await page.get_by_role("heading", name="Your recovery codes").wait_for()
    await page.set_viewport_size(PHONE)
    for path in (
        "/account",
        "/account/sessions",
        "/account/codes",
        "/account/app/remove",
        "/account/security",
    ):
        await page.goto(path)
        await walker.assert_sound(f"{path[1:].replace('/', '-')}-phone")
    await sign_out(walker)
    await page.get_by_label("E-mail").fill("new@demo.example")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="One more step").wait_for()
    await walker.assert_sound("second-factor")
    await page.get_by_label("Code from your app").fill(totp.code(secret, step + 1))
    await page.get_by_role("button", name="Continue").click()
    await page.wait_for_url(re.compile("/portal"))


async def sign_out(walker: Walker) -> None:
    """Through the menu."""
    await walker.page.locator("details.menu summary").click()
    await walker.page.get_by_role("button", name="Sign out", exact=True).last.click()
    await walker.page.wait_for_url(re.compile("/sign-in"))


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_the_account_and_the_team_speak_german_in_the_dark(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-171, OP-172, OP-173: the browser's language until another is chosen; times in the zone of the browser."""
    walker = await walk(size, scheme="dark", language="de-DE")
    page = walker.page
    await page.goto("/no/such/page")
    await page.get_by_role("heading", name="Seite nicht gefunden").wait_for()
    await page.goto("/sign-in")
    await walker.assert_sound("de-sign-in")
    await page.get_by_label("E-Mail").fill(walker.demo.buyer.email)
    await page.get_by_label("Passwort").fill(walker.demo.buyer.password)
    await page.get_by_role("button", name="Anmelden").click()
    await page.wait_for_url(re.compile("/portal"))
    for path, said in (
        ("/account", "Ihr Konto"),
        ("/account/security", "Ihr Konto"),
        ("/account/sessions", "Ihr Konto"),
        ("/account/app", "Authenticator-App einrichten"),
        ("/account/codes", "Neue Wiederherstellungscodes"),
        ("/portal/team", "Team"),
    ):
        await page.goto(path)
        await page.get_by_role("heading", name=said, exact=True).wait_for()
        await walker.assert_sound("de" + path.replace("/", "-"))
    await page.locator("tbody th a").first.click()
    await page.get_by_role("heading", name="Rolle ändern").wait_for()
    await walker.assert_sound("de-person")
    await page.get_by_role("button", name="Deaktivieren").click()
    await page.get_by_role("heading", name="Konto deaktivieren").wait_for()
    await walker.assert_sound("de-sure")
    await page.get_by_role("link", name="Zurück").click()
    await page.get_by_role("heading", name="Rolle ändern").wait_for()


@pytest.mark.parametrize("size", NARROW_FIRST)
async def test_staff_is_looked_after_on_pages_of_its_own(
    walk: Callable[..., Awaitable[Walker]], size: ViewportSize
) -> None:
    """OP-92, OP-170: a list, a page for each person, and the sandbox one click away, in the address."""
    walker = await walk(size)
    await walker.sign_in(walker.demo.operator)
    page = walker.page
    await page.goto("/console/staff")
    await walker.assert_sound("staff")
    await page.locator("tbody th a").first.click()
    await page.get_by_role("heading", name="Change role").wait_for()
    await walker.assert_sound("staff-person")
    await page.get_by_role("link", name="Sandbox", exact=True).first.click()
    await page.get_by_text("Nothing here is real").wait_for()
    assert "/sandbox/console/staff/" in page.url
    await page.goto("/no/such/page")
    await walker.assert_sound("problem-signed-in")
