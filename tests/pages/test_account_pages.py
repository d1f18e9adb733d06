"""The buyer's pages about money, keys and webhooks."""

from __future__ import annotations

import re
from html import unescape

from tests.pages.people import Someone, someone
from tests.shop import Shop
from voucherd.ids import State


async def secret_of(answer: str) -> str:
    """The secret that a page shows this once."""
    found = re.search('data-copy="([^"]+)"', answer)
    assert found is not None
    return unescape(found[1])


async def test_a_statement_tells_every_movement_and_can_be_kept_as_a_file(shop: Shop) -> None:
    """OP-60, OP-91: the same movements as in the API, a filter, a chart, and a file that equals the API's."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=2)
    order = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, order["trx"])
    owner = await someone(shop, "owner", company)

    page = await owner.get("/portal/balances")
    assert "90.50" in page.text
    statement = await owner.get("/portal/balances/eur")
    assert order["trx"] in statement.text
    assert statement.text.count('class="bar"') == 30
    assert ": 90.50</title>" in statement.text  # Today's column.
    refunds = await owner.get("/portal/balances/EUR?kind=refund&from=2026-01-01")
    assert "No movement matches" in refunds.text
    wrong = await owner.get("/portal/balances/EUR?from=2026-02-30")
    assert "A day looks like" in wrong.text
    assert (await owner.get("/portal/balances/EUR?after=x")).status_code == 400
    assert (await owner.get("/portal/balances/USD")).status_code == 404

    file = await owner.get("/portal/balances/EUR/statement.csv")
    same = await shop.client.get("/api/1.03/account/EUR/entry?format=csv", headers=company.bearer())
    assert file.text == same.text
    assert "attachment" in file.headers["content-disposition"]
    owner.look_at(State.SANDBOX)
    assert order["trx"] not in (await owner.get("/portal/balances/EUR")).text
    await shop.assert_books_balance()


async def test_a_key_is_made_shown_once_replaced_and_revoked(shop: Shop) -> None:
    """OP-29, OP-91: it works at once, only its fingerprint stays, and each deed is in the trail."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)

    async def status(key: str) -> int:
        answer = await shop.client.get("/api/1.03/account", headers={"authorization": f"Bearer {key}"})
        return answer.status_code

    wish = {"description": "Web shop", "scope": ["wallet:read"], "order_max": "250", "expires": "2999-01-01"}
    made = await owner.post("/portal/keys", wish)
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    key = await secret_of(made.text)
    assert await status(key) == 200
    listed = (await owner.get("/portal/keys")).text
    assert key not in listed
    assert "Web shop" in listed
    (name,) = re.findall(r"/portal/keys/(key_[0-9A-Z]+)", listed)[:1]
    assert "250.00" in (await owner.get(f"/portal/keys/{name}")).text
    fresh = await secret_of((await owner.post(f"/portal/keys/{name}/rotate", {"overlap": "0"})).text)
    assert await status(fresh) == 200
    names = set(re.findall(r"/portal/keys/(key_[0-9A-Z]+)", (await owner.get("/portal/keys")).text))
    (newest,) = names - set(re.findall(r"/portal/keys/(key_[0-9A-Z]+)", listed))
    again = await owner.post(f"/portal/keys/{newest}/revoke", follow=True)
    assert "The key is revoked" in again.text
    deeds = await shop.pool.fetch("SELECT action, actor FROM trail WHERE action LIKE 'key.%' ORDER BY id")
    assert [tuple(row) for row in deeds] == [
        (f"key.{deed}", owner.email) for deed in ("add", "rotate", "revoke")
    ]

    for wrong, said in (
        ({"scope": []}, "at least one scope"),
        ({"allow_ips": "here"}, "Addresses look like"),
        ({"order_max": "1.005"}, "An amount looks like"),
        ({"expires": "2020-01-01"}, "must lie in the future"),
        ({"scope": ["everything"]}, "scopes are"),
    ):
        refused = await owner.post("/portal/keys", {**wish, **wrong})
        assert (refused.status_code, said in refused.text) == (422, True), said
    assert (await owner.post(f"/portal/keys/{name}/rotate", {"overlap": "9y"})).status_code == 400


async def webhook_of(owner: Someone) -> str:
    """The page of the one endpoint."""
    listed = (await owner.get("/portal/webhooks")).text
    (path,) = {found[0] for found in re.finditer(r"/portal/webhooks/wh_[0-9A-Z]+", listed)}
    return path


