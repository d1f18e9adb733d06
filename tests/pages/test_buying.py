"""The buyer's way: catalogue, cart, price, order, codes, files, cancelling; and what stands in the way."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import re
from typing import Any

import httpx
import pytest
from openpyxl import load_workbook

from tests.domain.test_logos import png
from tests.pages.people import Someone, someone
from tests.patience import until_true
from tests.shop import Shop
from voucherd.catalogue.logos import set_logo
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.orders import find
from voucherd.pages.buyer import order_list
from voucherd.pages.buyer import orders as order_pages
from voucherd.pages.buyer.codes import CARDS_MAX
from voucherd.vault.model import Via


def trx_of(answer: httpx.Response) -> str:
    """The order that a form led to."""
    assert answer.status_code == 303, answer.text
    found = re.fullmatch("(?:/sandbox)?/portal/orders/([^/]+)", answer.headers["location"])
    assert found is not None, answer.headers["location"]
    return found[1]


def text_of(answer: httpx.Response) -> str:
    """What the page says, without its markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


async def ordered(buyer: Someone, *items: tuple[str, int], **more: str) -> str:
    """An order of these products, not confirmed yet."""
    for slug, amount in items:
        answer = await buyer.post("/portal/cart/add", {"slug": slug, "amount": amount, **more})
        assert answer.status_code == 303, text_of(answer)
    return trx_of(await buyer.post("/portal/cart/order", {"reference": "PO 1"}))


async def until_followed(person: Someone) -> None:
    """Wait until the person follows an order."""
    await until_true(lambda: order_pages._open[person.user_id])


