"""Setting a shop up: the link, the steps, the checklist, the settings, and where `/` leads."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.pages.people import HTML, Someone, someone
from tests.patience import HANG_S, until
from tests.shop import Shop, open_shop
from voucherd.actors import SYSTEM, Actor, ActorKind
from voucherd.db import Pool, transaction
from voucherd.limits.unknown_links import UNKNOWN_MAX
from voucherd.setup import deeds, links

TERMINAL = Actor(ActorKind.COMMAND, "root@host", 0)
PASSWORD = "correct horse battery staple"
FIRST = {"name": "Corner Shop", "country": "DE", "email": "ann@shop.example", "password": PASSWORD}
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f000301"
    "01009b0ec8ce0000000049454e44ae426082"
)


class Newcomer:
    """A browser that keeps its cookies, and sends forms as they were shown."""

    def __init__(self, shop: Shop) -> None:
        self.client = httpx.AsyncClient(
            transport=shop.client._transport, base_url="http://shop", headers=HTML, timeout=HANG_S
        )

    async def get(self, path: str) -> httpx.Response:
        """Open a page."""
        return await self.client.get(path)

    async def send(
        self, path: str, fields: dict[str, str], files: dict[str, tuple[str, bytes]] | None = None
    ) -> httpx.Response:
        """Fill in the form of a page and send it."""
        shown = (await self.get(path)).text
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', shown)
        csrf = "" if found is None else found[1]
        return await self.client.post(path, data={"csrf": csrf, **fields}, files=files)


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop that nobody has set up."""
    async with open_shop(pool, database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ann(shop: Shop) -> AsyncIterator[Newcomer]:
    """Somebody at a browser."""
    newcomer = Newcomer(shop)
    yield newcomer
    await newcomer.client.aclose()


async def link(shop: Shop, *, renew: bool = False) -> str:
    """The path of the set-up link."""
    async with transaction(shop.pool) as tx:
        token = await deeds.open_link(tx, SYSTEM, shop.program.services.root, renew=renew)
    return f"/set-up/{token}"


async def test_the_link_names_the_shop_and_lets_its_first_person_in(shop: Shop, ann: Newcomer) -> None:
    """OP-150: a name, a country, a logo and a password; then a second factor before anything else."""
    path = await link(shop)
    answer = await ann.send(path, FIRST, {"logo": ("logo.png", DOT)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/set-up/second-factor")
    assert (await ann.get("/console/set-up/codes")).headers["location"] == "/account/security"
    page = await ann.get("/console/set-up/second-factor")
    secret, word = (
        re.search(r"<code>([A-Z2-7]{32})</code>", page.text),
        re.search(r'name="enrolment" value="([^"]+)"', page.text),
    )
    assert secret is not None
    assert word is not None
    wrong = await ann.send("/console/set-up/second-factor", {"enrolment": word[1], "code": "12"})
    assert (wrong.status_code, "That code is not right" in wrong.text) == (422, True)
    logo = re.search(r'src="(/logo/[0-9a-f]{32}\.png)"', wrong.text)
    assert logo is not None
    assert (await shop.client.get(logo[1])).content == DOT
    assert "Corner Shop" in (await shop.client.get("/sign-in", headers=HTML)).text
    assert shop.program.services.settings.operator_country == "DE"


async def test_what_is_wrong_with_the_first_form_stands_beside_its_field_and_costs_nothing(
    shop: Shop, ann: Newcomer
) -> None:
    """OP-150: nothing is stored, and the link stays good."""
    path = await link(shop)
    await someone(shop, "owner", await shop.company())
    taken = await shop.pool.fetchval("SELECT email FROM app_user")
    for field, value, said in (
        ("name", " ", "A name of 1 to 60 characters."),
        ("country", "XX", "Choose a country."),
        ("email", "ann", "is not an e-mail address"),
        ("email", taken, "belongs to a company's person"),
        ("password", "short", "at least 12 characters"),
    ):
        answer = await ann.send(path, FIRST | {field: value})
        assert (answer.status_code, said.lower() in unescape(answer.text).lower()) == (422, True), field
        assert f'id="p-{field}"' in answer.text
    answer = await ann.send(path, FIRST, {"logo": ("logo.svg", b"<svg/>")})
    assert (answer.status_code, 'id="p-logo"' in answer.text) == (422, True)
    assert await links.is_empty(shop.pool)
    assert (await ann.send(path, FIRST)).status_code == 303


async def test_a_link_that_is_over_says_so_and_what_to_do(shop: Shop, ann: Newcomer) -> None:
    """OP-150: replaced, expired or used; a form that was open meanwhile changes nothing."""
    lost = await link(shop)
    good = await link(shop, renew=True)
    for way in (await ann.get(lost), await ann.send(lost, FIRST), await ann.get("/set-up/" + "x" * 43)):
        assert (way.status_code, "voucherd setup-link" in way.text) in ((410, True), (403, False))
    await shop.pool.execute("UPDATE setup_link SET ends_at = now()")
    assert (await ann.get(good)).status_code == 410

    good = await link(shop)
    assert (await ann.send(good, FIRST)).status_code == 303
    stranger = Newcomer(shop)
    for page in (await stranger.get(good), await stranger.get("/set-up/x")):
        assert (page.status_code, "The shop is set up" in page.text) == (410, True)
        assert "setup-link" not in page.text
    await stranger.client.aclose()


async def test_whoever_guesses_links_has_to_wait(shop: Shop, ann: Newcomer) -> None:
    """OP-150: guesses count like redemption links that lead nowhere, and then not even the right one is looked at."""
    path = await link(shop)
    for number in range(UNKNOWN_MAX):
        assert (await ann.get(f"/set-up/guess-{number}")).status_code == 410
    for tried in ("/set-up/one-more", path):
        assert (await ann.get(tried)).status_code == 429


async def test_the_first_page_leads_to_where_people_belong(shop: Shop, ann: Newcomer) -> None:
    """OP-154: an empty shop tells how it is set up, later strangers sign in, and people get home."""
    empty = await ann.get("/")
    assert (empty.status_code, "voucherd setup-link" in empty.text) == (200, True)
    admin, owner = await someone(shop, "admin"), await someone(shop, "owner", await shop.company())
    assert (await ann.get("/")).headers["location"] == "/sign-in"
    assert (await admin.get("/")).headers["location"] == "/console"
    assert (await owner.get("/")).headers["location"] == "/portal"


async def steps_taken(admin: Someone) -> None:
    """Every step from the currencies to the balance, each with a mistake first."""
    base = "/console/set-up"
    assert (await admin.post(f"{base}/currencies", {"way": "none"})).status_code == 422
    wrong = await admin.post(f"{base}/currencies", {"way": "own", "currency": "USD", "rate": "much"})
    assert (wrong.status_code, 'id="p-rate"' in wrong.text) == (422, True)
    own = {"way": "own", "currency": "USD", "rate": "0.92"}
    assert "1 USD is 0.92 EUR" in (await admin.post(f"{base}/currencies", own, follow=True)).text

    product = {"brand": "Nimbari", "name": "Nimbari 10", "product_type": "giftcard", "currency": "EUR"}
    product |= {"face": "10", "price": "9.50"}
    for field, value in (
        ("price", "x"),
        ("face", ""),
        ("name", ""),
        ("brand", "…"),
        ("product_type", "boat"),
    ):
        wrong = await admin.post(f"{base}/product", product | {field: value})
        assert (wrong.status_code, f'id="p-{field}"' in wrong.text) == (422, True), field
    assert "Nimbari 10 is for sale" in (await admin.post(f"{base}/product", product, follow=True)).text
    assert (await admin.post(f"{base}/product", product)).status_code == 422

    codes = {
        "slug": "nimbari-10",
        "supplier": "Own stock",
        "purchase": "9",
        "currency": "EUR",
        "codes": "A-1\nA-2",
    }
    for field, value in (("purchase", ""), ("codes", ""), ("codes", "A-1,x,yesterday"), ("slug", "nothing")):
        wrong = await admin.post(f"{base}/codes", codes | {field: value})
        assert (wrong.status_code, f'id="p-{field}"' in wrong.text) == (422, True), (field, value)
        assert "A-1" not in wrong.text
    assert "2 codes are on the shelf" in (await admin.post(f"{base}/codes", codes, follow=True)).text

    company = {"name": "Acme", "country": "NL", "email": "owner@acme.example"}
    for field, value in (("name", ""), ("country", "ZZ"), ("email", "owner"), ("vat_number", "NL1")):
        wrong = await admin.post(f"{base}/company", company | {field: value})
        assert (wrong.status_code, f'id="p-{field}"' in wrong.text) == (422, True), field
    made = await admin.post(f"{base}/company", company)
    assert (made.status_code, "vk_live_" in made.text, "/invitation/" in made.text) == (200, True, True)


async def test_every_step_refuses_mistakes_beside_their_fields_and_changes_nothing_then(shop: Shop) -> None:
    """OP-150: each step is one deed, or several in one transaction; a shop with money to spend comes of them."""
    admin = await someone(shop, "admin")
    await steps_taken(admin)
    assert await shop.pool.fetchval("SELECT count(*) FROM company") == 1
    number = await shop.pool.fetchval("SELECT id FROM company")
    payment = {"company": str(number), "amount": "100", "currency": "EUR", "reference": "first"}
    path = "/console/set-up/balance"
    for field, value in (("amount", "-1"), ("company", "999"), ("reference", ""), ("currency", "XXX")):
        wrong = await admin.post(path, payment | {field: value})
        assert (wrong.status_code, f'id="p-{field}"' in wrong.text) == (422, True), field
    assert "Acme can spend 100.00 EUR" in (await admin.post(path, payment, follow=True)).text
    assert (await admin.post(path, payment)).status_code == 422
    await someone(shop, "finance")
    proposed = await admin.post(path, payment | {"reference": "second"}, follow=True)
    assert "moves when a second person agrees" in proposed.text
    assert await shop.pool.fetchval("SELECT sum(balance_minor) FROM wallet WHERE state = 0") == 10_000
    await shop.assert_books_balance()


async def test_the_checklist_says_what_is_left_and_goes_when_all_is_done(shop: Shop) -> None:
    """OP-154: each item leads to where it is done; whoever may hides it, and shows it again."""
    admin, stock = await someone(shop, "admin"), await someone(shop, "stock")
    first = (await admin.get("/console")).text
    assert "0 of 10 done" in first
    assert "Your way to the first sale" not in (await stock.get("/console")).text
    for path in re.findall(r'<li[^>]*><span class="step-mark".*?<a href="([^"]+)"', first, re.DOTALL):
        assert (await admin.get(path)).status_code in (200, 303), path
    assert (await admin.get("/console/set-up")).headers["location"] == "/console/set-up/second-factor"
    await steps_taken(admin)
    assert "5 of 10 done" in (await admin.get("/console")).text

    assert (await admin.post("/console/checklist", {"shown": "perhaps"})).status_code == 400
    hidden = await admin.post("/console/checklist", {"shown": "no"}, follow=True)
    assert "Your way to the first sale" not in hidden.text
    assert "Show the checklist again" in (await admin.get("/console/settings")).text
    assert "5 of 10 done" in (await admin.post("/console/checklist", {"shown": "yes"}, follow=True)).text
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action LIKE 'checklist%' ORDER BY id")
    assert [row[0] for row in actions] == ["checklist.hide", "checklist.show"]


async def test_settings_change_while_it_runs_and_go_back_to_those_of_the_start(shop: Shop) -> None:
    """OP-152: written as people write them, in force at once here and within seconds in every other process."""
    admin = await someone(shop, "admin")
    page = await admin.get("/console/settings")
    shown = dict(re.findall(r'name="(\w+)" type="text" value="([^"]*)"', unescape(page.text)))
    assert (shown["confirmation_window_s"], shown["margin_min_bp"]) == ("24", "0")
    chosen = shown | {
        "operator_name": "Corner Shop",
        "operator_country": "BE",
        "operator_second_factor": "yes",
        "confirmation_window_s": "1.5",
        "margin_min_bp": "2.5",
        "fx_age_s_max": "0",
    }
    saved = await admin.post("/console/settings", chosen, follow=True)
    assert "Saved." in saved.text
    assert "Started with: 24." in saved.text
    now = shop.program.services.settings
    assert (now.operator_name, now.operator_country, now.margin_min_bp) == ("Corner Shop", "BE", 250)
    assert (now.confirmation_window_s, now.fx_age_s_max) == (5_400, 0)
    company = await shop.company()
    await shop.product("gift", stock=5)
    order = await shop.create(company, ("gift", 1))
    lasts = await shop.pool.fetchval(
        "SELECT expires_at - created_at FROM orders WHERE id = $1", shop.ids.order_id(order["trx"])
    )
    assert lasts.total_seconds() == 5_400

    for field, value, said in (
        ("margin_min_bp", "lots", "A number, such as 24."),
        ("margin_min_bp", "1e99", "A number, such as 24."),
        ("margin_min_bp", "101", "whole number between -10000 and 10000"),
        ("archive_months", "1", "whole number between 2 and 1200"),
        ("operator_country", "Belgium", "country of two letters"),
        ("fx_url", "http://127.0.0.1/x", "https://"),
    ):
        wrong = await admin.post("/console/settings", chosen | {"mail_from": "A <a@b.example>", field: value})
        assert (wrong.status_code, said in unescape(wrong.text)) == (422, True), field
        assert f'id="p-{field}"' in wrong.text
    assert shop.program.services.settings.mail_from == "voucherd <no-reply@localhost>"
    await admin.post("/console/settings", chosen | {"confirmation_window_s": "24"}, follow=True)
    assert await shop.pool.fetchval("SELECT count(*) FROM setting WHERE name = 'confirmation_window_s'") == 0
    await shop.assert_books_balance()


async def test_another_process_hears_of_a_setting_within_seconds(shop: Shop) -> None:
    """OP-152: nobody has to be restarted or told: the sign of life of each second brings the change along."""
    async with transaction(shop.pool) as tx:
        await deeds.choose(tx, TERMINAL, {"operator_name": "Corner Shop", "margin_min_bp": "7"})

    async def heard() -> bool:
        now = shop.program.services.settings
        return (now.operator_name, now.margin_min_bp) == ("Corner Shop", 7)

    await until(heard)


async def test_the_page_of_settings_shows_what_needs_a_restart_and_no_secret(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-152: the values of the start, without passwords."""
    started = {"metrics_token": "a-token-of-sixteen", "smtp_url": "smtps://u:pass-word@mail.example"}
    async with open_shop(pool, database_url, tmp_path, with_worker=False, **started) as shop:
        text = (await (await someone(shop, "admin")).get("/console/settings")).text
    assert "VOUCHERD_PUBLIC_URL" in text
    assert "VOUCHERD_MASTER_KEY_FILE" in text
    assert "smtps://u:***@mail.example" in text
    for secret in ("a-token-of-sixteen", "pass-word"):
        assert secret not in text


async def test_only_who_may_changes_settings(shop: Shop) -> None:
    """OP-152: the right is asked for at the deed, too: whoever lost it meanwhile changes nothing."""
    admin = await someone(shop, "admin")
    await someone(shop, "admin")
    await shop.pool.execute("UPDATE app_user SET role = 'support' WHERE id = $1", admin.user_id)
    assert (await admin.post("/console/settings", {"operator_name": "Mine"})).status_code == 403
    assert await shop.pool.fetchval("SELECT count(*) FROM setting") == 0
