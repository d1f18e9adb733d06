"""The page behind a redemption link, as a recipient's browser gets it."""

from __future__ import annotations

import asyncio
import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.pages.people import HTML, someone
from tests.pages.test_every_page import INLINE, WEIGHT_BYTES_MAX, weight
from tests.shop import Company, Shop
from voucherd.actors import SYSTEM
from voucherd.catalogue import logos
from voucherd.clock import iso
from voucherd.db import transaction
from voucherd.ids import State, state_of
from voucherd.limits.unknown_links import UNKNOWN_MAX
from voucherd.orders.model import INLINE_LINES_MAX
from voucherd.pages.buyer.links import PAGE
from voucherd.recipients import vouchers
from voucherd.recipients.pins import OF_NETWORK, PIN_DIGITS_PROPOSED, TRIES_MAX, PinCheck
from voucherd.recipients.service import Closed, Recipients, ShownVoucher
from voucherd.vault.model import Via

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Safari/604.1"
)
PERSON = {**HTML, "user-agent": IPHONE}
NEVER = (None, None)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)
"""One dot."""


async def ordered(
    shop: Shop, company: Company, slug: str, amount: int = 1, **options: Any
) -> list[dict[str, Any]]:
    """The lines of a new finished order."""
    state = options.get("state", State.LIVE)
    trx = (await shop.create(company, (slug, amount), state=state))["trx"]
    order = await shop.confirm(company, trx, outcome="finished" if state else None, **options)
    return list(order["items"][0]["orderLines"])


async def seen(shop: Shop, company: Company, line: dict[str, Any]) -> tuple[str | None, str | None]:
    """When the buyer is told that the link was opened and the code shown."""
    found = await shop.find(company, shop.ids.trx(shop.order_of(line)), state=state_of(shop.order_of(line)))
    (same,) = (one for item in found["items"] for one in item["orderLines"] if one["id"] == line["id"])
    return same["dateLinkViewed"], same["dateVoucherViewed"]


async def opened(shop: Shop, line: dict[str, Any], **headers: str) -> httpx.Response:
    """The page of the line's link."""
    return await shop.client.get(f"/r/{line['token']}", headers=PERSON | headers)


async def clicked(
    shop: Shop, line: dict[str, Any], page: httpx.Response, pin: str = "", **headers: str
) -> httpx.Response:
    """What follows a click on the page's button."""
    word = re.search(r'name="word" value="([^"]*)"', page.text)
    fields = {"word": word[1] if word else "", "pin": pin}
    return await shop.client.post(f"/r/{line['token']}", headers=PERSON | headers, data=fields)


