"""A shop that has been open for a while: orders in every state, made by the service through its API and pages."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.apps import set_up
from tests.pages.people import Someone, someone
from tests.pages.test_recipient import clicked, opened
from tests.purchasing.conftest import Market
from tests.purchasing.fake import FakeSupplier, sold_but_unclear, sold_out, too_many, unclear, waits
from tests.scenarios.test_company_prices import give_list, say
from tests.shop import Company, Shop, open_shop
from tests.webhooks.postman import Postman
from tests.webhooks.receiver import receiving
from voucherd.catalogue.price_list_files import PriceChange as Agreed
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.keys.key_text import Scope
from voucherd.suppliers.protocol import Answer, WantedCodes

SANDBOX: Final = State.SANDBOX
PIN: Final = "24680"
UNDER_WAY_S_MAX: Final = 120
"""How long a Resolve and a purchase may be under way: longer than the slowest machine needs to take the dump."""
DESCRIPTION: Final = tomllib.loads(
    (Path(__file__).parents[1] / "suppliers" / "wholesale.toml").read_text(encoding="utf-8")
)


@dataclass
class Filled:
    """What is in the shop: its keys, and one order of every kind by the name of the kind."""

    shop: Shop
    company: Company
    orders: dict[str, str] = field(default_factory=dict)
    """Kind to trx; those of the sandbox begin with "sandbox "."""
    codes: dict[str, list[str]] = field(default_factory=dict)
    """Kind to the codes that its buyer was told."""


@asynccontextmanager
async def filled(pool: Pool, url: str, folder: Path) -> AsyncIterator[Filled]:
    """The shop, with a purchase and a Resolve under way for as long as it is open."""
    options = {"confirm_wait_s": 0, "resolve_limit_s": UNDER_WAY_S_MAX, "webhook_networks": "127.0.0.0/8"}
    async with open_shop(pool, url, folder, with_worker=False, **options) as shop:
        market, postman = Market(shop), Postman(shop)
        done = Filled(shop, await shop.company(scopes=frozenset(Scope)))
        resolving: asyncio.Task[Any] | None = None
        try:
            await _stock(shop)
            await _sell(done)
            await _sell_in_sandbox(done)
            await _people(done)
            await _purchases(done, market)
            resolving = await _under_way(done, market)
            await _tell(done, postman)
            yield done
        finally:
            for fake in market.suppliers.values():
                fake.free.set()
            if resolving is not None:
                resolving.cancel()
                with suppress(asyncio.CancelledError, httpx.HTTPError):
                    await resolving
            await market.dispatcher.stop()
            await postman.stop()


async def _stock(shop: Shop) -> None:
    await shop.fx("USD", 92_000_000)
    await shop.product(
        "gift-10",
        stock=0,
        vat_category="single_purpose",
        redeem_instructions="Type it in.",
        terms="No refunds.",
    )
    await shop.stock_codes("gift-10", [(f"GIFT-{at:04d}", f"S-{at:04d}") for at in range(30)])
    await shop.product("slow-20", face="20.00 EUR", price="19.00 EUR", async_delivery=True)
    await shop.product("any-value", face_range="5-50 EUR", fee="1.02+0.10")
    await shop.product("gone-10", active=False)
    await shop.set_product("gift-10", name="Gift card of 10 euro")


async def _sell(done: Filled) -> None:
    """Orders that never leave our own stock."""
    shop, company, orders = done.shop, done.company, done.orders
    for kind, amount in (
        ("created", 2),
        ("created to cancel", 1),
        ("expired", 1),
        ("deleted", 1),
        ("finished", 3),
    ):
        orders[kind] = (await shop.create(company, ("gift-10", amount), reference=f"PO {kind}"))["trx"]
    await shop.age(orders["expired"], "2 days")
    assert (await shop.cancel(company, orders["deleted"])).status_code == 204
    finished = await shop.confirm(company, orders["finished"])
    done.codes["finished"] = _codes(finished)
    pin = await shop.call(
        "PATCH", f"/api/1.03/order/{orders['finished']}/redemption", company, json={"pin": PIN}
    )
    assert pin.json()["hasPin"]
    file = await shop.call("GET", f"/api/1.03/order/{orders['finished']}/codes.csv", company)
    assert file.status_code == 200, file.text

    for kind in ("waiting", "cancelled", "partly refunded"):
        orders[kind] = (await shop.create(company, ("slow-20", 2)))["trx"]
    await shop.confirm(company, orders["partly refunded"])
    await shop.stock_codes("slow-20", [("SLOW-0001", "T-0001")])
    await shop.worker.run_once("deliver")
    for kind in ("waiting", "cancelled"):
        await shop.confirm(company, orders[kind])
    for kind in ("cancelled", "partly refunded"):
        assert (await shop.cancel(company, orders[kind])).status_code == 200

    own = await shop.call("POST", "/api/1.03/webhook", company, json={"perOrder": True})
    assert own.status_code == 201, own.text
    headers = {"idempotency-key": "till 7, sale 1"}
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    body["webhookUrl"] = "http://127.0.0.1:9/orders/7"
    once = await shop.call("POST", "/api/1.03/order", company, headers=headers, json=body)
    assert once.status_code == 201, once.text
    orders["finished once"] = once.json()["trx"]
    done.codes["finished once"] = _codes(await shop.confirm(company, orders["finished once"]))


async def _sell_in_sandbox(done: Filled) -> None:
    shop, company = done.shop, done.company
    for kind, outcome in (
        ("created", None),
        ("finished", "finished"),
        ("cancelled", "cancelled"),
        ("waiting", "slow:3600"),
    ):
        trx = (await shop.create(company, ("gift-10", 2), state=SANDBOX))["trx"]
        done.orders[f"sandbox {kind}"] = trx
        if outcome is not None:
            order = await shop.confirm(company, trx, state=SANDBOX, outcome=outcome)
            assert order["orderStatus"] == kind.replace("waiting", "pending"), order


async def _people(done: Filled) -> None:
    """Two buyers, one order that waits for the second of them, one recipient, and a top-up that two people made."""
    shop, company = done.shop, done.company
    ann, ben = await someone(shop, "finance"), await someone(shop, "admin")
    wish = {"company": str(company.id), "kind": "top-up", "currency": "EUR", "amount": "250.00"}
    for reference in ("transfer 1", "transfer 2"):
        asked = await ann.post("/console/money", wish | {"reference": reference})
        assert asked.status_code == 303, asked.text
        if reference == "transfer 1":
            assert (await ben.post(f"{asked.headers['location']}/approve")).status_code == 303
    await _agree_on_prices(shop, company)
    async with transaction(shop.pool) as tx:
        await set_up(tx, shop.sealer, ann.user_id)
    owner, buyer = await someone(shop, "owner", company), await someone(shop, "buyer", company)
    await shop.pool.execute("UPDATE company SET approve_from_eur_minor = 1500 WHERE id = $1", company.id)
    # Its keys confirm alone, as all keys did then.
    await shop.pool.execute("UPDATE api_key SET confirms_alone = true WHERE company_id = $1", company.id)
    await shop.hear()
    assert (await owner.post("/portal/alerts", {"currency": "EUR", "below": "100,00"})).status_code == 303
    done.orders["to approve"] = await _ordered(buyer, 2)
    done.orders["portal finished"] = await _ordered(buyer, 1)
    for kind in ("to approve", "portal finished"):
        assert (await buyer.post(f"/portal/orders/{done.orders[kind]}/confirm")).status_code == 303
    await buyer.post("/portal/cart/add", {"slug": "any-value", "amount": 1, "face": "25.00"})

    line, other = (await shop.find(company, done.orders["finished"]))["items"][0]["orderLines"][:2]
    page = await opened(shop, line)
    assert "11111" not in (await clicked(shop, line, page, "11111")).text
    assert done.codes["finished"][0] in (await clicked(shop, line, page, PIN)).text
    await clicked(shop, other, await opened(shop, other), "11111")


async def _agree_on_prices(shop: Shop, company: Company) -> None:
    list_id = await give_list(shop, "Friends", company)
    await say(shop, list_id, Agreed("gift-10", discount="1%"))
    await say(shop, list_id, Agreed("any-value", fee="1.01+0.05"))


async def _ordered(buyer: Someone, amount: int) -> str:
    await buyer.post("/portal/cart/add", {"slug": "gift-10", "amount": amount})
    answer = await buyer.post("/portal/cart/order", {"reference": "PO portal"})
    found = re.fullmatch("/portal/orders/([^/]+)", answer.headers["location"])
    assert found, answer.headers["location"]
    return found[1]


async def _purchases(done: Filled, market: Market) -> None:
    """One purchase of every end; each supplier has a product of its own."""
    shop, company, orders = done.shop, done.company, done.orders
    for kind, deed, looks_up in (
        ("bought", None, True),
        ("bought too many", too_many, True),
        ("refused by the supplier", sold_out, True),
        ("asked about", sold_but_unclear, True),
        ("of unknown end", unclear, False),
    ):
        slug = kind.replace(" ", "-")
        await shop.product(slug, async_delivery=True)
        fake = await market.supplier(
            slug, slug, config=DESCRIPTION, secret="key of ours", looks_up=looks_up, settle_s=3600
        )
        fake.deeds = [] if deed is None else [deed]
        orders[kind] = (await shop.create(company, (slug, 2)))["trx"]
        await shop.confirm(company, orders[kind])
        await market.round()
    market.suppliers["bought"].deeds = [sold_before]
    orders["of known codes"] = (await shop.create(company, ("bought", 2)))["trx"]
    await shop.confirm(company, orders["of known codes"])
    await market.round()
    for kind in ("bought", "bought too many"):
        done.codes[kind] = _codes(await shop.find(company, orders[kind]))


async def sold_before(supplier: FakeSupplier, reference: str, wanted: WantedCodes) -> Answer:
    """Sells the codes of an earlier purchase once more, which are put aside."""
    first = next(iter(supplier.sold.values()))
    supplier.sold[reference] = first
    return first


async def _under_way(done: Filled, market: Market) -> asyncio.Task[Any]:
    """A purchase that has no answer yet, one for an order that was cancelled since, and a Resolve that holds money."""
    shop, company, orders = done.shop, done.company, done.orders
    await shop.product("later-10", async_delivery=True)
    fake = await market.supplier(
        "later-10", "later-10", config=DESCRIPTION, secret="key of ours", timeout_s=UNDER_WAY_S_MAX
    )
    fake.deeds = [waits] * 3
    for kind in ("at a supplier", "cancelling", "held"):
        orders[kind] = (await shop.create(company, ("later-10", 1)))["trx"]
    for kind in ("at a supplier", "cancelling"):
        await shop.confirm(company, orders[kind])
        await market.dispatcher.dispatch()
    assert (await shop.cancel(company, orders["cancelling"])).json()["orderStatus"] == "cancelled"
    resolving = asyncio.create_task(shop.finalise("resolve", company, orders["held"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()
    return resolving


async def _tell(done: Filled, postman: Postman) -> None:
    """Keys, endpoints with deliveries of every status, announcements, and sealed blocks of the trail."""
    shop, company = done.shop, done.company
    made = await shop.call("POST", "/api/1.03/key", company, json={"description": "till", "spendDayEur": 500})
    assert made.status_code == 201, made.text
    till = Company(company.id, company.name, {State.LIVE: made.json()["key"]})
    done.orders["finished by a limited key"] = (await shop.create(till, ("gift-10", 1)))["trx"]
    done.codes["finished by a limited key"] = _codes(
        await shop.confirm(till, done.orders["finished by a limited key"])
    )
    rotated = await shop.call("POST", f"/api/1.03/key/{made.json()['id']}/rotate", company, json={})
    assert rotated.status_code in (200, 201), rotated.text
    async with receiving() as receiver:
        for url in (receiver.url(), "http://127.0.0.1:9/closed"):
            answer = await shop.call("POST", "/api/1.03/webhook", company, json={"url": url})
            assert answer.status_code == 201, answer.text
        done.orders["finished and told"] = (await shop.create(company, ("gift-10", 1)))["trx"]
        done.codes["finished and told"] = _codes(
            await shop.confirm(company, done.orders["finished and told"])
        )
        await postman.run()
    for _ in range(3):
        await shop.worker.run_once("announce_expired")
        await shop.worker.run_once("announce_stock")
        await shop.worker.run_once("seal_trail")
    assert (await shop.call("GET", "/api/1.03/event", company)).status_code == 200


def _codes(order: dict[str, Any]) -> list[str]:
    return [line["voucherCode"] for item in order["items"] for line in item["orderLines"]]
