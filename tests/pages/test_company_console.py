"""A company in the operator's console: its details, its people and its keys, without a command."""

from __future__ import annotations

import csv
import io
import re

import pytest

from tests.pages.people import Someone, someone
from tests.shop import Company, Shop
from voucherd import trail
from voucherd.actors import Actor, ActorKind
from voucherd.companies import store as company_store
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys import store as key_store
from voucherd.keys.callers import Forbidden
from voucherd.keys.key_text import KeyWish, key_hash
from voucherd.people import deeds as people
from voucherd.people.deeds import Invitation
from voucherd.people.members import PersonNotFound
from voucherd.people.users import UserDraft


async def actions_of(shop: Shop, company: Company, count: int) -> list[str]:
    """The newest deeds on the company, newest first."""
    async with shop.pool.acquire() as conn:
        return [one.action for one in (await trail.page(conn, company_id=company.id)).rows[:count]]


async def test_a_company_gets_another_name_country_and_vat_number(shop: Shop) -> None:
    """OP-155: the country comes from a list, a wrong VAT number stands beside its field and changes nothing."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    acme, other = await shop.company(), await shop.company()
    home = f"/console/companies/{acme.id}"
    form = (await admin.get(f"{home}/edit")).text
    assert '<option value="NL" selected>Netherlands</option>' in form
    good = {"name": "Acme BV", "country": "DE", "vat_number": "de 123 456 106"}
    for field, text, said in (
        ("vat_number", "DE123456789", "not a VAT number of Germany"),
        ("vat_number", "NL001230013B01", "another country"),
        ("country", "XX", "not a country"),
        ("name", "", "1 to 200"),
        ("name", other.name, "of that name already"),
    ):
        answer = await admin.post(f"{home}/edit", good | {field: text})
        assert answer.status_code == 422, field
        assert re.search(rf'id="p-{field}">[^<]*{said}', answer.text), field
    assert (await support.post(f"{home}/edit", good)).status_code == 403
    page = await admin.post(f"{home}/edit", good, follow=True)
    assert "DE123456106" in page.text
    assert "Germany" in page.text
    async with shop.pool.acquire() as conn:
        found = (await company_store.companies(conn, [acme.id]))[acme.id]
    assert (found.name, found.country, found.vat_number) == ("Acme BV", "DE", "DE123456106")
    assert await actions_of(shop, acme, 1) == ["company.describe"]
    told = await shop.pool.fetchval("SELECT detail->>'country' FROM trail WHERE action = 'company.describe'")
    assert told == "NL → DE"
    # Nothing new is no deed.
    assert (await admin.post(f"{home}/edit", good | {"vat_number": "DE123456106"})).status_code == 303
    assert (await actions_of(shop, acme, 2)).count("company.describe") == 1


async def test_the_operator_invites_the_owner_of_a_company(shop: Shop) -> None:
    """OP-156: with a link of the company's own; a wrong address stands beside its field, and support may not."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    acme = await shop.company()
    home = f"/console/companies/{acme.id}"
    assert '<option value="owner" selected>' in (await admin.get(f"{home}/people/new")).text
    bad = await admin.post(f"{home}/people", {"email": "nobody", "role": "owner"})
    assert re.search(r'id="p-email">[^<]+', bad.text)
    no_role = await admin.post(f"{home}/people", {"email": "o@acme.example", "role": "admin"})
    assert re.search(r'id="p-role">[^<]+', no_role.text)
    wanted = {"email": "owner@acme.example", "role": "owner"}
    assert (await support.post(f"{home}/people", wanted)).status_code == 403
    page = await admin.post(f"{home}/people", wanted)
    link = re.search(r"/invitation/[\w-]{43}", page.text)
    assert link is not None
    assert (await shop.client.get(link[0])).status_code == 200
    assert "Invited" in (await admin.get(home)).text
    twice = await admin.post(f"{home}/people", wanted)
    assert "belongs to the company already" in twice.text
    assert await actions_of(shop, acme, 1) == ["user.invite"]


