"""The sandbox's own supplier: every outcome, remembered across instances; and how adapters are opened."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.patience import until
from tests.shop import Shop
from voucherd.ids import State
from voucherd.money import Money
from voucherd.suppliers.protocol import (
    Bought,
    NotFound,
    Supplier,
    SupplierRefused,
    Unclear,
    UnderWay,
    WantedCodes,
    Why,
)
from voucherd.suppliers.registry import Spec, check_config, open_supplier
from voucherd.suppliers.sandbox import SandboxAnswer

TEN = Money.read("10.00 EUR")
WANTED = WantedCodes("gift", TEN, 4, TEN)


@pytest.fixture
def name() -> str:
    """A supplier of this test's own."""
    return f"play-{uuid4().hex[:8]}"


def opened(shop: Shop, name: str, **config: Any) -> Supplier:
    """The adapter."""
    return open_supplier(Spec(name, "sandbox", State.SANDBOX, config, None, 1.0), shop.pool)


@pytest.mark.parametrize(
    ("outcome", "count"),
    [("finished", 4), ("partial", 2), ("too-many", 6), ("duplicate", 4), ("crash-after-sale", 4)],
)
async def test_what_was_sold_is_found_by_another_process(
    other_shop: Shop, name: str, outcome: str, count: int
) -> None:
    """OP-49: the codes are test codes, and the same each time; another supplier's purchases are not ours."""
    answered = await opened(other_shop, name, outcome=outcome).buy(reference := str(uuid4()), WANTED)
    found = await opened(other_shop, name).look_up(reference, WANTED)
    assert isinstance(found, Bought)
    assert found == answered or isinstance(answered, Unclear)
    assert len({code.code for code in found.codes}) == count
    assert all(code.code.startswith("TEST-") and code.expires_at for code in found.codes)
    assert await opened(other_shop, f"not-{name}").look_up(reference, WANTED) == NotFound()


async def test_a_duplicate_is_a_code_that_was_sold_before(other_shop: Shop, name: str) -> None:
    """The first code of each purchase is the same one."""
    supplier = opened(other_shop, name, outcome="duplicate")
    first, second = [await supplier.buy(str(uuid4()), WANTED) for _ in range(2)]
    assert isinstance(first, Bought)
    assert isinstance(second, Bought)
    assert {code.code for code in first.codes} & {code.code for code in second.codes} == {first.codes[0].code}


@pytest.mark.parametrize(
    ("outcome", "why"),
    [("out-of-stock", Why.OUT_OF_STOCK), ("insufficient-balance", Why.FUNDS), ("rejected", Why.REJECTED)],
)
async def test_refusals_are_chosen_by_name(other_shop: Shop, name: str, outcome: str, why: Why) -> None:
    """They leave nothing behind."""
    supplier = opened(other_shop, name, outcome=outcome)
    assert await supplier.buy(reference := str(uuid4()), WANTED) == SupplierRefused(why, outcome)
    assert await supplier.look_up(reference, WANTED) == NotFound()


async def test_purchases_under_way_end_as_chosen(other_shop: Shop, name: str) -> None:
    """Delivered later, given up later, or never anything unless they are cancelled."""
    kinds = {"slow": str(uuid4()), "fails-later": str(uuid4()), "pending": str(uuid4())}
    for outcome, reference in kinds.items():
        supplier = opened(other_shop, name, outcome=outcome, delay_s=0.2)
        assert isinstance(await supplier.buy(reference, WANTED), UnderWay)
    supplier = opened(other_shop, name)
    for outcome in ("slow", "fails-later"):

        async def over(reference: str = kinds[outcome]) -> bool:
            return not isinstance(await supplier.look_up(reference, WANTED), UnderWay)

        await until(over)
    found = {outcome: await supplier.look_up(reference, WANTED) for outcome, reference in kinds.items()}
    assert isinstance(found["slow"], Bought)
    assert found["fails-later"] == SupplierRefused(Why.REJECTED, "fails-later")
    assert isinstance(found["pending"], UnderWay)
    assert await supplier.cancel(kinds["pending"], WANTED) == SupplierRefused(Why.CANCELLED)
    assert await supplier.look_up(kinds["pending"], WANTED) == SupplierRefused(Why.CANCELLED)
    assert await supplier.cancel(kinds["slow"], WANTED) == found["slow"]


