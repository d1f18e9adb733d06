"""Another voucherd as a supplier: the real service on a socket, with all that the contract lets it answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests import patience
from tests.shop import Company, Shop
from tests.suppliers.crossing import Crossing, answer, crossing
from tests.suppliers.stalls import FACE
from voucherd.ids import State
from voucherd.money import Money
from voucherd.suppliers.protocol import (
    Bought,
    Finding,
    NotFound,
    Sku,
    SupplierQuote,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)
from voucherd.suppliers.voucherd import VoucherdSupplier

TIMEOUT_S = patience.HANG_S


@dataclass
class Branch:
    """A company of ours at the other voucherd."""

    shop: Shop
    way: Crossing
    company: Company

    def supplier(
        self, state: State = State.LIVE, *, timeout_s: float = TIMEOUT_S, **config: Any
    ) -> VoucherdSupplier:
        """The adapter, with its key."""
        given = {"url": self.way.url, "currency": "EUR", **config}
        return VoucherdSupplier(given, self.company.keys[state], state, timeout_s)

    async def product(self, **options: Any) -> str:
        """A product of this test's own."""
        slug = f"gift-{uuid4().hex[:8]}"
        await self.shop.product(slug, **{"price": "9.00 EUR", **options})
        return slug


@pytest.fixture
async def branch(other_shop: Shop, other_port: int) -> AsyncIterator[Branch]:
    """A company with money, on a way that can be blocked."""
    async with crossing(other_port) as way:
        yield Branch(other_shop, way, await other_shop.company())


@pytest.fixture
def reference() -> str:
    """A reference that nobody used before."""
    return str(uuid4())


def wanted(sku: str, count: int = 1, face: Money = FACE, price_max: str = "9.00 EUR") -> WantedCodes:
    """So many codes of a product that costs 9 euros."""
    return WantedCodes(sku, face, count, Money.read(price_max))


async def until(supplier: VoucherdSupplier, reference: str, asked: WantedCodes) -> Finding:
    """What became of a purchase that is under way, once it is not any more."""
    found = await patience.until(lambda: _over(supplier, reference, asked))
    assert found is not None
    return found


async def _over(supplier: VoucherdSupplier, reference: str, asked: WantedCodes) -> Finding | None:
    found = await supplier.look_up(reference, asked)
    return None if isinstance(found, UnderWay) else found


async def test_small_purchases_are_resolved_and_larger_ones_confirmed(branch: Branch) -> None:
    """Contract 1: Resolve is now or never, Confirm may take its time."""
    slug = await branch.product(stock=10)
    supplier = branch.supplier(resolve_upto=2)
    for count in (2, 3):
        bought = await supplier.buy(str(uuid4()), wanted(slug, count))
        assert isinstance(bought, Bought)
        assert len(bought.codes) == count
    paid = [asked.split("/")[4] for asked in branch.way.seen if "PATCH" in asked]
    assert paid == ["resolve", "confirm"]
    assert await branch.shop.left(slug) == 5
    await branch.shop.assert_books_balance()
    await supplier.close()


async def test_a_pending_order_is_under_way_until_it_is_delivered(branch: Branch, reference: str) -> None:
    """Contract 3: delivery goes on in the background; Contract 4: Find all shows the codes in the end."""
    slug = await branch.product(async_delivery=True)
    supplier, asked = branch.supplier(), wanted(slug, 2)
    bought = await supplier.buy(reference, asked)
    assert isinstance(bought, UnderWay)
    assert bought.external_id is not None
    codes = await branch.shop.stock(slug, 2)
    found = await until(supplier, reference, asked)
    assert isinstance(found, Bought)
    assert [(code.code, code.serial) for code in found.codes] == codes
    assert found.external_id == bought.external_id
    await supplier.close()


async def test_cancelling_keeps_what_was_delivered_before(branch: Branch) -> None:
    """OP-45: delivered lines stay delivered and paid; without one, nothing was bought."""
    slug = await branch.product(async_delivery=True, stock=1)
    supplier, asked = branch.supplier(), wanted(slug, 2)
    partly, wholly = str(uuid4()), str(uuid4())
    assert isinstance(await supplier.buy(partly, asked), UnderWay)
    assert isinstance(await supplier.buy(wholly, asked), UnderWay)
    kept = await supplier.cancel(partly, asked)
    assert isinstance(kept, Bought)
    assert len(kept.codes) == 1
    assert await supplier.look_up(partly, asked) == kept
    assert await supplier.cancel(wholly, asked) == SupplierRefused(Why.CANCELLED)
    assert isinstance(await supplier.look_up(wholly, asked), SupplierRefused)
    await branch.shop.assert_books_balance()
    await supplier.close()


