"""One search for everything in the console, of what the person may see."""

from __future__ import annotations

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.ids import State


async def test_everything_is_found_from_one_field(shop: Shop) -> None:
    """OP-161: orders by number, reference or a part of either, companies, people, products; in groups."""
    admin = await someone(shop, "admin")
    company = await shop.company(balance="100.00 EUR")
    owner = await someone(shop, "owner", company)
    await shop.product("gift-card", price="1.00 EUR", stock=5)
    one = (await shop.create(company, ("gift-card", 2), reference="Invoice 4711-a"))["trx"]
    two = (await shop.create(company, ("gift-card", 1), reference="Invoice 4711-b"))["trx"]

    async def page(text: str) -> str:
        answer = await admin.get("/console/search", params={"q": text})
        assert answer.status_code == 200, (text, answer.headers)
        return answer.text

    both = await page("4711")
    assert one in both
    assert two in both
    assert "Orders" in both
    assert one in await page(one[-8:])
    assert owner.email in await page("owner")
    assert "/console/products/gift-card" in await page("gift")
    assert company.name in await page(company.name[:5])
    assert "Nothing found" in await page("no such thing anywhere")
    assert "Type a little more" in await page("x")
    assert "at the top of every page" in await page("")
    assert "&lt;b&gt;" in await page("<b>")


async def test_what_is_named_exactly_is_opened_at_once(shop: Shop) -> None:
    """OP-161: the number of an order in any letters, a reference, an address, a slug."""
    admin = await someone(shop, "admin")
    company = await shop.company(balance="100.00 EUR")
    owner = await someone(shop, "owner", company)
    await shop.product("only-one", price="1.00 EUR", stock=5)
    trx = (await shop.create(company, ("only-one", 1), reference="PO 9"))["trx"]
    for text, path in (
        (trx, f"/console/orders/{trx}"),
        (trx.lower(), f"/console/orders/{trx}"),
        ("PO 9", f"/console/orders/{trx}"),
        (owner.email, f"/console/companies/{company.id}"),
        ("only-one", "/console/products/only-one"),
    ):
        answer = await admin.get("/console/search", params={"q": text})
        assert (answer.status_code, answer.headers.get("location")) == (303, path), text


async def test_a_search_finds_nothing_that_the_person_may_not_see(shop: Shop) -> None:
    """OP-161: stock sees no company, support no product; staff are found by those who manage them; states apart."""
    stock, support = await someone(shop, "stock"), await someone(shop, "support")
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-card", price="1.00 EUR", stock=5)
    trx = (await shop.create(company, ("gift-card", 1), reference="PO 8"))["trx"]
    for who, text in (
        (stock, company.name),
        (stock, "PO 8"),
        (stock, trx),
        (support, "gift-card"),
        (support, stock.email),
    ):
        answer = await who.get("/console/search", params={"q": text})
        assert answer.status_code == 200, text
        assert "Nothing found" in answer.text, text
    support.look_at(State.SANDBOX)
    assert "Nothing found" in (await support.get("/console/search", params={"q": "PO 8"})).text


async def test_a_code_is_found_by_its_serial(shop: Shop) -> None:
    """OP-161: written in full; sold ones lead to their order, others to their lot; no serial is stored in clear."""
    admin, support = await someone(shop, "admin"), await someone(shop, "support")
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift", price="1.00 EUR")
    serials = [serial for _, serial in await shop.stock("gift", 3)]
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    await shop.confirm(company, trx)
    sold = await admin.get("/console/search", params={"q": serials[1]})
    assert (sold.status_code, sold.headers.get("location")) == (303, f"/console/orders/{trx}")
    left = await admin.get("/console/search", params={"q": f" {serials[2]} "})
    assert left.headers["location"] == "/console/lots?slug=gift&sold_out=yes"
    assert "Nothing found" in (await support.get("/console/search", params={"q": serials[2]})).text
    assert "Nothing found" in (await admin.get("/console/search", params={"q": serials[1][:-1]})).text
    await shop.stock_codes("gift", [("CODE-BY-HAND-0001", "SERIAL-BY-HAND")])
    by_hand = await admin.get("/console/search", params={"q": "SERIAL-BY-HAND"})
    assert by_hand.status_code == 303
    rows = await shop.pool.fetch("SELECT blind FROM code_serial")
    assert not any(serial.encode() in row[0] for row in rows for serial in serials)
