"""Orders afterwards: found, sorted and exported, their life told; codes and links on pages that Back finds again."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest
from openpyxl import load_workbook

from tests.pages.people import Someone, someone
from tests.pages.test_buying import ordered, text_of
from tests.pages.test_recipient import PERSON
from tests.shop import Shop
from voucherd import clock
from voucherd.pages.buyer.codes import CARDS_MAX
from voucherd.pages.buyer.grants import LASTS_S
from voucherd.vault.model import Via


async def delivered(shop: Shop, amount: int = 2) -> tuple[Someone, str]:
    """Somebody with an order whose codes are there."""
    company = await shop.company(balance="9000.00 EUR")
    await shop.product("play-10", name="Play €10", stock=amount)
    buyer = await someone(shop, "buyer", company)
    trx = await ordered(buyer, ("play-10", amount))
    await buyer.post(f"/portal/orders/{trx}/confirm")
    return buyer, trx


async def reveals(shop: Shop) -> list[tuple[int, int]]:
    """How and how many codes were shown, in order."""
    return [tuple(row) for row in await shop.pool.fetch("SELECT via, lines FROM reveal ORDER BY id")]


async def test_codes_are_shown_on_a_page_that_back_finds_again(shop: Shop) -> None:
    """OP-165, OP-94: for the session that asked, for this order, for some minutes; each showing is a row."""
    buyer, trx = await delivered(shop)
    path = f"/portal/orders/{trx}/codes"
    bare = await buyer.get(path)
    assert "Show the codes again?" in text_of(bare)
    assert "data-copy" not in bare.text
    asked = await buyer.post(path)
    assert asked.status_code == 303
    address = asked.headers["location"]
    assert await reveals(shop) == []
    for shown in range(1, 3):
        page = await buyer.get(address)
        assert page.text.count("data-copy") == 2
        assert page.headers["cache-control"] == "no-store"
        assert await reveals(shop) == [(Via.PORTAL, 2)] * shown
    other = await someone(shop, "owner", await shop.company())
    assert (await other.get(address)).status_code == 404
    await shop.stock("play-10", 1)
    again = await ordered(buyer, ("play-10", 1))
    await buyer.post(f"/portal/orders/{again}/confirm")
    grant = address.partition("grant=")[2]
    assert "data-copy" not in (await buyer.get(f"/portal/orders/{again}/codes?grant={grant}")).text
    for bad in ("x", "", "ffffffff.", f"f{grant}", grant[:-1]):
        assert "data-copy" not in (await buyer.get(f"{path}?grant={bad}")).text, bad
    assert len(await reveals(shop)) == 2


async def test_a_grant_ends_by_itself(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-165: who comes back later has to ask again."""
    buyer, trx = await delivered(shop)
    address = (await buyer.post(f"/portal/orders/{trx}/codes")).headers["location"]
    now = clock.now
    monkeypatch.setattr(
        "voucherd.pages.buyer.grants.clock.now", lambda: now() + timedelta(seconds=LASTS_S + 2)
    )
    assert "data-copy" not in (await buyer.get(address)).text


async def test_links_are_shown_copied_and_kept_as_a_file(shop: Shop) -> None:
    """OP-165: to people who may see codes, after a click, written down as a showing; never with a code beside them."""
    buyer, trx = await delivered(shop)
    path = f"/portal/orders/{trx}/links"
    assert "/r/" not in (await buyer.get(path)).text
    shown = await buyer.post(f"{path}/show", follow=True)
    links = re.findall(r'data-copy="([^"]+/r/[^"]+)"', shown.text)
    assert len(links) == 2
    file = await buyer.post(f"{path}/file")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [row["redemptionLink"] for row in rows] == links
    assert "voucherCode" not in file.text
    assert await reveals(shop) == [(Via.PORTAL, 2), (Via.FILE, 2)]
    viewer = await someone(shop, "viewer", await shop.company())
    for action in ("show", "file"):
        assert (await viewer.post(f"{path}/{action}")).status_code == 403


