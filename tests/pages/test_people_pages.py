"""Second factors, forgotten passwords, invitations and approvals, as people go through them page by page."""

from __future__ import annotations

import re
import time
from base64 import b32decode
from email import message_from_bytes
from email.policy import default
from html import unescape

import pytest
from argon2 import PasswordHasher

from tests.mailed import mailed
from tests.pages.people import PASSWORD, Browser, Someone, someone
from tests.patience import pause_for_long
from tests.shop import Company, Shop
from voucherd.actors import Actor, ActorKind
from voucherd.approvals.model import Approval
from voucherd.companies.model import Policy
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.limits.allowances import HERE
from voucherd.orders import consent
from voucherd.orders.consent import BuyingPerson
from voucherd.pages.people.account import browser_of
from voucherd.people import sessions, totp, user_store, users
from voucherd.people.links import LinkKind
from voucherd.people.users import UserDraft, hash_password
from voucherd.words import ENGLISH

ANOTHER = "zebra lamp cloud"


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed as cheaply as argon2 allows: these tests are about what comes before and after."""
    monkeypatch.setattr(users, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


async def person(shop: Shop, email: str, company: Company | None, role: str) -> int:
    """Someone who can sign in."""
    draft = UserDraft(email, None if company is None else company.id, role)
    async with transaction(shop.pool) as tx:
        return (await user_store.add_user(tx, draft, await hash_password(PASSWORD, []))).id


async def link_in_mail(shop: Shop, kind: str) -> str:
    """The path of the link in the newest mail."""
    await shop.worker.run_once("send_mail")
    letters = sorted(shop.settings.mail_folder.glob("*.eml"), reverse=True)
    texts = [message_from_bytes(one.read_bytes(), policy=default).get_content() for one in letters]
    found = next((link for text in texts if (link := re.search(rf"/{kind}/\S+", text))), None)
    assert found is not None, texts
    return found[0]


async def set_up_app(browser: Browser) -> tuple[bytes, int, list[str]]:
    """Set an app up: its secret, the step of the code that was used, and the recovery codes."""
    page = await browser.get("/account/app")
    assert "<svg" in page.text
    found = re.search('data-copy="([A-Z2-7]{32})"', page.text)
    assert found is not None
    secret = b32decode(found[1])
    word = re.search('name="enrolment" value="([0-9a-f]+)"', page.text)
    assert word is not None
    wrong = await browser.post("/account/app", enrolment=word[1], code="000000")
    assert wrong.status_code == 422
    assert found[1] in wrong.text, "the square stays while somebody tries"
    step = int(time.time()) // totp.STEP_S
    done = await browser.post("/account/app", enrolment=word[1], code=totp.code(secret, step))
    codes = re.findall("<li><code>([a-z0-9-]{19})</code>", done.text)
    assert len(codes) == 10
    return secret, step, codes


def test_a_browser_is_named_as_its_person_knows_it() -> None:
    """OP-92: in the list of one's own sessions."""
    chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
    assert browser_of(chrome, ENGLISH) == "Chrome on Linux"
    assert (
        browser_of("Mozilla/5.0 (iPhone; CPU iPhone OS 18 like Mac OS X) Safari/604.1", ENGLISH)
        == "Safari on iPhone"
    )
    assert browser_of("curl/8", ENGLISH) == "An unknown browser"


async def deeds(shop: Shop) -> list[str]:
    """What the trail says, without what commands did."""
    return [row["action"] for row in await shop.pool.fetch("SELECT action FROM trail ORDER BY id")]