async def test_the_operator_looks_after_a_companys_people(shop: Shop) -> None:
    """OP-156: roles, sign-in and second factors, each in the trail; the last owner stays, others are not reached."""
    admin = await someone(shop, "admin")
    acme, other = await shop.company(), await shop.company()
    owner, buyer = await someone(shop, "owner", acme), await someone(shop, "buyer", acme)
    home = f"/console/companies/{acme.id}/people"
    page = await admin.post(f"{home}/{owner.user_id}/role", {"role": "buyer"}, follow=True)
    assert "Nobody else is owner" in page.text
    assert (await admin.post(f"{home}/{buyer.user_id}/role", {"role": "admin"})).status_code == 400
    page = await admin.post(f"{home}/{buyer.user_id}/role", {"role": "developer"}, follow=True)
    assert "is developer now" in page.text
    for deed in ("deactivate", "activate", "second-factor"):
        assert (await admin.post(f"{home}/{buyer.user_id}/{deed}")).status_code == 303, deed
    assert await actions_of(shop, acme, 4) == [
        "second-factor.reset",
        "user.activate",
        "user.deactivate",
        "user.role",
    ]
    elsewhere = f"/console/companies/{other.id}/people/{buyer.user_id}"
    assert (await admin.get(elsewhere)).status_code == 404
    assert (await admin.post(f"{elsewhere}/deactivate")).status_code == 404
    assert (await admin.get(f"{home}/{admin.user_id}")).status_code == 404
    again = await admin.post(f"{home}/{owner.user_id}/invite", follow=True)
    assert "enough open invitations" in again.text


def key_in(text: str) -> str:
    """The key that a page shows."""
    found = re.search(r"vk_(?:live|test)_\w{38}", text)
    assert found is not None
    return found[0]


async def made_key(admin: Someone, home: str, **fields: object) -> str:
    """A new key of the company, by the form."""
    form = {"state": "live", "scope": ["orders:read", "orders:write"], "rate_limit": "60", **fields}
    answer = await admin.post(f"{home}/keys", form)
    assert answer.status_code == 200, answer.text
    return key_in(answer.text)


async def test_the_operator_makes_replaces_and_revokes_a_key(shop: Shop) -> None:
    """OP-156, OP-29: shown once, for live or the sandbox; its successor is shown once as well."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    acme = await shop.company()
    home = f"/console/companies/{acme.id}"
    assert (await support.get(f"{home}/keys/new")).status_code == 403
    text = await made_key(admin, home, description="till", order_max="25", expires="2099-01-31")
    assert (await made_key(admin, home, state="sandbox")).startswith("vk_test_")
    async with shop.pool.acquire() as conn:
        found = await key_store.find_key(conn, key_hash(text))
        assert found is not None
        [key] = [one for one in await key_store.list_keys(conn, acme.id) if one.description == "till"]
    assert (key.spend_order_eur_minor, key.rate_limit, sorted(key.scopes)) == (
        2_500,
        60,
        ["orders:read", "orders:write"],
    )
    path = f"{home}/keys/{key.id}"
    page = await admin.get(path)
    assert text not in page.text
    assert text not in (await admin.get(home)).text
    changed = {"description": "new till", "scope": "orders:read", "rate_limit": "30", "expires": "2099-01-31"}
    assert (await admin.post(path, changed)).status_code == 303
    replaced = await admin.post(f"{path}/rotate", {"overlap": "1h"})
    assert key_in(replaced.text) != text
    assert (await admin.post(f"{path}/revoke", follow=True)).status_code == 200
    async with shop.pool.acquire() as conn:
        after = await key_store.find_by_id(conn, key.id)
    assert (after.description, after.rate_limit, after.standing(key.created_at)) == (
        "new till",
        30,
        "revoked",
    )
    assert await actions_of(shop, acme, 5) == ["key.revoke", "key.rotate", "key.change", "key.add", "key.add"]
    gone = await admin.post(f"{path}/rotate", {"overlap": "1h"}, follow=True)
    assert "can’t be replaced" in gone.text


async def test_what_is_wrong_with_a_key_stands_beside_its_field(shop: Shop) -> None:
    """OP-156: nothing is made, and the form is as it was sent; another company's key is not reached."""
    admin = await someone(shop, "admin")
    acme, other = await shop.company(), await shop.company()
    home = f"/console/companies/{acme.id}"
    good = {"state": "live", "scope": "orders:read", "rate_limit": "60", "description": "mine"}
    for field, text in (
        ("rate_limit", "0"),
        ("expires", "2001-01-01"),
        ("expires", "soon"),
        ("allow_ips", "not an address"),
        ("order_max", "-1"),
        ("state", "both"),
        ("description", "x" * 201),
    ):
        answer = await admin.post(f"{home}/keys", good | {field: text})
        assert answer.status_code == 422, field
        assert re.search(rf'id="p-{field}">[^<]+', answer.text), field
    none = await admin.post(f"{home}/keys", good | {"scope": []})
    assert re.search(r'id="p-scopes">[^<]+', none.text)
    async with shop.pool.acquire() as conn:
        assert len(await key_store.list_keys(conn, acme.id)) == 2
        foreign = (await key_store.list_keys(conn, other.id))[0]
    for way in ("", "/rotate", "/revoke", "/keep"):
        answer = await admin.post(f"{home}/keys/{foreign.id}{way}", good | {"overlap": "0"})
        assert answer.status_code == 404, way


