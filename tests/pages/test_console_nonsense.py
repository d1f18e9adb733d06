"""Nonsense in the console's forms and addresses is refused in words, and is never an error of ours."""

from __future__ import annotations

from collections import defaultdict
from urllib.parse import quote

import pytest

from tests.pages.people import someone
from tests.shop import Shop
from voucherd.pages.console.pages import PAGES

FIELDS = (
    *(
        "name",
        "country",
        "vat_number",
        "order",
        "day",
        "list",
        "approve_from",
        "company",
        "kind",
        "amount",
        "currency",
    ),
    *(
        "reference",
        "note",
        "product",
        "brand",
        "discount",
        "price",
        "fee",
        "from",
        "until",
        "rate",
        "of",
        "to",
        "share",
    ),
    *("email", "role", "scope", "rate_limit", "expires", "allow_ips", "order_max", "day_max", "overlap"),
    *(
        "description",
        "url",
        "key",
        "sealed_key",
        "on_unknown",
        "outcome",
        "delay_s",
        "stock",
        "bulk_max",
        "sku",
    ),
    *("face", "slug", "supplier", "purchase", "purchase_currency", "price_currency", "face_value", "face_to"),
    *("fee_times", "fee_plus", "face_currency", "edited", "category", "region", "sort", "status", "page"),
    *("actor", "action", "before", "after", "by", "trx", "q", "state"),
)
NONSENSE = (
    "-1",
    "9" * 30,
    "<script>'\"%00\\",
    "2999-12-31",
    "999999999999999.99 EUR",
    "\u202e\U0001f600",
)


@pytest.mark.parametrize(
    "words",
    [2, pytest.param(len(NONSENSE), marks=pytest.mark.soak)],
    ids=["two words a page", "every word"],
)
async def test_nonsense_is_never_an_error_of_ours(shop: Shop, words: int) -> None:
    """OP-91: every form and every address of these pages with some or each of them in every field."""
    company = await shop.company()
    await shop.product("gift", stock=1)
    admin = await someone(shop, "admin", strong=True)
    listed = (await admin.post("/console/prices", {"name": "gold"})).headers["location"].rpartition("/")[2]
    wish = {"company": str(company.id), "kind": "top-up", "amount": "1", "currency": "EUR", "reference": "r"}
    payment = (await admin.post("/console/money", wish)).headers["location"].rpartition("/")[2]
    known = {"company": str(company.id), "list": listed, "number": payment, "key": "1", "currency": "EUR"}
    play = {
        "kind": "sandbox",
        "name": "play",
        "state": "sandbox",
        "on_unknown": "wait",
        "outcome": "finished",
    }
    assert (await admin.post("/console/suppliers/-/new", play)).status_code == 303
    person = str((await someone(shop, "owner", company)).user_id)
    places = defaultdict(lambda: "1", known, report="sales", slug="gift", name="play", person=person)
    for number, page in enumerate(PAGES):
        for text in (NONSENSE[(number + place) % len(NONSENSE)] for place in range(words)):
            path = page.path.format_map(places)
            query = "&".join(f"{name}={quote(text)}" for name in FIELDS)
            fields = dict.fromkeys(FIELDS, text)
            sent = admin.post(path, fields) if page.method == "POST" else admin.get(f"{path}?{query}")
            answer = await sent
            assert answer.status_code < 500, (page.method, path, text[:40])
            for name in known:
                if f"{{{name}}}" in page.path:
                    path = page.path.format_map(places | {name: quote(text, safe="")})
                    answer = await (admin.post(path) if page.method == "POST" else admin.get(path))
                    assert answer.status_code < 500, (page.method, path)
    await shop.assert_books_balance()
