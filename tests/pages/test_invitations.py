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


async def person(who: Someone, path: str, email: str) -> str:
    """The page of this person, without address, numbers and secrets."""
    text = (await who.get(path)).text.replace(email, "ADDRESS").replace(who.email, "HOST")
    return re.sub(r"\d+", "N", re.sub(r"[0-9a-f]{64}", "SECRET", text))


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
        assert DEEDS == ["activate", "deactivate", "invite", "password", "role", "second-factor"]
        deeds = [*["invite"] * links.OPEN_MAX, "password", "role", "second-factor", "deactivate", "activate"]
        for deed in deeds:
            answer = await host.post(f"{base}/{deed}", {"role": second})
            lead = answer.headers.get("location", "").removeprefix(base)
            told += [
                answer.status_code,
                lead,
                await shown(host, path, email),
                await person(host, base, email),
            ]
        again = await host.post(path, {"email": email.upper(), "role": first})
        told += [again.status_code, "is here already" in again.text]
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
            "SELECT recipients, body FROM mail WHERE subject LIKE 'Invitation to %'"
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


async def test_a_second_approver_confirms_new_people_and_looser_rules_on_the_pages(shop: Shop) -> None:
    """OP-102, OP-103: who let somebody in, and who asked for the rule, finds no button, and is refused without one."""
    company = await shop.company()
    for side, path, home in (
        (company, "/portal/team", "/portal/approvals"),
        (None, "/console/staff", "/console/money"),
    ):
        top = "owner" if side else "admin"
        ann, ben = await someone(shop, top, side), await someone(shop, "finance", side)
        email = f"new-{top}@people.example"
        await ann.post(path, {"email": email, "role": top})
        number = await shop.pool.fetchval("SELECT id FROM app_user WHERE email = $1", email)
        button = f'action="{home}/-/people/{number}"'
        assert button not in (await ann.get(home)).text
        refused = await ann.post(f"{home}/-/people/{number}", follow=True)
        assert "You can’t approve yet" in refused.text
        assert button in (await ben.get(home)).text
        done = await ben.post(f"{home}/-/people/{number}", follow=True)
        assert f"{email} is confirmed" in done.text
        assert button not in done.text

    ann, ben = await someone(shop, "owner", company), await someone(shop, "finance", company)
    await ann.post("/portal/team/rules", {"approve_from": "100"})
    waits = await ann.post("/portal/team/rules", {"approve_from": ""}, follow=True)
    assert "or once another approver confirms it" in waits.text
    rule = 'action="/portal/approvals/-/rule"'
    assert rule not in (await ann.get("/portal/approvals")).text
    assert rule in (await ben.get("/portal/approvals")).text
    form = {"approve_from_eur_minor": ""}
    assert "You can’t approve yet" in (await ann.post("/portal/approvals/-/rule", form, follow=True)).text
    for shown_before in ("10000", "0", "nonsense"):
        other = {"approve_from_eur_minor": shown_before}
        assert (
            "changed or withdrawn meanwhile"
            in (await ben.post("/portal/approvals/-/rule", other, follow=True)).text
        )
    assert "The rule is changed" in (await ben.post("/portal/approvals/-/rule", form, follow=True)).text
    assert "No order needs a second person" in (await ben.get("/portal/approvals")).text
