"""An owner looks through the keys of somebody who left, keeps one and revokes another: in a real browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx

from tests.browser.walker import PHONE, Sign, Walker
from tests.cli.terminal import Terminal


async def test_an_owner_keeps_and_revokes_keys_of_somebody_who_left(
    walk: Callable[..., Awaitable[Walker]], shell: Terminal
) -> None:
    """OP-99, OP-100, OP-101: what waits, who answers for it and what was made with it can be seen and decided."""
    owner = await walk()
    company = owner.demo.live.company
    email = "leaver@example.com"
    made = shell.json("user", "add", email, "--company", company, "--role", "owner")
    shell.json("company", "people", company, "--approve-from", "1000 EUR")
    leaver = await walk()
    await leaver.sign_in(Sign(email, made["password"]))
    await leaver.page.goto("/portal/keys/new")
    await leaver.page.get_by_label("What is it for?").fill("Nightly orders")
    await leaver.page.get_by_label("Make and revoke keys").check()
    await leaver.assert_sound("key-new")
    await leaver.page.get_by_role("button", name="Make the key").click()
    text = await leaver.page.locator(".secret code").inner_text()
    async with httpx.AsyncClient(base_url=owner.demo.url) as client:
        headers = {"authorization": f"Bearer {text}"}
        child = await client.post("/api/1.03/key", headers=headers, json={"description": "Its till"})
        assert child.status_code == 201, child.text
    shell.json("user", "set", email, "--inactive")

    phone = await walk(PHONE)
    for walker, name in ((owner, "keys"), (phone, "keys-phone")):
        await walker.sign_in(walker.demo.buyer)
        await walker.page.goto("/portal/keys")
        row = walker.page.locator("tr", has_text="Nightly orders")
        await row.get_by_text("waits for an owner").wait_for()
        await row.locator("summary").click()
        await walker.assert_sound(name)
    row = owner.page.locator("tr", has_text="Nightly orders")
    dialog = owner.page.get_by_role("dialog")
    await row.get_by_role("button", name="Keep it as it was").click()
    await dialog.get_by_role("button", name="Keep it as it was").click()
    await owner.page.get_by_text("You answer for the key from now on").wait_for()
    row = owner.page.locator("tr", has_text="Nightly orders")
    await row.locator("summary").click()
    await row.get_by_role("button", name="Let it confirm large orders alone").click()
    await owner.page.get_by_text("confirms every order alone").wait_for()
    await owner.assert_sound("keys-kept")
    row = owner.page.locator("tr", has_text="Nightly orders")
    await row.locator("summary").click()
    await row.get_by_role("button", name="Revoke now").click()
    await dialog.get_by_role("button", name="Revoke now").click()
    await owner.page.get_by_text("The key is revoked").wait_for()
    till = owner.page.locator("tr", has_text="Its till")
    await till.get_by_text("revoked").wait_for()
    shell.json("company", "people", company, "--no-approval")
