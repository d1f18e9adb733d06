"""A link for a new password, sent to somebody who forgot it by a colleague or by the operator's people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.people import Browser, Someone, someone
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.people import links

LINK = re.compile(r"http://127\.0\.0\.1:8080(/reset/[\w-]{43})")
SIDES = ("staff", "team", "company")


async def two_people(shop: Shop, side: str) -> tuple[Someone, Someone, str]:
    """Who sends the link, who forgot the password, and the page of that person."""
    company = await shop.company()
    if side == "staff":
        admin, other = await someone(shop, "admin"), await someone(shop, "finance")
        return admin, other, f"/console/staff/{other.user_id}"
    other = await someone(shop, "owner", company)
    if side == "team":
        return await someone(shop, "owner", company), other, f"/portal/team/{other.user_id}"
    return await someone(shop, "admin"), other, f"/console/companies/{company.id}/people/{other.user_id}"


@pytest.mark.parametrize("side", SIDES)
async def test_without_mail_a_link_for_a_new_password_is_shown_to_hand_over(shop: Shop, side: str) -> None:
    """OP-153: it works once, and the old password until then; whoever could act as two has to wait (OP-102)."""
    sender, other, page = await two_people(shop, side)
    assert f'action="{page}/password"' in (await sender.get(page)).text
    before = await shop.pool.fetchval("SELECT password_hash FROM app_user WHERE id = $1", other.user_id)
    shown = await sender.post(f"{page}/password")
    assert "within 30 minutes" in shown.text
    (path,) = set(LINK.findall(shown.text))
    token = path.rpartition("/")[2]
    assert token not in (await sender.get(page)).text
    found = await shop.pool.fetchrow(
        "SELECT password_hash, rests_until > now() AS rests, rests_by FROM app_user WHERE id = $1",
        other.user_id,
    )
    assert tuple(found or ()) == (before, True, sender.user_id)
    detail = await shop.pool.fetchval("SELECT detail::text FROM trail WHERE action = 'user.password-link'")
    assert '"link_shown": true' in detail
    assert token not in detail
    assert (await other.get("/account")).status_code == 200

    stranger = Browser(shop)
    await stranger.get(path)
    chosen = await stranger.post(path, password="seven green lamps in the harbour")
    assert chosen.headers["location"] == "/sign-in?done=password"
    assert (await other.get("/account")).status_code == 303
    assert (await stranger.get(path)).status_code == 410
    for _ in range(links.OPEN_MAX):
        assert (await sender.post(f"{page}/password")).status_code == 200
    assert "enough open links" in (await sender.post(f"{page}/password", follow=True)).text


@pytest.mark.parametrize("side", SIDES)
async def test_with_mail_a_link_for_a_new_password_goes_to_the_person_alone(
    pool: Pool, database_url: str, tmp_path: Path, side: str
) -> None:
    """OP-153: who asks for it sees no link, so nobody has to wait."""
    mail = "smtp://127.0.0.1:9"
    async with open_shop(pool, database_url, tmp_path, with_worker=False, smtp_url=mail) as shop:
        sender, other, page = await two_people(shop, side)
        said = await sender.post(f"{page}/password", follow=True)
        assert f"A link for a new password was sent to {other.email}." in said.text
        assert LINK.findall(said.text) == []
        letter = await pool.fetchrow(
            "SELECT recipients, subject, body, secret FROM mail ORDER BY id DESC LIMIT 1"
        )
        assert letter is not None
        assert (letter["recipients"], letter["subject"]) == ([other.email], "Choose a new password")
        assert f"{sender.email} sends you a link to choose a new password" in letter["body"]
        assert letter["secret"]
        assert not await pool.fetchval(
            "SELECT rests_until > now() FROM app_user WHERE id = $1", other.user_id
        )


@pytest.mark.parametrize("side", SIDES)
async def test_nobody_makes_a_link_for_oneself_for_a_guest_or_for_a_stranger(shop: Shop, side: str) -> None:
    """OP-153: one's own password is changed in the account; who was invited has a link, and others are not reached."""
    sender, other, page = await two_people(shop, side)
    base = page.rpartition("/")[0]
    if side != "company":
        own = f"{base}/{sender.user_id}"
        assert f'action="{own}/password"' not in (await sender.get(own)).text
        assert "in your account" in (await sender.post(f"{own}/password")).text
    stranger = await someone(shop, "owner", await shop.company())
    assert (await sender.post(f"{base}/{stranger.user_id}/password")).status_code == 404
    await shop.pool.execute("UPDATE app_user SET active = false WHERE id = $1", other.user_id)
    assert "enough open links" in (await sender.post(f"{page}/password", follow=True)).text
    await shop.pool.execute(
        "UPDATE app_user SET active = true, password_hash = NULL WHERE id = $1", other.user_id
    )
    assert f'action="{page}/password"' not in (await sender.get(page)).text
    assert "enough open links" in (await sender.post(f"{page}/password", follow=True)).text
    assert await shop.pool.fetchval("SELECT count(*) FROM account_link") == 0
