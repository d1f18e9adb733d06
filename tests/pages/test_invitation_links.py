"""Invitations without a mail server: whoever invites is shown a link to hand over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.people import HTML, Someone, someone
from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool
from voucherd.people import links

LINK = re.compile(r"http://127\.0\.0\.1:8080(/invitation/[\w-]{43})")
ROLES = {"staff": "support", "team": "buyer", "company": "owner"}


async def invite(shop: Shop, side: str, email: str) -> tuple[Someone, str, str]:
    """Who invites, the page that was shown then, and where another link can be had."""
    company = await shop.company()
    host = await someone(shop, "owner" if side == "team" else "admin", company if side == "team" else None)
    path = {"staff": "/console/staff", "team": "/portal/team", "company": _people(company)}[side]
    answer = await host.post(path, {"email": email, "role": ROLES[side]})
    if answer.status_code == 303:
        answer = await host.get(answer.headers["location"])
    number = await shop.pool.fetchval("SELECT max(id) FROM app_user")
    return host, answer.text, f"{path}/{number}/invite"


def _people(company: Company) -> str:
    return f"/console/companies/{company.id}/people"


@pytest.mark.parametrize("side", sorted(ROLES))
async def test_without_mail_an_invitation_shows_its_link_and_the_link_lets_in(shop: Shop, side: str) -> None:
    """OP-153: the link is shown once and works once; the trail says that it was shown, not what it was."""
    host, text, again = await invite(shop, side, f"{side}@new.example")
    assert "on its way" not in text
    (path,) = set(LINK.findall(text))
    page = await shop.client.get(path, headers=HTML)
    assert (page.status_code, f"{side}@new.example" in page.text) == (200, True)
    assert path not in (await host.get(again.rpartition("/")[0].rpartition("/")[0])).text

    second = await host.post(again)
    (other,) = set(LINK.findall(second.text))
    assert other != path
    for _ in range(links.OPEN_MAX - 2):
        assert (await host.post(again)).status_code == 200
    assert "enough open invitations" in (await host.post(again, follow=True)).text
    token = path.rpartition("/")[2]
    stored = await shop.pool.fetch("SELECT detail::text, subject FROM trail WHERE action = 'user.invite'")
    assert len(stored) == links.OPEN_MAX
    assert all('"link_shown": true' in row["detail"] and token not in str(row) for row in stored)
    assert await shop.pool.fetchval("SELECT bool_or(flash LIKE '%invitation/%') FROM session") is None


@pytest.mark.parametrize("side", sorted(ROLES))
async def test_with_mail_an_invitation_shows_no_link(
    pool: Pool, database_url: str, tmp_path: Path, side: str
) -> None:
    """OP-153: where mail is set up, only the letter has the link."""
    mail = "smtp://127.0.0.1:9"
    async with open_shop(pool, database_url, tmp_path, with_worker=False, smtp_url=mail) as shop:
        _, text, _ = await invite(shop, side, f"{side}@new.example")
        assert f"An invitation was sent to {side}@new.example" in text
        assert LINK.findall(text) == []
        assert await pool.fetchval("SELECT count(*) FROM account_link") == 1