async def test_a_buyer_finds_prices_orders_and_gets_the_codes(shop: Shop) -> None:
    """OP-91, OP-56: from the catalogue to codes on the screen and in three kinds of files, with the API's prices."""
    company = await shop.company(balance="100.00 EUR")
    await shop.fx("USD", 50_000_000)
    codes = [("=CODE<1>", "S1"), ("CODE-2", "S2")]
    await shop.product("play-10", name="Play €10", category="games", vat_category="single_purpose")
    await shop.stock_codes("play-10", codes)
    await shop.product(
        "gift", name="Gift", face=None, face_range="5.00-50.00 EUR", price=None, fee="0.95+0.10"
    )
    buyer = await someone(shop, "buyer", company)

    page = text_of(await buyer.get("/portal/catalogue", params={"q": "plä", "category": "games"}))
    assert "1 product for “plä”" in page
    assert "Play €10 Face value 10.00 EUR 11.50 EUR In stock" in page
    assert "Nothing found" in text_of(
        await buyer.get("/portal/catalogue?q=nothing-like-it&type=topup&sort=dear")
    )
    async with transaction(shop.pool) as tx:
        logo = await set_logo(tx, "testbrand", png(300, 200))
    for path in ("/portal/catalogue", "/portal/catalogue/play-10"):
        assert f'<img src="/logo/{logo}"' in (await buyer.get(path)).text
    product = text_of(await buyer.get("/portal/catalogue/play-10"))
    assert "Price 9.50 EUR VAT 21% 2.00 EUR VAT of 21% on the whole price" in product

    for fields in ({"amount": "0"}, {"amount": "10001"}, {"amount": "x"}):
        refused = await buyer.post("/portal/cart/add", {"slug": "play-10", **fields})
        assert (refused.status_code, "Between 1 and" in text_of(refused)) == (422, True)
    assert (
        await buyer.post("/portal/cart/add", {"slug": "gift", "amount": "1", "face": "51"})
    ).status_code == 422
    assert (await buyer.post("/portal/cart/add", {"slug": "none", "amount": "1"})).status_code == 404
    await buyer.post("/portal/cart/add", {"slug": "gift", "amount": "1", "face": "20.00"})
    cart = await buyer.post("/portal/cart/add", {"slug": "play-10", "amount": "2"}, follow=True)
    assert "2 × Play €10 is in your cart." in text_of(cart)
    names = re.findall(r'name="remove" value="([^"]+)"', cart.text)
    changed = await buyer.post("/portal/cart/change", {"remove": names[0], "currency": "USD"}, follow=True)
    assert "Exchange rate 1 EUR ≈ 2.0000 USD VAT 21% 8.00 USD Total 46.00 USD" in text_of(changed)
    assert "does not cover" in text_of(changed)
    foreign = await buyer.post("/portal/cart/change", {"currency": "AFN"}, follow=True)
    assert "There is no exchange rate for this currency now" in text_of(foreign)
    changed = await buyer.post(
        "/portal/cart/change", {"currency": "EUR", f"amount-{names[1]}": "2"}, follow=True
    )
    assert "2 codes 19.00 EUR VAT 21% 4.00 EUR Total 23.00 EUR Your balance 100.00 EUR" in text_of(changed)

    trx = trx_of(await buyer.post("/portal/cart/order", {"reference": "PO 1"}))
    order = await shop.find(company, trx)
    assert (order["orderStatus"], order["type"], order["reference"]) == ("created", "portal", "PO 1")
    assert order["priceInclVat"] == 23.0
    assert "Your cart is empty" in text_of(await buyer.get("/portal/cart"))
    done = await buyer.post(f"/portal/orders/{trx}/confirm", follow=True)
    assert "Paid and delivered" in text_of(done)
    assert "CODE" not in done.text
    again = await buyer.post(f"/portal/orders/{trx}/confirm", follow=True)
    assert "can't be done with this order any more" in text_of(again)

    shown = text_of(await buyer.post(f"/portal/orders/{trx}/codes", follow=True))
    assert "=CODE<1>" in shown
    assert "CODE-2" in shown
    assert (await shop.find(company, trx))["downloaded"] is False
    files = {
        kind: await buyer.post(f"/portal/orders/{trx}/download", {"format": kind})
        for kind in ("csv", "xlsx", "pdf")
    }
    for kind, file in files.items():
        assert file.headers["content-disposition"] == f'attachment; filename="codes-{trx}.{kind}"'
    theirs = await shop.call("GET", f"/api/1.03/order/{trx}/codes.csv", company)
    assert files["csv"].text == theirs.text
    rows = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert [(row["voucherCode"], row["voucherSerial"]) for row in rows] == codes
    sheet = load_workbook(io.BytesIO(files["xlsx"].content)).active
    assert sheet is not None
    assert [row[3] for row in sheet.iter_rows(min_row=2, values_only=True)] == [code for code, _ in codes]
    assert files["pdf"].content.startswith(b"%PDF-")
    assert (await shop.find(company, trx))["downloaded"] is True
    assert (await buyer.post(f"/portal/orders/{trx}/download", {"format": "exe"})).status_code == 400
    seen = await shop.pool.fetch(
        "SELECT via, lines FROM reveal WHERE actor_kind = 1 AND actor_id = $1 ORDER BY id", buyer.user_id
    )
    assert [tuple(row) for row in seen] == [(Via.PORTAL, 2), *[(Via.FILE, 2)] * 3]
    deeds = await shop.pool.fetch(
        "SELECT action, subject FROM trail WHERE actor_kind = 1 AND actor_id = $1", buyer.user_id
    )
    assert {tuple(row) for row in deeds} == {("order.confirm", f"order {trx}")}

    page = text_of(await buyer.get(f"/portal/orders/{trx}"))
    assert "PO 1" in page
    assert re.search(rf"Downloaded 2 codes [^·]+ · {buyer.email}", page), page
    assert "API key" in page
    for query in (f"q={trx}", "q=PO+1&status=finished&type=portal", "from=2020-01-01"):
        assert "2 × Play €10" in text_of(await buyer.get(f"/portal/orders?{query}")), query
    assert "Nothing found" in text_of(await buyer.get("/portal/orders?to=2020-01-01"))
    for query in ("status=odd", "from=tomorrow", "type=x"):
        assert (await buyer.get(f"/portal/orders?{query}")).status_code == 400
    assert "EUR 77.00" in text_of(await buyer.get("/portal"))
    await shop.assert_books_balance()


