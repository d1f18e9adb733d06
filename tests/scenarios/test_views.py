"""What recipients saw of an order's lines, as its buyer reads it, and the PIN that he may put before its codes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.shop import Shop
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.orders.model import INLINE_LINES_MAX
from voucherd.recipients import vouchers
from voucherd.recipients.pins import (
    FORGOTTEN_AFTER,
    PIN_DIGITS_MAX,
    PIN_DIGITS_MIN,
    PIN_DIGITS_PROPOSED,
    TRIES_MAX,
    PinCheck,
    Pins,
    pause,
    proposed,
)


def lines_of(order: dict[str, Any]) -> list[dict[str, Any]]:
    """The order's lines."""
    return [line for item in order["items"] for line in item["orderLines"]]


async def view(shop: Shop, line: dict[str, Any], *, code: bool) -> None:
    """Open the line's link and, if so, show its code."""
    place = shop.ids.line_of_token(line["token"])
    assert place is not None
    voucher = await vouchers.look(shop.pool, *place)
    assert voucher is not None
    assert (voucher.order_id, voucher.line) == place
    await vouchers.note_opened(shop.pool, voucher)  # type: ignore[arg-type]
    if code:
        async with transaction(shop.pool) as tx:
            await vouchers.note_shown(tx, voucher)


async def test_the_buyer_sees_what_recipients_saw_first(shop: Shop) -> None:
    """OP-57: opening sets dateLinkViewed, showing the code dateVoucherViewed, the first time only, in every answer."""
    await shop.product("gift-10", stock=INLINE_LINES_MAX + 10)
    company = await shop.company(balance="5000.00 EUR")
    small = lines_of(await shop.confirm(company, (await shop.create(company, ("gift-10", 3)))["trx"]))
    large_trx = (await shop.create(company, ("gift-10", INLINE_LINES_MAX + 1)))["trx"]
    large = lines_of(await shop.confirm(company, large_trx))
    assert all(line["dateLinkViewed"] is line["dateVoucherViewed"] is None for line in small + large)

    await asyncio.gather(*(view(shop, small[1], code=False) for _ in range(4)))
    await asyncio.gather(*(view(shop, small[2], code=True) for _ in range(4)))
    await view(shop, large[-1], code=True)
    small_trx = shop.ids.trx(shop.order_of(small[0]))
    found = lines_of(await shop.find(company, small_trx))

    assert [(line["dateLinkViewed"] is None, line["dateVoucherViewed"] is None) for line in found] == [
        (True, True),
        (False, True),
        (False, False),
    ]
    await view(shop, small[1], code=True)
    again = lines_of(await shop.find(company, small_trx))
    assert again[1]["dateLinkViewed"] == found[1]["dateLinkViewed"] <= again[1]["dateVoucherViewed"]
    assert again[2] == found[2]
    assert again[0] == found[0] == small[0]
    streamed = lines_of(await shop.find(company, large_trx))
    assert [line["dateVoucherViewed"] is None for line in streamed] == [True] * INLINE_LINES_MAX + [False]
    listed = (await shop.call("GET", "/api/1.03/order", company)).json()["data"]
    assert {order["trx"]: lines_of(order) for order in listed} == {small_trx: again, large_trx: streamed}
    for trx, lines in ((small_trx, again), (large_trx, streamed)):
        page = (await shop.call("GET", f"/api/1.03/order/{trx}/line?limit=1000", company)).json()
        assert page["data"] == lines
    await shop.assert_books_balance()