async def test_who_runs_the_service_sets_up_a_second_factor_and_gives_it_ever_after(shop: Shop) -> None:
    """OP-92: nothing opens before it is set up; then each code opens once, and so does each recovery code."""
    await person(shop, "boss@house.example", None, "admin")
    browser = Browser(shop)
    assert (await browser.sign_in("boss@house.example")).headers["location"] == "/console"
    assert (await browser.get("/console")).headers["location"] == "/account/security"
    assert (await browser.post("/console/staff", email="x@y.example", role="admin")).status_code == 403
    assert "Set up a second factor first" in (await browser.get("/account/security")).text
    secret, step, codes = await set_up_app(browser)
    assert (await browser.get("/console")).status_code == 200

    other = Browser(shop)
    first = await other.sign_in("boss@house.example")
    assert first.headers["location"] == "/sign-in/second-factor"
    assert (await other.get("/console")).headers["location"].startswith("/sign-in")
    assert (await other.post("/account/password", current=PASSWORD, password=PASSWORD)).status_code == 403
    for wrong in ("000000", totp.code(secret, step), "no code"):
        assert (await other.post("/sign-in/second-factor", code=wrong)).status_code == 422
    right = await other.post("/sign-in/second-factor", code=totp.code(secret, step + 1))
    assert right.headers["location"] == "/console"
    assert (await other.get("/console")).status_code == 200

    for code, status in ((codes[0], 303), (codes[0], 422)):
        third = Browser(shop)
        await third.sign_in("boss@house.example")
        assert (await third.post("/sign-in/second-factor", code=code.upper())).status_code == status
    assert (await browser.post("/account/app/remove", sure="yes")).status_code == 400
    page = await browser.get("/account/sessions")
    assert page.text.count("Sign out</button>") >= 2
    others = re.findall("/account/sessions/([0-9a-f]{16})/end", page.text)
    assert (await browser.post(f"/account/sessions/{others[0]}/end")).status_code == 303
    assert (await browser.post("/account/sessions/end")).status_code == 303
    assert (await other.get("/console")).status_code == 303
    told = await deeds(shop)
    assert told.count("session.begin") == 3
    assert told.count("session.refuse") == 4
    assert told.count("second-factor.add") == 1
    row = await shop.pool.fetchrow(
        "SELECT actor, subject, host(address), detail FROM trail ORDER BY id LIMIT 1"
    )
    assert tuple(row or ())[:3] == ("boss@house.example", "user boss@house.example", "127.0.0.1")