async def test_an_endpoint_is_made_tried_changed_and_removed(shop: Shop) -> None:
    """OP-54, OP-91, OP-137: its secret is shown once, its log shows what is sent, and an event can be sent again."""
    company = await shop.company()
    owner = await someone(shop, "owner", company)
    refused = await owner.post("/portal/webhooks", {"url": "https://127.0.0.1/x"})
    assert (refused.status_code, "The address" in refused.text) == (422, True)

    url = "https://hooks.example.com/in"
    made = await owner.post("/portal/webhooks", {"url": url, "type": ["order.finished", "order.cancelled"]})
    assert (await secret_of(made.text)).startswith("whsec_")
    path = await webhook_of(owner)
    tried = await owner.post(f"{path}/test", follow=True)
    assert "A test message is sent" in tried.text
    assert "Not tried yet" in tried.text
    (event,) = set(re.findall(r"/replay/(evt_[0-9A-Z]+)", tried.text))
    again = await owner.post(f"{path}/replay/{event}", follow=True)
    assert "The event is sent again" in again.text
    caught_up = await owner.post(f"{path}/recover", {"since": "24h"}, follow=True)
    assert "Events sent again: 0" in caught_up.text
    fresh = await owner.post(f"{path}/rotate")
    assert (await secret_of(fresh.text)).startswith("whsec_")
    off = await owner.post(path, {"url": url, "description": "Main"}, follow=True)
    assert "The endpoint is saved" in off.text
    assert (await owner.post(f"{path}/test", follow=True)).text.count("Only an active endpoint") == 1
    wrong = await owner.post(path, {"url": "ftp://x", "type": ["nothing"]})
    assert wrong.status_code == 422
    unknown = await owner.post(path, {"url": url, "format": "modern"})
    assert (unknown.status_code, "There is no such format" in unknown.text) == (422, True)
    await owner.post(path, {"url": url, "format": "classic"}, follow=True)
    assert '<option value="classic" selected>' in (await owner.get(f"{path}/edit")).text
    await owner.post(path, {"url": url}, follow=True)
    assert '<option value="classic" selected>' in (await owner.get(f"{path}/edit")).text
    gone = await owner.post(f"{path}/remove", follow=True)
    assert "No endpoints yet" in gone.text
    assert (await owner.get(path)).status_code == 404
    assert (await owner.get("/portal/webhooks/wh_nonsense")).status_code == 404


async def test_reasons_about_webhooks_are_told_in_the_readers_language(shop: Shop) -> None:
    """OP-171: why an address is refused and why an endpoint was turned off; no English is left in them."""
    owner = await someone(shop, "owner", await shop.company())
    await shop.pool.execute("UPDATE app_user SET language = 'nl' WHERE id = $1", owner.user_id)
    for url, said in (
        ("http://hooks.shop.com/", "Het adres moet met https:// beginnen."),
        ("https://127.0.0.1/", "Het adres moet naar een host op het openbare internet leiden."),
        ("https://hooks.shop.com:99/", "Het adres moet een van de poorten 443, 4443, 8443, 9443 gebruiken."),
        ("https://hooks.shop.com/#a", "Het adres mag geen # bevatten."),
    ):
        refused = await owner.post("/portal/webhooks", {"url": url})
        assert (refused.status_code, said in refused.text) == (422, True), url
    await owner.post("/portal/webhooks", {"url": "https://hooks.shop.com/"})
    path = await webhook_of(owner)
    for reason, said in (("gone", "“410 Gone”"), ("failing", "vijf dagen")):
        await shop.pool.execute("UPDATE webhook SET enabled = false, disabled_reason = $1", reason)
        for page in (path, "/portal/webhooks"):
            told = (await owner.get(page)).text
            assert said in told, (reason, page)
            assert f">{reason}<" not in told, (reason, page)


async def test_the_guide_has_a_sandbox_key_of_the_reader_in_its_examples(shop: Shop) -> None:
    """OP-91: a click makes one that works, shows it in the first command, and ends the one before."""
    company = await shop.company()
    developer, viewer = await someone(shop, "developer", company), await someone(shop, "viewer", company)
    assert "/portal/guide-key" in (await developer.get("/docs")).text
    assert "/portal/guide-key" not in (await viewer.get("/docs")).text
    keys = []
    for _ in range(2):
        page = await developer.post("/portal/guide-key")
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
        found = re.search("KEY=(vk_test_[0-9A-Za-z]{38})\n?", page.text)
        assert found is not None
        keys.append(found[1])
    answers = [
        await shop.client.get("/api/1.03/product", headers={"authorization": f"Bearer {key}"}) for key in keys
    ]
    assert [answer.status_code for answer in answers] == [401, 200]