async def test_companies_are_sorted_filtered_and_exported(shop: Shop) -> None:
    """OP-91: the address keeps order and filters, and the file holds what the list holds."""
    admin = await someone(shop, "admin")
    names = [(await shop.company(country=country, verified=country != "AT")).name for country in ("NL", "AT")]

    def places(text: str) -> list[int]:
        return [text.index(f">{name}<") for name in names]

    first, second = places((await admin.get("/console/companies?sort=country")).text)
    assert second < first
    first, second = places((await admin.get("/console/companies?sort=-country")).text)
    assert first < second
    page = (await admin.get("/console/companies?verified=no&sort=name")).text
    assert f">{names[0]}<" not in page
    assert f">{names[1]}<" in page
    assert "verified=no" in page
    file = await admin.get("/console/companies/-/file?verified=no&format=csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [(row["name"], row["country"], row["verified"]) for row in rows] == [(names[1], "AT", "no")]
    assert (await admin.get("/console/companies?sort=nonsense&page=99999")).status_code == 200


async def test_the_operator_lets_a_company_be_warned_of_a_low_balance(shop: Shop) -> None:
    """OP-156: what `wallet alert` does, on the page of the statement; an empty amount ends it."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    acme = await shop.company()
    home = f"/console/companies/{acme.id}"
    wish = {"currency": "EUR", "below": "1234.50"}
    assert (await support.post(f"{home}/alert", wish)).status_code == 403
    assert "is warned below" in (await admin.post(f"{home}/alert", wish, follow=True)).text
    assert 'value="1234.50"' in (await admin.get(f"{home}/statement?currency=EUR")).text
    assert 'value="1234.50"' not in (await admin.get(f"/sandbox{home}/statement?currency=EUR")).text
    for wrong in ("-1", "much"):
        answer = await admin.post(f"{home}/alert", wish | {"below": wrong})
        assert answer.status_code == 422, wrong
        assert 'id="p-below"' in answer.text, wrong
        assert f'value="{wrong}"' in answer.text, wrong
        assert "Top-up</span>" in answer.text, "the movements are still there"
    for _ in range(2):
        gone = await admin.post(f"{home}/alert", wish | {"below": ""}, follow=True)
        assert "is not warned" in gone.text
    assert (await admin.post(f"{home}/alert", wish | {"currency": "?"})).status_code == 404
    assert await actions_of(shop, acme, 2) == ["alert.remove", "alert.set"]


async def test_a_company_with_many_keys_shows_the_usable_ones_first(shop: Shop) -> None:
    """OP-156: twenty of them, and all when they are asked for; a phone has no endless page."""
    admin = await someone(shop, "admin")
    acme = await shop.company()
    home = f"/console/companies/{acme.id}"
    for _ in range(20):
        await made_key(admin, home)
    async with shop.pool.acquire() as conn:
        newest = (await key_store.list_keys(conn, acme.id))[0]
    assert (await admin.post(f"{home}/keys/{newest.id}/revoke")).status_code == 303
    page = (await admin.get(home)).text
    assert page.count(f'href="{home}/keys/') == 21, "twenty keys, and the way to a new one"
    assert f'href="{home}/keys/{newest.id}"' not in page
    assert f'href="{home}/keys/{newest.id}"' in (await admin.get(f"{home}?all=yes")).text


async def test_the_deeds_themselves_refuse_staff_without_the_right(shop: Shop) -> None:
    """OP-156: whatever a page would let through, only `companies:manage` reaches a company's people and keys."""
    acme, support = await shop.company(), await someone(shop, "support")
    actor = Actor(ActorKind.OPERATOR, support.email, support.user_id)
    draft = UserDraft("owner@acme.example", acme.id, "owner")
    async with transaction(shop.pool) as tx:
        with pytest.raises(PersonNotFound):
            await people.invite(tx, actor, draft, Invitation("http://x", acme.name, "me"))
        with pytest.raises(Forbidden):
            await key_deeds.add(tx, actor, acme.id, State.LIVE, KeyWish())
    assert not {"user.invite", "key.add"} & set(await actions_of(shop, acme, 5))
