"""Letters speak to their readers: in their language and time zone, with links into the state that they are about."""

from __future__ import annotations

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.people import letters, readers
from voucherd.webhooks import letters as webhook_letters
from voucherd.words import Words


async def letters_of(shop: Shop) -> dict[str, tuple[str, str]]:
    """Every letter by its reader."""
    rows = await shop.pool.fetch("SELECT recipients, subject, body FROM mail ORDER BY id")
    return {email: (row["subject"], row["body"]) for row in rows for email in row["recipients"]}


async def test_each_reader_gets_the_language_and_the_zone_that_the_person_chose(shop: Shop) -> None:
    """OP-171, OP-172: one letter for all who read the same words; times name their zone."""
    company = await shop.company()
    people = [await someone(shop, "owner", company) for _ in range(3)]
    await shop.pool.execute(
        "UPDATE app_user SET language = 'de', time_zone = 'Europe/Berlin' WHERE id = $1", people[0].user_id
    )
    await shop.pool.execute("DELETE FROM mail")
    until = await shop.pool.fetchval("SELECT timestamptz '2026-07-01 22:30Z'")
    letter = letters.rests("{email} was invited", "new@acme.example", "buyer", "ann", until)
    async with transaction(shop.pool) as tx:
        await letters.tell_approvers(tx, [one.email for one in people], letter)
    found = await letters_of(shop)
    assert len(await shop.pool.fetch("SELECT FROM mail")) == 2
    german, english = found[people[0].email], found[people[1].email]
    assert english == found[people[2].email]
    assert english[0] == "new@acme.example was invited"
    assert "Until 1 Jul 2026, 22:30 (UTC) this person" in english[1]
    assert "2. Juli 2026, 00:30 (Europe/Berlin)" in german[1]
    assert german[0] != english[0]


async def test_a_letter_leads_into_the_state_that_it_is_about(shop: Shop) -> None:
    """OP-170: a sandbox endpoint that was disabled is found in the sandbox; the address is that of the service."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)
    for state, path in ((State.LIVE, "/portal/webhooks"), (State.SANDBOX, "/sandbox/portal/webhooks")):
        await shop.pool.execute("DELETE FROM mail")
        async with transaction(shop.pool) as tx:
            url = "https://hooks.example/x"
            await webhook_letters.tell_disabled(tx, company.id, state, url, "gone")
        assert f"    {{site}}{path}\n" in (await letters_of(shop))[owner.email][1]
    await shop.worker.run_once("send_mail")
    file = next(iter(shop.settings.mail_folder.glob("*.eml")))
    assert f"{shop.settings.public_url}/sandbox/portal/webhooks" in file.read_text()


async def test_people_without_a_choice_read_english_in_utc(shop: Shop) -> None:
    """OP-171, OP-172: and so does an address that nobody has, or a zone that this machine does not know."""
    ann = await someone(shop, "owner", await shop.company())
    await shop.pool.execute("UPDATE app_user SET time_zone = 'Mars/Olympus' WHERE id = $1", ann.user_id)
    async with shop.pool.acquire() as conn:
        found = await readers.by_address(conn, ["nobody@acme.example", ann.email])
    assert found == {Words(): ["nobody@acme.example", ann.email]}
