"""What clients send by mistake, and the one line that tells them which field breaks which rule."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.shop import Company, Shop
from voucherd.ids import State


def body(**changes: Any) -> dict[str, Any]:
    """A good Create request with these fields instead."""
    good: dict[str, Any] = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    return good | changes


def item(**changes: Any) -> dict[str, Any]:
    """A good request whose second item has these fields instead."""
    good = {"productSlug": "gift-10", "amount": 1}
    return body(items=[good, good | changes])


async def post(shop: Shop, company: Company, content: bytes | str, **headers: str) -> httpx.Response:
    """A Create request with exactly these bytes."""
    kind = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return await shop.call("POST", "/api/1.03/order", company, headers=kind, content=content)


async def test_what_is_not_json_is_refused(quiet_shop: Shop) -> None:
    """OP-25: 400, in many forms, and never a 500."""
    shop = quiet_shop
    company = await shop.company()
    good = json.dumps(body())
    forms: list[bytes] = [
        b"",
        b" ",
        b"{",
        b"}",
        b'{"items":',
        good[:-1].encode(),
        good.encode() + b"x",
        good.encode() * 2,
        good.replace('"', "'").encode(),
        good.replace("1", "01").encode(),
        good.replace("1}", "1,}").encode(),
        good.replace("1", "NaN").encode(),
        good.replace("1", "+1").encode(),
        good.replace("1", ".5").encode(),
        b"\xef\xbb\xbf" + good.encode(),
        good.encode("utf-16"),
        b"\xff\xfe",
        b'{"reference": "\xc3\x28"}',
        b'{"reference": "\\ud800"}',
        b'{"reference": "\x01"}',
        b'{"reference": "\\x41"}',
        b'{"unknown": ' + b"[" * 50_000,
        b"items=gift-10&amount=1",
        b"<order/>",
    ]
    before = await shop.snapshot()
    for form in forms:
        response = await post(shop, company, form)
        assert response.status_code == 400, (form[:40], response.text)
        assert "\n" not in response.text
    assert (await post(shop, company, b"{")).text == "the body is not valid JSON"
    assert await shop.snapshot() == before


async def test_a_field_of_the_wrong_kind_is_named_with_its_rule(quiet_shop: Shop) -> None:
    """OP-25: one line, such as `items[0].amount: must be between 1 and 10000`."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    await shop.product("choose", face_range="5.00-50.00 EUR", fee="1.02+0.25")
    wrong: list[tuple[Any, str]] = [
        ([], "body: must be an object"),
        ("text", "body: must be an object"),
        (None, "body: must be an object"),
        ({}, "items: is required"),
        ({"items": []}, "paymentCurrency: is required"),
        (body(items={}), "items: must be an array"),
        (body(items=None), "items: must be an array"),
        (body(items="gift-10"), "items: must be an array"),
        (body(items=[]), "items: must hold between 1 and 100 products"),
        (
            body(items=[{"productSlug": "gift-10", "amount": 1}] * 101),
            "items: must hold between 1 and 100 products",
        ),
        (
            body(items=[{"productSlug": "gift-10", "amount": 9_999}] * 2),
            "items: must add up to at most 10000 codes",
        ),
        (body(items=[7]), "items[0]: must be an object"),
        (body(items=[{"amount": 1}]), "items[0].productSlug: is required"),
        (body(items=[{"productSlug": "gift-10"}]), "items[0].amount: is required"),
        (item(productSlug=7), "items[1].productSlug: must be a string"),
        (item(productSlug=""), "items[1].productSlug: must be 1 to 100 printable characters"),
        (item(productSlug="x" * 101), "items[1].productSlug: must be 1 to 100 printable characters"),
        (item(productSlug="a\u0000b"), "items[1].productSlug: must be 1 to 100 printable characters"),
        (item(amount="1"), "items[1].amount: must be a whole number"),
        (item(amount=1.5), "items[1].amount: must be a whole number"),
        (item(amount=True), "items[1].amount: must be a whole number"),
        (item(amount=None), "items[1].amount: must be a whole number"),
        (item(amount=[1]), "items[1].amount: must be a whole number"),
        (item(amount=0), "items[1].amount: must be between 1 and 10000"),
        (item(amount=-1), "items[1].amount: must be between 1 and 10000"),
        (item(amount=10_001), "items[1].amount: must be between 1 and 10000"),
        (item(amount=10**30), "items[1].amount: must be between 1 and 10000"),
        (item(faceValue=10.01), "items[1].faceValue: is not allowed for a product with a fixed face value"),
        (item(faceValue="10"), "items[1].faceValue: must be a number"),
        (item(faceValue=[]), "items[1].faceValue: must be a number"),
        (item(faceValue=True), "items[1].faceValue: must be a number"),
        (
            item(productSlug="choose"),
            "items[1].faceValue: is required for a product with a variable face value",
        ),
        (
            item(productSlug="choose", faceValue=4.99),
            "items[1].faceValue: must be between 5.00 EUR and 50.00 EUR",
        ),
        (item(productSlug="choose", faceValue=1e30), "items[1].faceValue: '1E+30' is not an amount"),
        (body(paymentCurrency=None), "paymentCurrency: must be a string"),
        (body(paymentCurrency=978), "paymentCurrency: must be a string"),
        (body(paymentCurrency=""), "paymentCurrency: must be an ISO 4217 currency code"),
        (body(paymentCurrency="EURO"), "paymentCurrency: must be an ISO 4217 currency code"),
        (body(paymentCurrency="XXX"), "paymentCurrency: must be an ISO 4217 currency code"),
        (body(paymentCurrency=" EUR"), "paymentCurrency: must be an ISO 4217 currency code"),
        (body(paymentCurrency="u\u017fd"), "paymentCurrency: must be an ISO 4217 currency code"),
        (body(paymentCurrency="THB"), "paymentCurrency: there is no exchange rate for THB"),
        (body(reference=7), "reference: must be a string"),
        (body(reference={}), "reference: must be a string"),
        (body(reference="x" * 1_001), "reference: must be at most 1000 characters"),
        (body(reference="a\nb"), "reference: must have no control characters"),
        (body(reference="a\u0000b"), "reference: must have no control characters"),
        (body(reference="a\u0085b"), "reference: must have no control characters"),
    ]
    before = await shop.snapshot()
    for sent, text in wrong:
        response = await post(shop, company, json.dumps(sent))
        assert (response.status_code, response.text) == (400, text), sent
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert await shop.snapshot() == before


