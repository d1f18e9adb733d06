"""Everybody's orders in the operator's console: found, looked at, and cancelled with the refund told before."""

from __future__ import annotations

import re

import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.ids import State
from voucherd.orders import register


async def test_an_order_is_found_looked_at_and_cancelled(shop: Shop) -> None:
    """OP-45, OP-94, OP-162: a timeline and never a code; the refund is told first, and the trail says who did it."""
    clerk = await someone(shop, "support")
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    codes = await shop.stock("gift", 2)
    company = await shop.company(balance="100.00 EUR")
    trx = (await shop.create(company, ("gift", 5), reference="PO <7>"))["trx"]
    await shop.confirm(company, trx)
    page = (await clerk.get(f"/console/orders/{trx}")).text
    for said in (
        "PO &lt;7&gt;",
        "Order created",
        "Paid",
        "47.50",
        company.name,
        "Delivered",
        "2 codes, 2 of 5 so far",
        "in the answer to Confirm",
        "Cancel remaining codes",
    ):
        assert said in page, said
    assert not any(code in page or serial in page for code, serial in codes)
    ask = (await clerk.get(f"/console/orders/{trx}/cancel")).text
    assert "28.50" in ask
    assert "3 codes" in ask
    assert str(await shop.balance(company)) == "52.50 EUR"
    finance = await someone(shop, "finance")
    assert "/cancel" not in (await finance.get(f"/console/orders/{trx}")).text
    assert (await finance.post(f"/console/orders/{trx}/cancel")).status_code == 403
    done = (await clerk.post(f"/console/orders/{trx}/cancel", follow=True)).text
    assert "28.50 EUR went back" in done
    assert str(await shop.balance(company)) == "81.00 EUR"
    again = (await clerk.post(f"/console/orders/{trx}/cancel", follow=True)).text
    assert "can’t be cancelled any more" in again
    assert (await clerk.get(f"/console/orders/{trx}/cancel")).status_code == 303
    row = await shop.pool.fetchrow(
        "SELECT actor, action, subject, company_id, state FROM trail WHERE action <> 'wallet.top-up'"
    )
    assert row is not None
    assert tuple(row) == (clerk.email, "order.cancel", f"order {trx}", company.id, 0)
    created = (await shop.create(company, ("gift", 1)))["trx"]
    assert "nothing was charged" in (await clerk.get(f"/console/orders/{created}/cancel")).text
    assert "withdrawn" in (await clerk.post(f"/console/orders/{created}/cancel", follow=True)).text
    await shop.assert_books_balance()


async def test_orders_are_found_by_company_status_reference_period_and_state(shop: Shop) -> None:
    """OP-53: across companies, deleted ones included, page by page; live and sandbox never mix."""
    clerk = await someone(shop, "support")
    await shop.product("gift", price="1.00 EUR", stock=200)
    ours, other = await shop.company(), await shop.company()
    trxs = [(await shop.create(ours, ("gift", 1), reference=f"ref {at}"))["trx"] for at in range(52)]
    theirs = (await shop.create(other, ("gift", 1), reference="ref 3"))["trx"]
    sandbox = (await shop.create(other, ("gift", 1), state=State.SANDBOX))["trx"]
    await shop.confirm(ours, trxs[0])
    await shop.cancel(ours, trxs[1])
    await shop.age(trxs[2], "40 days")

    async def found(query: str = "") -> list[str]:
        page = (await clerk.get(f"/console/orders?{query}")).text
        return re.findall('<th scope="row"><a href="(?:/sandbox)?/console/orders/([^"/?]+)"', page)

    newest = await found()
    assert newest[0] == theirs
    assert len(newest) == 50
    assert await found(f"before={newest[-1]}") == [trxs[2], trxs[1], trxs[0]]
    own = await found(f"company={ours.name}")
    assert own[0] == trxs[51]
    rest = await found(f"company={ours.name}&before={own[-1]}")
    assert set(own + rest) == set(trxs)
    assert await found(f"company={other.name}") == [theirs]
    assert await found("status=finished") == [trxs[0]]
    assert await found(f"company={ours.name}&status=deleted") == [trxs[1]]
    assert set(await found("q=ref+3")) == {theirs, trxs[3]}
    assert await found(f"q=ref+3&company={ours.name}") == [trxs[3]]
    day = (await shop.pool.fetchval("SELECT (now() - interval '40 days')::date")).isoformat()
    assert await found(f"from={day}&to={day}&company={ours.name}") == [trxs[2]]
    assert trxs[2] in await found(f"to={day}")
    assert await found("from=2019-01-01&to=2019-01-02") == []
    oldest = await found("sort=created")
    assert oldest == (await found(f"before={newest[-1]}"))[::-1] + newest[::-1][:47]
    assert (await found(f"sort=created&before={oldest[-1]}"))[-1] == theirs
    assert await found(f"sort=created&company={ours.name}&status=finished") == [trxs[0]]
    assert await found(f"sort=created&from={day}&to={day}") == [trxs[2]]
    assert await found("sort=created&q=ref+3") == [trxs[3], theirs]
    assert "There is no company" in (await clerk.get("/console/orders?company=Nobody")).text
    assert (await clerk.get("/console/orders?from=someday")).status_code == 422
    assert "There is no order" in (await clerk.get("/console/orders?q=TRXnonsense")).text
    assert (await clerk.get(f"/console/orders?q={theirs}")).headers["location"] == f"/console/orders/{theirs}"
    clerk.look_at(State.SANDBOX)
    assert await found() == [sandbox]


async def test_a_page_of_rare_orders_goes_on_where_it_stopped_looking(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-91: a page looks at so many orders at most, and the next one goes on behind them."""
    clerk = await someone(shop, "support")
    await shop.product("gift", price="1.00 EUR", stock=200)
    company = await shop.company()
    first = (await shop.create(company, ("gift", 1)))["trx"]
    await shop.confirm(company, first)
    for _ in range(6):
        await shop.create(company, ("gift", 1))
    monkeypatch.setattr(register, "SCAN_MAX", 4)
    page = (await clerk.get("/console/orders?status=finished")).text
    assert "None so far" in page
    onward = page.rpartition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert first in (await clerk.get(onward)).text
