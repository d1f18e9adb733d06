"""The parts of an order over HTTP: its lines in pages, its codes as a file; and keys that may not see codes."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.shop import Company, Shop
from voucherd.clock import now
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT, Scope

CODE_FIELDS = ("voucherCode", "voucherSerial", "voucherUrl", "voucherDateExpired", "externalId", "token")
LINKS = ("redemptionLink",)


async def lines_of(
    shop: Shop, company: Company, trx: str, *, state: State = State.LIVE, **query: Any
) -> list[list[dict[str, Any]]]:
    """All pages of an order's lines."""
    pages: list[list[dict[str, Any]]] = []
    cursor: str | None = ""
    while cursor is not None:
        path = f"/api/1.03/order/{trx}/line"
        response = await shop.call(
            "GET", path, company, state=state, params=query | ({"cursor": cursor} if cursor else {})
        )
        assert response.status_code == 200, response.text
        body = response.json()
        assert set(body["metadata"]) == {"pageSize", "nextCursor"}
        pages.append(body["data"])
        cursor = body["metadata"]["nextCursor"]
        assert len(pages) < 1_000
    return pages


def all_lines(order: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of an order's items, one after another."""
    return [line for item in order["items"] for line in item["orderLines"]]


async def file_of(shop: Shop, company: Company, trx: str, **options: Any) -> list[dict[str, str]]:
    """The rows of an order's file of codes."""
    response = await shop.call("GET", f"/api/1.03/order/{trx}/codes.csv", company, **options)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert response.headers["content-disposition"] == f'attachment; filename="codes-{trx}.csv"'
    assert response.headers["cache-control"] == "no-store"
    assert response.text.startswith(
        "lineId,tag,productSlug,faceValueAmount,faceValueCurrency,voucherCode,voucherSerial,"
        "voucherDateExpired,redemptionLink,status\r\n"
    )
    return list(csv.DictReader(io.StringIO(response.text, newline=""), strict=True))


def as_row(line: dict[str, Any]) -> dict[str, str]:
    """What the file says of a finished line."""
    return {
        "lineId": str(line["id"]),
        "tag": line["tag"],
        "productSlug": line["productSlug"],
        "faceValueAmount": f"{line['productFacevalueAmount']:.2f}",
        "faceValueCurrency": line["productFacevalueCurrency"],
        "voucherCode": line["voucherCode"],
        "voucherSerial": line["voucherSerial"],
        "voucherDateExpired": line["voucherDateExpired"] or "",
        "redemptionLink": line["redemptionLink"],
        "status": "finished",
    }


async def partly_delivered(shop: Shop, company: Company) -> str:
    """An order of two items: one from two lots, one of them with an expiry; one partly, the rest still to come."""
    await shop.product("gift-10", stock=70, expires=now() + timedelta(days=90))
    await shop.stock("gift-10", 100)
    await shop.product("later", async_delivery=True, stock=130)
    order = await shop.create(company, ("gift-10", 150), ("later", 260))
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "pending"
    return str(order["trx"])


async def test_the_lines_of_an_order_come_in_pages(quick_shop: Shop) -> None:
    """OP-14: put together they are Find's lines of version 1.03, whatever the size of a page."""
    shop = quick_shop
    company = await shop.company(balance="10000.00 EUR")
    trx = await partly_delivered(shop, company)
    whole = all_lines(await shop.find(company, trx))
    assert len(whole) == 410
    walks: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [100, 100, 100, 100, 10]),
        ({"limit": 7}, [7] * 58 + [4]),
        ({"limit": 205}, [205, 205]),
        ({"limit": 1_000}, [410]),
    ]
    for query, sizes in walks:
        pages = await lines_of(shop, company, trx, **query)
        assert [len(page) for page in pages] == sizes
        assert [line for page in pages for line in page] == whole
    small = await shop.create(company, ("later", 1))
    assert await lines_of(shop, company, small["trx"]) == [all_lines(small)]
    beyond = await shop.call("GET", f"/api/1.03/order/{trx}/line?cursor=OTk5OTk", company)
    assert beyond.json() == {"data": [], "metadata": {"pageSize": 100, "nextCursor": None}}
    for bad, text in {
        "limit=0": "limit: must be between 1 and 1000",
        "limit=1001": "limit: must be between 1 and 1000",
        "limit=ten": "limit: must be between 1 and 1000",
        "cursor=%00": "cursor: must have no control characters",
        "cursor=LTE": "cursor: is not one of ours",
    }.items():
        await shop.assert_refused(shop.call("GET", f"/api/1.03/order/{trx}/line?{bad}", company), 400, text)


