"""The described supplier against a real one that misbehaves in every way we could think of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tests.patience import HANG_S, until
from tests.suppliers.crossing import answer, crossing
from tests.suppliers.warehouse import Warehouse
from voucherd.money import Money
from voucherd.suppliers.http import HttpSupplier
from voucherd.suppliers.protocol import (
    Bought,
    NotFound,
    QuoteFailed,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)

TIMEOUT_S = HANG_S
HASTY_S = 3.0
"""The limit where nobody answers."""


def eur(amount: str) -> Money:
    """Euros."""
    return Money.parse(amount, "EUR")


def wanted(sku: str, count: int = 2, price_max: str = "9.00") -> WantedCodes:
    """So many codes of a product that costs 9 euros."""
    return WantedCodes(sku, eur("10.00"), count, eur(price_max))


@pytest.fixture
async def supplier(wholesaler: Warehouse) -> AsyncIterator[HttpSupplier]:
    """The wholesaler, through the adapter."""
    opened = HttpSupplier(wholesaler.description(), wholesaler.key, TIMEOUT_S)
    yield opened
    await opened.close()


@pytest.fixture
async def hasty(wholesaler: Warehouse) -> AsyncIterator[HttpSupplier]:
    """The same for somebody who does not wait for long."""
    opened = HttpSupplier(wholesaler.description(), wholesaler.key, HASTY_S)
    yield opened
    await opened.close()


@pytest.fixture
async def sku(wholesaler: Warehouse) -> str:
    """A product of this test's own."""
    name = f"gift-{uuid4().hex[:8]}"
    await wholesaler.stock(name)
    return name


@pytest.fixture
def reference() -> str:
    """A reference that nobody used before."""
    return str(uuid4())


async def bought(supplier: HttpSupplier, reference: str, sku: str) -> Bought | None:
    """The purchase, once the wholesaler has made it."""
    found = await supplier.look_up(reference, wanted(sku))
    return found if isinstance(found, Bought) else None


async def test_a_price_is_exact_and_an_unknown_product_is_left_out(supplier: HttpSupplier, sku: str) -> None:
    """Decimals never become floats on the way."""
    quotes = await supplier.quote([Sku(sku, eur("10.00")), Sku("unknown", eur("10.00"))])
    assert quotes == [SupplierQuote(sku, eur("10.00"), eur("9.00"), 1_000)]


@pytest.mark.parametrize("mode", ["reset-after", "error-after", "malformed", "cut-off", "hang-after"])
async def test_a_sale_whose_answer_is_lost_is_unclear_and_then_found(
    supplier: HttpSupplier, hasty: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str, mode: str
) -> None:
    """What was sold is never taken for refused."""
    await wholesaler.behave(sku, mode)

    buyer = hasty if mode == "hang-after" else supplier
    assert isinstance(await buyer.buy(reference, wanted(sku)), Unclear)

    found = await until(lambda: bought(supplier, reference, sku))
    assert isinstance(found, Bought)
    assert [code.code for code in found.codes] == (await wholesaler.sales())[reference]["codes"]


@pytest.mark.parametrize("mode", ["reset-before", "error-before", "hang-before"])
async def test_a_purchase_that_never_happened_is_unclear_and_then_not_found(
    supplier: HttpSupplier, hasty: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str, mode: str
) -> None:
    """From the buyer's side it looks like a sale whose answer was lost."""
    await wholesaler.behave(sku, mode)
    buyer = hasty if mode == "hang-before" else supplier
    assert isinstance(await buyer.buy(reference, wanted(sku)), Unclear)
    assert await supplier.look_up(reference, wanted(sku)) == NotFound()
    assert reference not in await wholesaler.sales()


@pytest.mark.parametrize(
    ("mode", "why"),
    [("out-of-stock", Why.OUT_OF_STOCK), ("funds", Why.FUNDS), ("rejected", Why.REJECTED)],
)
async def test_refusals_have_their_reasons(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str, mode: str, why: Why
) -> None:
    """Each rule of the description gives its own."""
    await wholesaler.behave(sku, mode)
    answer = await supplier.buy(reference, wanted(sku))
    assert isinstance(answer, SupplierRefused)
    assert answer.why is why


