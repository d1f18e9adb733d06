"""Money in the console: one proposes, another one agrees, once; the balance before and after is shown."""

from __future__ import annotations

import csv
import io

from tests.pages.people import someone
from tests.shop import Shop
from voucherd import trail
from voucherd.ids import State
from voucherd.money import Money

AMOUNT = {"kind": "top-up", "amount": "250.00", "currency": "EUR", "reference": "bank 17"}


def eur(amount: str) -> Money:
    """So many euros."""
    return Money.parse(amount, "EUR")


async def test_a_top_up_moves_when_a_second_person_agrees(shop: Shop) -> None:
    """OP-93: not by the proposer, not twice, not in another state; with every step in the trail."""
    company = await shop.company(balance="100.00 EUR")
    ann, ben, support = [await someone(shop, role) for role in ("finance", "admin", "support")]
    form = await ann.get(f"/console/companies/{company.id}/payment")
    assert "100.00" in form.text
    wish = {**AMOUNT, "company": str(company.id)}
    assert (await support.post("/console/money", wish)).status_code == 403
    made = await ann.post("/console/money", wish)
    path = made.headers["location"]
    page = await ben.get(path)
    assert "100.00" in page.text
    assert "350.00" in page.text
    assert "1 payment waits for your approval" in (await ben.get("/console")).text
    again = await ben.post("/console/money", wish)
    assert (again.status_code, "waits for approval already" in again.text) == (422, True)
    own = await ann.post(f"{path}/approve")
    assert (own.status_code, "second person" in own.text) == (409, True)
    assert (await support.post(f"{path}/approve")).status_code == 403
    assert await shop.balance(company) == eur("100.00")
    assert "Approved: 250.00" in (await ben.post(f"{path}/approve", follow=True)).text
    assert await shop.balance(company) == eur("350.00")
    assert (await ben.post(f"{path}/approve")).status_code == 409
    later = (await ann.post("/console/money", wish)).headers["location"]
    booked = await ben.post(f"{later}/approve")
    assert (booked.status_code, "booked before" in booked.text) == (409, True)
    assert await shop.balance(company) == eur("350.00")
    assert await shop.balance(company, state=State.SANDBOX) == eur("100.00")
    async with shop.pool.acquire() as conn:
        deeds = (await trail.page(conn, company_id=company.id, action="money")).rows
    said = [(deed.action, deed.actor, deed.state) for deed in deeds]
    assert said[-2:] == [("money.approve", ben.email, State.LIVE), ("money.propose", ann.email, State.LIVE)]
    assert "bank 17" in (await support.get("/console/money")).text
    await shop.assert_books_balance()


async def test_who_is_alone_tops_up_at_once_and_corrects_nothing(shop: Shop) -> None:
    """OP-151: a top-up needs nobody where there is nobody; once a colleague is invited it waits for that one."""
    company = await shop.company(balance="100.00 EUR")
    ann = await someone(shop, "finance")
    wish = {**AMOUNT, "company": str(company.id)}
    assert "counts at once" in (await ann.get(f"/console/companies/{company.id}/payment")).text
    assert (
        "Topped up: 250.00\N{NO-BREAK SPACE}EUR" in (await ann.post("/console/money", wish, follow=True)).text
    )
    again = await ann.post("/console/money", wish)
    assert (again.status_code, "booked before" in again.text) == (422, True)
    down = await ann.post("/console/money", {**wish, "kind": "down", "reference": "wrong"})
    assert (await ann.post(f"{down.headers['location']}/approve")).status_code == 409
    await someone(shop, "admin")
    later = await ann.post("/console/money", {**wish, "reference": "bank 18"})
    assert later.headers["location"].startswith("/console/money/")
    assert await shop.balance(company) == eur("350.00")
    await shop.assert_books_balance()