async def test_codes_of_a_large_order_come_in_pages_and_not_all_on_paper(shop: Shop) -> None:
    """OP-91: some codes on a screen, no PDF beyond its bound, and no code on paper that is not itself."""
    company = await shop.company(balance="9000.00 EUR")
    await shop.product("play-10", name="Play €10", stock=CARDS_MAX + 1)
    await shop.product("odd", name="Odd")
    await shop.stock_codes("odd", [("KÖD-東京", "1")])
    buyer = await someone(shop, "buyer", company)
    trx = await ordered(buyer, ("play-10", CARDS_MAX + 1))
    await buyer.post(f"/portal/orders/{trx}/confirm")
    for start, shown in (("", "Lines 1 to 25"), ("25", "Lines 26 to 50"), ("9999", "Lines 1 to 25")):
        page = await buyer.post(f"/portal/orders/{trx}/codes", {"from": start}, follow=True)
        assert shown in text_of(page)
        assert page.text.count("data-copy") == 25
    refused = await buyer.post(f"/portal/orders/{trx}/download", {"format": "pdf"}, follow=True)
    assert f"A PDF holds up to {CARDS_MAX} codes" in text_of(refused)
    file = await buyer.post(f"/portal/orders/{trx}/download", {"format": "csv"})
    assert len(file.text.splitlines()) == CARDS_MAX + 2
    odd = await ordered(buyer, ("odd", 1))
    await buyer.post(f"/portal/orders/{odd}/confirm")
    refused = await buyer.post(f"/portal/orders/{odd}/download", {"format": "pdf"}, follow=True)
    assert "can't be printed as they are" in text_of(refused)
    await shop.assert_books_balance()


async def test_what_stands_in_the_way_is_said_and_changes_nothing(shop: Shop) -> None:
    """OP-91: too little money, nothing on the shelf, a spending limit, a price that is no longer kept."""
    company = await shop.company(balance="10.00 EUR")
    await shop.product("play-10", name="Play €10", stock=5)
    buyer = await someone(shop, "buyer", company)
    trx = await ordered(buyer, ("play-10", 2))
    before = await shop.snapshot()
    assert "does not cover this order. Nothing was charged." in text_of(
        await buyer.post(f"/portal/orders/{trx}/confirm", follow=True)
    )
    await shop.pool.execute("UPDATE company SET spend_order_eur_minor = 100 WHERE id = $1", company.id)
    await shop.top_up(company, "90.00 EUR")
    assert "above what your company may spend" in text_of(
        await buyer.post(f"/portal/orders/{trx}/confirm", follow=True)
    )
    assert {**await shop.snapshot(), "wallet": [], "entry": []} == {**before, "wallet": [], "entry": []}
    await shop.age(trx, "2 days")
    assert "is over" in text_of(await buyer.post(f"/portal/orders/{trx}/confirm", follow=True))
    assert "Expired" in text_of(await buyer.get(f"/portal/orders/{trx}"))
    back = await buyer.post(f"/portal/orders/{trx}/reopen", follow=True)
    assert "2 codes" in text_of(back)
    await buyer.post("/portal/cart/change", {"amount-1-0": "6"}, follow=True)
    stuck = await buyer.post("/portal/cart/order")
    assert (stuck.status_code, "Not available just now: Play €10." in text_of(stuck)) == (422, True)
    await buyer.post("/portal/cart/change", {"amount-1-0": "0"})
    assert (await buyer.post("/portal/cart/order")).headers["location"] == "/portal/cart"
    viewer = await someone(shop, "viewer", company)
    assert "can look, but not buy" in text_of(await viewer.get("/portal/catalogue/play-10"))
    assert (
        "Confirm and pay"
        not in (await viewer.get(f"/portal/orders/{await ordered(buyer, ('play-10', 1))}")).text
    )
    await shop.assert_books_balance()


