"""Find order and Find all orders."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.shop import Company, Shop
from voucherd.ids import State
from voucherd.orders import find, reading
from voucherd.orders.find import page_of_orders


async def page(shop: Shop, company: Company, query: str = "", **options: Any) -> dict[str, Any]:
    """One page of the company's orders."""
    version = options.pop("version", "1.03")
    response = await shop.call("GET", f"/api/{version}/order{query}", company, **options)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def trxs(shop: Shop, company: Company, query: str = "", **options: Any) -> list[str]:
    """The orders of one page."""
    return [order["trx"] for order in (await page(shop, company, query, **options))["data"]]


async def test_an_order_is_found_in_all_versions_with_the_line_of_the_version(quiet_shop: Shop) -> None:
    """OP-02, OP-05: short lines in 1.00 and Next, extended in 1.03; the rest is the same."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    trx = (await shop.create(company, ("gift-10", 2)))["trx"]
    for status in ("created", "finished"):
        found = {v: await shop.find(company, trx, version=v) for v in ("1.00", "1.03", "Next")}
        assert {order["orderStatus"] for order in found.values()} == {status}
        assert {"dateExpires" in order for order in found.values()} == {status == "created"}
        assert found["1.00"] == found["Next"]
        short = {"tag", "status"} | ({"voucherCode", "voucherSerial"} if status == "finished" else set())
        assert set(found["1.00"]["items"][0]["orderLines"][0]) == short
        assert len(found["1.03"]["items"][0]["orderLines"][0]) == 44
        for order in found.values():
            order["items"][0].pop("orderLines")
            for name in ("faceValueMin", "faceValueMax"):
                order["items"][0]["product"].pop(name, None)
        assert found["1.00"] == found["1.03"]
        if status == "created":
            await shop.confirm(company, trx)
    await shop.assert_books_balance()


async def test_all_orders_come_newest_first_in_pages_with_totals(quiet_shop: Shop) -> None:
    """OP-03, OP-136: data and metadata; 50 a page unless told; the same orders in every version."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=100)
    made = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(7)]
    newest = made[::-1]

    first = await page(shop, company, "?limit=3")
    assert [order["trx"] for order in first["data"]] == newest[:3]
    cursor = first["metadata"].pop("nextCursor")
    assert first["metadata"] == {"page": 1, "pageSize": 3, "totalItems": 7, "totalPages": 3}
    assert cursor
    last = await page(shop, company, "?limit=3&page=3")
    assert [order["trx"] for order in last["data"]] == newest[6:]
    assert last["metadata"] == {
        "page": 3,
        "pageSize": 3,
        "totalItems": 7,
        "totalPages": 3,
        "nextCursor": None,
    }
    assert last == await page(shop, company, "?limit=3&offset=6")
    assert last["pagination"] == {"total": 7, "limit": 3, "offset": 6, "page": 3, "pages": 3}
    assert await trxs(shop, company, "?limit=2&offset=3&sortOrder=asc") == made[3:5]
    beyond = await page(shop, company, "?page=9")
    assert (beyond["data"], beyond["metadata"]["totalItems"]) == ([], 7)
    for version in ("1.00", "Next", "1.03"):
        whole = await page(shop, company, version=version)
        assert [order["trx"] for order in whole["data"]] == newest
        assert whole["metadata"]["pageSize"] == 50
        assert whole["data"][0] == await shop.find(company, newest[0], version=version)
    assert await trxs(shop, company, "?sortOrder=asc") == made
    assert await trxs(shop, company, "?sortOrder=desc") == newest
    await shop.assert_books_balance()