async def test_numbers_that_only_a_machine_would_write_are_refused_in_time(quiet_shop: Shop) -> None:
    """OP-14, OP-25: digits by the thousand and exponents by the million cost nothing and break nothing."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    await shop.product("choose", face_range="5.00-50.00 EUR", fee="1.02+0.25")
    for number in ("9" * 5_000, "1e999999999", "-1e999999999", "1" + "0" * 10_000 + ".5", "1e-999999999"):
        for field in ("amount", "faceValue"):
            other = '"amount": 1, ' if field == "faceValue" else ""
            sent = f'{{"items": [{{"productSlug": "choose", {other}"{field}": {number}}}], "paymentCurrency": "EUR"}}'
            response = await post(shop, company, sent)
            assert response.status_code == 400, (field, number[:20], response.text)
            assert response.text.startswith(f"items[0].{field}: "), response.text
    exact = (
        '{"items": [{"productSlug": "choose", "amount": 1, "faceValue": 2.5e1}], "paymentCurrency": "EUR"}'
    )
    await shop.stock("choose", 1, face="25.00 EUR")
    assert b'"faceValueAmount":25.00' in (await post(shop, company, exact)).content
    await shop.assert_books_balance()


async def test_unknown_fields_are_ignored_and_sizes_are_allowed_up_to_their_limits(quiet_shop: Shop) -> None:
    """OP-10, OP-14: 100 items, 10,000 codes, a reference of 1,000 characters that may be a JSON document."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=10_000)
    reference = json.dumps({"order": "Ä€😀 <&>", "note": ["'", '"']}, ensure_ascii=False).ljust(1_000, "…")

    sent = body(reference=reference, unknown={"deep": [1, 2]}, status="finished", trx="TRX1", priceAmount=0)
    sent["items"] = [{"productSlug": "gift-10", "amount": 100, "price": 1, "x": None}] * 100
    response = await post(shop, company, json.dumps(sent), accept="*/*")

    assert response.status_code == 201
    order = response.json()
    assert (order["reference"], order["orderStatus"]) == (reference, "created")
    assert order["trx"] != "TRX1"
    assert len(order["items"]) == 100
    assert (await shop.find(company, order["trx"]))["reference"] == reference
    await shop.assert_books_balance()


async def test_currency_codes_are_read_in_any_case(quiet_shop: Shop) -> None:
    """OP-06: upper case at order level, lower case below it."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    for code in ("EUR", "eur", "eUr"):
        order = await shop.create(company, ("gift-10", 1), currency=code)
        (line_item,) = order["items"]
        (line,) = line_item["orderLines"]
        assert order["priceCurrency"] == "EUR"
        assert line_item["priceCurrency"] == line_item["paymentCurrency"] == line["paymentCurrency"] == "eur"
        assert line_item["product"]["faceValueCurrency"] == line["productFacevalueCurrency"] == "eur"
    await shop.assert_books_balance()


async def test_a_body_of_another_type_or_size_is_refused(quiet_shop: Shop) -> None:
    """OP-25, OP-14: 415 for another content type, 413 above 256 KiB."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    good = json.dumps(body())
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
        "application/jsonx",
        "",
    ):
        response = await post(shop, company, good, content_type=kind)
        assert (response.status_code, response.text) == (415, "content type must be application/json"), kind
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=1"):
        assert (await post(shop, company, good, content_type=kind)).status_code == 201, kind

    limit = 256 * 1024
    fits = json.dumps(body(pad="x" * (limit - len(json.dumps(body(pad=""))))))
    assert len(fits) == limit
    assert (await post(shop, company, fits)).status_code == 201
    response = await post(shop, company, fits + " ")
    assert (response.status_code, response.text) == (413, "the body must be at most 262144 bytes")
    await shop.assert_books_balance()