async def test_an_order_in_progress_is_followed_and_cancelled(shop: Shop) -> None:
    """OP-91: progress comes by itself, the refund is shown before it is made, and what came stays."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("later", name="Later", stock=1, async_delivery=True)
    buyer = await someone(shop, "buyer", company)
    trx = await ordered(buyer, ("later", 3))
    page = await buyer.post(f"/portal/orders/{trx}/confirm", follow=True)
    assert "1 of 3 codes delivered." in text_of(page)
    assert '<meta http-equiv="refresh"' in page.text

    async def followed() -> str:
        answer = await buyer.get(f"/portal/orders/{trx}/live")
        assert answer.headers["content-type"] == "text/event-stream"
        return answer.text

    stream = asyncio.create_task(followed())
    await until_followed(buyer)
    await shop.stock("later", 1)

    def one_more_came(order: dict[str, Any]) -> bool:
        return [line["status"] for line in order["items"][0]["orderLines"]].count("finished") == 2

    await shop.until(company, trx, one_more_came)
    asked = text_of(await buyer.get(f"/portal/orders/{trx}/cancel"))
    assert "Delivered codes, which you keep 2 of 3" in asked
    done = text_of(await buyer.post(f"/portal/orders/{trx}/cancel", follow=True))
    assert "is back in your balance" in done
    assert "Partly delivered" in done
    told = await stream
    assert told.startswith('data: {"finished":1,"lines":3,"bar":1}\n\n')
    assert told.endswith("event: reload\ndata: {}\n\n")
    assert (await buyer.get(f"/portal/orders/{trx}/cancel")).status_code == 303
    withdrawn = await ordered(buyer, ("later", 1))
    gone = await buyer.post(f"/portal/orders/{withdrawn}/cancel", follow=True)
    assert "withdrawn" in text_of(gone)
    await shop.assert_books_balance()


async def test_progress_ends_with_the_session(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-90: who signs out hears nothing more, and nobody follows without bound."""
    company = await shop.company()
    await shop.product("later", name="Later", async_delivery=True)
    buyer, other = await someone(shop, "buyer", company), await someone(shop, "viewer", company)
    trx = await ordered(buyer, ("later", 1))
    await buyer.post(f"/portal/orders/{trx}/confirm")
    monkeypatch.setattr(order_pages, "BEAT_S", 0.1)
    until_moved, beats = shop.order_service.watch.until_moved, 0

    async def counted(order_id: int, version: int, timeout_s: float) -> bool:
        nonlocal beats
        beats += 1
        return await until_moved(order_id, version, timeout_s)

    monkeypatch.setattr(shop.order_service.watch, "until_moved", counted)
    stream = asyncio.create_task(buyer.get(f"/portal/orders/{trx}/live"))
    await until_followed(buyer)
    monkeypatch.setattr(order_pages, "LIVE_OF_PERSON_MAX", 1)
    assert (await buyer.get(f"/portal/orders/{trx}/live")).status_code == 503
    await until_true(lambda: beats > 1)
    await buyer.post("/sign-out")
    told = (await stream).text
    assert ": still here" in told
    assert "reload" not in told
    stream = asyncio.create_task(other.get(f"/portal/orders/{trx}/live"))
    await until_followed(other)
    shop.order_service.watch.let_go()
    assert "reload" not in (await stream).text
    await shop.assert_books_balance()


