"""Products in the operator's console: found, added, changed, taken off sale, and as files."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import openpyxl
import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.background import BackgroundJobs
from voucherd.catalogue import search, store
from voucherd.catalogue.search import SheetPage
from voucherd.db import Connection

FILES = "/console/products/-/files"
NEW = {
    "slug": "steam-eur-50",
    "name": "Steam 50 <b>EUR</b>",
    "brand": "Steam",
    "product_type": "gamecard",
    "category": "games",
    "redeem_type": "currency",
    "region": "eu",
    "vat_category": "multi_purpose",
    "face_value": "50 EUR",
    "price": "48.10 EUR",
    "active": "yes",
}


def jobs(shop: Shop) -> BackgroundJobs:
    """What pages have begun."""
    return shop.program.services.jobs


async def test_a_product_is_added_changed_and_taken_off_sale(shop: Shop) -> None:
    """OP-91, OP-94: the same rules as on the command line, each version kept, every change in the trail."""
    clerk = await someone(shop, "stock")
    for wrong, text in (
        ({"price": "48.10"}, "Must be an amount and a currency"),
        ({"fee": "1.02"}, "Give a price or a fee, not both"),
        ({"slug": "Steam 50"}, "Must be lower-case letters"),
    ):
        refused = await clerk.post("/console/products/-/new", NEW | wrong)
        assert refused.status_code == 422
        assert text in refused.text
        assert 'value="Steam"' in refused.text
    page = await clerk.post("/console/products/-/new", NEW, follow=True)
    assert "Steam 50 &lt;b&gt;EUR&lt;/b&gt; was added." in page.text
    assert "A sale below its cost is refused." in page.text
    taken = await clerk.post("/console/products/-/new", NEW)
    assert (taken.status_code, "with this slug already" in taken.text) == (422, True)
    edit = await clerk.get("/console/products/steam-eur-50/edit")
    assert 'value="48.10"' in edit.text
    changed = NEW | {"price": "47.00 EUR", "redeem_instructions": "Enter it.\r\nDone.", "allow_loss": "yes"}
    page = await clerk.post("/console/products/steam-eur-50/edit", changed, follow=True)
    assert "May be sold at a loss" in page.text
    assert re.search(r"Price: <span class=\"dim\">48.10\sEUR</span> → 47.00\sEUR", page.text)
    bad = await clerk.post("/console/products/steam-eur-50/edit", changed | {"price": "0 EUR"})
    assert bad.status_code == 422
    page = await clerk.post("/console/products/steam-eur-50/active", {"active": "no"}, follow=True)
    assert "not for sale" in page.text
    assert (await clerk.post("/console/products/steam-eur-50/active", {"active": "x"})).status_code == 400
    assert await shop.pool.fetchval(
        "SELECT redeem_instructions FROM product_version ORDER BY id DESC LIMIT 1"
    ) == ("Enter it.\nDone.")
    rows = await shop.pool.fetch(
        "SELECT actor, action, subject, host(address) FROM trail WHERE action <> 'wallet.top-up' ORDER BY id"
    )
    assert [tuple(row)[1:3] for row in rows] == [
        ("product.add", "product steam-eur-50"),
        ("product.set", "product steam-eur-50"),
        ("product.set", "product steam-eur-50"),
    ]
    assert {row["actor"] for row in rows} == {clerk.email}
    assert await shop.pool.fetchval("SELECT count(*) FROM event WHERE type = 'product.updated'") == 3


async def test_products_are_found_whether_they_are_for_sale_or_not(shop: Shop) -> None:
    """OP-91: by the beginnings of words in name, slug and brand, by filters, and page by page in both directions."""
    clerk = await someone(shop, "stock")
    for at in range(52):
        await shop.product(
            f"card-{at:02d}", name=f"Cárd {at}", brand="Ünique" if at % 2 else "Plain", active=at > 3
        )
    first = await clerk.get("/console/products")
    assert first.text.count("<tr>") == 51  # Fifty, and the header.
    second = await clerk.get("/console/products?after=card-49")
    assert "card-50" in second.text
    back = await clerk.get("/console/products?before=card-50")
    assert ("card-49" in back.text, "card-50</span>" in back.text) == (True, False)

    async def found(query: str) -> list[str]:
        return re.findall(
            'href="/console/products/(card-[0-9]+)"', (await clerk.get(f"/console/products?{query}")).text
        )

    assert await found("q=unique+card+3") == [
        "card-03",
        "card-31",
        "card-33",
        "card-35",
        "card-37",
        "card-39",
    ]
    assert await found("q=card&active=no") == ["card-00", "card-01", "card-02", "card-03"]
    assert await found("q=nothing") == []
    assert len(await found("brand=plain&category=gifts&type=giftcard")) == 26
    assert await found("q=%27%3A%2A&type=topup") == []
    for query in ("sort=name", "sort=-name&q=card", "sort=brand", "sort=-brand&q=card", "sort=-slug"):
        begin = await found(query)
        rest = await found(f"{query}&after={begin[-1]}")
        assert (len({*begin, *rest}), await found(f"{query}&before={rest[0]}")) == (52, begin), query


async def test_files_of_products_are_tried_before_they_change_anything(shop: Shop) -> None:
    """OP-91: an export comes back in, a dry run tells each change and each mistake, and one mistake changes nothing."""
    clerk = await someone(shop, "stock")
    await shop.product("one")
    await shop.product("two")
    for query, kind in (("format=csv", "text/csv"), ("format=xlsx&prices=yes", "application/vnd.openxml")):
        file = await clerk.get(f"/console/products/-/export?{query}")
        assert file.headers["content-type"].startswith(kind)
        assert file.headers["content-disposition"].startswith("attachment")
    book = openpyxl.load_workbook(io.BytesIO(file.content))
    assert [row[0].value for row in book.active.iter_rows()] == ["slug", "one", "two"]

    async def upload(text: str) -> tuple[str, str]:
        files = {"file": ("prices.csv", text.encode())}
        answer = await clerk.post(FILES, files=files)
        assert answer.status_code == 303, answer.text
        await jobs(shop).settled()
        return answer.headers["location"], (await clerk.get(answer.headers["location"])).text

    path, page = await upload("slug,price,price-currency\none,9.40,EUR\ntwo,x,EUR\n")
    assert "1 cell is wrong" in page
    assert "price: " in page
    assert "Make these changes" not in page
    assert "upload it again" in (await clerk.post(path, follow=True)).text
    path, page = await upload("slug,price,price-currency\none,9.40,EUR\ntwo,9.50,EUR\n")
    assert "What would change" in page
    assert await shop.pool.fetchval("SELECT count(*) FROM product_version") == 2
    assert (await clerk.post(path)).status_code == 303
    await jobs(shop).settled()
    assert "Done: 0 added, 1 changed." in (await clerk.get(path)).text
    assert await shop.pool.fetchval("SELECT count(*) FROM product_version") == 3
    assert (
        await shop.pool.fetchval("SELECT action FROM trail WHERE action <> 'wallet.top-up'")
        == "product.import"
    )
    assert "changes nothing" in (await upload("slug,price,price-currency\none,9.40,EUR\n"))[1]
    assert "is none of" in (await upload("what,ever\n1,2\n"))[1]
    assert (await clerk.post(FILES, files={"file": ("empty.csv", b"")})).status_code == 422
    assert await shop.pool.fetchval("SELECT count(*) FROM upload WHERE sealed IS NOT NULL") == 0


async def test_a_catalogue_comes_as_a_file_piece_by_piece(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-91: an export of many products holds neither them all nor a connection, and other visitors wait for no more
    than a piece of it.
    """
    clerk = await someone(shop, "stock")
    slugs = [f"card-{number}" for number in range(7)]
    for slug in slugs:
        await shop.product(slug)
    monkeypatch.setattr(store, "PAGE_MAX", 3)
    asked = []
    sheet_page = search.sheet_page

    async def counted(conn: Connection, columns: Sequence[str], after: str) -> SheetPage:
        asked.append(after)
        return await sheet_page(conn, columns, after)

    monkeypatch.setattr(search, "sheet_page", counted)
    file = await clerk.get("/console/products/-/export?prices=yes")

    assert [line.partition(",")[0] for line in file.text.splitlines()] == ["slug", *slugs]
    assert asked == ["", "card-2", "card-5"]
    assert "content-length" not in file.headers