async def test_a_person_opens_a_link_and_sees_the_code_on_a_click(shop: Shop) -> None:
    """OP-57, OP-94, OP-174: opening and showing are told once each, however often it opens; each reveal is a row."""
    await shop.product(
        "gift-10",
        stock=3,
        expires=datetime(2090, 5, 3, tzinfo=UTC),
        brand="Nimbari & Söhne",
        region="nl",
        redeem_instructions="1. Open <the> app",
        terms="No cash.",
    )
    company = await shop.company()
    (line, quiet) = await ordered(shop, company, "gift-10", 2)
    code, serial = line["voucherCode"], line["voucherSerial"]
    assert line["redemptionLink"].endswith("/r/" + line["token"])

    for headers in ({"user-agent": "Slackbot 1.0"}, {"sec-purpose": "prefetch"}, {"user-agent": ""}):
        preview = await opened(shop, line, **headers)
        assert preview.status_code == 200
        assert 'property="og:title" content="Your gift card from Nimbari &amp; Söhne"' in preview.text
        answer = await clicked(shop, line, preview, **headers)
        assert code not in preview.text + answer.text
        assert answer.status_code == 400
    assert (await shop.client.head(f"/r/{line['token']}", headers=PERSON)).status_code == 200
    assert await seen(shop, company, line) == NEVER

    page, *others = await asyncio.gather(*(opened(shop, line) for _ in range(4)))
    link_at, code_at = first = await seen(shop, company, line)
    assert link_at is not None
    assert code_at is None
    assert f'<p class="shop">{shop.program.services.settings.operator_name}</p>' in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-robots-tag"].startswith("noindex")
    assert "set-cookie" not in page.headers
    assert all(other.status_code == 200 for other in others)
    for words in (
        "€10",
        "Valid until 3 May 2090",
        "1. Open &lt;the&gt; app",
        "No cash.",
        "Netherlands",
        "Show the code",
    ):
        assert words in page.text, words
    assert code not in page.text
    assert serial not in page.text

    answer, again = await asyncio.gather(clicked(shop, line, page), clicked(shop, line, page))
    for shown in (answer, again):
        assert shown.status_code == 200
        assert "set-cookie" not in shown.headers
        assert shown.headers["cache-control"] == "no-store"
        assert f">{code}</p>" in shown.text
        assert f'data-copy="{code}"' in shown.text
        assert serial in shown.text
        assert shown.text.count("<svg") == 3
        assert not re.search(INLINE, shown.text)
    assert await weight(shop, answer) < WEIGHT_BYTES_MAX
    _, code_at = second = await seen(shop, company, line)
    assert code_at is not None
    assert second == (link_at, code_at)
    await clicked(shop, line, await opened(shop, line, **{"accept-language": "nl"}))
    assert await seen(shop, company, line) == second != first
    assert await seen(shop, company, quiet) == NEVER
    rows = await shop.pool.fetch(
        "SELECT DISTINCT order_id, company_id, line_from, lines, actor_id, host(address) FROM reveal "
        "WHERE via = $1",
        int(Via.REDEMPTION),
    )
    assert [tuple(row) for row in rows] == [(shop.order_of(line), company.id, 0, 1, None, "127.0.0.1")]
    assert await shop.pool.fetchval("SELECT count(*) FROM reveal WHERE via = $1", int(Via.REDEMPTION)) == 3
    assert await shop.events(shop.ids.trx(shop.order_of(line))) == ["order.created", "order.finished"]
    await shop.assert_books_balance()


async def test_a_form_of_another_page_shows_nothing(shop: Shop) -> None:
    """OP-57: the word belongs to its link and to its hour; a form of another site is refused; a GET has no code."""
    await shop.product("gift-10", stock=3)
    company = await shop.company()
    line, other = await ordered(shop, company, "gift-10", 2)
    elsewhere = await opened(shop, other)
    page = await opened(shop, line)
    word = re.search(r'name="word" value="([^"]*)"', page.text)
    assert word is not None
    ends, _, signature = word[1].partition(".")
    old = f"{int(ends, 16) - 7200:x}.{signature}"

    for wrong in (
        elsewhere,
        httpx.Response(200, text=f'name="word" value="{old}"'),
        httpx.Response(200, text=""),
    ):
        answer = await clicked(shop, line, wrong)
        assert answer.status_code == 400
        assert "Please try once more" in answer.text
        assert line["voucherCode"] not in answer.text
    foreign = await clicked(shop, line, page, origin="https://evil.example")
    assert foreign.status_code == 403
    asked = await shop.client.get(f"/r/{line['token']}?word={word[1]}&pin=", headers=PERSON)
    assert line["voucherCode"] not in foreign.text + asked.text
    assert (await seen(shop, company, line))[1] is None
    assert (await shop.client.put(f"/r/{line['token']}", headers=PERSON)).status_code == 405


