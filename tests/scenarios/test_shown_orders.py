"""What an order shows of itself is true: its dates, its stock, its offers and its status."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tests.shop import Company, Shop
from voucherd import clock
from voucherd.actors import SYSTEM
from voucherd.db import transaction
from voucherd.recipients import vouchers


async def listed(shop: Shop, company: Company, path: str, **query: str) -> list[dict[str, Any]]:
    """One page of a list."""
    response = await shop.call("GET", f"/api/1.03/{path}", company, params=query)
    assert response.status_code == 200, response.text
    return list(response.json()["data"])


async def test_a_list_up_to_a_moment_that_was_shown_holds_what_was_shown_with_it(quiet_shop: Shop) -> None:
    """OP-03, OP-08: moments are shown in milliseconds, so that is what a filter compares."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    # Whatever the machine's clock says, it is not the first microsecond of its millisecond.
    await shop.pool.execute(
        "UPDATE orders SET created_at = date_trunc('milliseconds', created_at) + interval '567 microseconds'"
    )
    shown = (await shop.find(company, trx))["dateCreated"]
    entry = (await listed(shop, company, "account/EUR/entry"))[0]["dateCreated"]
    event = (await listed(shop, company, "event"))[-1]["timestamp"]

    assert [one["trx"] for one in await listed(shop, company, "order", dateFrom=shown, dateTo=shown)] == [trx]
    assert await listed(shop, company, "order", dateTo=shown.replace("Z", "000Z")) != []
    assert await listed(shop, company, "order", dateTo=shown.replace("Z", "566Z")) == []
    entries = await listed(shop, company, "account/EUR/entry", dateFrom=entry, dateTo=entry)
    assert entry in [one["dateCreated"] for one in entries]
    events = await listed(shop, company, "event", dateFrom=event, dateTo=event)
    assert event in [one["timestamp"] for one in events]


def dates(order: dict[str, Any]) -> list[str]:
    """When each line of the first item changed last."""
    return [line["dateUpdated"] for line in order["items"][0]["orderLines"]]


async def test_a_line_changes_with_itself_and_not_with_its_order(quick_shop: Shop) -> None:
    """Contract 2, OP-142: delivered, opened and returned lines have dates of their own; others keep theirs."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("gift-10", async_delivery=True, stock=1)
    trx = (await shop.create(company, ("gift-10", 3)))["trx"]
    await shop.confirm(company, trx)
    first = await shop.find(company, trx)
    created = first["dateCreated"]
    assert dates(first)[0] > created
    assert dates(first)[1:] == [created] * 2, "lines that wait did not change"

    await shop.stock("gift-10", 1)
    await shop.worker.run_once("deliver")
    second = await shop.find(company, trx)
    assert dates(second)[0] == dates(first)[0]
    assert dates(second)[1] > dates(first)[0]
    assert dates(second)[2] == created

    await shop.client.get(
        f"/r/{second['items'][0]['orderLines'][0]['token']}", headers={"user-agent": "Mozilla/5.0"}
    )
    opened = await shop.find(company, trx)
    line = opened["items"][0]["orderLines"][0]
    assert line["dateUpdated"] == line["dateLinkViewed"] > dates(second)[0]
    assert dates(opened)[1:] == dates(second)[1:]

    order_id = shop.ids.order_id(trx)
    assert order_id is not None
    voucher = await vouchers.look(shop.pool, order_id, 1)
    async with transaction(shop.pool) as tx:
        returned_at = await vouchers.take_back(tx, SYSTEM, trx, voucher)
    returned = await shop.find(company, trx)
    assert isinstance(returned_at, datetime)
    assert dates(returned) == [line["dateUpdated"], clock.iso(returned_at), created]

    await shop.cancel(company, trx)
    ended = await shop.find(company, trx)
    assert dates(ended)[:2] == dates(returned)[:2]
    assert dates(ended)[2] > dates(returned)[1]
    await shop.assert_books_balance()


def stock(order: dict[str, Any]) -> tuple[bool, bool, int]:
    """What an order says of the stock of its product: on the item, on its line, and how many."""
    (item,) = order["items"]
    told = json.loads(item["orderLines"][0]["product"])
    return item["product"]["isStocked"], told["isStocked"], told["stockCount"]


async def test_a_created_order_says_what_is_in_stock_when_it_is_asked_for(quiet_shop: Shop) -> None:
    """Contract 2, OP-142: sold to others meanwhile, stocked again, and as it was once it is no longer created."""
    shop = quiet_shop
    company = await shop.company(balance="500.00 EUR")
    await shop.product("gift-10", stock=2)
    made = await shop.create(company, ("gift-10", 1))
    other = await shop.create(company, ("gift-10", 2))
    assert stock(made) == (True, True, 2)

    await shop.confirm(company, other["trx"])
    assert stock(await shop.find(company, made["trx"])) == (False, False, 0)
    (found,) = await listed(shop, company, "order", trx=made["trx"])
    assert stock(found) == (False, False, 0)
    assert stock(await shop.find(company, other["trx"])) == (True, True, 2)

    await shop.stock("gift-10", 5)
    assert stock(await shop.find(company, made["trx"])) == (True, True, 5)
    await shop.confirm(company, made["trx"])
    assert stock(await shop.find(company, made["trx"])) == (True, True, 2)
    await shop.assert_books_balance()
