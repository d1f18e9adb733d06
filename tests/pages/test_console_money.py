"""Money in the console: one proposes, another one agrees, once; the balance before and after is shown."""

from __future__ import annotations

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
    assert "Payments to decide about" in (await ben.get("/console")).text
    again = await ben.post("/console/money", wish)
    assert (again.status_code, "waits for approval already" in again.text) == (422, True)
    own = await ann.post(f"{path}/approve")
    assert (own.status_code, "second person" in own.text) == (409, True)
    assert (await support.post(f"{path}/approve")).status_code == 403
    assert await shop.balance(company) == eur("100.00")
    assert "Done" in (await ben.post(f"{path}/approve", follow=True)).text
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


async def test_what_is_wrong_with_a_payment_is_said_beside_its_field(shop: Shop) -> None:
    """OP-93: wrong fields, an overdraft, an unknown company, a rejection and a withdrawal move nothing."""
    company = await shop.company(balance="100.00 EUR")
    ann, ben = await someone(shop, "finance"), await someone(shop, "finance")
    wish = {**AMOUNT, "company": str(company.id)}
    for wrong, said in (
        ({"amount": "-5"}, "must be an amount"),
        ({"amount": "0"}, "more than 0"),
        ({"amount": "1.234"}, "amount"),
        ({"currency": "XXQ"}, "currency code"),
        ({"kind": "gift"}, "one of these"),
        ({"reference": ""}, "1 to 200"),
        ({"kind": "down", "amount": "100.01"}, "the wallet has only 100.00 EUR"),
        ({"company": "999999"}, "no such company"),
    ):
        answer = await ann.post("/console/money", {**wish, **wrong})
        assert (answer.status_code, said in answer.text) == (422, True), wrong
    await ann.look_at(State.SANDBOX)
    down = (await ann.post("/console/money", {**wish, "kind": "down", "amount": "40"})).headers["location"]
    assert (await ben.post(f"{down}/approve")).status_code == 303
    assert await shop.balance(company, state=State.SANDBOX) == eur("60.00")
    await ann.look_at(State.LIVE)
    one = (await ann.post("/console/money", wish)).headers["location"]
    assert (await ben.post(f"{one}/withdraw")).status_code == 404
    assert "rejected" in (await ben.post(f"{one}/reject", follow=True)).text
    two = (await ann.post("/console/money", wish)).headers["location"]
    assert "withdrawn" in (await ann.post(f"{two}/withdraw", follow=True)).text
    assert (await ben.post(f"{two}/approve")).status_code == 409
    assert await shop.balance(company) == eur("100.00")
    await shop.assert_books_balance()