async def test_vouchers_that_are_no_good_say_so_and_show_nothing(shop: Shop) -> None:
    """OP-57: expired, cancelled and coming ones say so; tests are marked; what is no link says nothing."""
    soon = datetime.now(UTC) + timedelta(days=1)
    await shop.product("brief-10", stock=1, expires=soon)
    await shop.product("later-10", async_delivery=True, product_type="subscription")
    company = await shop.company()
    (brief,) = await ordered(shop, company, "brief-10")
    page = await opened(shop, brief)
    waiting = await shop.create(company, ("later-10", 2))
    bare = shop.ids.tokens(shop.ids.order_id(waiting["trx"]) or 0, [0, 1, 2])
    made_up = [
        bare[0][:-1] + ("0" if bare[0][-1] != "0" else "1"),
        bare[0].lower(),
        bare[2],
        "x",
        "%00",
        "é" * 20,
    ]
    for token in (bare[0], *made_up):
        nothing = await shop.client.get(f"/r/{token}", headers=PERSON)
        assert nothing.status_code == 404
        assert "This link does not lead to a voucher" in nothing.text
        assert "Testbrand" not in nothing.text

    await shop.confirm(company, waiting["trx"])
    coming = await opened(shop, {"token": bare[0]})
    assert (coming.status_code, "is on its way" in coming.text) == (200, True)
    assert "Your subscription from Testbrand" in coming.text
    await shop.cancel(company, waiting["trx"])
    cancelled = await opened(shop, {"token": bare[0]})
    assert "was cancelled" in cancelled.text
    assert 'name="word"' not in coming.text + cancelled.text
    (test,) = await ordered(shop, company, "brief-10", state=State.SANDBOX)
    marked = await opened(shop, test)
    assert "only a test" in marked.text
    assert test["voucherCode"] in (await clicked(shop, test, marked)).text

    await shop.product("back-10", stock=2)
    back, kept = await ordered(shop, company, "back-10", 2)
    page_back, trx = await opened(shop, back), shop.ids.trx(shop.order_of(back))
    first_line, second_line, no_line = [
        await vouchers.look(shop.pool, shop.order_of(back), line) for line in range(3)
    ]
    async with transaction(shop.pool) as tx:
        first = await vouchers.take_back(tx, SYSTEM, trx, first_line)
        with pytest.raises(vouchers.NoCode):
            await vouchers.take_back(tx, SYSTEM, trx, no_line)
    async with transaction(shop.pool) as tx:
        assert await vouchers.take_back(tx, SYSTEM, trx, first_line) == first
        assert await vouchers.take_back(tx, SYSTEM, trx, second_line) > first
    for returned in (
        await clicked(shop, back, page_back),
        await opened(shop, back),
        await opened(shop, kept),
    ):
        assert "was returned" in returned.text
        assert back["voucherCode"] not in returned.text
    told = await shop.find(company, shop.ids.trx(shop.order_of(back)))
    assert told["items"][0]["orderLines"][0]["dateReturned"] == iso(first)
    assert await seen(shop, company, kept) != NEVER

    await shop.expire_codes("brief-10")
    expired = await clicked(shop, brief, page)
    assert "has expired" in expired.text
    assert brief["voucherCode"] not in expired.text
    assert (await seen(shop, company, brief))[1] is None
    await shop.assert_books_balance()


async def test_a_pin_keeps_the_code_from_those_who_only_have_the_link(shop: Shop) -> None:
    """OP-96: asked for in the visitor's language; wrong ones are counted, then the link waits for the right one too."""
    await shop.product("gift-10", stock=1)
    company = await shop.company()
    (line,) = await ordered(shop, company, "gift-10")
    trx = shop.ids.trx(shop.order_of(line))
    await shop.call("PATCH", f"/api/1.03/order/{trx}/redemption", company, json={"pin": "274913"})
    page = await opened(shop, line)
    assert 'name="pin"' in page.text

    wrong = await clicked(shop, line, page, "0000", **{"accept-language": "de"})
    assert wrong.status_code == 422
    assert "Das ist nicht die richtige PIN. Verbleibende Versuche: 4" in wrong.text
    assert '<html lang="de">' in wrong.text
    last = [await clicked(shop, line, page, "x" * at) for at in range(4)][-1]
    assert "Too many wrong PINs. You can try again in 15 minutes." in last.text
    blocked = await clicked(shop, line, page, "274913")
    assert blocked.status_code == 429
    assert all(line["voucherCode"] not in answer.text for answer in (page, wrong, last, blocked))
    assert "disabled" in (await opened(shop, line)).text
    assert (await seen(shop, company, line))[1] is None
    await shop.pool.execute("UPDATE pin_try SET blocked_until = now()")
    shown = await clicked(shop, line, page, " 274913 ")
    assert line["voucherCode"] in shown.text