async def test_a_cursor_walks_hundreds_of_orders_of_one_moment_without_losing_any(quiet_shop: Shop) -> None:
    """OP-03: equal timestamps, both directions, orders made on the way; without totals."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    await shop.product("gift-10", stock=10)
    template = (await shop.create(company, ("gift-10", 1)))["trx"]
    await shop.create(other, ("gift-10", 1))
    # Copies of one order, 300 of them at the same microsecond.
    await shop.pool.execute(
        """
        WITH copies AS (
            INSERT INTO orders (id, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor,
                                lines, created_at, expires_at, updated_at)
            SELECT id + 2 * n, company_id, type, status, payment_currency, payment_fx_e8, price_minor, vat_minor, lines,
                   created_at, expires_at, updated_at
            FROM orders, generate_series(100000, 100299) n WHERE id = $1
            RETURNING id
        ), told AS (
            INSERT INTO event (at, company_id, state, type, order_id, seq)
            SELECT now(), $2, 0, 'order.created', id, 1 FROM copies
        )
        INSERT INTO order_item SELECT c.id, i.item_no, i.version_id, i.amount, i.first_line, i.face_minor, i.face_fx_e8,
            i.price_currency, i.price_fx_e8, i.price_minor, i.vat_minor, i.turnover_minor, i.pay_price_minor,
            i.pay_vat_minor, i.pay_turnover_minor, i.offers
        FROM copies c, order_item i WHERE i.order_id = $1
        """,
        shop.ids.order_id(template),
        company.id,
    )
    for direction in ("desc", "asc"):
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            got = await page(
                shop, company, f"?limit=70&sortOrder={direction}&cursor={cursor}", version="1.00"
            )
            seen += [order["trx"] for order in got["data"]]
            assert set(got["metadata"]) == {"pageSize", "nextCursor"}
            cursor = got["metadata"]["nextCursor"]
            if len(seen) == 70 and direction == "desc":
                await shop.create(company, ("gift-10", 1))  # Newer than the whole walk: not in it.
        assert len(seen) == len(set(seen)) == (301 if direction == "desc" else 302)
        ids = [shop.ids.order_id(trx) or 0 for trx in seen]
        times = {r["id"]: r["created_at"] for r in await shop.pool.fetch("SELECT id, created_at FROM orders")}
        assert ids == sorted(ids, key=lambda i: (times[i], i), reverse=direction == "desc")
    # A page can be gone on from with its cursor, too.
    first = await page(shop, company, "?limit=200")
    second = await page(shop, company, f"?limit=200&cursor={first['metadata']['nextCursor']}")
    assert len(first["data"]) + len(second["data"]) == 302
    await shop.assert_books_balance()


async def test_each_filter_lets_through_what_it_says(quiet_shop: Shop) -> None:
    """OP-03: alone and together; deleted orders and those of others and of the sandbox never appear."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    await shop.fx("USD", 90_000_000)
    await shop.top_up(company, "100.00 USD")
    for slug in ("gift-10", "gift-20"):
        await shop.product(slug, stock=20)
    await shop.product("later", async_delivery=True)
    strange = 'ref {"a": 1} & ö=%'
    a = (await shop.create(company, ("gift-10", 1), reference=strange))["trx"]
    b = (await shop.create(company, ("gift-20", 1), reference=strange, currency="USD"))["trx"]
    c = (await shop.create(company, ("gift-10", 1), ("gift-20", 1), reference="other"))["trx"]
    d = (await shop.create(company, ("later", 1)))["trx"]
    e = (await shop.create(company, ("later", 1)))["trx"]
    deleted = (await shop.create(company, ("gift-10", 1), reference=strange))["trx"]
    foreign = (await shop.create(other, ("gift-10", 1), reference=strange))["trx"]
    sandbox = (await shop.create(company, ("gift-10", 1), reference=strange, state=State.SANDBOX))["trx"]
    await shop.cancel(company, deleted)
    await shop.confirm(company, b)
    await shop.confirm(company, d)
    await shop.confirm(company, e)
    await shop.cancel(company, e)
    await shop.pool.execute("UPDATE orders SET type = 1 WHERE id = $1", shop.ids.order_id(c))
    for at, trx in enumerate((a, b, c, d, e), start=1):
        moment = f"2026-01-0{at} 12:00:00+00"
        await shop.pool.execute(
            f"UPDATE orders SET created_at = '{moment}' WHERE id = $1",  # noqa: S608 - A test's own words.
            shop.ids.order_id(trx),
        )
    cases = {
        "": [e, d, c, b, a],
        f"?trx={a}": [a],
        f"?trx={foreign}": [],
        f"?trx={sandbox}": [],
        f"?trx={deleted}": [],
        "?trx=nonsense": [],
        "?trx=": [],
        "?orderStatus=created": [c, a],
        "?orderStatus=pending": [d],
        "?orderStatus=finished&orderStatus=cancelled": [e, b],
        "?orderStatus=CREATED": [c, a],
        "?type=api": [e, d, b, a],
        "?type=portal": [c],
        f"?reference={quote(strange)}": [b, a],
        "?reference=other": [c],
        "?reference=REF": [],
        "?productSlug=gift-10": [c, a],
        "?productSlug=gift-20": [c, b],
        "?productSlug=none": [],
        "?paymentCurrency=usd": [b],
        "?paymentCurrency=EUR": [e, d, c, a],
        "?dateFrom=2026-01-03": [e, d, c],
        "?dateFrom=2026-01-03T12:00:00Z": [e, d, c],
        "?dateFrom=2026-01-03T12:00:00.001Z": [e, d],
        "?dateTo=2026-01-03T12:00:00Z": [c, b, a],
        "?dateTo=2026-01-03T14:00:00%2B02:00": [c, b, a],
        "?dateFrom=2026-01-02&dateTo=2026-01-04": [c, b],
        "?dateFrom=2026-01-05&dateTo=2026-01-01": [],
        "?productSlug=gift-20&paymentCurrency=EUR&orderStatus=created": [c],
        f"?reference={quote(strange)}&sortOrder=asc": [a, b],
        "?orderStatus=created&limit=1&page=2": [a],
    }
    for query, expected in cases.items():
        assert await trxs(shop, company, query) == expected, query
    assert (await page(shop, company, "?orderStatus=created&limit=1"))["metadata"]["totalItems"] == 2
    assert await trxs(shop, company, state=State.SANDBOX) == [sandbox]
    assert await trxs(shop, other) == [foreign]
    await shop.assert_books_balance()


