"""Every adapter with a supplier behind it, set up the same way: what the conformance tests walk along."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import uvicorn
from msgspec.structs import replace
from uvicorn.server import ServerState

from tests.patience import HANG_S, until_true
from tests.shop import Shop
from tests.suppliers.crossing import Crossing, crossing
from tests.suppliers.fake import FakeSupplier
from tests.suppliers.warehouse import Warehouse
from voucherd.catalogue.texts import read_selling
from voucherd.ids import State
from voucherd.money import Money
from voucherd.server.protocol import ApiProtocol
from voucherd.suppliers.protocol import Supplier, WantedCodes
from voucherd.suppliers.registry import Spec, open_supplier

TIMEOUT_S = HANG_S
"""So long that no machine is too slow for a call that somebody answers."""
HASTY_S = 1.0
"""The limit where nobody answers."""
FACE = Money.parse("10.00", "EUR")
STOCK = 20


class Stall(ABC):
    """One adapter, and the levers of the supplier behind it."""

    sells_everything = False
    paying = ""
    """What the path of the call has in it that pays."""

    def __init__(self, sku: str) -> None:
        self.sku = sku
        self.secret = f"stall-secret-{uuid4().hex}"
        self.crossing: Crossing | None = None

    @property
    @abstractmethod
    def supplier(self) -> Any:
        """The adapter."""

    @abstractmethod
    async def ask(self, price: str) -> None:
        """Ask this price from now on."""

    @abstractmethod
    async def hang(self) -> None:
        """Answer nothing from now on; calls have the short limit then."""

    async def hurry(self) -> None:
        """Give calls the short limit from now on."""
        raise NotImplementedError

    def wanted(self, count: int = 3, price_max: str = "9.00 EUR") -> WantedCodes:
        """So many codes of a product that costs 9 euros."""
        return WantedCodes(self.sku, FACE, count, Money.read(price_max))


class FakeStall(Stall):
    """The supplier for other people's tests."""

    sells_everything = True

    def __init__(self) -> None:
        super().__init__("gift")
        self.supplier_ = FakeSupplier(Money.parse("9.00", "EUR"), stock=STOCK, timeout_s=HASTY_S)

    @property
    def supplier(self) -> Supplier:
        return self.supplier_

    async def ask(self, price: str) -> None:
        self.supplier_.price = Money.parse(price, "EUR")

    async def hang(self) -> None:
        self.supplier_.script.extend(["hang"] * 3)


class SandboxStall(Stall):
    """The sandbox's own supplier."""

    sells_everything = True

    def __init__(self, shop: Shop) -> None:
        super().__init__("gift")
        self._shop = shop
        self._name = f"play-{uuid4().hex[:8]}"
        self._open(price="9.00", currency="EUR")

    def _open(self, timeout_s: float = TIMEOUT_S, **config: Any) -> None:
        config = {"stock": STOCK} | config
        self._supplier = open_supplier(
            Spec(self._name, "sandbox", State.SANDBOX, config, None, timeout_s), self._shop.pool
        )

    @property
    def supplier(self) -> Supplier:
        return self._supplier

    async def ask(self, price: str) -> None:
        self._open(price=price, currency="EUR")

    async def hang(self) -> None:
        self._open(HASTY_S, price="9.00", currency="EUR", delay_s=3_600)


class HttpStall(Stall):
    """The wholesaler, as its description says."""

    paying = "POST /orders"

    def __init__(self, warehouse: Warehouse, sku: str, way: Crossing, shop: Shop) -> None:
        super().__init__(sku)
        self.secret = warehouse.key
        self.crossing = way
        self._warehouse = warehouse
        config = warehouse.description(base_url=way.url)
        self._spec = Spec("wholesale", "http", State.LIVE, config, self.secret, TIMEOUT_S)
        self._pool = shop.pool
        self._supplier = open_supplier(self._spec, shop.pool)

    @property
    def supplier(self) -> Supplier:
        return self._supplier

    async def hurry(self) -> None:
        await self._supplier.close()
        self._supplier = open_supplier(replace(self._spec, timeout_s=HASTY_S), self._pool)

    async def ask(self, price: str) -> None:
        await self._warehouse.stock(self.sku, price=price, stock=STOCK)

    async def hang(self) -> None:
        assert self.crossing is not None
        await self.hurry()
        self.crossing.hang()


class VoucherdStall(Stall):
    """Another voucherd, with a key of its company."""

    paying = "/order/confirm/"

    def __init__(self, shop: Shop, slug: str, key: str, way: Crossing) -> None:
        super().__init__(slug)
        self.secret = key
        self.crossing = way
        self.shop = shop
        config = {"url": way.url, "currency": "EUR"}
        self._spec = Spec("other", "voucherd", State.LIVE, config, key, TIMEOUT_S)
        self._supplier = open_supplier(self._spec, shop.pool)

    @property
    def supplier(self) -> Supplier:
        return self._supplier

    async def hurry(self) -> None:
        await self._supplier.close()
        self._supplier = open_supplier(replace(self._spec, timeout_s=HASTY_S), self.shop.pool)

    async def ask(self, price: str) -> None:
        await self.shop.set_product(self.sku, selling=read_selling(f"{price} EUR", None))

    async def hang(self) -> None:
        assert self.crossing is not None
        await self.hurry()
        self.crossing.hang()


@asynccontextmanager
async def listening(shop: Shop) -> AsyncIterator[int]:
    """The shop behind a real socket; its port."""
    config = uvicorn.Config(
        shop.app, http=ApiProtocol, loop="none", lifespan="off", log_config=None, access_log=False
    )
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: ApiProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await until_true(lambda: not state.connections)
        await server.wait_closed()


@asynccontextmanager
async def stall(kind: str, shop: Shop, port: int, warehouse: Warehouse) -> AsyncIterator[Stall]:
    """A supplier of that kind with 20 codes of a product that costs 9 euros."""
    async with AsyncExitStack() as stack:
        slug = f"gift-{uuid4().hex[:8]}"
        opened: Stall
        if kind == "fake":
            opened = FakeStall()
        elif kind == "sandbox":
            opened = SandboxStall(shop)
        elif kind == "http":
            await warehouse.stock(slug, price="9.00", stock=STOCK)
            way = await stack.enter_async_context(crossing(int(warehouse.url.rpartition(":")[2])))
            opened = HttpStall(warehouse, slug, way, shop)
        else:
            await shop.product(slug, price="9.00 EUR")
            await shop.stock(slug, STOCK, cost="9.00 EUR")
            company = await shop.company()
            way = await stack.enter_async_context(crossing(port))
            opened = VoucherdStall(shop, slug, company.keys[State.LIVE], way)
        try:
            yield opened
        finally:
            await opened.supplier.close()