async def test_guesses_pause_a_place_and_a_known_device_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-92: after five wrong passwords the page says how long to wait; the device that signed in before is let in."""
    pause_for_long(monkeypatch)
    company = await shop.company()
    await person(shop, "ann@acme.example", company, "owner")
    hers = Browser(shop)
    assert (await hers.sign_in("ann@acme.example")).status_code == 303
    assert hers.cookies["device"]
    # Whoever would wait too long for a check is told so, and it does not count.
    with monkeypatch.context() as busy:
        busy.setattr(users, "CHECKS_WAITING_MAX", -users.CHECKS_AT_ONCE_MAX)
        sent_away = [await Browser(shop).sign_in("ann@acme.example") for _ in range(HERE.free + 1)]
    assert {(one.status_code, one.headers["retry-after"]) for one in sent_away} == {(503, "1")}
    thief = Browser(shop)
    tries = [await thief.sign_in("ann@acme.example", f"guess number {at}") for at in range(HERE.free + 1)]
    assert [one.status_code for one in tries] == [422] * HERE.free + [429]
    assert "Too many tries" in tries[-1].text
    assert int(tries[-1].headers["retry-after"]) >= 1
    assert (await thief.sign_in("ann@acme.example")).status_code == 429
    del hers.cookies["voucherd"]
    assert (await hers.sign_in("ann@acme.example")).status_code == 303

    # A company may ask its people for a second factor at any time.
    async with transaction(shop.pool) as tx:
        await tx.execute("UPDATE company SET second_factor = true WHERE id = $1", company.id)
    assert (await hers.get("/portal")).headers["location"] == "/account/security"
    await set_up_app(hers)
    assert (await hers.get("/portal")).status_code == 200
    await shop.pool.execute("UPDATE session SET created_at = now() - interval '1 hour'")
    await hers.get("/account")
    wrong = await hers.post("/account/codes", current="not it")
    assert (wrong.status_code, 'aria-invalid="true"' in wrong.text) == (422, True)
    fresh = await hers.post("/account/codes", current=PASSWORD)
    assert len(re.findall("<li><code>", fresh.text)) == 10
    wrong = await hers.post("/account/password", current="not it", password="x" * 20)
    assert (wrong.status_code, "not your password" in wrong.text) == (422, True)
    assert (await hers.post("/account/password", current=PASSWORD, password="short")).status_code == 422
    assert (await hers.post("/account/password", current=PASSWORD, password=ANOTHER)).status_code == 303


async def test_a_forgotten_password_is_chosen_anew_through_a_link(shop: Shop) -> None:
    """OP-92: the same answer for every address; the link works once, ends every session, and does not sign in."""
    company = await shop.company()
    await person(shop, "ann@acme.example", company, "owner")
    ann, stranger = Browser(shop), Browser(shop)
    await ann.sign_in("ann@acme.example")
    answers = []
    for address in ("who@acme.example", "ann@acme.example"):
        await stranger.get("/forgotten")
        answer = await stranger.post("/forgotten", email=address)
        page = await stranger.get(answer.headers["location"])
        answers.append((answer.status_code, answer.headers["location"], page.text))
    assert answers[0] == answers[1]
    await shop.worker.run_once("answer_resets")
    path = await link_in_mail(shop, "reset")
    assert "ann@acme.example" in (await stranger.get(path)).text
    assert (await stranger.post(path, password="short")).status_code == 422
    chosen = await stranger.post(path, password="another good password")
    assert chosen.headers["location"] == "/sign-in?done=password"
    assert "is saved" in (await stranger.get(chosen.headers["location"])).text
    assert (await ann.get("/portal")).status_code == 303
    assert (await stranger.get(path)).status_code == 410
    assert (await stranger.post(path, password="another good password")).status_code == 410
    assert (await stranger.sign_in("ann@acme.example")).status_code == 422
    assert (await stranger.sign_in("ann@acme.example", "another good password")).status_code == 303
    assert path.rpartition("/")[2] not in str(await shop.pool.fetch("SELECT * FROM mail"))
    assert "user.reset-password" in await deeds(shop)


async def test_an_owner_invites_changes_and_removes_colleagues(shop: Shop) -> None:
    """OP-92: by mail, in a role; who is deactivated is signed out; the last owner stays; so it is with the staff."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)
    for email, said in (("nonsense", "Enter an e-mail address"), (owner.email, "is here already")):
        wrong = await owner.post("/portal/team", {"email": email, "role": "buyer"})
        assert (wrong.status_code, said in unescape(wrong.text)) == (422, True)
    sent = await owner.post("/portal/team", {"email": "New@acme.example", "role": "buyer"})
    assert (sent.status_code, "Invitation for new@acme.example" in sent.text) == (200, True)
    assert "Invited" in (await owner.get("/portal/team")).text
    path = await link_in_mail(shop, "invitation")
    newcomer = Browser(shop)
    assert "new@acme.example" in (await newcomer.get(path)).text
    assert (await newcomer.post(path, password=PASSWORD)).status_code == 303
    assert (await newcomer.sign_in("new@acme.example")).status_code == 303
    assert (await newcomer.get("/portal")).status_code == 200
    assert (await newcomer.get("/portal/team")).status_code == 403

    number = await shop.pool.fetchval("SELECT id FROM app_user WHERE email = 'new@acme.example'")
    base = f"/portal/team/{number}"
    assert (await owner.post(f"{base}/role", {"role": "admin"})).status_code == 400
    stays = await owner.post(f"/portal/team/{owner.user_id}/role", {"role": "viewer"}, follow=True)
    assert "Nobody else has the role Owner" in stays.text
    assert (
        "has the role Viewer now" in (await owner.post(f"{base}/role", {"role": "viewer"}, follow=True)).text
    )
    assert (await owner.post(f"{base}/deactivate")).status_code == 303
    assert (await newcomer.get("/portal")).status_code == 303
    assert (await newcomer.sign_in("new@acme.example")).status_code == 422
    assert (await owner.post(f"{base}/activate")).status_code == 303
    rules = {"second_factor": "yes", "approve_from": "250,5"}
    assert (await owner.post("/portal/team/rules", rules)).status_code == 422
    assert (await owner.post("/portal/team/rules", {"approve_from": "250.50"})).status_code == 303
    assert 'value="250.50"' in (await owner.get("/portal/team")).text
    actions = [one for one in await deeds(shop) if one.startswith(("user.", "company."))]
    assert actions == [
        "user.invite",
        "user.join",
        "user.role",
        "user.deactivate",
        "user.activate",
        "company.people",
    ]

    admin = await someone(shop, "admin")
    assert (
        await admin.post("/console/staff", {"email": "s@house.example", "role": "support"})
    ).status_code == 200
    assert "s@house.example" in (await admin.get("/console/staff")).text
    found = await sessions.find(shop.pool, admin.token)
    assert found is not None