async def test_no_link_of_an_order_opens_while_pins_are_guessed_and_its_buyer_is_told(shop: Shop) -> None:
    """OP-104: wrong ones at a hundred links count as one order's; a mail and the order's pages tell the buyer."""
    lines_max = 100
    await shop.product("gift-10", stock=lines_max)
    company = await shop.company()
    lines = await ordered(shop, company, "gift-10", lines_max)
    buyer = await someone(shop, "buyer", company)
    path = f"/portal/orders/{shop.ids.trx(shop.order_of(lines[0]))}"
    offered = re.search('name="pin"[^>]*value="([0-9]*)"', (await buyer.get(f"{path}/links")).text)
    assert offered is not None
    pin = offered[1]
    assert len(pin) == PIN_DIGITS_PROPOSED
    assert "With a PIN" in (await buyer.post(f"{path}/links", {"pin": pin}, follow=True)).text
    assert "rong PIN" not in (await buyer.get(path)).text

    wrong = f"{(int(pin) + 1) % 1_000_000:06d}"
    came = [await clicked(shop, line, await opened(shop, line), wrong) for line in lines]
    assert [one.status_code for one in came] == [422] * TRIES_MAX + [429] * (lines_max - TRIES_MAX)
    for line in lines:
        tried = await clicked(shop, line, await opened(shop, line), pin)
        assert (tried.status_code, line["voucherCode"] in tried.text) == (429, False)
    assert "Wrong PINs were tried at the links of this order" in (await buyer.get(path)).text
    assert "5 wrong PINs were tried at these links." in (await buyer.get(f"{path}/links")).text
    told = await shop.pool.fetch("SELECT recipients FROM mail WHERE subject LIKE 'Wrong PINs%'")
    assert [row["recipients"] for row in told] == [[buyer.email]]
    await buyer.post(f"{path}/links", {"pin": pin}, follow=True)
    assert lines[7]["voucherCode"] in (await clicked(shop, lines[7], await opened(shop, lines[7]), pin)).text


async def test_a_network_that_tries_pins_at_many_orders_has_to_wait(shop: Shop) -> None:
    """OP-104: wrong PINs are counted by network, too, in the database: another process counts on."""
    orders = OF_NETWORK.free // (TRIES_MAX - 1) + 1
    await shop.product("gift-10", stock=orders)
    company = await shop.company()
    lines = [(await ordered(shop, company, "gift-10"))[0] for _ in range(orders)]
    for line in lines:
        path = f"/api/1.03/order/{shop.ids.trx(shop.order_of(line))}/redemption"
        await shop.call("PATCH", path, company, json={"pin": "274913"})
    tokens = [line["token"] for line in lines for _ in range(TRIES_MAX - 1)]
    others = [Recipients(shop.pool, shop.sealer, shop.ids, shop.master) for _ in range(2)]
    came = [
        await others[at % 2].reveal(token, "000000", f"2001:db8::{at:x}") for at, token in enumerate(tokens)
    ]
    told = [one.tried.told for one in came if isinstance(one, Closed) and one.tried is not None]
    waiting = len(tokens) - OF_NETWORK.free
    assert told == [PinCheck.WRONG] * OF_NETWORK.free + [PinCheck.NOT_NOW] * waiting
    # Somebody elsewhere is not held up, and the right PIN costs nobody anything.
    for _ in range(OF_NETWORK.free + 1):
        assert isinstance(await others[0].reveal(tokens[0], "274913", "198.51.100.7"), ShownVoucher)


