"""One's own account: a name, a language and a time zone."""

from __future__ import annotations

from tests.pages.people import someone
from tests.shop import Shop


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