async def asked(shop: Shop, company: Company, asker: Someone, count: int) -> Approval:
    """A request for an order of that many codes."""
    order_id = shop.ids.order_id((await shop.create(company, ("gift-10", count)))["trx"])
    actor = Actor(ActorKind.PERSON, asker.email, asker.user_id, company.id, State.LIVE)
    buyer = BuyingPerson(actor, Policy(approve_from_eur_minor=1))
    request = await consent.confirm(shop.order_service, shop.pool, buyer, order_id)
    assert isinstance(request, Approval)
    return request


async def test_large_orders_wait_for_a_second_person(shop: Shop) -> None:
    """OP-93: a badge in the navigation, approved or rejected by somebody else, withdrawn by who asked."""
    company = await shop.company(balance="50.00 EUR")
    await shop.product("gift-10", price="10.00 EUR", stock=9)
    buyer, boss = await someone(shop, "buyer", company), await someone(shop, "finance", company)
    requests = [await asked(shop, company, buyer, count) for count in (3, 3, 1)]
    mails = await shop.pool.fetch(
        "SELECT recipients FROM mail WHERE subject LIKE 'An order of % waits for your approval'"
    )
    assert [row["recipients"] for row in mails] == [[boss.email]] * 3
    assert '<span class="nav-count">3<' in (await boss.get("/portal")).text
    assert "nav-count" not in (await buyer.get("/portal")).text
    paths = [f"/portal/approvals/{one.id}" for one in requests]
    assert (await buyer.post(f"{paths[0]}/approve")).status_code == 403
    boss.look_at(State.SANDBOX)
    assert (await boss.post(f"{paths[0]}/approve")).status_code == 404
    boss.look_at(State.LIVE)
    assert "approved and confirmed" in (await boss.post(f"{paths[0]}/approve", follow=True)).text
    assert "does not cover this order" in (await boss.post(f"{paths[1]}/approve", follow=True)).text
    assert "The order is not confirmed" in (await boss.post(f"{paths[1]}/reject", follow=True)).text
    assert "decided before" in (await boss.post(f"{paths[1]}/approve", follow=True)).text
    assert (await boss.post(f"{paths[2]}/withdraw")).status_code == 403
    assert "Withdrawn" in (await buyer.post(f"{paths[2]}/withdraw", follow=True)).text
    assert (await shop.balance(company)).minor == 2000

    told = [action for action in await deeds(shop) if not action.startswith(("session", "wallet"))]
    assert told == [
        *["approval.ask"] * 3,
        "order.approve",
        "approval.reject",
        "approval.withdraw",
    ]
    await shop.assert_books_balance()


async def test_a_password_that_is_easy_to_guess_is_refused_wherever_it_is_chosen(shop: Shop) -> None:
    """OP-92: changed, by a link of either kind: common ones, one's own address and the company's name."""
    company = await shop.company()
    ann = await person(shop, "annabel@people.example", company, "owner")
    name = await shop.pool.fetchval(
        "UPDATE company SET name = 'Zimmermann' WHERE id = $1 RETURNING name", company.id
    )
    async with transaction(shop.pool) as tx:
        tokens = {kind: await mailed(tx, ann, kind) for kind in LinkKind}
    browser = Browser(shop)
    await browser.sign_in("annabel@people.example")
    await browser.get("/account")
    ways = [
        "/account/password",
        f"/reset/{tokens[LinkKind.RESET]}",
        f"/invitation/{tokens[LinkKind.INVITATION]}",
    ]
    for way in ways:
        for weak in ("password1234", "annabel@people.example", f"{name}2026"):
            refused = await browser.post(way, current=PASSWORD, password=weak)
            assert (refused.status_code, "easy to guess" in refused.text) == (422, True), (way, weak)
    assert (await browser.post(ways[0], current=PASSWORD, password=ANOTHER)).status_code == 303
