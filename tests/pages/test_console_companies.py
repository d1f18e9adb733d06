"""The console's companies: found, added, changed, and every change in the audit trail; and the overview."""

from __future__ import annotations

import re

from tests.pages.people import someone
from tests.shop import Shop
from voucherd import trail
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.heartbeat import Heartbeat
from voucherd.ids import State
from voucherd.keys import store as key_store
from voucherd.pages.console.health import HealthCheck, Mark, duration, worst


async def test_the_operator_adds_and_changes_a_company(shop: Shop) -> None:
    """OP-91: each form is the command's own function, its refusal stands beside the field, its deed in the trail."""
    admin = await someone(shop, "admin")
    bad = await admin.post("/console/companies", {"name": "Acme", "country": "Holland", "expose_costs": "no"})
    assert bad.status_code == 422
    assert "two capital letters" in bad.text
    acme = {"name": "Acme <b>", "country": "nl", "active": "yes"}
    unasked = await admin.post("/console/companies", acme)
    assert unasked.status_code == 422
    assert "Choose whether it sees what you pay" in unasked.text
    made = await admin.post("/console/companies", acme | {"expose_costs": "yes"})
    assert made.status_code == 303
    home = made.headers["location"]
    page = await admin.get(home)
    assert "Acme &lt;b&gt;" in page.text
    assert "not verified" in page.text
    assert (await admin.post("/console/companies", acme | {"expose_costs": "no"})).status_code == 422
    for form, fields in (
        ("standing", {"active": "yes", "verified": "yes"}),
        ("limits", {"order": "500", "day": "2000.50"}),
        ("prices", {"list": ""}),
        ("policy", {"second_factor": "yes", "approve_from": "99.99"}),
    ):
        assert (await admin.post(f"{home}/{form}", fields)).status_code == 303, form
    wrong = await admin.post(f"{home}/limits", {"order": "-5", "day": "1"})
    assert wrong.status_code == 422
    assert 'value="-5"' in wrong.text
    assert (await admin.post(f"{home}/prices", {"list": "gold"})).status_code == 422
    async with shop.pool.acquire() as conn:
        company = await company_store.find_company(conn, "Acme <b>")
        policy = await company_store.policy(conn, company.id)
        deeds = (await trail.page(conn, company_id=company.id)).rows
    assert (company.verified, company.active, company.expose_costs) == (True, True, False)
    assert (company.spend_order_eur_minor, company.spend_day_eur_minor) == (50_000, 200_050)
    assert policy == Policy(True, 9_999)
    assert [deed.action for deed in deeds] == [
        "company.people",
        "company.limit",
        "company.set",
        "wallet.top-up",
        "company.add",
    ]
    assert {deed.actor for deed in deeds} == {admin.email}
    assert deeds[0].address
    found = await admin.get("/console/companies?q=aCME")
    assert home in found.text
    assert home not in (await admin.get("/console/companies?q=nobody")).text


async def test_the_operator_reads_a_company_and_revokes_a_key(shop: Shop) -> None:
    """OP-91: balances of both states, people and keys; support reads and changes nothing; another's key stays."""
    ours, other = await shop.company(balance="1234.50 EUR"), await shop.company()
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    owner = await someone(shop, "owner", ours)
    home = f"/console/companies/{ours.id}"
    page = (await support.get(home)).text
    assert page.count("1\u202f234.50") == 2
    assert owner.email in page
    assert "Revoke" not in page
    assert (await support.post(f"{home}/standing", {})).status_code == 403
    async with shop.pool.acquire() as conn:
        key = (await key_store.list_keys(conn, ours.id))[0]
        foreign = (await key_store.list_keys(conn, other.id))[0]
    assert (await admin.post(f"{home}/keys/{foreign.id}/revoke")).status_code == 404
    assert "opens nothing" in (await admin.post(f"{home}/keys/{key.id}/revoke", follow=True)).text
    answer = await shop.client.get("/api/1.03/order", headers=ours.bearer(key.state))
    assert answer.status_code in (401, 403)
    statement = await support.get(f"{home}/statement?currency=EUR&state=sandbox&kind=top-up&from=2020-01-01")
    assert "1\u202f234.50" in statement.text
    assert "No movements" in (await support.get(f"{home}/statement?kind=refund")).text
    assert (await support.get(f"{home}/statement?from=2020-13-01")).status_code == 422
    await shop.assert_books_balance()


async def test_the_overview_says_in_words_what_needs_somebody(shop: Shop) -> None:
    """OP-91: a paid line that waits is a figure, its company a row; without companies:view no balance is told."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("late", async_delivery=True)
    order = await shop.create(company, ("late", 3))
    await shop.confirm(company, order["trx"])
    await Heartbeat(shop.pool, works=True).beat()
    await shop.pool.execute("INSERT INTO wallet_alert SELECT id, 1000000 FROM wallet WHERE state = 0")
    admin, stock = await someone(shop, "admin"), await someone(shop, "stock")
    page = (await admin.get("/console")).text
    assert "What waits, by company" in page
    assert company.name in page
    assert re.search("Look: [^.]*Low balances", page)
    assert "Low balances" in page
    assert "at work" in page
    assert f"/console/companies/{company.id}" not in (await stock.get("/console")).text
    await admin.look_at(State.SANDBOX)
    assert "What waits, by company" not in (await admin.get("/console")).text


def test_the_verdict_is_the_worst_mark() -> None:
    """OP-91: good only where everything is; spans are told in a unit of which there are two."""
    good, look, act = (HealthCheck("x", "1", "", mark) for mark in Mark)
    assert [worst(each) for each in ([good], [good, look], [look, act, good])] == list(Mark)
    assert [duration(s) for s in (0, 119, 120, 7_199, 7_200, 200_000)] == [
        "0 s", "119 s", "2 min", "119 min", "2 h", "2 days",
    ]  # fmt: skip
