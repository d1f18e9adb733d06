"""Orders by file: rows are checked one by one, priced, and become a cart or one order for each reference."""

from __future__ import annotations

import html
import io
from typing import Any

import pytest
from openpyxl import Workbook

from tests.pages.people import Someone, someone
from tests.pages.test_buying import text_of, trx_of
from tests.shop import Company, Shop
from voucherd.orders.bulk import ROWS_MAX, parse
from voucherd.sheets.model import Cell, CellKind, SheetRow

BULK = "/portal/bulk"


async def stocked(shop: Shop) -> tuple[Company, Someone]:
    """A company with money and somebody who buys, and two products."""
    company = await shop.company(balance="500.00 EUR")
    await shop.product("play-10", name="Play €10", stock=5)
    await shop.product(
        "gift", name="Gift", face=None, face_range="5.00-50.00 EUR", price=None, fee="0.95+0.10"
    )
    await shop.stock_codes("gift", [(f"GIFT-{n}", "") for n in range(3)], face="20.00 EUR")
    return company, await someone(shop, "buyer", company)


async def orders_of(shop: Shop, company: Company) -> list[dict[str, Any]]:
    """All orders of the company."""
    answer = await shop.call("GET", "/api/1.03/order", company)
    return list(answer.json()["data"])


async def test_rows_without_a_reference_are_priced_and_go_into_the_cart(shop: Shop) -> None:
    """OP-166: pasted or uploaded, the same product twice is one line, and nothing is ordered before it is asked for."""
    company, buyer = await stocked(shop)
    pasted = "slug;amount;value\nplay-10;2\ngift;1;20,00\nplay-10;1\n"
    page = await buyer.post(BULK, {"rows": pasted})
    assert page.status_code == 200
    assert "Play €10 1" in text_of(page)
    assert "Total 47.60 EUR" in text_of(page)
    assert await shop.pool.fetchval("SELECT count(*) FROM cart_item") == 0
    cart = text_of(await buyer.post(f"{BULK}/take", {"rows": pasted}, follow=True))
    assert "4 codes were put into your cart." in cart
    assert "Total 47.60 EUR" in cart
    assert "4 codes" in cart
    book = Workbook()
    assert book.active is not None
    for row in (("Slug", "Amount"), ("play-10", 2)):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    file = {"file": ("orders.xlsx", stream.getvalue(), "application/octet-stream")}
    assert "Play €10 2" in text_of(await buyer.post(BULK, files=file))
    sample = await buyer.get(f"{BULK}/sample?format=csv")
    assert sample.text.startswith("slug,amount,value,reference\n")
    assert await orders_of(shop, company) == []
    await shop.assert_books_balance()


async def test_each_reference_becomes_an_order_and_all_are_confirmed_together(shop: Shop) -> None:
    """OP-166: rows of one reference are one order; an order is confirmed once, however often the form is sent."""
    company, buyer = await stocked(shop)
    rows = "play-10,1,,PO 1\ngift,2,20.00,PO 2\nplay-10,2,,PO 1\n"
    assert "Continue with 2 orders" in text_of(await buyer.post(BULK, {"rows": rows}))
    made = await buyer.post(f"{BULK}/take", {"rows": rows})
    assert made.status_code == 303
    listed = made.headers["location"]
    page = await buyer.get(listed)
    assert "2 orders are not confirmed yet" in text_of(page)
    assert "Confirm and pay 66.70 EUR" in text_of(page)
    trxs = [one["trx"] for one in await orders_of(shop, company)]
    for _ in range(2):
        done = await buyer.post(f"{BULK}/orders", {"trx": trxs}, follow=True)
        assert text_of(done).count("Delivered") == 2
    orders = await orders_of(shop, company)
    assert sorted((one["reference"], len(one["items"]), one["orderStatus"]) for one in orders) == [
        ("PO 1", 1, "finished"),
        ("PO 2", 1, "finished"),
    ]
    single = trx_of(await buyer.post(f"{BULK}/take", {"rows": "play-10,1,,PO 3"}))
    assert (await shop.find(company, single))["reference"] == "PO 3"
    other = await someone(shop, "buyer", await shop.company())
    assert (await other.get(listed)).status_code == 404
    assert (await other.post(f"{BULK}/orders", {"trx": trxs})).status_code == 404
    await shop.assert_books_balance()


async def test_every_row_says_what_is_wrong_with_it_and_nothing_is_ordered(shop: Shop) -> None:
    """OP-166: by row: an unknown product, a bad amount or value, too few codes; the others keep their price."""
    company, buyer = await stocked(shop)
    rows = (
        "slug,amount,value,reference\nplay-10,1\nnone-such,1\nplay-10,0\nplay-10,x\ngift,1\ngift,1,99\ngift,1,abc\n"
        "play-10,5\n,1\n"
    )
    for path in (BULK, f"{BULK}/take"):
        page = await buyer.post(path, {"rows": rows})
        assert page.status_code == 422
        text = text_of(page)
        for said in (
            "9 rows can’t be ordered.",
            "2 Play €10 Only 5 left.".replace("Play €10", "play-10"),
            "none-such Not for sale just now.",
            "The amount is a whole number from 1 to 10 000.",
            "The product is not sold at this value",
            "The value is a number such as 25.00.",
            "The product is missing.",
        ):
            assert said in text, said
        assert "Put into cart" not in text
    assert await shop.pool.fetchval("SELECT count(*) FROM cart_item") == 0
    assert await orders_of(shop, company) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "Choose a file, or paste rows below."),
        ("slug,amount\n", "The file has no rows."),
        ("slug,price\nplay-10,1", "is none of slug, amount, value, reference"),
        ("play-10,1\n" * (ROWS_MAX + 1), f"The file has more than {ROWS_MAX} rows."),
        ("\n".join(f"play-10,1,,PO {n}" for n in range(51)), "The file has more than 50 references."),
        ("\n".join(f"p-{n},1" for n in range(101)), "has more than 100 products."),
        ("play-10,10000,,a\nplay-10,1,,a", "has more than 10 000 codes of one product."),
        ('play-10,"1', "quotes don’t match"),
    ],
)
async def test_a_file_that_is_none_is_refused_beside_its_field(shop: Shop, rows: str, said: str) -> None:
    """OP-166: bounded in rows, references, products and codes; what was pasted stays in the field."""
    buyer = await someone(shop, "buyer", await shop.company())
    page = await buyer.post(BULK, {"rows": rows})
    assert (page.status_code, 'aria-invalid="true"' in page.text) == (422, True)
    assert said in text_of(page)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("de", "Die Bestellung PO 7 hat mehr als 10.000 Codes eines Produkts."),
        ("fr", "La commande PO 7 a plus de 10\u202f000 codes d’un même produit."),
    ],
)
async def test_a_refused_file_is_told_in_the_reader_s_language(shop: Shop, language: str, said: str) -> None:
    """OP-171: with numbers as the language writes them."""
    buyer = await someone(shop, "buyer", await shop.company())
    await shop.pool.execute("UPDATE app_user SET language = $2 WHERE id = $1", buyer.user_id, language)
    page = await buyer.post(BULK, {"rows": "play-10,10000,,PO 7\nplay-10,1,,PO 7"})
    assert page.status_code == 422
    assert said in html.unescape(page.text)


def test_formulas_and_dates_are_no_amounts() -> None:
    """OP-166: a cell that the spreadsheet would compute is refused in its row."""
    cells = [Cell("play-10"), Cell("=1+1", CellKind.FORMULA)]
    (row,) = parse([SheetRow(1, cells)])
    assert row.problem is not None