async def test_the_codes_of_an_order_come_as_a_file_once_noted(quick_shop: Shop) -> None:
    """OP-56: finished lines only; `downloaded` turns true with the first code that leaves, and changes nothing else."""
    shop = quick_shop
    company = await shop.company(balance="10000.00 EUR")
    trx = await partly_delivered(shop, company)
    path = f"/api/1.03/order/{trx}/codes.csv"
    created = await shop.create(company, ("later", 1))
    before = await shop.find(company, trx)
    assert await file_of(shop, company, created["trx"]) == []
    assert (await shop.client.head(path, headers=company.bearer())).status_code == 200
    assert not (await shop.find(company, created["trx"]))["downloaded"], "there was no code in it"
    assert not (await shop.find(company, trx))["downloaded"], "HEAD hands out nothing"

    rows = await file_of(shop, company, trx)

    after = await shop.find(company, trx)
    assert after == before | {"downloaded": True}
    finished = [line for line in all_lines(before) if line["status"] == "finished"]
    assert len(finished) == 280
    assert rows == [as_row(line) for line in finished]
    assert len({row["voucherDateExpired"] for row in rows}) == 2
    await shop.stock("later", 200)
    await shop.worker.run_once("deliver")
    assert len(await file_of(shop, company, trx)) == 410
    assert await shop.events(trx) == ["order.created", "order.pending", "order.finished"]
    await shop.assert_books_balance()


async def test_codes_are_in_the_file_letter_for_letter(quiet_shop: Shop) -> None:
    """OP-56: quotes, commas, formulas and all; a code that was changed would be worth nothing."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    odd = [('=1+1,"a"', "@x"), ("-ü ✓;,'", ""), ("+31 6", '""')]
    await shop.stock_codes("gift-10", odd)
    order = await shop.create(company, ("gift-10", 3))
    await shop.confirm(company, order["trx"])
    rows = await file_of(shop, company, order["trx"])
    assert [(row["voucherCode"], row["voucherSerial"]) for row in rows] == odd
    raw = (await shop.call("GET", f"/api/1.03/order/{order['trx']}/codes.csv", company)).text
    assert '"=1+1,""a"""' in raw