async def test_a_pin_is_the_buyers_to_set_and_waits_after_wrong_ones(shop: Shop) -> None:
    """OP-96: 4 to 12 digits, of the own company's order alone; five wrong tries make all its links wait."""
    await shop.product("gift-10", stock=5)
    company, other = await shop.company(), await shop.company()
    trx = (await shop.create(company, ("gift-10", 2)))["trx"]
    path = f"/api/1.03/order/{trx}/redemption"
    order_id = shop.ids.order_id(trx)
    assert order_id is not None
    pins = Pins(shop.master)

    async def tried(pin: str, line: int = 0) -> tuple[PinCheck, int]:
        async with transaction(shop.pool) as tx:
            came = await pins.tried(tx, order_id, line, pin)
        return came.told, came.left

    for bad in ("123", "1" * 13, "12a4", "١٢٣٤", "12 34", ""):
        refused = await shop.call("PATCH", path, company, json={"pin": bad})
        assert (refused.status_code, refused.text) == (400, "pin: must be 4 to 12 digits, or null")
    assert (await shop.call("PATCH", path, company, json={})).text == "pin: is required"
    for stranger, state in ((other, State.LIVE), (company, State.SANDBOX)):
        refused = await shop.call("PATCH", path, stranger, state=state, json={"pin": "1234"})
        assert (refused.status_code, refused.text) == (404, "order not found")
    assert await tried("anything") == (PinCheck.RIGHT, 0)

    answer = await shop.call("PATCH", path, company, json={"pin": "1234"})
    assert answer.json() == {"trx": trx, "hasPin": True}
    assert await tried("0000") == (PinCheck.WRONG, TRIES_MAX - 1)
    assert await tried("1234") == (PinCheck.RIGHT, 0)
    came = [told for told, _ in await asyncio.gather(*(tried("0000") for _ in range(2 * TRIES_MAX)))]
    assert sorted(told.value for told in came) == ["not now"] * TRIES_MAX + ["wrong"] * TRIES_MAX
    assert await tried("1234") == (PinCheck.NOT_NOW, 0)
    assert await tried("1234", line=1) == (PinCheck.NOT_NOW, 0)

    wait = "SELECT blocked_until - tried_at FROM pin_try"
    assert (await shop.pool.fetchval(wait)).total_seconds() == 60 * 60
    await shop.pool.execute("UPDATE pin_try SET blocked_until = now()")
    came = [told for told, _ in [await tried("0000") for _ in range(TRIES_MAX)]]
    assert came == [PinCheck.WRONG] * TRIES_MAX
    assert (await shop.pool.fetchval(wait)).total_seconds() == 120 * 60
    await shop.call("PATCH", path, company, json={"pin": "567890"})
    assert await tried("567890") == (PinCheck.RIGHT, 0)
    assert (await shop.call("PATCH", path, company, json={"pin": None})).json()["hasPin"] is False
    assert await tried("") == (PinCheck.RIGHT, 0)
    await shop.assert_books_balance()


async def test_wrong_pins_at_any_link_count_against_the_whole_order(shop: Shop) -> None:
    """OP-104: five wrong ones in all, one at each of many, close every link; a right one forgives its own link."""
    await shop.product("gift-10", stock=20)
    company = await shop.company()
    trx = (await shop.create(company, ("gift-10", 20)))["trx"]
    order_id = shop.ids.order_id(trx)
    assert order_id is not None
    await shop.call("PATCH", f"/api/1.03/order/{trx}/redemption", company, json={"pin": "274913"})
    pins = Pins(shop.master)

    async def tried(pin: str, line: int) -> PinCheck:
        async with transaction(shop.pool) as tx:
            return (await pins.tried(tx, order_id, line, pin)).told

    came = await asyncio.gather(*(tried("000000", line) for line in range(20)))
    assert sorted(one.value for one in came) == ["not now"] * 15 + ["wrong"] * TRIES_MAX
    assert {await tried("274913", line) for line in range(20)} == {PinCheck.NOT_NOW}

    until = "SELECT max(blocked_until - tried_at) FROM pin_try"
    assert (await shop.pool.fetchval(until)).total_seconds() == 15 * 60
    await shop.pool.execute("UPDATE pin_try SET blocked_until = now() WHERE blocked_until IS NOT NULL")
    # A recipient who knows the PIN takes nothing off what others tried at their links.
    assert await tried("000000", 19) is PinCheck.WRONG
    assert await tried("274913", 19) is PinCheck.RIGHT
    assert [await tried("000000", 18) for _ in range(TRIES_MAX)] == [PinCheck.WRONG] * TRIES_MAX
    assert await tried("274913", 17) is PinCheck.NOT_NOW
    assert (await shop.pool.fetchval(until)).total_seconds() == 30 * 60
    await shop.pool.execute(
        "UPDATE pin_try SET tried_at = tried_at - interval '8 days', blocked_until = blocked_until - interval '8 days'"
    )
    assert [await tried("000000", 1) for _ in range(TRIES_MAX)] == [PinCheck.WRONG] * TRIES_MAX
    assert (await shop.pool.fetchval(until)).total_seconds() == 15 * 60


def test_finding_a_pin_takes_years() -> None:
    """OP-104: the pauses let nobody try half of all PINs within two years, however short the PIN is."""
    assert {len(proposed()) for _ in range(100)} == {PIN_DIGITS_PROPOSED}
    for digits in range(PIN_DIGITS_MIN, PIN_DIGITS_MAX + 1):
        half = 10**digits // 2
        longest = pause(TRIES_MAX * 1_000, digits)
        assert longest is not None
        assert longest.days * (half // TRIES_MAX) > 2 * 365
        # To rest until everything is forgotten, after however many runs, is no way round.
        waited = FORGOTTEN_AFTER
        for runs in range(1, 100):
            waited += pause(runs * TRIES_MAX, digits) or timedelta()
            assert waited.total_seconds() / 86_400 * (half / (runs * TRIES_MAX)) > 2 * 365