async def test_a_large_order_waits_for_a_second_person(shop: Shop) -> None:
    """OP-93: from the company's amount on Confirm asks colleagues instead, and says so; nothing is charged."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("play-10", name="Play €10", stock=5)
    await shop.pool.execute("UPDATE company SET approve_from_eur_minor = 1500 WHERE id = $1", company.id)
    buyer = await someone(shop, "buyer", company)
    small = await ordered(buyer, ("play-10", 1))
    assert "Paid and delivered" in text_of(await buyer.post(f"/portal/orders/{small}/confirm", follow=True))
    large = await ordered(buyer, ("play-10", 2))
    before = text_of(await buyer.get(f"/portal/orders/{large}"))
    assert "asks for a second person from 15.00 EUR on" in before
    assert "Ask for approval" in before
    assert "Confirm and pay" not in before
    page = await buyer.post(f"/portal/orders/{large}/confirm", {"note": "Gifts for spring"}, follow=True)
    assert "Sent for approval" in text_of(page)
    assert f"{buyer.email} asked for approval" in text_of(page)
    assert "Approval asked for Gifts for spring" in text_of(page)
    assert "Confirm and pay" not in text_of(page)
    assert (await shop.find(company, large))["orderStatus"] == "created"
    for path in ("/portal", "/portal/orders", f"/portal/orders/{large}", "/portal/orders/-/export"):
        assert "Waiting for approval" in (await buyer.get(path)).text, path
    request = await shop.pool.fetchval("SELECT max(id) FROM approval")
    await buyer.post(f"/portal/approvals/{request}/withdraw")
    for path in ("/portal", "/portal/orders", f"/portal/orders/{large}", "/portal/orders/-/export"):
        assert "Waiting for approval" not in (await buyer.get(path)).text, path
    await shop.assert_books_balance()


async def test_sandbox_orders_do_as_they_are_told(shop: Shop) -> None:
    """OP-49: the portal's choice is the API's header; the live state knows no such thing."""
    company = await shop.company()
    await shop.product("play-10", name="Play €10", stock=5)
    buyer = await someone(shop, "owner", company, state=State.SANDBOX)
    for outcome, said in (
        ("finished", "Paid and delivered"),
        ("slow", "on their way"),
        ("cancelled", "nothing was charged"),
        ("out-of-stock", "not enough codes"),
        ("insufficient-balance", "does not cover"),
    ):
        trx = await ordered(buyer, ("play-10", 1))
        answer = await buyer.post(f"/portal/orders/{trx}/confirm", {"outcome": outcome}, follow=True)
        assert said in text_of(answer), outcome
    buyer.look_at(State.LIVE)
    assert (await buyer.get(f"/portal/orders/{trx}")).status_code == 404
    live = await ordered(buyer, ("play-10", 1))
    answer = await buyer.post(f"/portal/orders/{live}/confirm", {"outcome": "cancelled"}, follow=True)
    assert "Paid and delivered" in text_of(answer)
    await shop.assert_books_balance()


async def test_a_low_balance_is_told_on_the_overview(shop: Shop) -> None:
    """OP-91: the company chooses from where on; a wrong amount is said beside its field."""
    buyer = await someone(shop, "buyer", await shop.company(balance="100.00 EUR"))
    assert (await buyer.post("/portal/alerts", {"currency": "EUR", "below": "many"})).status_code == 422
    assert (await buyer.post("/portal/alerts", {"currency": "EUR", "below": "0"})).status_code == 422
    assert (await buyer.post("/portal/alerts", {"currency": "gold", "below": "1"})).status_code == 400
    assert "You are warned below 150.00 EUR" in text_of(
        await buyer.post("/portal/alerts", {"currency": "EUR", "below": "150,00"}, follow=True)
    )
    assert "Your EUR balance is low: 100.00 EUR is left" in text_of(await buyer.get("/portal"))
    await buyer.post("/portal/alerts", {"currency": "EUR", "below": ""}, follow=True)
    assert "is low" not in text_of(await buyer.get("/portal"))


async def test_the_list_of_orders_says_where_there_are_more_than_it_counts(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-118: a total is counted up to a bound; beyond it the page says so instead of a number that is wrong."""
    company = await shop.company(balance="100.00 EUR")
    buyer = await someone(shop, "buyer", company)
    await shop.product("gift-10", stock=5)
    trx = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(5)]
    await shop.confirm(company, trx[-1])
    assert " 5 orders " in text_of(await buyer.get("/portal/orders"))
    monkeypatch.setattr(order_list, "COUNT_MAX", 3)
    monkeypatch.setattr(order_list, "PAGE_SIZE", 2)
    first = text_of(await buyer.get("/portal/orders"))
    assert "More than 3 orders " in first
    assert "Page 1 of 2+ " in first
    assert " 1 order " in text_of(await buyer.get("/portal/orders?status=finished"))
    assert " 4 orders or more " in text_of(await buyer.get("/portal/orders?page=2")), "so many were passed"
    last = text_of(await buyer.get("/portal/orders?page=3"))
    assert " 5 orders " in last
    assert "Page 3 of 3 " in last
    monkeypatch.setattr(find, "SCAN_MAX", 3)

    assert " 1 order or more " in text_of(await buyer.get("/portal/orders?status=finished"))
    await shop.assert_books_balance()
