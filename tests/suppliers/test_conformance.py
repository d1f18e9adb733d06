"""The same tests for every adapter, whichever supplier it speaks to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from tests.shop import Shop
from tests.suppliers.crossing import answer
from tests.suppliers.stalls import FACE, STOCK, Stall, stall
from tests.suppliers.warehouse import Warehouse
from voucherd.money import Money
from voucherd.suppliers.protocol import (
    Bought,
    NotFound,
    QuoteFailed,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    Why,
)

OUTSIDE = ("http", "voucherd")
ALL = ("fake", "sandbox", *OUTSIDE)

GARBAGE = {
    "a page": answer("200 OK", b"<!doctype html><p>Welcome", "content-type: text/html"),
    "nothing": answer("200 OK", b""),
    "another shape": answer("200 OK", b'{"result": [1, 2, 3], "ok": true}'),
    "a list": answer("201 Created", b"[]"),
    "no UTF-8": answer("200 OK", b'{"status": "\xff\xfe"}'),
    "NaN": answer("200 OK", b'{"status": NaN}'),
    "depth": answer("200 OK", b"[" * 100_000 + b"]" * 100_000),
    "no HTTP": b"220 mail.example.com ESMTP\r\n\r\n",
    "half an answer": b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"status":',
    "an error": answer("503 Service Unavailable", b"try later"),
    "a redirect": answer("302 Found", b"", "location: http://127.0.0.1:9/elsewhere"),
}


@pytest.fixture(params=ALL)
async def any_stall(
    request: pytest.FixtureRequest, other_shop: Shop, other_port: int, wholesaler: Warehouse
) -> AsyncIterator[Stall]:
    """Each adapter in turn."""
    async with stall(request.param, other_shop, other_port, wholesaler) as opened:
        yield opened


@pytest.fixture(params=OUTSIDE)
async def far_stall(
    request: pytest.FixtureRequest, other_shop: Shop, other_port: int, wholesaler: Warehouse
) -> AsyncIterator[Stall]:
    """Each adapter that speaks with somebody else, over a network that fails."""
    async with stall(request.param, other_shop, other_port, wholesaler) as opened:
        yield opened


@pytest.fixture
def reference() -> str:
    """A reference that nobody used before."""
    return str(uuid4())


async def test_buys_exactly_what_was_asked_and_finds_it_again(any_stall: Stall, reference: str) -> None:
    """A look-up and a cancel of a finished purchase show the same codes, as often as one asks."""
    supplier, wanted = any_stall.supplier, any_stall.wanted(3)
    assert await supplier.look_up(reference, wanted) == NotFound()

    bought = await supplier.buy(reference, wanted)

    assert isinstance(bought, Bought)
    assert len({code.code for code in bought.codes}) == 3
    assert bought.price == Money.read("9.00 EUR")
    assert bought.external_id is not None
    for found in (
        await supplier.look_up(reference, wanted),
        await supplier.cancel(reference, wanted),
        await supplier.look_up(reference, wanted),
    ):
        assert found == bought
    assert await supplier.look_up(str(uuid4()), wanted) == NotFound()


async def test_prices_are_exact_and_leave_out_what_is_not_sold(any_stall: Stall) -> None:
    """A quote buys nothing and leaves nothing behind."""
    asked = [Sku(any_stall.sku, FACE), Sku("no-such-product", FACE)]
    quotes = await any_stall.supplier.quote(asked)
    assert quotes[0] == SupplierQuote(any_stall.sku, FACE, Money.read("9.00 EUR"), STOCK)
    assert len(quotes) == (2 if any_stall.sells_everything else 1)
    assert await any_stall.supplier.quote(asked) == quotes
    assert await any_stall.supplier.quote([]) == []


async def test_a_refused_purchase_leaves_nothing_to_look_up(any_stall: Stall, reference: str) -> None:
    """More than there is."""
    wanted = any_stall.wanted(STOCK + 1)
    answered = await any_stall.supplier.buy(reference, wanted)
    assert isinstance(answered, SupplierRefused)
    assert answered.why is Why.OUT_OF_STOCK
    assert await any_stall.supplier.look_up(reference, wanted) == NotFound()
    assert await any_stall.supplier.cancel(reference, wanted) == NotFound()


async def test_what_is_too_dear_is_refused_before_anything_is_bought(any_stall: Stall) -> None:
    """By a cent, or because nobody can compare two currencies."""
    await any_stall.ask("9.01")
    for price_max in ("9.00 EUR", "100.00 USD"):
        wanted = any_stall.wanted(3, price_max)
        answered = await any_stall.supplier.buy(reference := str(uuid4()), wanted)
        assert isinstance(answered, SupplierRefused)
        assert answered.why is Why.PRICE
        assert await any_stall.supplier.look_up(reference, wanted) == NotFound()
    if any_stall.crossing is not None:
        assert not [asked for asked in any_stall.crossing.seen if any_stall.paying in asked]
    affordable = await any_stall.supplier.buy(str(uuid4()), any_stall.wanted(3, "9.01 EUR"))
    assert isinstance(affordable, Bought)


async def test_purchases_side_by_side_get_different_codes(any_stall: Stall) -> None:
    """Each reference has its own."""
    answers = await asyncio.gather(
        *(any_stall.supplier.buy(str(uuid4()), any_stall.wanted(2)) for _ in range(6))
    )
    codes = [code.code for answered in answers for code in answered.codes]
    assert len(set(codes)) == len(codes) == 12


async def test_every_call_ends_in_time_when_nobody_answers(any_stall: Stall, reference: str) -> None:
    """The limit holds for the whole call, however many requests it takes: without it none of them would end."""
    wanted = any_stall.wanted()
    await any_stall.hang()
    supplier = any_stall.supplier

    answers: tuple[Any, ...] = await asyncio.gather(
        supplier.quote([Sku(any_stall.sku, FACE)]),
        supplier.buy(reference, wanted),
        supplier.look_up(reference, wanted),
        supplier.cancel(reference, wanted),
        return_exceptions=True,
    )
    quoted, bought, found, cancelled = answers
    assert isinstance(quoted, QuoteFailed)
    assert isinstance(bought, SupplierRefused | Unclear)
    if any_stall.crossing is not None:
        assert isinstance(found, Unclear)
        assert isinstance(cancelled, Unclear)
        assert isinstance(bought, SupplierRefused), "the paying call was never made"
        assert bought.why is Why.UNREACHABLE


@pytest.mark.parametrize("fault", ["hang", "reset", "lose"])
async def test_a_paying_call_without_an_answer_is_unclear(
    far_stall: Stall, reference: str, fault: str
) -> None:
    """Whether it arrived or not: only a look-up can tell."""
    assert far_stall.crossing is not None
    getattr(far_stall.crossing, fault)(far_stall.paying)
    wanted = far_stall.wanted(2)
    if fault == "hang":
        await far_stall.hurry()

    answered = await far_stall.supplier.buy(reference, wanted)
    while not [asked for asked in far_stall.crossing.seen if far_stall.paying in asked]:
        # The machine was too slow to get as far as the paying call: that is no.
        assert isinstance(answered, SupplierRefused)
        answered = await far_stall.supplier.buy(reference := str(uuid4()), wanted)
    assert isinstance(answered, Unclear)

    far_stall.crossing.open_up()
    found = await far_stall.supplier.look_up(reference, wanted)
    if fault == "lose":
        assert isinstance(found, Bought)
        assert len(found.codes) == 2
    else:
        # The other voucherd has an order that was never paid: the look-up takes it back, for good.
        assert found == NotFound() or isinstance(found, SupplierRefused)
        assert await far_stall.supplier.look_up(reference, wanted) == NotFound()


async def test_garbage_is_never_taken_for_a_yes_or_a_no(far_stall: Stall) -> None:
    """On the paying call and on a look-up nobody knows; a price there is none; nothing raises."""
    assert far_stall.crossing is not None
    for name, said in GARBAGE.items():
        far_stall.crossing.say(said, far_stall.paying)
        answered = await far_stall.supplier.buy(reference := str(uuid4()), far_stall.wanted(1))
        assert isinstance(answered, Unclear), name
        far_stall.crossing.say(said)
        assert isinstance(await far_stall.supplier.look_up(reference, far_stall.wanted(1)), Unclear), name
        assert isinstance(await far_stall.supplier.cancel(reference, far_stall.wanted(1)), Unclear), name
        with pytest.raises(QuoteFailed):
            await far_stall.supplier.quote([Sku(far_stall.sku, FACE)])
        far_stall.crossing.open_up()


async def test_no_secret_shows_in_anything_that_people_read(
    far_stall: Stall, reference: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in answers, errors, reprs or logs, even if the other side says it back."""
    assert far_stall.crossing is not None
    caplog.set_level(logging.DEBUG)
    supplier, wanted = far_stall.supplier, far_stall.wanted(2)
    shown = [repr(supplier)]
    bought = await supplier.buy(str(uuid4()), wanted)
    assert isinstance(bought, Bought)
    shown.append(repr(bought))
    echo = answer(
        "400 Bad Request", f"no such key: Bearer {far_stall.secret}".encode(), "content-type: text/plain"
    )
    for where in (far_stall.paying, ""):
        far_stall.crossing.say(echo, where)
        shown.append(repr(await supplier.buy(reference, wanted)))
    shown.append(repr(await supplier.look_up(reference, wanted)))
    with pytest.raises(QuoteFailed) as failed:
        await supplier.quote([Sku(far_stall.sku, FACE)])
    shown += [repr(failed.value), caplog.text]

    for text in shown:
        assert far_stall.secret not in text
        assert not [code for code in bought.codes if code.code in text]
