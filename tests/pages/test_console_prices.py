"""Price lists, exchange rates and VAT in the console: the commands' own functions behind forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.pages.people import someone
from tests.shop import Shop
from voucherd import trail
from voucherd.catalogue import vat_store

ECB = b"Date, USD, JPY, \n13 November 2026, 1.1623, 179.53, \n"


async def test_a_price_list_is_written_tried_and_given(shop: Shop) -> None:
    """OP-72: entries by form and by file, which is tried first; what is wrong is said and changes nothing."""
    company = await shop.company()
    await shop.product("gift", stock=1)
    stock = await someone(shop, "stock")
    assert (await stock.post("/console/prices", {"name": ""})).status_code == 422
    path = (await stock.post("/console/prices", {"name": "gold"})).headers["location"]
    assert (await stock.post("/console/prices", {"name": "gold"})).status_code == 422
    for fields, said in (
        ({"product": "gift"}, "Give one of discount"),
        ({"product": "gift", "discount": "2"}, "Must be a share"),
        ({"product": "none", "discount": "2%"}, "No product fits"),
        ({"brand": "none", "discount": "2%"}, "There is no such brand"),
        ({"discount": "2%", "from": "2026-13-01"}, "not a day"),
    ):
        answer = await stock.post(f"{path}/entries", fields)
        assert (answer.status_code, said in answer.text) == (422, True), fields
    assert (await stock.post(f"{path}/entries", {"product": "gift", "price": "9.20 EUR"})).status_code == 303
    assert (
        await stock.post(f"{path}/entries", {"discount": "1.5%", "from": "2026-01-01"})
    ).status_code == 303
    page = (await stock.get(path)).text
    assert "9.20\N{NO-BREAK SPACE}EUR" in page
    assert "1.5%" in page
    file = (await stock.get(f"{path}/file")).content
    assert len((await stock.get(f"{path}/file?format=xlsx")).content) > 1_000

    async def send(content: bytes, **fields: str) -> tuple[int, str]:
        answer = await stock.post(f"{path}/import", fields, files={"file": ("p.csv", content)})
        return answer.status_code, answer.text

    wrong = await send(b"product,discount\ngift,2%\nnone,2%\n")
    assert wrong[0] == 422
    assert "row 3: there is no product" in wrong[1]
    assert (await send(b"product,discount\ngift,2%\n", trial="yes"))[0] == 303
    assert "Nothing was changed" in (await stock.get(path)).text
    assert (await stock.get(f"{path}/file")).content == file
    assert (await send(b"product,discount\ngift,2%\n"))[0] == 303
    assert "gift,,2%" in (await stock.get(f"{path}/file")).text
    assert (await send(b""))[0] == 422
    long = await send(b"product,discount\n" + b"gift,2%\n" * 5_001)
    assert (long[0], "rows at most" in long[1]) == (422, True)
    admin = await someone(shop, "admin")
    assert (await admin.post(f"/console/companies/{company.id}/prices", {"list": "gold"})).status_code == 303
    used = await stock.post(f"{path}/remove")
    assert (used.status_code, "is some company" in used.text) == (422, True)
    assert (await stock.post(f"{path}/entries/remove", {"product": "gift"})).status_code == 303
    assert (await stock.post(f"{path}/entries/remove", {"product": "gift"})).status_code == 404
    await admin.post(f"/console/companies/{company.id}/prices", {"list": ""})
    assert (await stock.post(f"{path}/remove")).status_code == 303
    async with shop.pool.acquire() as conn:
        deeds = [deed.action for deed in (await trail.page(conn, action="price")).rows]
    assert deeds[0] == "price.list.remove"
    assert deeds.count("price.import") == 1


async def test_rates_are_set_by_hand_and_from_the_banks_file(shop: Shop) -> None:
    """OP-50, OP-71: a rate, a file, margins; wrong ones are refused beside their field."""
    stock = await someone(shop, "stock")
    for fields in (
        {"currency": "EUR", "rate": "1"},
        {"currency": "XXQ", "rate": "1"},
        {"currency": "USD", "rate": "x"},
    ):
        assert (await stock.post("/console/fx", fields)).status_code == 422, fields
    assert (await stock.post("/console/fx", {"currency": "chf", "rate": "1.07"})).status_code == 303
    assert (await stock.post("/console/fx/import", files={"file": ("e.csv", b"<x")})).status_code == 422
    assert (await stock.post("/console/fx/import", files={"file": ("e.csv", ECB)})).status_code == 303
    page = (await stock.get("/console/fx")).text
    assert "1.0700" in page
    assert "0.86036307" in page
    assert "2026" in (await stock.get("/console/fx/USD")).text
    file = (await stock.get("/console/fx/USD/file")).text.splitlines()
    assert file[0].endswith("day,worth in EUR,source,set")
    assert "0.86036307" in file[1]
    assert (await stock.get("/console/fx/JPY/file?format=xlsx")).content.startswith(b"PK")
    assert (await stock.get("/console/fx/AED/file")).status_code == 404
    for fields in (
        {"of": "USD", "to": "USD", "share": "1%"},
        {"of": "USD", "to": "EUR", "share": "51%"},
        {"of": "?", "to": "EUR", "share": ""},
    ):
        assert (await stock.post("/console/fx/margin", fields)).status_code == 422, fields
    pair = {"of": "USD", "to": "EUR"}
    assert (await stock.post("/console/fx/margin", {**pair, "share": "1.5%"})).status_code == 303
    assert "1.5%" in (await stock.get("/console/fx")).text
    assert (await stock.post("/console/fx/margin/remove", pair)).status_code == 303
    assert (await stock.post("/console/fx/margin/remove", pair)).status_code == 404


async def test_a_vat_rate_is_announced_for_a_day_to_come(shop: Shop) -> None:
    """OP-91: what holds today was used for orders and stays; what has not begun can be taken back."""
    stock = await someone(shop, "stock")
    today = datetime.now(UTC).date()
    soon = (today + timedelta(days=40)).isoformat()
    for country, rate, first in (
        ("NL", "22%", today.isoformat()),
        ("US", "22%", soon),
        ("NL", "51%", soon),
        ("NL", "a lot", soon),
        ("NL", "22%", "soon"),
    ):
        fields = {"country": country, "rate": rate, "from": first}
        assert (await stock.post("/console/vat", fields)).status_code == 422, fields
    assert (
        await stock.post("/console/vat", {"country": "nl", "rate": "22.5%", "from": soon})
    ).status_code == 303
    assert f"22.5% from {soon}" in (await stock.get("/console/vat")).text
    async with shop.pool.acquire() as conn:
        begun = next(one for one in await vat_store.history(conn) if one.begun)
    held = {"country": begun.country, "from": begun.valid_from.isoformat()}
    assert (await stock.post("/console/vat/remove", held)).status_code == 404
    assert (await stock.post("/console/vat/remove", {"country": "NL", "from": soon})).status_code == 303
    assert (await stock.post("/console/vat/remove", {"country": "NL", "from": soon})).status_code == 404
