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
    await leaver.page.get_by_label("Description").fill("Nightly orders")
    await leaver.page.get_by_label("Create and revoke keys").check()
    await leaver.assert_sound("key-new")
    await leaver.page.get_by_role("button", name="Create key").click()
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
        await (
            walker.page.locator("tr", has_text="Nightly orders").get_by_text("Waits for an owner").wait_for()
        )
        await walker.assert_sound(name)
        await walker.page.get_by_role("link", name="Nightly orders").click()
        await walker.assert_sound(f"{name}-one")
    await owner.page.get_by_role("button", name="Keep key").click()
    await owner.page.get_by_role("button", name="Keep key").click()
    await owner.page.get_by_text("You are responsible for the key now").wait_for()
    await owner.page.get_by_role("button", name="Let it confirm alone").click()
    await owner.page.get_by_role("status").get_by_text("confirms large orders alone").wait_for()
    await owner.assert_sound("key-kept")
    await owner.page.get_by_role("button", name="Revoke key").click()
    await owner.page.get_by_role("button", name="Revoke key").click()
    await owner.page.get_by_text("The key is revoked").wait_for()
    till = owner.page.locator("tr", has_text="Its till")
    await till.get_by_text("Revoked").wait_for()
    shell.json("company", "people", company, "--no-approval")
