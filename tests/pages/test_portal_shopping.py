"""Buying as people do it: from a tile, with lines that can't be had, with a second person, before being verified."""

from __future__ import annotations

import re

from tests.pages.people import someone
from tests.pages.test_buying import ordered, text_of
from tests.shop import Shop
from voucherd.ids import State


async def test_a_product_goes_into_the_cart_from_its_tile_and_every_page_counts_it(shop: Shop) -> None:
    """OP-167: the visitor stays where he was; a value that one chooses is chosen on the product's page."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("play-10", name="Play €10", stock=50, price="9.00 EUR", vat_category="exempt")
    await shop.product(
        "gift", name="Gift", face=None, face_range="5.00-50.00 EUR", price=None, fee="0.95+0.10"
    )
    buyer, viewer = await someone(shop, "buyer", company), await someone(shop, "viewer", company)
    page = await buyer.get("/portal/catalogue?sort=cheap")
    assert "Face value 10.00 EUR 10% off 9.00 EUR In stock" in text_of(page)
    assert "You choose the value 5.00 to 50.00 EUR" in text_of(page)
    back = re.search(r'name="back" value="([^"]+)"', page.text)
    assert back is not None
    assert back[1] == "/portal/catalogue?sort=cheap"
    for amount, count in ((1, 1), (12, 13)):
        fields = {"slug": "play-10", "amount": amount, "back": back[1]}
        added = await buyer.post("/portal/cart/add", fields)
        assert added.headers["location"] == back[1]
        for path in ("/portal", "/portal/orders", "/account"):
            assert f'class="count">{count}</span>' in (await buyer.get(path)).text
    elsewhere = {"slug": "play-10", "amount": 1, "back": "/portal/catalogue?q=1//evil.example"}
    assert (await buyer.post("/portal/cart/add", elsewhere)).headers["location"].startswith("/portal/")
    for bad in ("//evil.example", "https://evil.example", "/sign-out"):
        went = await buyer.post("/portal/cart/add", {"slug": "play-10", "amount": 1, "back": bad})
        assert went.headers["location"] == "/portal/cart"
    buyer.look_at(State.SANDBOX)
    assert 'class="count"' not in (await buyer.get("/portal")).text
    assert "/portal/cart/add" not in (await viewer.get("/portal/catalogue")).text
    assert "/portal/cart/add" not in (await buyer.get("/portal/catalogue?q=gift")).text


async def test_a_line_that_cant_be_had_spoils_no_other(shop: Shop) -> None:
    """OP-167: it says how many are left, one click takes those or takes it out, and the rest keeps its price."""
    company = await shop.company(balance="30.00 EUR")
    await shop.product("play-10", name="Play €10", stock=50)
    await shop.product("rare", name="Rare", stock=3)
    await shop.product("gone", name="Gone", stock=5)
    buyer = await someone(shop, "buyer", company)
    for slug, amount in (("play-10", 2), ("rare", 12), ("gone", 1)):
        await buyer.post("/portal/cart/add", {"slug": slug, "amount": amount})
    await shop.pool.execute("UPDATE product SET active = false WHERE slug = 'gone'")
    cart = await buyer.get("/portal/cart")
    text = text_of(cart)
    for said in ("Only 3 left.", "Take 3", "Not for sale just now.", "2 products can’t be had as they are."):
        assert said in text, said
    assert "19.00 EUR" in text
    assert "Total without the marked lines 19.00 EUR" in text
    assert "Continue to confirm" not in text
    taken = re.search(r'name="take" value="([^"]+)"', cart.text)
    assert taken is not None
    text = text_of(await buyer.post("/portal/cart/change", {"take": taken[1]}, follow=True))
    assert "1 product can’t be had as it is." in text
    assert "Total without the marked lines 47.50 EUR" in text
    assert "17.50 EUR is missing" in text
    text = text_of(await buyer.post("/portal/cart/change", {"fix": "all"}, follow=True))
    assert "Continue to confirm" in text
    assert "Total 47.50 EUR" in text
    long = await buyer.post("/portal/cart/order", {"reference": "x" * 1001})
    assert (long.status_code, 'aria-invalid="true"' in long.text) == (422, True)
    assert (await buyer.post("/portal/cart/change", {"take": "1-0:x", "remove": "9-9"})).status_code == 303


async def test_the_vat_is_told_with_its_rate_and_its_reason(shop: Shop) -> None:
    """OP-52, OP-167: on the product, in the cart and on the order, as it was when the price was fixed."""
    await shop.product("single", name="Single", stock=5, vat_category="single_purpose")
    await shop.product("multi", name="Multi", stock=5, price=None, fee="1.00+1.00")
    expected = (
        ({"country": "NL"}, "single", "VAT of 21% on the whole price"),
        ({"country": "NL"}, "multi", "VAT of 21% on the fee alone."),
        ({"country": "DE", "vat_number": "DE129273398"}, "multi", "(reverse charge)"),
        ({"country": "CH"}, "single", "your company is outside the EU."),
    )
    for about, slug, said in expected:
        buyer = await someone(shop, "buyer", await shop.company(**about))  # type: ignore[arg-type]
        assert said in text_of(await buyer.get(f"/portal/catalogue/{slug}")), said
        trx = await ordered(buyer, (slug, 1))
        assert said in text_of(await buyer.get(f"/portal/orders/{trx}")), said
        await buyer.post("/portal/cart/add", {"slug": slug, "amount": 1})
        assert said in text_of(await buyer.get("/portal/cart")), said


async def test_an_approver_sees_what_is_asked_for_and_why(shop: Shop) -> None:
    """OP-93, OP-167: items, sums, reference, who asks, the rule and the reason; then the order says who decided."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("play-10", name="Play €10", stock=5)
    await shop.pool.execute("UPDATE company SET approve_from_eur_minor = 1500 WHERE id = $1", company.id)
    buyer, boss = await someone(shop, "buyer", company), await someone(shop, "owner", company)
    trx = await ordered(buyer, ("play-10", 2))
    await buyer.post(f"/portal/orders/{trx}/confirm", {"note": "Gifts\nfor spring"})
    page = await boss.get("/portal/approvals")
    for said in (
        f"{buyer.email} asked for approval on",
        "Why: orders from 15.00 EUR on need a second person.",
        "Gifts for spring",
        "2 × Play €10",
        "19.00 EUR",
        "Reference PO 1",
    ):
        assert said in text_of(page), said
    number = re.search(r"/portal/approvals/(\d+)/approve", page.text)
    assert number is not None
    await boss.post(f"/portal/approvals/{number[1]}/approve", follow=True)
    told = text_of(await buyer.get(f"/portal/orders/{trx}"))
    for said in (
        "Approval asked for Gifts for spring",
        "Approved",
        "Paid 19.00 EUR",
        "Delivered 2 of 2 codes",
    ):
        assert said in told, said
    assert told.count(boss.email) == 2
    await shop.assert_books_balance()


async def test_people_of_a_company_that_is_not_verified_see_it_on_every_page(shop: Shop) -> None:
    """OP-167: at once, with what to do about it; the sandbox needs no verification."""
    company = await shop.company(verified=False)
    buyer, other = await someone(shop, "buyer", company), await someone(shop, "buyer", await shop.company())
    for path in ("/portal", "/portal/catalogue", "/portal/cart", "/portal/orders", "/account"):
        assert "is not verified yet." in text_of(await buyer.get(path)), path
        assert "is not verified yet." not in text_of(await other.get(path)), path
    buyer.look_at(State.SANDBOX)
    assert "is not verified yet." not in text_of(await buyer.get("/portal"))
