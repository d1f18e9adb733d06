"""The console's companies: found, added, changed, and every change in the audit trail."""

from __future__ import annotations

from tests.pages.people import someone
from tests.shop import Shop
from voucherd import trail
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.keys import store as key_store


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
    assert "Not verified" in page.text
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
    assert f'href="{home}/statement?currency=EUR"' in page
    assert f'href="/sandbox{home}/statement?currency=EUR"' in page
    assert owner.email in page
    assert "Revoke" not in page
    assert (await support.post(f"{home}/standing", {})).status_code == 403
    async with shop.pool.acquire() as conn:
        key = (await key_store.list_keys(conn, ours.id))[0]
        foreign = (await key_store.list_keys(conn, other.id))[0]
    assert (await admin.post(f"{home}/keys/{foreign.id}/revoke")).status_code == 404
    assert "is revoked" in (await admin.post(f"{home}/keys/{key.id}/revoke", follow=True)).text
    answer = await shop.client.get("/api/1.03/order", headers=ours.bearer(key.state))
    assert answer.status_code in (401, 403)
    statement = await support.get(f"/sandbox{home}/statement?currency=EUR&kind=top-up&from=2020-01-01")
    assert "1\u202f234.50" in statement.text
    assert "No movements" in (await support.get(f"{home}/statement?kind=refund")).text
    assert (await support.get(f"{home}/statement?from=2020-13-01")).status_code == 422
    await shop.assert_books_balance()