async def test_a_body_that_does_not_say_its_size_is_cut_off_too(quiet_shop: Shop) -> None:
    """OP-14: the bytes are counted, not believed."""
    shop = quiet_shop
    company = await shop.company()

    async def endless() -> Any:
        for _ in range(300):
            yield b" " * 1024

    headers = {"content-type": "application/json"}
    response = await shop.call("POST", "/api/1.03/order", company, headers=headers, content=endless())
    assert response.status_code == 413


async def test_bad_parameters_of_find_all_are_named(quiet_shop: Shop) -> None:
    """OP-03, OP-25: each filter and page parameter says what it wants."""
    shop = quiet_shop
    company = await shop.company()
    wrong = [
        ("limit=0", "limit: must be between 1 and 200"),
        ("limit=201", "limit: must be between 1 and 200"),
        ("limit=ten", "limit: must be between 1 and 200"),
        ("limit=-1", "limit: must be between 1 and 200"),
        ("limit=1.0", "limit: must be between 1 and 200"),
        ("limit=%D9%A1", "limit: must be between 1 and 200"),
        ("limit=5&limit=6", "limit: must be given once"),
        ("page=0", "page: must be between 1 and 1000000"),
        ("page=99999999999999999999", "page: must be between 1 and 1000000"),
        ("page=1&cursor=", "page: can not be combined with cursor"),
        ("offset=0&cursor=", "offset: can not be combined with cursor"),
        ("offset=0&page=1", "offset: can not be combined with page"),
        ("offset=-1", "offset: must be between 0 and 200000000"),
        ("offset=200000001", "offset: must be between 0 and 200000000"),
        ("offset=1&offset=2", "offset: must be given once"),
        ("cursor=nonsense", "cursor: is not one of ours"),
        ("cursor=%00", "cursor: must have no control characters"),
        ("cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5LjE", "cursor: is not one of ours"),
        ("orderStatus=deleted", "orderStatus: must be created, pending, finished or cancelled"),
        ("orderStatus=", "orderStatus: must be created, pending, finished or cancelled"),
        ("orderStatus=created&orderStatus=x", "orderStatus: must be created, pending, finished or cancelled"),
        ("type=phone", "type: must be api or portal"),
        ("paymentCurrency=EURO", "paymentCurrency: must be an ISO 4217 currency code"),
        ("sortOrder=up", "sortOrder: must be asc or desc"),
        ("dateFrom=yesterday", "dateFrom: must be an ISO 8601 date or date-time"),
        ("dateTo=2026-02-30", "dateTo: must be an ISO 8601 date or date-time"),
        ("dateTo=", "dateTo: must be an ISO 8601 date or date-time"),
        ("reference=a%00b", "reference: must have no control characters"),
        ("reference=%FF", "query: is not valid"),
        ("productSlug=a&productSlug=b", "productSlug: must be given once"),
    ]
    for query, text in wrong:
        await shop.assert_refused(shop.call("GET", f"/api/1.03/order?{query}", company), 400, text)
    good = [
        "sortOrder=ASC",
        "trx=nonsense",
        "dateFrom=0001-01-01",
        "dateTo=9999-12-31T23:59:59Z",
    ]
    good += [
        "dateFrom=2026-01-01T00:00:00%2B02:00",
        "dateFrom=2026-01-01T00:00:00+02:00",
        "productSlug=",
        "cursor=",
    ]
    for query in good:
        response = await shop.call("GET", f"/api/1.03/order?{query}", company)
        assert response.status_code == 200, (query, response.text)


async def test_a_bad_sandbox_header_is_refused_and_any_is_on_a_live_key(quiet_shop: Shop) -> None:
    """OP-49: 400 on a live key, even for a word that the sandbox knows."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    live = (await shop.create(company, ("gift-10", 1)))["trx"]
    play = (await shop.create(company, ("gift-10", 1), state=State.SANDBOX))["trx"]
    words = (
        "must be finished, cancelled, pending, slow:<seconds>, partial, out-of-stock, insufficient-balance, "
        "offer-withdrawn, expired, unverified, slow-webhook:<seconds>, rate-limited or unavailable"
    )
    for operation in ("confirm", "resolve"):
        for outcome in ("finished", "slow:1", "nonsense"):
            refused = shop.finalise(operation, company, live, outcome=outcome)
            await shop.assert_refused(refused, 400, "X-Sandbox-Outcome: is for sandbox keys only")
        for outcome in ("", "Finished", "slow", "slow:", "slow:-1", "slow:1.5", "slow:99999", "finished:1"):
            refused = shop.finalise(operation, company, play, outcome=outcome, state=State.SANDBOX)
            await shop.assert_refused(refused, 400, f"X-Sandbox-Outcome: {words}")
    await shop.assert_books_balance()