async def test_the_sender_who_opens_a_link_is_no_recipient(shop: Shop) -> None:
    """OP-165: a look of the buying company's own people counts for nothing; anybody else's does."""
    buyer, trx = await delivered(shop)
    shown = await buyer.post(f"/portal/orders/{trx}/links/show", follow=True)
    link = re.findall(r'data-copy="[^"]+(/r/[^"]+)"', shown.text)[0]
    stranger = await someone(shop, "owner", await shop.company())
    count = "SELECT count(*) FROM line_view"
    assert (await shop.client.get(link, headers=PERSON | buyer.headers)).status_code == 200
    assert await shop.pool.fetchval(count) == 0
    assert (await shop.client.get(link, headers=PERSON | stranger.headers)).status_code == 200
    assert await shop.pool.fetchval(count) == 1
    assert "First link opened 1 of 2 so far" in text_of(await buyer.get(f"/portal/orders/{trx}"))


async def test_a_pdf_is_offered_only_where_it_works(shop: Shop) -> None:
    """OP-165: above the bound the page says so instead of refusing afterwards."""
    buyer, trx = await delivered(shop, CARDS_MAX + 1)
    page = text_of(await buyer.get(f"/portal/orders/{trx}"))
    assert "PDF to print" not in page
    assert f"up to {CARDS_MAX} codes" in page


async def test_orders_are_found_by_a_part_of_their_reference_sorted_and_exported(shop: Shop) -> None:
    """OP-168: the file holds what the list shows, as CSV and XLSX; a reference is no formula."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("play-10", name="Play €10", stock=9)
    buyer = await someone(shop, "buyer", company)
    references = ["Spring 2026 Berlin", "=SUM(A1)", "spring 2026 Paris"]
    for reference in references:
        await shop.create(company, ("play-10", 1), reference=reference)
    for query, count in (("q=spring", 2), ("q=Spring+2026+Berlin", 1), ("q=nothing", 0), ("", 3)):
        page = text_of(await buyer.get(f"/portal/orders?{query}"))
        assert sum(reference in page for reference in references) == count, query
    newest = (await buyer.get("/portal/orders")).text
    oldest = (await buyer.get("/portal/orders?sort=created")).text
    assert newest.index("Paris") < newest.index("Berlin")
    assert oldest.index("Berlin") < oldest.index("Paris")
    file = await buyer.get("/portal/orders/-/export?q=spring&format=csv&sort=created")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [row["Reference"] for row in rows] == [references[0], references[2]]
    assert [(row["Status"], row["Products"], row["Total"]) for row in rows] == [
        ("Not confirmed", "1 × Play €10", "9.50")
    ] * 2
    whole = await buyer.get("/portal/orders/-/export?format=csv")
    assert "'=SUM(A1)" in whole.text
    book = load_workbook(io.BytesIO((await buyer.get("/portal/orders/-/export?format=xlsx")).content)).active
    assert book is not None
    assert [row[1] for row in book.iter_rows(min_row=2, values_only=True)] == list(reversed(references))
    other = await someone(shop, "buyer", await shop.company())
    assert (await other.get("/portal/orders/-/export")).text.count("\n") == 1


async def test_an_order_tells_its_life(shop: Shop) -> None:
    """OP-168: created, paid, delivered and cancelled, each with its time and who did it."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("later", name="Later", stock=1, async_delivery=True)
    buyer = await someone(shop, "buyer", company)
    trx = await ordered(buyer, ("later", 3))
    await buyer.post(f"/portal/orders/{trx}/confirm")
    await buyer.post(f"/portal/orders/{trx}/cancel")
    page = text_of(await buyer.get(f"/portal/orders/{trx}"))
    timeline = page[page.index("Timeline") :]
    places = [
        timeline.index(said)
        for said in (
            "Created",
            "Paid 28.50 EUR",
            "Delivered 1 of 3 codes",
            "Cancelled 2 of 3 codes, 19.00 EUR",
        )
    ]
    assert places == sorted(places)
    assert timeline.count(f"· {buyer.email}") == 2
    by_api = (await shop.create(company, ("later", 1)))["trx"]
    assert re.search(r"Created [^·]+ · API key", text_of(await buyer.get(f"/portal/orders/{by_api}")))
    await shop.assert_books_balance()