async def test_a_resolve_that_gets_nothing_in_time_bought_nothing(branch: Branch, reference: str) -> None:
    """Contract 3: the order is cancelled and no charge applies."""
    slug = await branch.product(async_delivery=True)
    supplier = branch.supplier(resolve_upto=1)
    before = await branch.shop.balance(branch.company)
    buying = asyncio.create_task(supplier.buy(reference, wanted(slug)))
    watch = branch.shop.order_service.watch
    await patience.until_true(lambda: watch.parked)
    for order_id in list(watch._parked):
        watch.wake(order_id)  # As its limit does.
    assert await buying == SupplierRefused(Why.REJECTED)
    assert await branch.shop.balance(branch.company) == before
    await supplier.close()


async def test_an_empty_wallet_is_our_problem_and_leaves_no_order_behind(
    branch: Branch, reference: str
) -> None:
    """Contract 7: insufficient balance."""
    slug = await branch.product(stock=200)
    supplier = branch.supplier()
    answered = await supplier.buy(reference, wanted(slug, 150))
    assert answered == SupplierRefused(Why.FUNDS, "insufficient balance")
    assert await supplier.look_up(reference, wanted(slug, 150)) == NotFound()
    await supplier.close()


async def test_a_look_up_makes_a_late_confirm_impossible(branch: Branch, reference: str) -> None:
    """An order found unconfirmed is cancelled: a Confirm that is still on its way finds none."""
    slug = await branch.product(stock=5)
    supplier, hasty = branch.supplier(), branch.supplier(timeout_s=2.0)
    branch.way.hang("/confirm/")
    answered = await hasty.buy(reference, wanted(slug))
    while not any("/confirm/" in asked for asked in branch.way.seen):
        # The machine was too slow to get as far as that.
        answered = await hasty.buy(reference := str(uuid4()), wanted(slug))
    assert isinstance(answered, Unclear)
    await hasty.close()
    late = next(asked.split(" ")[1] for asked in branch.way.seen if "/confirm/" in asked)
    branch.way.open_up()

    assert await supplier.look_up(reference, wanted(slug)) == SupplierRefused(Why.CANCELLED)

    async with httpx.AsyncClient(base_url=branch.way.url, timeout=TIMEOUT_S) as client:
        response = await client.patch(late, headers=branch.company.bearer())
    assert response.status_code == 404
    assert await supplier.look_up(reference, wanted(slug)) == NotFound()
    assert await branch.shop.left(slug) == 5
    await supplier.close()


async def test_variable_products_are_sent_their_face_value(branch: Branch) -> None:
    """OP-10: required for a variable product and refused for a fixed one; nobody has to configure which is which."""
    slug = await branch.product(face_range="5-50 EUR", fee="1.02")
    await branch.shop.stock(slug, 3, face="25.00 EUR")
    supplier, face = branch.supplier(), Money.read("25.00 EUR")
    assert await supplier.quote([Sku(slug, face)]) == [SupplierQuote(slug, face, Money.read("25.50 EUR"), 3)]
    bought = await supplier.buy(str(uuid4()), wanted(slug, 2, face, "25.50 EUR"))
    assert isinstance(bought, Bought)
    assert bought.price == Money.read("25.50 EUR")

    # A face value that is not sold is left out of the prices, and refused as a purchase.
    face = Money.read("500.00 EUR")
    assert await supplier.quote([Sku(slug, face)]) == []
    refused = await supplier.buy(str(uuid4()), wanted(slug, 1, face, "600.00 EUR"))
    assert isinstance(refused, SupplierRefused)
    assert refused.why is Why.OUT_OF_STOCK
    await supplier.close()


async def test_a_product_of_another_face_value_is_not_bought(branch: Branch, reference: str) -> None:
    """A slip in the operator's list of products must not sell a card of 10 as one of 25."""
    slug = await branch.product(stock=5)
    supplier, face = branch.supplier(), Money.read("25.00 EUR")
    answered = await supplier.buy(reference, wanted(slug, 1, face))
    assert isinstance(answered, SupplierRefused)
    assert answered.why is Why.REJECTED
    assert await supplier.quote([Sku(slug, face)]) == []
    assert await branch.shop.left(slug) == 5
    await supplier.close()