async def test_a_page_holds_large_orders_too(quiet_shop: Shop) -> None:
    """OP-03: one that is streamed between two that are not."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=700)
    small = (await shop.create(company, ("gift-10", 1)))["trx"]
    large = (await shop.create(company, ("gift-10", 600)))["trx"]
    await shop.top_up(company, "9000.00 EUR")
    assert len((await shop.confirm(company, large))["items"][0]["orderLines"]) == 600
    await shop.create(company, ("gift-10", 2))

    for version in ("1.00", "1.03"):
        got = await page(shop, company, version=version)
        assert [len(order["items"][0]["orderLines"]) for order in got["data"]] == [2, 600, 1]
        assert got["data"][1] == await shop.find(company, large, version=version)
        assert got["data"][2]["trx"] == small
    await shop.assert_books_balance()


async def test_an_order_that_is_deleted_while_the_page_is_read_does_not_appear_as_deleted(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-03, OP-53: no reader ever sees the word, and a walk goes on behind it."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    made = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(3)]

    async def interrupted(*arguments: Any, **options: Any) -> Any:
        found = await page_of_orders(*arguments, **options)
        await shop.cancel(company, made[2])
        return found

    monkeypatch.setattr("voucherd.orders.service.page_of_orders", interrupted)
    got = await page(shop, company, "?limit=2")
    monkeypatch.undo()

    assert {order["orderStatus"] for order in got["data"]} == {"created"}
    assert got["metadata"]["nextCursor"] is not None
    rest = await trxs(shop, company, f"?limit=2&cursor={got['metadata']['nextCursor']}")
    assert rest == [made[0]]
    await shop.assert_books_balance()


async def test_an_order_that_moves_while_it_is_read_is_shown_before_or_after_and_not_in_between(
    quick_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract 3: a pending order has pending lines, a finished one has none."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("later", async_delivery=True, stock=1)
    trx = (await shop.create(company, ("later", 2)))["trx"]
    assert (await shop.confirm(company, trx))["orderStatus"] == "pending"
    real = reading.with_outcomes
    moves = 0

    async def interrupted(conn: Any, orders: Any, mark: str = "") -> Any:
        nonlocal moves
        moves += 1
        if moves == 1:
            await shop.stock("later", 1)
            await shop.worker.run_once("deliver")
        return await real(conn, orders, mark)

    monkeypatch.setattr(reading, "with_outcomes", interrupted)
    found = await shop.find(company, trx)
    monkeypatch.undo()

    statuses = {line["status"] for line in found["items"][0]["orderLines"]}
    assert (found["orderStatus"] == "finished") == (statuses == {"finished"})
    assert (found["orderStatus"] == "finished") == (found["items"][0]["linesCompleted"] == 2)
    await shop.assert_books_balance()


async def test_a_total_says_where_there_may_be_more(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-03, OP-118: totals are counted among so many orders, whole numbers as ever; `moreItems` says the rest."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=10)
    made = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(6)]
    await shop.confirm(company, made[0])

    for most, unfiltered, finished in ((6, (6, None), (1, None)), (4, (4, True), (0, True))):
        monkeypatch.setattr(find, "SCAN_MAX", most)
        for query, expected in (("?limit=2", unfiltered), ("?limit=2&orderStatus=finished", finished)):
            metadata = (await page(shop, company, query))["metadata"]
            assert (metadata["totalItems"], metadata.get("moreItems")) == expected, (most, query)
    await shop.assert_books_balance()


async def test_pending_orders_are_found_however_many_came_after_them(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-118: what waits is few and known as such: totals are whole, and the oldest is on the first page."""
    shop = quiet_shop
    company, other = await shop.company(balance="100.00 EUR"), await shop.company(balance="100.00 EUR")
    await shop.product("slow", async_delivery=True)
    await shop.product("gift-10", stock=10)
    waiting = []
    for buyer in (company, other, company):
        trx = (await shop.create(buyer, ("slow", 1)))["trx"]
        await shop.confirm(buyer, trx)
        waiting += [trx] if buyer is company else []
    sandbox = (await shop.create(company, ("slow", 1), state=State.SANDBOX))["trx"]
    for _ in range(5):
        await shop.create(company, ("gift-10", 1))
    monkeypatch.setattr(find, "SCAN_MAX", 3)

    found = await page(shop, company, "?orderStatus=pending&limit=1")
    assert [order["trx"] for order in found["data"]] == [waiting[1]]
    assert (found["metadata"]["totalItems"], "moreItems" in found["metadata"]) == (2, False)
    assert await trxs(shop, company, "?orderStatus=pending&cursor=") == waiting[::-1]
    assert await trxs(shop, company, "?orderStatus=pending&sortOrder=asc") == waiting
    assert await trxs(shop, company, "?orderStatus=pending&productSlug=gift-10") == []
    assert sandbox not in waiting
    monkeypatch.setattr(find, "SORTED_MAX", 1)
    assert await trxs(shop, company, "?orderStatus=pending&sortOrder=asc") == waiting, (
        "walked, where they are many"
    )
    await shop.assert_books_balance()
