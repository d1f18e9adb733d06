"""What the catalogue sends, byte for byte (OP-55), and that real answers are as the document describes them.

`VOUCHERD_TEST_UPDATE_GOLDEN=1` writes the files anew; then look at the difference before it is kept.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.handmade import NOW
from tests.shop import Shop
from tests.wire.gallery import GAME, GIFT
from tests.wire.test_golden import GOLDEN, UPDATE
from tests.wire.test_openapi import URL, assert_described, read
from voucherd.api.openapi import document
from voucherd.api.wire import catalogue as wire
from voucherd.api.wire.shapes import PageMetadata, place_of
from voucherd.api.wire.templates import encode
from voucherd.catalogue.products import Leaflet, ProductVersion
from voucherd.catalogue.store import FxRate
from voucherd.ids import State
from voucherd.storefront import prices
from voucherd.storefront.groups import BrandGroup, ProductGroup
from voucherd.storefront.service import ChangedProduct, ShownProduct

FOLDER = GOLDEN / "catalogue"
RATES = {"EUR": 100_000_000, "KWD": 301_204_819, "JPY": 611_808}
LEAFLET = Leaflet('Type "it" in.\nThen – enjoy.', "No refunds.", "https://img.example.com/g.png")
LATER = NOW + timedelta(days=1, microseconds=123_999)


def shown(product: ProductVersion, face_minor: int | None = None, leaflet: Leaflet = LEAFLET) -> ShownProduct:
    """The product in its own currency and in yen."""
    own, paid = (
        prices.tag(
            product, product.face_minor or face_minor, payment_currency=currency, rates=RATES, vat_bp=2100
        )
        for currency in (None, "JPY")
    )
    return ShownProduct(product, leaflet, True, True, LATER, own, paid)


DINAR = FxRate("KWD", date(2026, 1, 30), 301_204_819, "ecb", NOW)
PICKED = msgspec.structs.replace(shown(GAME, 2_500), faces=((1_000, 1_000), (2_500, 2_500)))
GONE = msgspec.structs.replace(shown(GAME, leaflet=Leaflet()), active=False, stocked=False, faces=())
BODIES: dict[str, Struct] = {
    "product": wire.product(shown(GIFT), None),
    "product-variable": wire.product(GONE, None),
    "product-page": wire.ProductPage(
        [wire.product(shown(GIFT), "JPY"), wire.product(PICKED, "JPY"), wire.product(GONE, "JPY")],
        *place_of(50, 0, None, 3),
    ),
    "product-changes": wire.ProductChangePage(
        [wire.change(ChangedProduct("activation", LATER, msgspec.structs.replace(GONE, looked=False)), None)],
        wire.FeedMetadata("NDcxMQ"),
    ),
    "brand-page": wire.BrandPage(
        [wire.brand(BrandGroup("cafe", "Café & co", 3, "food-and-drink", "currency"))],
        PageMetadata(1, "Y2FmZQ"),
    ),
    "categories": wire.CategoryList([wire.category(ProductGroup("games", "Games", 2))], wire.ListMetadata(1)),
    "fx-rates": wire.FxRateList(
        [wire.fx_rate(DINAR, "EUR")], wire.ListMetadata(1), wire.fx_pairs([DINAR], "EUR")
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_answer_of_the_catalogue_is_what_it_always_was(name: str) -> None:
    """OP-06, OP-07, OP-08, OP-55: every byte."""
    body = encode(BODIES[name])
    file = FOLDER / f"{name}.json"
    if UPDATE:
        file.write_bytes(body)
    assert body == file.read_bytes()


def test_no_golden_file_of_the_catalogue_is_left_behind() -> None:
    """OP-55: what is on the shelf is looked at."""
    assert {file.stem for file in FOLDER.iterdir()} == set(BODIES)


async def test_real_answers_of_the_catalogue_are_as_described(quiet_shop: Shop) -> None:
    """OP-04: status, headers and every field, with and without a payment currency, in both states."""
    shop = quiet_shop
    company = await shop.company()
    await shop.fx("USD", 92_000_000)
    await shop.product("gift-10", stock=1, image_url="https://img.example.com/g.png")
    await shop.product("choose", face_range="5-50 EUR", fee="1.01+0.10")
    await shop.set_product("choose", active=False)
    await shop.worker.run_once("announce_stock")
    described: dict[str, Any] = read(msgspec.json.encode(document(URL, 262_144)))
    for state in State:
        for path, query in (
            ("product", ""),
            ("product", "?cursor=&limit=1&paymentCurrency=USD"),
            ("product/{slug}", "?paymentCurrency=usd"),
            ("product/changes", ""),
            ("product/changes", "?since=now"),
            ("product/changes", "?paymentCurrency=USD&limit=1"),
            ("brand", ""),
            ("brand", "?cursor="),
            ("brand/{slug}", ""),
            ("category", ""),
            ("fx-rate", ""),
        ):
            slug = "gift-10" if path.startswith("product") else "testbrand"
            answer = await shop.call(
                "GET", f"/api/1.03/{path.replace('{slug}', slug)}{query}", company, state=state
            )
            assert answer.status_code == 200, answer.text
            assert_described(described, f"/api/1.03/{path}", answer)
    for path, status in (("product/{slug}", 404), ("brand/{slug}", 404)):
        answer = await shop.call("GET", f"/api/1.03/{path.replace('{slug}', 'none')}", company)
        assert answer.status_code == status
        assert_described(described, f"/api/1.03/{path}", answer)


async def test_the_feed_is_followed_by_its_cursor(quiet_shop: Shop) -> None:
    """OP-49, OP-54: from the beginning or from now; the same cursor again while nothing is new; stock for live only."""
    shop = quiet_shop
    company = await shop.company()

    async def feed(query: str, state: State = State.LIVE) -> tuple[list[tuple[str, str, bool, bool]], str]:
        answer = await shop.call("GET", f"/api/1.03/product/changes{query}", company, state=state)
        body = answer.json()
        told = [
            (one["type"], one["product"]["slug"], one["product"]["isActive"], one["product"]["isStocked"])
            for one in body["data"]
        ]
        return told, body["metadata"]["nextCursor"]

    nothing, start = await feed("")
    assert nothing == []
    assert await feed("?since=now") == ([], start)
    await shop.product("gift-10", stock=1)
    await shop.product("gift-20", active=False)
    await shop.worker.run_once("announce_stock")
    await shop.set_product("gift-10", name="New")
    one, cursor = await feed(f"?since={start}&limit=1")
    assert one == [("activation", "gift-10", True, False)]
    rest, end = await feed(f"?since={cursor}")
    assert rest == [("stock", "gift-10", True, True), ("content", "gift-10", True, True)]
    assert await feed("") == (one + rest, end)
    assert await feed(f"?since={end}") == ([], end)
    assert await feed("?since=now") == ([], end)
    sandbox, _ = await feed("", State.SANDBOX)
    assert sandbox == [("activation", "gift-10", True, True), ("content", "gift-10", True, True)]
    await shop.set_product("gift-10", active=False)
    gone, _ = await feed(f"?since={end}")
    assert gone == [("activation", "gift-10", False, True)]