async def test_live_and_sandbox_never_mix(branch: Branch, reference: str) -> None:
    """Invariant 5: a test key is not for live purchases, nor the other way round."""
    given = {"url": branch.way.url, "currency": "EUR"}
    with pytest.raises(ValueError, match="secret: a vk_test_"):
        VoucherdSupplier(given, branch.company.keys[State.SANDBOX], State.LIVE, TIMEOUT_S)
    with pytest.raises(ValueError, match="secret: a vk_live_"):
        VoucherdSupplier(given, branch.company.keys[State.LIVE], State.SANDBOX, TIMEOUT_S)
    # Somebody else's keys don't say what they are for; orders do.
    slug = await branch.product(stock=5)
    supplier = branch.supplier()
    supplier._state = State.SANDBOX
    answered = await supplier.buy(reference, wanted(slug))
    assert isinstance(answered, SupplierRefused)
    assert answered.why is Why.REJECTED
    assert await branch.shop.left(slug) == 5
    await supplier.close()


async def test_the_sandbox_sells_or_declines(branch: Branch) -> None:
    """OP-49: half of the purchases are cancelled at once, unless the operator asks for an outcome."""
    slug = await branch.product()
    for outcome, expected in (("finished", Bought), ("cancelled", SupplierRefused), ("pending", UnderWay)):
        supplier = branch.supplier(State.SANDBOX, sandbox_outcome=outcome)
        answered = await supplier.buy(reference := str(uuid4()), wanted(slug))
        assert isinstance(answered, expected)
        found = await supplier.look_up(reference, wanted(slug))
        assert found == answered
        if isinstance(answered, SupplierRefused):
            assert answered.why is Why.REJECTED
        await supplier.close()
    with pytest.raises(ValueError, match="sandbox_outcome"):
        branch.supplier(sandbox_outcome="finished")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (answer("400 Bad Request", b"this order can not be confirmed"), None),
        (answer("409 Conflict", b"still running"), None),
        (answer("404 Not Found", b"Order not found"), Why.CANCELLED),
        (answer("422 Unprocessable Content", b"some offers not available: Gift"), Why.OUT_OF_STOCK),
        (answer("422 Unprocessable Content", b"Product Gift is out of stock"), Why.OUT_OF_STOCK),
        (answer("400 Bad Request", b"company not verified"), Why.REJECTED),
        (answer("401 Unauthorized", b"unauthorized"), Why.REJECTED),
        (answer("429 Too Many Requests", b"rate limit exceeded"), Why.REJECTED),
    ],
)
async def test_only_a_sure_no_to_the_payment_is_a_refusal(
    branch: Branch, reference: str, said: bytes, expected: Why | None
) -> None:
    """Contract 7: an order that "can not be confirmed" may have been confirmed by this very call."""
    slug = await branch.product(stock=5)
    supplier = branch.supplier()
    branch.way.say(said, "/confirm/")
    answered = await supplier.buy(reference, wanted(slug))
    if expected is None:
        assert isinstance(answered, Unclear)
    else:
        assert isinstance(answered, SupplierRefused)
        assert answered.why is expected
        assert await supplier.look_up(reference, wanted(slug)) == NotFound()
    await supplier.close()


async def test_a_find_all_that_ignores_the_reference_tells_nothing(branch: Branch) -> None:
    """OP-03 is ours: another service may list whatever it likes, and that is no proof that we bought nothing."""
    slug = await branch.product(stock=5)
    supplier = branch.supplier()
    async with httpx.AsyncClient(
        base_url=branch.way.url, headers=branch.company.bearer(), timeout=TIMEOUT_S
    ) as client:
        body = {"items": [{"productSlug": slug, "amount": 1}], "paymentCurrency": "EUR", "reference": "other"}
        assert (await client.post("/api/1.03/order", json=body)).status_code == 201
        page = (await client.get("/api/1.00/order")).content
    branch.way.say(answer("200 OK", page), "GET ")
    assert isinstance(await supplier.look_up(str(uuid4()), wanted(slug)), Unclear)
    assert isinstance(await supplier.cancel(str(uuid4()), wanted(slug)), Unclear)
    await supplier.close()