async def test_what_is_wrong_with_a_payment_is_said_beside_its_field(shop: Shop) -> None:
    """OP-93: wrong fields, an overdraft, an unknown company, a rejection and a withdrawal move nothing."""
    company = await shop.company(balance="100.00 EUR")
    ann, ben = await someone(shop, "finance"), await someone(shop, "finance")
    wish = {**AMOUNT, "company": str(company.id)}
    for wrong, said in (
        ({"amount": "-5"}, "Must be an amount"),
        ({"amount": "0"}, "more than 0"),
        ({"amount": "1.234"}, "amount"),
        ({"currency": "XXQ"}, "currency code"),
        ({"kind": "gift"}, "Choose one"),
        ({"reference": ""}, "1 to 200"),
        ({"kind": "down", "amount": "100.01"}, "The balance is only 100.00"),
        ({"company": "999999"}, "Choose a company"),
    ):
        answer = await ann.post("/console/money", {**wish, **wrong})
        assert (answer.status_code, said in answer.text) == (422, True), wrong
    ann.look_at(State.SANDBOX)
    down = (await ann.post("/console/money", {**wish, "kind": "down", "amount": "40"})).headers["location"]
    assert (await ben.post(f"{down}/approve")).status_code == 303
    assert await shop.balance(company, state=State.SANDBOX) == eur("60.00")
    ann.look_at(State.LIVE)
    one = (await ann.post("/console/money", wish)).headers["location"]
    assert (await ben.post(f"{one}/withdraw")).status_code == 404
    assert "Rejected" in (await ben.post(f"{one}/reject", follow=True)).text
    two = (await ann.post("/console/money", wish)).headers["location"]
    assert "Withdrawn" in (await ann.post(f"{two}/withdraw", follow=True)).text
    assert (await ben.post(f"{two}/approve")).status_code == 409
    assert await shop.balance(company) == eur("100.00")
    await shop.assert_books_balance()


async def test_the_first_top_up_is_offered_in_the_usual_currency(shop: Shop) -> None:
    """OP-93: the company's own currency, or the one that most companies have; never the alphabet's first."""
    ann = await someone(shop, "finance")
    first = await shop.company(balance=None)
    chosen = '<option value="{}" selected>'
    new = "/console/companies/{}/payment"
    assert chosen.format("EUR") in (await ann.get(new.format(first.id))).text
    for _ in range(2):
        await shop.company(balance="10.00 USD")
    own = await shop.company(balance="10.00 CHF")
    assert chosen.format("USD") in (await ann.get(new.format(first.id))).text
    assert chosen.format("CHF") in (await ann.get(new.format(own.id))).text
    await shop.assert_books_balance()


async def test_payments_begin_at_their_list_and_are_found_and_exported(shop: Shop) -> None:
    """OP-93: the company is picked by name; company, status and order stay in the address and in the file."""
    ann, ben = await someone(shop, "finance"), await someone(shop, "finance")
    company, other = await shop.company(balance="100.00 EUR"), await shop.company(balance="100.00 EUR")
    assert f">{other.name}</option>" in (await ann.get("/console/money/-/new")).text
    assert (await ann.post("/console/money", {**AMOUNT, "company": company.name})).status_code == 303
    second = await ann.post(
        "/console/money", {**AMOUNT, "company": str(other.id), "amount": "9", "reference": "bank 9"}
    )
    assert (await ben.post(f"{second.headers['location']}/approve")).status_code == 303
    nobody = await ann.post("/console/money", {**AMOUNT, "company": "Company"})
    assert 'id="p-company">Choose a company' in nobody.text
    page = (await ann.get("/console/money?status=approved&sort=-amount")).text
    assert "bank 9" in page
    assert "bank 17" not in page
    file = await ann.get("/console/money/-/file?q=bank+17&format=csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [(row["company"], row["amount"], row["status"]) for row in rows] == [
        (company.name, "250.00", "open")
    ]
    statement = await ann.get(f"/console/companies/{other.id}/statement/file?currency=EUR&format=csv")
    told = [(row["kind"], row["amount"]) for row in csv.DictReader(io.StringIO(statement.text))]
    assert told == [("top-up", "9.00"), ("top-up", "100.00")]
    assert (await ann.get(f"/console/companies/{other.id}/statement/file?from=2020-13-01")).status_code == 400
    assert (await ann.get("/console/money?sort=nonsense&status=nonsense")).status_code == 200
    await shop.assert_books_balance()