async def test_ten_thousand_codes_are_written_a_hundred_at_a_time(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-14, OP-56: no part of the file, and no read of the vault, holds more than a piece of the order."""
    shop = quiet_shop
    company = await shop.company(balance="200000.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 10_000), state=State.SANDBOX)
    await shop.confirm(company, order["trx"], state=State.SANDBOX, outcome="finished", version="1.00")
    reads: list[int] = []
    read = shop.order_service.reader.codes_of

    async def watched(ranges: Any) -> Any:
        reads.append(sum(stop - start for _, start, stop in ranges))
        return await read(ranges)

    monkeypatch.setattr(shop.order_service.reader, "codes_of", watched)
    rows = await file_of(shop, company, order["trx"], state=State.SANDBOX)
    assert len({row["voucherCode"] for row in rows}) == len(rows) == 10_000
    assert (len(reads), max(reads)) == (100, 100)
    pages = await lines_of(shop, company, order["trx"], state=State.SANDBOX, limit=1_000)
    assert [len(page) for page in pages] == [1_000] * 10
    assert [line["voucherCode"] for page in pages for line in page] == [row["voucherCode"] for row in rows]
    await shop.assert_books_balance()


async def test_another_company_and_the_other_state_see_no_order_at_all(quiet_shop: Shop) -> None:
    """OP-02: not yours, of the other state, deleted or unknown: one answer. OP-59: and no code without the scope."""
    shop = quiet_shop
    company, stranger = await shop.company(), await shop.company()
    blind = await shop.company(scopes=SCOPES_DEFAULT - {Scope.CODES_READ})
    unread = await shop.company(scopes=SCOPES_DEFAULT - {Scope.ORDERS_READ})
    await shop.product("gift-10", stock=1)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    await shop.confirm(company, trx)
    gone = (await shop.create(company, ("gift-10", 1), state=State.SANDBOX))["trx"]
    await shop.cancel(company, gone, state=State.SANDBOX)
    for part in ("line", "codes.csv"):
        for who, state, wanted in (
            (stranger, State.LIVE, trx),
            (company, State.SANDBOX, trx),
            (company, State.SANDBOX, gone),
            (company, State.LIVE, "TRX" + "0" * 26),
            (company, State.LIVE, "confirm"),
        ):
            path = f"/api/1.03/order/{wanted}/{part}"
            if wanted == "confirm":
                assert (await shop.call("GET", path, who)).status_code == 405
                continue
            await shop.assert_refused(shop.call("GET", path, who, state=state), 404, "order not found")
        await shop.assert_refused(shop.call("GET", f"/api/1.03/order/{trx}/{part}", blind), 403, "forbidden")
    assert (await shop.call("GET", f"/api/1.03/order/{trx}/line", unread)).status_code == 403
    assert not (await shop.find(company, trx))["downloaded"]


def withheld(line: dict[str, Any]) -> dict[str, Any]:
    """An extended line as a key without codes:read sees it."""
    return line | dict.fromkeys((*CODE_FIELDS, *LINKS))


async def test_a_key_without_the_scope_sees_orders_without_their_codes(quick_shop: Shop) -> None:
    """OP-59: Confirm, Resolve, Cancel, Find and Find all tell everything but the codes, and what leads to them."""
    shop = quick_shop
    company = await shop.company(balance="10000.00 EUR")
    blind = Company(company.id, company.name, await shop.keys(company, SCOPES_DEFAULT - {Scope.CODES_READ}))
    await shop.product("gift-10", stock=500, expires=datetime(2099, 1, 1, tzinfo=UTC))
    await shop.product("later", async_delivery=True, stock=1)
    for amount in (2, 150):
        order = await shop.create(blind, ("gift-10", amount))
        trx = order["trx"]
        confirmed = await shop.confirm(blind, trx)
        seen = await shop.find(company, trx)
        assert all(line["voucherCode"] for line in all_lines(seen))
        found = await shop.find(blind, trx)
        assert all_lines(found) == [withheld(line) for line in all_lines(seen)] == all_lines(confirmed)
        assert {line["status"] for line in all_lines(found)} == {"finished"}
        short = await shop.find(blind, trx, version="1.00")
        assert all(set(line) == {"tag", "status"} for line in all_lines(short))
        assert short["items"][0]["linesCompleted"] == amount
    resolved = await shop.resolve(blind, (await shop.create(blind, ("gift-10", 1)))["trx"], version="Next")
    assert [set(line) for line in all_lines(resolved)] == [{"tag", "status"}]
    assert resolved["orderStatus"] == "finished"
    partly = (await shop.create(blind, ("later", 2)))["trx"]
    await shop.confirm(blind, partly)
    cancelled = (await shop.cancel(blind, partly)).json()
    assert [line["status"] for line in all_lines(cancelled)] == ["finished", "cancelled"]
    assert all(line[name] is None for line in all_lines(cancelled) for name in (*CODE_FIELDS, *LINKS))
    for version in ("1.00", "1.03"):
        answer = await shop.call("GET", f"/api/{version}/order", blind)
        listed = answer.json()["data"]
        assert len(listed) == 4
        assert not any(line.get("voucherCode") for one in listed for line in all_lines(one))
        assert "/r/" not in answer.text
    await shop.assert_books_balance()