async def test_a_buyer_sees_what_was_opened_and_sets_a_pin_in_the_portal(shop: Shop) -> None:
    """OP-57, OP-96: the same dates and the same PIN as over the API; a viewer may look and set nothing."""
    await shop.product("gift-10", stock=INLINE_LINES_MAX + 2)
    company = await shop.company(balance="5000.00 EUR")
    first, second, *_ = lines = await ordered(shop, company, "gift-10", INLINE_LINES_MAX + 1)
    buyer, viewer = await someone(shop, "buyer", company), await someone(shop, "viewer", company)
    path = f"/portal/orders/{shop.ids.trx(shop.order_of(first))}/links"
    await clicked(shop, second, await opened(shop, second))

    page = await viewer.get(path)
    assert page.text.count("<time") == 2, page.text
    assert 'name="pin"' not in page.text
    assert all(line["token"] not in page.text and line["voucherCode"] not in page.text for line in lines)
    assert f"?from={PAGE}" in page.text
    assert (await viewer.get(path + "?from=100")).text.count('scope="row"') == 1
    assert (await viewer.get(path + "?from=-1")).text.count('scope="row"') == PAGE
    assert (await viewer.post(path, {"pin": "1234"})).status_code == 403

    wrong = await buyer.post(path, {"pin": "12"})
    assert (wrong.status_code, "A PIN has 4 to 12 digits." in wrong.text) == (422, True)
    assert "With a PIN" in (await buyer.post(path, {"pin": "2749"}, follow=True)).text
    assert 'name="pin"' in (await opened(shop, first)).text
    assert "With a PIN" not in (await buyer.post(path, {"remove": "yes"}, follow=True)).text
    assert 'name="pin"' not in (await opened(shop, first)).text


async def test_a_brands_logo_is_on_its_card_and_nothing_else_can_be(shop: Shop) -> None:
    """OP-57: small pictures of dots only, from our own address, kept by browsers; removed, the name is back."""
    await shop.product("gift-10", stock=1)
    company = await shop.company()
    (line,) = await ordered(shop, company, "gift-10")
    assert "<img" not in (await opened(shop, line)).text
    async with transaction(shop.pool) as tx:
        name = await logos.set_logo(tx, "testbrand", PNG)
        with pytest.raises(logos.BrandNotFound):
            await logos.set_logo(tx, "nobody", PNG)
    assert f'<img src="/logo/{name}" alt="Testbrand"' in (await opened(shop, line)).text
    picture = await shop.client.get(f"/logo/{name}")
    assert (picture.status_code, picture.content, picture.headers["content-type"]) == (200, PNG, "image/png")
    assert picture.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert picture.headers["x-content-type-options"] == "nosniff"
    for other in ("0" * 32 + ".png", name + "x", name.upper(), "..%2Fx"):
        assert (await shop.client.get(f"/logo/{other}")).status_code == 404
    async with transaction(shop.pool) as tx:
        assert await logos.remove_logo(tx, "testbrand")
        assert not await logos.remove_logo(tx, "testbrand")
    assert "<img" not in (await opened(shop, line)).text


async def test_who_tries_many_links_has_to_wait(shop: Shop) -> None:
    """Decision 9: an address that opens links which lead nowhere gets none after a while; others are not touched."""
    await shop.product("gift-10", stock=1)
    company = await shop.company()
    (line,) = await ordered(shop, company, "gift-10")
    for _ in range(UNKNOWN_MAX):
        assert (await opened(shop, {"token": "0" * 26})).status_code == 404
    tired = await opened(shop, line)
    assert (tired.status_code, tired.headers["retry-after"]) == (429, "600")
    assert (await clicked(shop, line, tired)).status_code == 429
