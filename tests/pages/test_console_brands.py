"""Brands in the console: listed with their logos, added, renamed, given a picture."""

from __future__ import annotations

import csv
import io
import re
import struct

from tests.pages.people import someone
from tests.patience import until
from tests.shop import Shop
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductChanges
from voucherd.db import transaction


def png(width: int, height: int) -> bytes:
    """The beginning of a picture, which is all that is looked at."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\0" * 20


async def test_a_brand_gets_a_logo_and_loses_it_again(shop: Shop) -> None:
    """OP-159, OP-57: uploaded, replaced, removed; a file that is no picture stands beside its field."""
    clerk, finance = await someone(shop, "stock"), await someone(shop, "finance")
    await shop.product("gift")
    path = "/console/brands/testbrand"
    assert (await finance.get("/console/brands")).status_code == 403
    assert "No logo yet" in (await clerk.get(path)).text
    none = await clerk.post(f"{path}/logo", {}, files={"file": ("", b"")})
    assert re.search(r'id="p-file">Choose a file', none.text)
    bad = await clerk.post(f"{path}/logo", {}, files={"file": ("a.svg", b"<svg/>")})
    assert re.search(r'id="p-file">A logo is a PNG', bad.text)
    for width in (100, 200):
        answer = await clerk.post(f"{path}/logo", {}, files={"file": ("a.png", png(width, 50))})
        assert answer.status_code == 303
    page = (await clerk.get("/console/brands")).text
    found = re.search(r'src="(/logo/[0-9a-f]{32}\.png)"', page)
    assert found is not None
    assert (await shop.client.get(found[1])).content == png(200, 50)
    assert "logo is removed" in (await clerk.post(f"{path}/logo/remove", follow=True)).text
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action LIKE 'brand.%' ORDER BY id")
    assert [one[0] for one in actions] == ["brand.set-logo", "brand.set-logo", "brand.remove-logo"]
    assert (await clerk.get("/console/brands/nobody")).status_code == 404
    assert (await clerk.post("/console/brands/nobody/logo/remove")).status_code == 404


async def test_a_brand_is_added_with_its_logo(shop: Shop) -> None:
    """OP-159: refused if its name, or the slug that it makes, is taken; then nothing is stored."""
    clerk = await someone(shop, "stock")
    new = "/console/brands/-/new"
    picture = {"file": ("a.png", png(10, 10))}
    bad = await clerk.post(new, {"name": "Acme Games"}, files={"file": ("a.gif", b"GIF89a")})
    assert re.search(r'id="p-file">[^<]+', bad.text)
    assert await shop.pool.fetchval("SELECT count(*) FROM brand") == 0
    assert (await clerk.post(new, {"name": "Acme Games"}, files=picture)).status_code == 303
    for taken in ("acme games", "Acme-Games", "", "???", "x" * 201):
        answer = await clerk.post(new, {"name": taken})
        assert answer.status_code == 422, taken
        assert re.search(r'id="p-name">[^<]+', answer.text), taken
    file = await clerk.get("/console/brands/-/file?format=csv&q=acme")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert rows == [{"slug": "acme-games", "name": "Acme Games", "products": "0", "logo": "yes"}]


async def test_a_brand_with_another_name_keeps_its_slug_and_tells_its_products(shop: Shop) -> None:
    """OP-159: products get new versions that have it, clients an event and a change; it is found by both names."""
    clerk = await someone(shop, "stock")
    company = await shop.company()
    await shop.product("gift-1", brand="Steam")
    await shop.product("gift-2", brand="Steam", active=False)
    await shop.product("other", brand="Acme")

    async def brand_told() -> str:
        answer = await shop.client.get("/api/1.03/product/gift-1", headers=company.bearer())
        return str(answer.json()["brandName"])

    assert await brand_told() == "Steam"
    mark = await shop.pool.fetchval("SELECT max(id) FROM product_change")
    path = "/console/brands/steam"
    assert re.search(r'id="p-name">There is', (await clerk.post(path, {"name": "acme"})).text)
    assert "called Valve Steam now" in (await clerk.post(path, {"name": "Valve Steam"}, follow=True)).text
    assert await brand_told() == "Valve Steam"

    async def found() -> bool:
        return "gift-1" in (await clerk.get("/console/products?q=valve")).text

    await until(found)
    changes = await shop.pool.fetch(
        "SELECT p.slug, c.kind FROM product_change c JOIN product p ON p.id = c.product_id WHERE c.id > $1",
        mark,
    )
    assert [tuple(one) for one in changes] == [("gift-1", "content")]
    told = await shop.pool.fetch(
        "SELECT data::text FROM event WHERE type = 'product.updated' ORDER BY id DESC LIMIT 2"
    )
    assert sorted(re.findall(r"gift-\d", " ".join(one[0] for one in told))) == ["gift-1", "gift-2"]
    async with transaction(shop.pool) as tx:
        for name in ("Valve Steam", "Steam", "steam"):
            assert (await catalogue.add_or_get_brand(tx, name)).slug == "steam", name
        # A form that is sent again with the new name makes no new brand and no new version.
        same = await catalogue.set_product(tx, "gift-1", ProductChanges(brand="Valve Steam"))
    assert same.brand_slug == "steam"
    assert await shop.pool.fetchval("SELECT count(*) FROM brand") == 2
    assert (await clerk.post(path, {"name": "Valve Steam"})).status_code == 303
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action LIKE 'brand.%'")
    assert [one[0] for one in actions] == ["brand.rename"]
