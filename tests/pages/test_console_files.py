"""Lists of the console as files: the rows of the page, with the filters of the address."""

from __future__ import annotations

import csv
import io

import openpyxl
import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.pages.console import orders


async def test_every_list_is_taken_away_as_a_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """OP-163: CSV as it is read and XLSX, page by page, in the order of the list and with its filters."""
    monkeypatch.setattr(orders, "FILE_PAGE", 2)
    admin = await someone(shop, "admin")
    ours, other = await shop.company(balance="100.00 EUR"), await shop.company(balance="100.00 EUR")
    await shop.product("gift", price="9.50 EUR", stock=20)
    trxs = [(await shop.create(ours, ("gift", 2), reference=f"=ref {at}"))["trx"] for at in range(5)]
    await shop.create(other, ("gift", 1))
    await shop.confirm(ours, trxs[0])

    async def rows(path: str) -> list[dict[str, str]]:
        answer = await admin.get(path)
        assert answer.status_code == 200, answer.text
        assert "attachment" in answer.headers["content-disposition"]
        return list(csv.DictReader(io.StringIO(answer.text)))

    found = await rows(f"/console/orders/-/file?company={ours.name}&sort=created")
    assert [row["order"] for row in found] == trxs
    assert (found[0]["status"], found[0]["total"], found[0]["currency"]) == ("Delivered", "19.00", "EUR")
    # No spreadsheet program takes a reference for a formula.
    assert found[0]["reference"] == "'=ref 0"
    assert len(await rows("/console/orders/-/file")) == 6
    assert (await admin.get("/console/orders/-/file?company=Nobody")).status_code == 400
    assert (await rows("/console/lots/-/file?slug=gift"))[0]["left"] == "18"
    assert (await admin.get("/console/lots/-/file?slug=none")).status_code == 400
    assert await rows("/console/late-codes/-/file") == []
    assert await rows("/console/purchases/-/file?problem=unknown") == []
    assert [row["slug"] for row in await rows("/console/products/-/list?q=gift")] == ["gift"]
    assert "wallet.top-up" in {
        row["action"] for row in await rows(f"/console/trail/-/file?company={ours.name}")
    }
    assert (await admin.get("/console/trail/-/file?from=someday")).status_code == 400
    for path, row, cell in (
        ("/console/orders/-/file?format=xlsx", 0, "order"),
        ("/console/reports/sales/csv?by=product&format=xlsx", 1, "gift"),
    ):
        book = openpyxl.load_workbook(io.BytesIO((await admin.get(path)).content))
        assert book.active is not None
        assert list(book.active.values)[row][0] == cell
