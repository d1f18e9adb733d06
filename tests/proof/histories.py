"""Short histories of a few clients that call two servers at once, with what each call was told and when."""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import httpx

from tests.patience import HANG_S
from tests.proof.linearizable import Call, Verdict, check
from tests.proof.small_shop import (
    DONE,
    NO_MONEY,
    NO_STOCK,
    NOT_FOUND,
    PRICE_MINOR,
    WRONG_STATUS,
    Rules,
    SmallShop,
)
from tests.shop import Company, Shop
from voucherd.money import Money

CLIENTS: Final = 4
CALLS: Final = 6
ORDERS_MAX: Final = 5
IMPATIENT: Final = 0.06
"""How often a client hangs up before it hears."""
IMPATIENT_S_MAX: Final = 0.02
SENDS: Final = "http11.send_request_headers.started"
"""How httpx calls the moment in which it is connected, and sends."""
BALANCE_MINOR: Final = 5_000
REFUSALS: Final = {400: WRONG_STATUS, 402: NO_MONEY, 404: NOT_FOUND, 422: NO_STOCK}
WISHES: Final = {
    "create": 5,
    "confirm": 5,
    "resolve": 3,
    "cancel": 2,
    "find": 4,
    "account": 2,
    "top_up": 1,
    "restock": 2,
}

Send = Callable[..., Awaitable[httpx.Response]]
"""Sends one request: method, path, then the arguments of httpx."""


class Lost(Exception):
    """The client does not know what became of its call."""


@dataclass
class History:
    """One history: who called, what they were told, and the shop that it began with."""

    shop: Shop
    company: Company
    goods: dict[str, str]
    """The slug of each kind of goods."""
    sends: list[Send]
    seed: int
    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    known: list[tuple[int, str]] = field(default_factory=list)
    """Id and trx of orders that somebody has heard of."""
    strange: list[str] = field(default_factory=list)
    """Answers that no client should ever get."""

    async def run(self) -> None:
        """Let the clients call, and look at everything once they are done."""
        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._client(number))
        last = random.Random(self.seed)
        for order_id, trx in list(self.known):
            await self._find(last, order_id, trx)
        await self._account(last)

    def verdict(self) -> Verdict:
        """Whether some order of the calls explains what the clients were told."""
        shelves = tuple((goods, self.codes[goods]) for goods in PRICE_MINOR)
        return check(Rules(), SmallShop(BALANCE_MINOR, shelves), self.calls)

    async def _client(self, number: int) -> None:
        chance = random.Random(f"{self.seed}-{number}")
        for _ in range(CALLS):
            # Codes and money come from one person, so that it is known which lot came first.
            wishes = [one for one in WISHES if number == 0 or one not in {"top_up", "restock"}]
            (wish,) = chance.choices(wishes, [WISHES[one] for one in wishes])
            await self._wish(chance, wish)

    async def _wish(self, chance: random.Random, wish: str) -> None:
        if wish == "account":
            await self._account(chance)
        elif wish == "top_up":
            await self._top_up(chance)
        elif wish == "restock":
            await self._restock(chance)
        elif wish == "create" or not self.known:
            await self._create(chance)
        else:
            order_id, trx = chance.choice(self.known)
            await getattr(self, f"_{wish}")(chance, order_id, trx)

    async def _create(self, chance: random.Random) -> None:
        if len(self.known) >= ORDERS_MAX:
            return
        goods, amount = chance.choice(["now", "now", "later"]), chance.randint(1, 3)
        body = {
            "items": [{"productSlug": self.goods[goods], "amount": amount}],
            "paymentCurrency": "EUR",
        }
        began_at = time.monotonic()
        try:
            response = await self._send(chance, "POST", "/api/1.03/order", json=body)
        except Lost:
            return
        ended_at = time.monotonic()
        if response.status_code == 201:
            trx = response.json()["trx"]
            order_id = self.shop.ids.order_id(trx)
            assert order_id is not None
            self._note("create", (order_id, goods, amount), DONE, began_at, ended_at)
            self.known.append((order_id, trx))
        else:
            refusal = self._refusal(response)
            if refusal is not None:
                self._note("create", (0, goods, amount), refusal, began_at, ended_at)

    async def _confirm(self, chance: random.Random, order_id: int, trx: str) -> None:
        await self._finalise(chance, order_id, f"confirm/{trx}", ("pay", "find"))

    async def _resolve(self, chance: random.Random, order_id: int, trx: str) -> None:
        await self._finalise(chance, order_id, f"resolve/{trx}", ("hold", "end"))

    async def _finalise(
        self, chance: random.Random, order_id: int, path: str, steps: tuple[str, str]
    ) -> None:
        """Confirm and Resolve take the money in one step and show the order in another, later one."""
        began_at = time.monotonic()
        first: Hashable = None
        second: Hashable = None
        try:
            response = await self._send(chance, "PATCH", f"/api/1.03/order/{path}")
            if response.status_code == 200:
                first, second = DONE, view(response.json())
            else:
                first = self._refusal(response)
        except Lost:
            pass
        ended_at = math.inf if first is None else time.monotonic()
        number = self._note(steps[0], order_id, first, began_at, ended_at)
        if first is None or first == DONE:
            self._note(steps[1], order_id, second, began_at, ended_at, after=number)

    async def _cancel(self, chance: random.Random, order_id: int, trx: str) -> None:
        await self._ask(chance, "cancel", order_id, "PATCH", f"/api/1.03/order/cancel/{trx}")

    async def _find(self, chance: random.Random, order_id: int, trx: str) -> None:
        await self._ask(chance, "find", order_id, "GET", f"/api/1.03/order/{trx}")

    async def _account(self, chance: random.Random) -> None:
        await self._ask(chance, "account", None, "GET", "/api/1.03/account")

    async def _ask(self, chance: random.Random, what: str, about: Any, method: str, path: str) -> None:
        began_at = time.monotonic()
        answer: Hashable = None
        try:
            response = await self._send(chance, method, path)
            if not response.is_success:
                answer = self._refusal(response)
            elif what == "cancel":
                answer = DONE
            else:
                answer = account(response.json()) if what == "account" else view(response.json())
        except Lost:
            pass
        if answer is not None or what == "cancel":
            ended_at = math.inf if answer is None else time.monotonic()
            self._note(what, about, answer, began_at, ended_at)

    async def _top_up(self, chance: random.Random) -> None:
        amount_minor = chance.randint(1, 3) * 777
        began_at = time.monotonic()
        await self.shop.top_up(self.company, str(Money(amount_minor, "EUR")))
        self._note("top_up", amount_minor, DONE, began_at, time.monotonic())

    async def _restock(self, chance: random.Random) -> None:
        goods = chance.choice(list(PRICE_MINOR))
        codes = new_codes(chance.randint(1, 3))
        began_at = time.monotonic()
        await self.shop.stock_codes(self.goods[goods], [(code, code) for code in codes])
        self._note("restock", (goods, codes), DONE, began_at, time.monotonic())

    async def _send(self, chance: random.Random, method: str, path: str, **arguments: Any) -> httpx.Response:
        impatient = chance.random() < IMPATIENT
        timeout_s = chance.uniform(0.0, IMPATIENT_S_MAX) if impatient else HANG_S
        send = chance.choice(self.sends)
        try:
            async with asyncio.timeout(HANG_S) as limit:

                async def hang_up_soon(event: str, _about: object) -> None:
                    # Not while it connects: asyncio may lose a connection that is given up as it is made.
                    if event == SENDS:
                        limit.reschedule(asyncio.get_running_loop().time() + timeout_s)

                headers, extensions = self.company.bearer(), {"trace": hang_up_soon}
                return await send(method, path, headers=headers, extensions=extensions, **arguments)
        except (httpx.TransportError, TimeoutError):
            raise Lost from None

    def _refusal(self, response: httpx.Response) -> str | None:
        """What the refusal is; None if it leaves open whether anything was done."""
        if response.status_code not in {*REFUSALS, 503}:
            self.strange.append(f"{response.status_code} {response.text}")
        return REFUSALS.get(response.status_code)

    def _note(
        self,
        what: str,
        about: Any,
        answer: Hashable,
        began_at: float,
        ended_at: float,
        after: int | None = None,
    ) -> int:
        self.calls.append(Call(what, about, answer, began_at, ended_at, after))
        return len(self.calls) - 1


