"""An invitation looks the same to who sends it, whether or not the address has an account elsewhere."""

from __future__ import annotations

import re

import pytest

from tests.pages.people import Someone, someone
from tests.shop import Company, Shop
from voucherd.pages.routes import PEOPLE
from voucherd.people import links

PATHS = {"company": "/portal/team", "operator": "/console/staff"}
ROLES = {"company": ("buyer", "viewer"), "operator": ("support", "stock")}
DEEDS = sorted(
    page.path.rpartition("/")[2]
    for page in PEOPLE
    if page.method == "POST" and page.path.startswith("/portal/team/{person}/")
)


async def shown(who: Someone, path: str, email: str) -> tuple[str, str]:
    """What the page says above the list, and of this address in it; without address, numbers and secrets."""
    above, *rows = (await who.get(path)).text.split("<tr>")
    (found,) = [one for one in rows if email in one]
    texts = [text.replace(email, "ADDRESS").replace(who.email, "HOST") for text in (above, found)]
    above, found = [re.sub(r"\d+", "N", re.sub(r"[0-9a-f]{64}", "SECRET", text)) for text in texts]
    return above, found.partition("</tr>")[0]


@pytest.mark.parametrize("side", sorted(PATHS))
async def test_inviting_tells_nothing_about_accounts_elsewhere(shop: Shop, side: str) -> None:
    """OP-92: the answer, the list, every deed afterwards and the limit of letters are the same."""
    ours, other = await shop.company(), await shop.company()
    mine: Company | None = ours if side == "company" else None
    taken = await someone(shop, "owner", other)
    first, second = ROLES[side]
    found = {}
    for name, email in (("elsewhere", taken.email), ("nowhere", "nobody@people.example")):
        host = await someone(shop, "owner" if mine else "admin", mine)
        path = PATHS[side]
        told: list[object] = [(await host.post(path, {"email": email, "role": first})).status_code]
        told.append(await shown(host, path, email))
        number = await shop.pool.fetchval("SELECT max(id) FROM app_user")
        base = f"{path}/{number}"
        assert DEEDS == ["activate", "deactivate", "invite", "role", "second-factor"]
        for deed in [*["invite"] * links.OPEN_MAX, "role", "second-factor", "deactivate", "activate"]:
            answer = await host.post(f"{base}/{deed}", {"role": second})
            told += [answer.status_code, answer.headers.get("location"), await shown(host, path, email)]
        again = await host.post(path, {"email": email.upper(), "role": first})
        told += [again.status_code, "belongs here already" in again.text]
        found[name] = told
    assert found["elsewhere"] == found["nowhere"]
    assert found["nowhere"][-2:] == [422, True]
    assert "ADDRESS" in str(found["nowhere"])


async def test_the_letter_to_an_address_with_an_account_opens_nothing(shop: Shop) -> None:
    """OP-92: it says so to the one person who knows; the account stays as it was, and the row opens nothing."""
    ours, other = await shop.company(), await shop.company()
    taken, host = await someone(shop, "owner", other), await someone(shop, "owner", ours)
    before = await shop.pool.fetchrow("SELECT * FROM app_user WHERE id = $1", taken.user_id)
    await host.post("/portal/team", {"email": taken.email, "role": "owner"})
    (body,) = [
        one["body"]
        for one in await shop.pool.fetch(
            "SELECT recipients, body FROM mail WHERE subject LIKE 'An invitation%'"
        )
        if one["recipients"] == [taken.email]
    ]
    assert "has an account already" in body
    assert "/invitation/" not in body
    assert await shop.pool.fetchrow("SELECT * FROM app_user WHERE id = $1", taken.user_id) == before
    held = await shop.pool.fetchrow(
        "SELECT email, password_hash FROM app_user WHERE invited_as = $1", taken.email
    )
    assert held is not None
    assert held["password_hash"] is None
    await links.request_reset(shop.pool, held["email"])
    async with shop.pool.acquire() as connection, connection.transaction():
        assert await links.take_requests(connection) == (1, [])
    assert (await taken.get("/portal")).status_code == 200