async def test_unclear_sells_nothing_and_every_nth_can_fail(other_shop: Shop, name: str) -> None:
    """For trying out what happens then."""
    supplier = opened(other_shop, name, outcome="unclear")
    assert isinstance(await supplier.buy(reference := str(uuid4()), WANTED), Unclear)
    assert await supplier.look_up(reference, WANTED) == NotFound()
    supplier = opened(other_shop, name, fail_every=3)
    answers = [await supplier.buy(str(uuid4()), WANTED) for _ in range(9)]
    assert [type(answer) for answer in answers].count(SupplierRefused) == 3


async def test_an_adapter_is_only_opened_for_what_it_is_for(other_shop: Shop) -> None:
    """Live orders never get test codes; a secret that can't be sent is refused before it is needed."""
    with pytest.raises(ValueError, match="kind: a sandbox supplier is for sandbox orders only"):
        open_supplier(Spec("play", "sandbox", State.LIVE, {}, None, 1.0), other_shop.pool)
    config = {"url": "https://other.example", "currency": "EUR"}
    for secret in (None, "", "two\nlines", " padded", "nön-ascii"):
        spec = Spec("other", "voucherd", State.LIVE, config, secret, 1.0)
        with pytest.raises(ValueError, match=r"^secret: ") as refused:
            open_supplier(spec, other_shop.pool)
        assert not secret or secret not in f"{refused.value}{spec!r}"


@pytest.mark.parametrize(
    ("kind", "config", "said"),
    [
        ("shelf", {}, "kind: must be one of voucherd, http, sandbox"),
        ("sandbox", {"outcome": "luck"}, "outcome: invalid enum value 'luck'"),
        ("sandbox", {"speed": 1}, "speed: is not a key that there is"),
        ("sandbox", {"delay_s": -1}, "delay_s: must be between 0 and 3600"),
        ("sandbox", {"price": "9.00"}, "currency: goes with a price, and a price with it"),
        ("sandbox", {"price": "9.001", "currency": "EUR"}, "price: 9.001 has more than 2 digits"),
        ("sandbox", {"price": "9", "currency": "XXX"}, "currency: must be an ISO 4217 code"),
        ("sandbox", {"price": "0", "currency": "EUR"}, "price: must be above zero"),
        ("sandbox", {"stock": -1}, "stock: must not be negative"),
        ("sandbox", {"note": float("nan"), "x": object()}, "config: has a value that JSON does not have"),
        ("sandbox", {"outcome": "x" * 70_000}, "config: must be at most 65536 bytes"),
        ("voucherd", {"url": "https://other.example"}, "currency: is required"),
        (
            "voucherd",
            {"url": "https://other.example", "currency": "eur"},
            "currency: must be an ISO 4217 code in",
        ),
        ("voucherd", {"url": "http://other.example", "currency": "EUR"}, "url: must be https"),
        ("voucherd", {"url": "https://u:p@other.example", "currency": "EUR"}, "url: must have no user"),
        ("voucherd", {"url": "ftp://other.example", "currency": "EUR"}, "url: must start with https://"),
        ("voucherd", {"url": "https://[", "currency": "EUR"}, "url: is not a valid address"),
        ("voucherd", {"url": 7, "currency": "EUR"}, "url: expected `str`, got `int`"),
        (
            "voucherd",
            {"url": "https://other.example", "currency": "EUR", "bulk_max": 2001},
            "bulk_max: must be between 1 and 2000",
        ),
        (
            "voucherd",
            {"url": "https://other.example", "currency": "EUR", "resolve_upto": -1},
            "resolve_upto: must be between 0 and 10000",
        ),
    ],
)
def test_a_wrong_config_is_refused_in_one_line_that_names_the_key(
    kind: str, config: dict[str, Any], said: str
) -> None:
    """Before anything depends on it."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - The text is looked at below.
        check_config(kind, config)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_good_configs_pass() -> None:
    """Plain http only to this machine, or where the operator says that he knows."""
    check_config("sandbox", {})
    for outcome in SandboxAnswer:
        check_config("sandbox", {"outcome": outcome.value, "price": "9.50", "currency": "EUR"})
    for url in (
        "https://other.example/shop",
        "http://127.0.0.1:8080",
        "http://localhost:1",
        "http://[::1]:1",
    ):
        check_config("voucherd", {"url": url, "currency": "EUR"})
    check_config("voucherd", {"url": "http://other.internal", "currency": "EUR", "plain_http": True})
