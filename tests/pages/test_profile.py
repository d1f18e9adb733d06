"""One's own account: a name, a language and a time zone."""

from __future__ import annotations

from tests.pages.people import Someone, someone
from tests.pages.test_buying import ordered
from tests.shop import Company, Shop
from voucherd import trail
from voucherd.actors import Actor, ActorKind


async def test_a_person_chooses_a_name_a_language_and_a_time_zone(shop: Shop) -> None:
    """OP-173: all pages follow at once, colleagues see the name, and the trail has a row with what changed."""
    company = await shop.company()
    ann, ben = await someone(shop, "owner", company), await someone(shop, "owner", company)
    choice = {"name": "Ann Example", "language": "nl", "time_zone": "Asia/Tokyo"}
    page = await ann.post("/account", choice, follow=True)
    assert '<html lang="nl">' in page.text
    assert "Asia/Tokyo" in page.text
    assert 'value="Ann Example"' in page.text
    team = (await ben.get("/portal/team")).text
    assert "Ann Example</a>" in team
    assert ann.email in team
    assert "Ann Example" in (await ben.get(f"/portal/team/{ann.user_id}")).text
    again = {"name": "Ann Example", "language": "", "time_zone": "Asia/Tokyo"}
    for _ in range(2):
        assert '<html lang="en">' in (await ann.post("/account", again, follow=True)).text
    rows = await shop.pool.fetch("SELECT detail FROM trail WHERE action = 'user.profile' ORDER BY id")
    assert [row["detail"] for row in rows] == [
        '{"name": "Ann Example", "language": "nl", "time zone": "Asia/Tokyo"}',
        '{"language": ""}',
    ]


async def test_what_can_not_be_chosen_is_refused_beside_its_field(shop: Shop) -> None:
    """OP-173: nothing is kept of a form with a mistake, and the form is shown as it was sent."""
    ann = await someone(shop, "owner", await shop.company())
    good = {"name": "Ann", "language": "de", "time_zone": "Europe/Berlin"}
    for field, wrong in (
        ("name", "x" * 101),
        ("name", "Ann\u2028Example"),
        ("language", "xx"),
        ("time_zone", "Mars/Olympus"),
        ("time_zone", "../../etc/passwd"),
    ):
        answer = await ann.post("/account", good | {field: wrong})
        assert answer.status_code == 422, wrong
        assert f'id="p-{field}"' in answer.text, wrong
        assert answer.text.count('aria-invalid="true"') == 1, wrong
        assert wrong in answer.text or field == "language", wrong
    kept = await shop.pool.fetchrow(
        "SELECT name, language, time_zone FROM app_user WHERE id = $1", ann.user_id
    )
    assert kept is not None
    assert tuple(kept) == ("", None, None)


async def test_a_factor_is_removed_on_a_page_of_its_own(shop: Shop) -> None:
    """OP-92, OP-173: whoever signed in long ago gives the password again, and a wrong one is told beside the field."""
    ann = await someone(shop, "owner", await shop.company())
    for path in ("/account/app/remove", "/account/codes"):
        page = await ann.get(path)
        assert (page.status_code, 'name="current"' in page.text) == (200, False)
        await shop.pool.execute("UPDATE session SET created_at = now() - interval '1 hour'")
        assert 'name="current"' in (await ann.get(path)).text
        wrong = await ann.post(path, {"current": "not it"})
        assert (wrong.status_code, "not your password" in wrong.text) == (422, True)
        await shop.pool.execute("UPDATE session SET created_at = now()")


async def named(shop: Shop, role: str, name: str, company: Company | None = None) -> Someone:
    """A person who has told a name."""
    person = await someone(shop, role, company)
    await shop.pool.execute("UPDATE app_user SET name = $2 WHERE id = $1", person.user_id, name)
    return person


async def test_people_are_called_by_their_names_and_the_address_stays_in_reach(shop: Shop) -> None:
    """OP-173: in approvals, timelines and the trail; a name with markup in it is only a name."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift", stock=3)
    await shop.pool.execute("UPDATE company SET approve_from_eur_minor = 1500 WHERE id = $1", company.id)
    buyer = await named(shop, "buyer", "Bea Buyer", company)
    owner = await named(shop, "owner", "<b>Olga</b>", company)
    operator = await someone(shop, "admin")
    trx = await ordered(buyer, ("gift", 2))
    await buyer.post(f"/portal/orders/{trx}/confirm")
    waiting = (await owner.get("/portal/approvals")).text
    assert "Bea Buyer" in waiting
    assert buyer.email in waiting
    assert "Bea Buyer" in (await buyer.get(f"/portal/orders/{trx}")).text
    number = await shop.pool.fetchval("SELECT id FROM approval")
    await owner.post(f"/portal/approvals/{number}/approve")
    await buyer.post(f"/portal/orders/{trx}/download", {"format": "csv"})
    olga, bea = "&lt;b&gt;Olga&lt;/b&gt;", f'<span title="{buyer.email}">Bea Buyer</span>'
    portal = (await buyer.get(f"/portal/orders/{trx}")).text
    assert portal.count(f'· <span title="{owner.email}">{olga}</span>') == 2
    assert portal.count(f"· {bea}") == 2
    console = (await operator.get(f"/console/orders/{trx}")).text
    assert f"{bea}, 127.0.0.1" in console
    small = await ordered(owner, ("gift", 1))
    await owner.post(f"/portal/orders/{small}/confirm")
    assert (
        f'· <span title="{owner.email}">{olga}</span>'
        in (await operator.get(f"/console/orders/{small}")).text
    )
    assert bea in (await operator.get(f"/console/reveals?trx={trx}")).text
    decided = (await buyer.get("/portal/approvals")).text
    assert olga in decided
    assert owner.email in decided
    deeds = (await operator.get("/console/trail?actor=bea+b")).text
    assert "Bea Buyer</span>" in deeds
    assert f">{buyer.email}</span>" in deeds
    assert olga not in deeds
    file = (await operator.get("/console/trail/-/file?actor=bea+b")).text
    assert f",{buyer.email},Bea Buyer," in file
    kept = await shop.pool.fetch("SELECT DISTINCT actor FROM trail WHERE actor_id = $1", buyer.user_id)
    assert [row["actor"] for row in kept] == [buyer.email]


async def test_a_key_with_the_number_of_a_person_bears_no_name(shop: Shop) -> None:
    """OP-173: numbers of people and of keys are of two kinds; a key is told by what the trail wrote."""
    person = await named(shop, "admin", "Ada Admin")
    key = Actor(ActorKind.KEY, "key vk_live_ab…", person.user_id)
    await trail.record(shop.pool, key, "order.cancel", "order TRX1")
    deeds = (await person.get("/console/trail?action=order.cancel")).text
    assert "key vk_live_ab…" in deeds
    assert "Ada Admin</span>" not in deeds
    assert "order TRX1" not in (await person.get("/console/trail?actor=Ada+Admin")).text