async def test_counts_that_differ_are_told_as_they_are(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str
) -> None:
    """Fewer, more, the same twice: a code that was paid for is never thrown away, nor counted twice."""
    for mode, count in (("partial", 2), ("too-many", 6), ("duplicate", 4)):
        await wholesaler.behave(sku, mode)
        answer = await supplier.buy(reference := str(uuid4()), wanted(sku, 4))
        assert isinstance(answer, Bought)
        assert [code.code for code in answer.codes] == (await wholesaler.sales())[reference]["codes"]
        assert len(answer.codes) == count


async def test_a_purchase_that_takes_a_while_is_under_way_and_then_either(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str
) -> None:
    """An asynchronous supplier delivers later, or gives up later."""
    await wholesaler.behave(sku, "accepted", seconds=3_600)
    assert isinstance(await supplier.buy(kept := str(uuid4()), wanted(sku)), UnderWay)
    await wholesaler.behave(sku, "accepted-then-fails", seconds=3_600)
    assert isinstance(await supplier.buy(failed := str(uuid4()), wanted(sku)), UnderWay)
    await wholesaler.behave(sku, "accepted", seconds=3_600)
    assert isinstance(await supplier.buy(cancelled := str(uuid4()), wanted(sku)), UnderWay)
    assert isinstance(await supplier.look_up(cancelled, wanted(sku)), UnderWay)

    assert await supplier.cancel(cancelled, wanted(sku)) == SupplierRefused(Why.CANCELLED, "cancelled")
    await wholesaler.pass_time()
    assert isinstance(await supplier.look_up(kept, wanted(sku)), Bought)
    assert await supplier.look_up(failed, wanted(sku)) == SupplierRefused(Why.REJECTED, "failed")


async def test_a_sale_that_comes_after_the_time_limit_is_found_in_the_end(
    supplier: HttpSupplier, hasty: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str
) -> None:
    """The reason why a purchase that is not found may still appear."""
    await wholesaler.behave(sku, "late-sale", seconds=HASTY_S + 1.0)
    assert isinstance(await hasty.buy(reference, wanted(sku)), Unclear)
    found, still_to_come = await supplier.look_up(reference, wanted(sku)), await wholesaler.late_sales()
    assert found == NotFound() or not still_to_come
    assert isinstance(await until(lambda: bought(supplier, reference, sku)), Bought)


async def test_a_wholesaler_that_is_not_there_was_surely_not_reached(
    wholesaler: Warehouse, reference: str
) -> None:
    """No connection, no purchase; but a look-up without an answer says nothing."""
    config = wholesaler.description(base_url="http://127.0.0.1:9")
    supplier = HttpSupplier(config, wholesaler.key, TIMEOUT_S)
    answer = await supplier.buy(reference, wanted("gift"))
    assert isinstance(answer, SupplierRefused)
    assert answer.why is Why.UNREACHABLE
    assert isinstance(await supplier.look_up(reference, wanted("gift")), Unclear)
    await supplier.close()


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ({"type": "bearer"}, "\r\nauthorization: Bearer s3cret&key\r\n"),
        ({"type": "basic", "user": "acme"}, "\r\nauthorization: Basic YWNtZTpzM2NyZXQma2V5\r\n"),
        ({"type": "header", "name": "X-Api-Key"}, "\r\nx-api-key: s3cret&key\r\n"),
        ({"type": "query", "name": "key"}, "/orders?key=s3cret%26key HTTP/1.1\r\n"),
    ],
)
async def test_the_secret_goes_where_the_description_says(
    wholesaler: Warehouse, reference: str, auth: dict[str, str], sent: str
) -> None:
    """And numbers go as numbers, exactly."""
    async with crossing() as way:
        way.say(answer("402 Payment Required", b"{}"))
        config = wholesaler.description(base_url=way.url, auth=auth, guard="supplier")
        supplier = HttpSupplier(config, "s3cret&key", TIMEOUT_S)
        answered = await supplier.buy(reference, wanted("gift", 3, "9.10"))
        await supplier.close()
        assert isinstance(answered, SupplierRefused)
        assert answered.why is Why.FUNDS
        assert sent.lower() in way.heads[0].lower()
        assert way.heads[0].count("s3cret") + way.heads[0].count("YWNtZTpzM2NyZXQma2V5") == 1
        expected = f'{{"reference":"{reference}","sku":"gift","quantity":3,"max_price":9.10}}'
        assert way.bodies == [expected.encode()]
    with pytest.raises(ValueError, match="secret: is required"):
        HttpSupplier(config, None, TIMEOUT_S)