def view(order: dict[str, Any]) -> Hashable:
    """What the small shop knows of an order, as a client sees it."""
    lines = [line for item in order["items"] for line in item["orderLines"]]
    codes = tuple(line["voucherCode"] for line in lines if line.get("voucherCode"))
    return order["orderStatus"], order["paymentStatus"], codes


def account(accounts: list[dict[str, Any]]) -> Hashable:
    """Balance and what is held of it, in cents."""
    (one,) = accounts
    return tuple(int(Decimal(str(one[name])) * 100) for name in ("totalAmount", "heldAmount"))


def new_codes(count: int) -> tuple[str, ...]:
    """Codes that nobody has seen before."""
    return tuple(f"CODE-{secrets.token_hex(8)}" for _ in range(count))


async def begun(shop: Shop, sends: list[Send], seed: int) -> History:
    """A history that is about to begin: a new buyer, new goods, a few codes of each."""
    company = await shop.company(balance=str(Money(BALANCE_MINOR, "EUR")))
    goods = {kind: f"{kind}-{seed}-{secrets.token_hex(3)}" for kind in PRICE_MINOR}
    history = History(shop, company, goods, sends, seed)
    for kind, slug in goods.items():
        await shop.product(slug, price=str(Money(PRICE_MINOR[kind], "EUR")), async_delivery=kind == "later")
        history.codes[kind] = new_codes(random.Random(f"{seed}-{kind}").randint(1, 4))
        await shop.stock_codes(slug, [(code, code) for code in history.codes[kind]])
    return history