async def test_a_list_of_products_is_asked_for_once(wholesaler: Warehouse) -> None:
    """Suppliers that only have a price list."""
    quote = {
        "path": "/catalogue",
        "root": "products[]",
        "fields": {"sku": "code", "price": "cents", "price_unit": "minor"},
    }
    body = (
        b'{"products": [{"code": "a", "cents": 905}, {"code": "b", "cents": 1810}, {"code": 7, "cents": 1}]}'
    )
    async with crossing() as way:
        way.say(answer("200 OK", body))
        config = wholesaler.description(base_url=way.url, currency="EUR", quote=quote)
        supplier = HttpSupplier(config, wholesaler.key, TIMEOUT_S)
        asked = [Sku(sku, eur("10.00")) for sku in ("b", "missing", "a")]
        assert [(quote.sku, quote.price, quote.stock) for quote in await supplier.quote(asked)] == [
            ("b", eur("18.10"), 100),
            ("a", eur("9.05"), 100),
        ]
        assert way.seen == ["GET /catalogue"]
        await supplier.close()


async def test_a_supplier_that_can_not_be_asked_says_so(
    wholesaler: Warehouse, sku: str, reference: str
) -> None:
    """Without a look-up a lost answer stays unclear; without a quote there are no prices."""
    config = wholesaler.description(guard="none")
    del config["look_up"], config["cancel"], config["quote"]
    supplier = HttpSupplier(config, wholesaler.key, TIMEOUT_S)
    assert not supplier.looks_up
    assert isinstance(await supplier.buy(reference, wanted(sku)), Bought)
    assert isinstance(await supplier.look_up(reference, wanted(sku)), Unclear)
    assert isinstance(await supplier.cancel(reference, wanted(sku)), Unclear)
    with pytest.raises(QuoteFailed):
        await supplier.quote([Sku(sku, eur("10.00"))])
    await supplier.close()


async def test_codes_that_can_not_be_shown_are_unclear_for_as_long_as_they_are_sold(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str
) -> None:
    """Somebody has to look at it; throwing them away would be throwing money away."""
    await wholesaler.behave(sku, "control-characters")
    assert isinstance(await supplier.buy(reference, wanted(sku)), Unclear)
    assert isinstance(await supplier.look_up(reference, wanted(sku)), Unclear)


async def test_a_yes_that_becomes_a_no_is_told_both_times(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str
) -> None:
    """Each answer is told as it is given; who believes which is not for an adapter to decide."""
    await wholesaler.behave(sku, "yes-then-no", seconds=3_600)
    assert isinstance(await supplier.buy(reference, wanted(sku)), Bought)
    await wholesaler.pass_time()
    assert await supplier.look_up(reference, wanted(sku)) == SupplierRefused(Why.REJECTED, "failed")


async def test_the_wholesaler_remembers_across_a_kill(
    supplier: HttpSupplier, wholesaler: Warehouse, sku: str, reference: str
) -> None:
    """Its word is durable, so that tests of ours can hold us to it."""
    bought = await supplier.buy(reference, wanted(sku))
    await wholesaler.kill()
    assert isinstance(await supplier.look_up(reference, wanted(sku)), Unclear)
    await wholesaler.start()
    assert await supplier.look_up(reference, wanted(sku)) == bought
    assert await wholesaler.repeats() == []
